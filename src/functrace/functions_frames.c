/* SPDX-License-Identifier: MIT */
/*
 * functions_frames.c: see functions_parts.h. .eh_frame describes nearly every piece of code that a compiler made, also in
 * stripped files:
 *
 *   CIE: instructions that all its FDEs begin with   "CFA = rsp + 8"
 *   FDE: from, bytes, instructions                   "from + 1 on: CFA = rsp + 16" ...
 *
 * What the instructions do is in functions_cfa.c.
 */
#include "functrace/functions_parts.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_MAX (4u << 20)

/* A pointer in one of the encodings that linkers use; `at` is the address of its first byte. */
static uint64_t read_pointer(struct ky_functions_cursor *in, unsigned encoding, uint64_t at)
{
	uint64_t value = 0;
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		value = ky_functions_fixed(in, 8);
		break;
	case DW_EH_PE_udata4:
		value = ky_functions_fixed(in, 4);
		break;
	case DW_EH_PE_sdata4:
		value = (uint64_t)(int64_t)(int32_t)ky_functions_fixed(in, 4);
		break;
	default:
		in->bad = true;
	}
	if ((encoding & 0x70) == DW_EH_PE_pcrel)
		value += at;
	else if (encoding & 0x70)
		in->bad = true;
	return value;
}

/* What an FDE needs of its CIE. */
struct common {
	uint64_t at; /* where it is in the section; ~0: none */
	unsigned encoding;
	bool has_data; /* augmentation data, with its length */
	struct ky_functions_frame frame;
};

static void read_augmentation(struct common *common, const Dwarf_CIE *cie)
{
	struct ky_functions_cursor in = {cie->augmentation_data,
					 cie->augmentation_data + cie->augmentation_data_size,
					 false};
	common->encoding = DW_EH_PE_absptr;
	common->has_data = cie->augmentation[0] == 'z';
	common->frame.is_signal = false;
	for (const char *c = cie->augmentation; *c && cie->augmentation_data; c++) {
		if (*c == 'R') {
			common->encoding = (unsigned)ky_functions_fixed(&in, 1);
		} else if (*c == 'L') {
			ky_functions_fixed(&in, 1);
		} else if (*c == 'P') {
			const unsigned encoding = (unsigned)ky_functions_fixed(&in, 1);
			read_pointer(&in, encoding & 0x0f, 0);
		} else if (*c == 'S') {
			common->frame.is_signal = true;
		}
	}
}

static void read_common(struct common *common, const Dwarf_CIE *cie, uint64_t at)
{
	common->at = at;
	common->frame.common = cie->initial_instructions;
	common->frame.common_end = cie->initial_instructions_end;
	common->frame.code_align = cie->code_alignment_factor;
	common->frame.data_align = cie->data_alignment_factor;
	read_augmentation(common, cie);
}

static bool frames_room(struct ky_functions_reading *reading)
{
	if (reading->frames_count < reading->frames_room)
		return true;
	const uint32_t room = reading->frames_room ? 2 * reading->frames_room : 4096;
	struct ky_functions_frame *frames =
		room <= FRAMES_MAX ? reallocarray(reading->frames, room, sizeof(*frames)) : NULL;
	if (!frames)
		return false;
	reading->frames = frames;
	reading->frames_room = room;
	return true;
}

static bool add_frame(struct ky_functions_reading *reading, const struct common *common,
		      const Dwarf_FDE *fde, const Elf_Data *data, uint64_t address)
{
	struct ky_functions_cursor in = {fde->start, fde->end, false};
	struct ky_functions_frame frame = common->frame;
	const uint64_t at = address + (uint64_t)(fde->start - (const uint8_t *)data->d_buf);
	frame.address = read_pointer(&in, common->encoding, at);
	frame.bytes = read_pointer(&in, common->encoding & 0x0f, 0);
	if (common->has_data) {
		const uint64_t skip = ky_functions_leb(&in, false);
		in.bad |= skip > (size_t)(in.end - in.at);
		in.at += in.bad ? 0 : skip;
	}
	uint64_t left;
	if (in.bad || !frame.bytes || !ky_functions_bytes(reading->own, frame.address, true, &left))
		return true;
	frame.bytes = frame.bytes < left ? frame.bytes : left;
	frame.own = in.at;
	frame.own_end = in.end;
	if (!frames_room(reading))
		return false;
	reading->frames[reading->frames_count++] = frame;
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct ky_functions_frame *left = a;
	const struct ky_functions_frame *right = b;
	return (left->address > right->address) - (left->address < right->address);
}

