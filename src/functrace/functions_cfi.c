/* SPDX-License-Identifier: MIT */
/*
 * functions_cfi.c: see functions_parts.h. .eh_frame describes nearly every piece of code that a compiler made,
 * also in stripped files:
 *
 *   CIE: instructions that all its FDEs begin with   "CFA = rsp + 8"
 *   FDE: from, bytes, instructions                   "from + 1 on: CFA = rsp + 16" ...
 *
 * libdw finds the entries and runs the instructions. It has no function that returns the addresses of an FDE, only
 * those of a row: the two pointers are decoded here. It is asked once for each CIE whose FDEs begin plainly; asking
 * for each function takes 0.45 s of node's 77,000 instead of 0.27 s, everything else included.
 *
 * A place is a function's entry only if CFA = rsp + 8 there: pieces of functions that
 * were put elsewhere (foo.cold) have an FDE of their own, but begin in the middle of a function.
 */
#include "functrace/functions_parts.h"

#include "base/array.h"
#include "base/bytes.h"

#include <dwarf.h>
#include <stdlib.h>

#define FDES_MAX (4u << 20)
/* libdw runs a description's instructions for each name in it: only files made to be slow have more. */
#define PROGRAM_BYTES_MAX 8192u
#define RSP 7u /* numbers of registers in DWARF */
#define RETURN_ADDRESS 16u

/* Read a pointer in one of the encodings that linkers use; `at` is the address of its first byte. */
static uint64_t read_pointer(struct ky_bytes *in, unsigned encoding, uint64_t at)
{
	uint64_t value = 0;
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		value = ky_bytes_u64(in);
		break;
	case DW_EH_PE_udata4:
		value = ky_bytes_u32(in);
		break;
	case DW_EH_PE_sdata4:
		value = (uint64_t)(int64_t)(int32_t)ky_bytes_u32(in);
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

/* The part of a CIE that an FDE needs. */
struct common {
	uint64_t at; /* its offset in the section; ~0: none */
	unsigned encoding;
	bool has_data; /* augmentation data, with its length */
	uint64_t program_bytes;
};

static void read_augmentation(struct common *common, const Dwarf_CIE *cie)
{
	struct ky_bytes in = {cie->augmentation_data,
			      cie->augmentation_data + cie->augmentation_data_size, false};
	common->encoding = DW_EH_PE_absptr;
	common->has_data = cie->augmentation[0] == 'z';
	for (const char *c = cie->augmentation; *c && cie->augmentation_data; c++) {
		if (*c == 'R') {
			common->encoding = ky_bytes_u8(&in);
		} else if (*c == 'L') {
			ky_bytes_u8(&in);
		} else if (*c == 'P') {
			const unsigned encoding = ky_bytes_u8(&in);
			read_pointer(&in, encoding & 0x0f, 0);
		}
	}
}

static void read_common(struct common *common, const Dwarf_CIE *cie, uint64_t at)
{
	common->at = at;
	common->program_bytes =
		(uint64_t)(cie->initial_instructions_end - cie->initial_instructions);
	read_augmentation(common, cie);
}

static bool add_fde(struct ky_functions_reading *reading, const struct common *common,
		    const Dwarf_FDE *from, const Elf_Data *data, uint64_t address)
{
	struct ky_bytes in = {from->start, from->end, false};
	struct ky_functions_fde fde = {0};
	const uint64_t at = address + (uint64_t)(from->start - (const uint8_t *)data->d_buf);
	fde.address = read_pointer(&in, common->encoding, at);
	fde.bytes = read_pointer(&in, common->encoding & 0x0f, 0);
	if (common->has_data) {
		const uint64_t skip = ky_bytes_uleb(&in);
		ky_bytes_skip(&in, skip);
	}
	uint64_t left;
	if (in.bad || !fde.bytes || !ky_functions_bytes(reading->own, fde.address, true, &left))
		return true;
	fde.bytes = fde.bytes < left ? fde.bytes : left;
	fde.program_bytes = common->program_bytes + ky_bytes_left(&in);
	fde.cie = common->at;
	while (ky_bytes_left(&in) && *in.at == DW_CFA_nop)
		in.at++;
	/* It ends or moves on first: it says nothing about its first address. */
	fde.is_plain =
		!ky_bytes_left(&in) || (*in.at > DW_CFA_advance_loc && *in.at < DW_CFA_offset);
	return reading->fdes_count < FDES_MAX &&
	       KY_ARRAY_ADD(reading->fdes, reading->fdes_count, reading->fdes_room, fde);
}

KY_ORDER(by_address, struct ky_functions_fde, KY_COMPARE(a->address, b->address))

/* Find .eh_frame by its index, which the unwinder uses: there may be no section headers (sstrip). */
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
		struct ky_bytes in = {index + 4, index + bytes, false};
		*address = read_pointer(&in, index[1], head.p_vaddr + 4);
		const uint8_t *section =
			in.bad ? NULL : ky_functions_bytes(reading->own, *address, false, &bytes);
		const uint64_t offset = head.p_offset + (*address - head.p_vaddr);
		return section ? elf_getdata_rawchunk(reading->elf, (int64_t)offset, bytes,
						      ELF_T_BYTE)
			       : NULL;
	}
	return NULL;
}