/* Without headers of sections (sstrip), .eh_frame is found by its index, which the unwinder uses. */
static Elf_Data *find_by_index(struct ky_functions_reading *reading, uint64_t *address)
{
	size_t count;
	ky_functions_segments_data(reading);
	for (size_t i = 0; elf_getphdrnum(reading->elf, &count) == 0 && i < count && i < 1024;
	     i++) {
		GElf_Phdr head;
		uint64_t bytes;
		if (!gelf_getphdr(reading->elf, (int)i, &head) || head.p_type != PT_GNU_EH_FRAME)
			continue;
		const uint8_t *index =
			ky_functions_bytes(reading->own, head.p_vaddr, false, &bytes);
		if (!index || bytes < 8)
			return NULL;
		struct ky_functions_cursor in = {index + 4, index + bytes, false};
		*address = read_pointer(&in, index[1], head.p_vaddr + 4);
		const uint8_t *frames =
			in.bad ? NULL : ky_functions_bytes(reading->own, *address, false, &bytes);
		const uint64_t offset = head.p_offset + (*address - head.p_vaddr);
		return frames ? elf_getdata_rawchunk(reading->elf, (int64_t)offset, bytes,
						     ELF_T_BYTE)
			      : NULL;
	}
	return NULL;
}

static void read_frames(struct ky_functions_reading *reading, Elf_Data *data, uint64_t address)
{
	const unsigned char *ident = (const unsigned char *)elf_getident(reading->elf, NULL);
	struct common common = {.at = ~UINT64_C(0)};
	Dwarf_Off next = 0;
	Dwarf_CFI_Entry entry;
	for (Dwarf_Off at = 0;; at = next) {
		const int result = dwarf_next_cfi(ident, data, true, at, &next, &entry);
		if (result != 0 && (result > 0 || next <= at))
			break;
		if (result < 0)
			continue; /* that one is damaged; where the next begins is known */
		if (dwarf_cfi_cie_p(&entry)) {
			read_common(&common, &entry.cie, at);
			continue;
		}
		Dwarf_CFI_Entry cie;
		Dwarf_Off unused;
		if (entry.fde.CIE_pointer != common.at) {
			if (dwarf_next_cfi(ident, data, true, entry.fde.CIE_pointer, &unused,
					   &cie) != 0 ||
			    !dwarf_cfi_cie_p(&cie))
				continue;
			read_common(&common, &cie.cie, entry.fde.CIE_pointer);
		}
		if (!add_frame(reading, &common, &entry.fde, data, address))
			break;
	}
}

void ky_functions_frames(struct ky_functions_reading *reading)
{
	GElf_Shdr head = {0};
	Elf_Scn *section = ky_functions_section(reading->elf, ".eh_frame", &head);
	uint64_t address = head.sh_addr;
	Elf_Data *data = section ? elf_rawdata(section, NULL) : find_by_index(reading, &address);
	if (!data || !data->d_buf)
		return;
	read_frames(reading, data, address);
	if (reading->frames_count)
		qsort(reading->frames, reading->frames_count, sizeof(*reading->frames), by_address);
}

const struct ky_functions_frame *ky_functions_frame_at(const struct ky_functions_reading *reading,
						       uint64_t address)
{
	uint32_t low = 0;
	uint32_t high = reading->frames_count;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		if (reading->frames[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	const struct ky_functions_frame *frame = low ? &reading->frames[low - 1] : NULL;
	return frame && address - frame->address < frame->bytes ? frame : NULL;
}