static void read_fdes(struct ky_functions_reading *reading, Elf_Data *data, uint64_t address)
{
	const unsigned char *ident = (const unsigned char *)elf_getident(reading->elf, NULL);
	struct common common = {.at = ~UINT64_C(0)};
	Dwarf_Off next = 0;
	Dwarf_CFI_Entry entry;
	for (Dwarf_Off at = 0;; at = next) {
		const int result = dwarf_next_cfi(ident, data, true, at, &next, &entry);
		if (result != 0 && (result > 0 || next <= at))
			break;
		/* that one is damaged; the start of the next is known */
		if (result < 0)
			continue;
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
		if (!add_fde(reading, &common, &entry.fde, data, address))
			break;
	}
}

void ky_functions_cfi_read(struct ky_functions_reading *reading)
{
	GElf_Shdr head = {0};
	Elf_Scn *section = ky_program_file_section(reading->elf, 0, ".eh_frame", &head);
	uint64_t address = head.sh_addr;
	Elf_Data *data = section ? elf_rawdata(section, NULL) : find_by_index(reading, &address);
	if (!data || !data->d_buf)
		return;
	read_fdes(reading, data, address);
	/*
	 * libdw reads the whole file into memory for it. libelf then forgets the sections that were read one by one before,
	 * so a handle of its own has the whole file from the beginning.
	 */
	size_t bytes;
	reading->cfi_elf = elf_begin(reading->fd, ELF_C_READ, NULL);
	if (reading->cfi_elf && elf_rawfile(reading->cfi_elf, &bytes))
		reading->cfi = dwarf_getcfi_elf(reading->cfi_elf);
	reading->asked_cie = ~UINT64_C(0);
	if (reading->fdes_count)
		qsort(reading->fdes, reading->fdes_count, sizeof(*reading->fdes), by_address);
}

const struct ky_functions_fde *ky_functions_cfi_at(const struct ky_functions_reading *reading,
						   uint64_t address)
{
	const uint32_t count = KY_ARRAY_UPTO(reading->fdes, reading->fdes_count, address, address);
	const struct ky_functions_fde *fde = count ? &reading->fdes[count - 1] : NULL;
	return fde && address - fde->address < fde->bytes ? fde : NULL;
}

/* Ask libdw about an address. */
static struct ky_functions_row ask(const struct ky_functions_reading *reading,
				   const struct ky_functions_fde *fde, uint64_t address)
{
	struct ky_functions_row row = {.is_entry = false, .returns = true};
	Dwarf_Frame *state = NULL;
	Dwarf_Op place[3], *ops;
	size_t count;
	bool signal = false;
	if (!reading->cfi || fde->program_bytes > PROGRAM_BYTES_MAX ||
	    dwarf_cfi_addrframe(reading->cfi, address, &state) != 0)
		return row;
	(void)dwarf_frame_info(state, NULL, NULL, &signal);
	row.is_entry = !signal && dwarf_frame_cfa(state, &ops, &count) == 0 && count == 1 &&
		       ops[0].atom == DW_OP_bregx && ops[0].number == RSP && ops[0].number2 == 8;
	/* No operations, and not NULL: undefined. */
	if (dwarf_frame_register(state, RETURN_ADDRESS, place, &ops, &count) == 0)
		row.returns = count != 0 || ops != place;
	free(state);
	return row;
}

/* Nearly all functions begin with the row of their CIE: ask libdw about one of each CIE. */
struct ky_functions_row ky_functions_cfi_row(struct ky_functions_reading *reading,
					     const struct ky_functions_fde *fde, uint64_t address)
{
	if (!fde->is_plain || address != fde->address || fde->program_bytes > PROGRAM_BYTES_MAX)
		return ask(reading, fde, address);
	if (reading->asked_cie == fde->cie)
		return reading->plain;
	/* A failure may be due to this FDE alone: do not keep it for the others. */
	const struct ky_functions_row row = ask(reading, fde, address);
	if (row.is_entry && row.returns) {
		reading->asked_cie = fde->cie;
		reading->plain = row;
	}
	return row;
}

void ky_functions_cfi_free(struct ky_functions_reading *reading)
{
	KY_ARRAY_FREE(reading->fdes, reading->fdes_room);
	if (reading->cfi)
		dwarf_cfi_end(reading->cfi);
	elf_end(reading->cfi_elf);
}
