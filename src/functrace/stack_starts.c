/* SPDX-License-Identifier: MIT */
/* stack_starts.c: see stack_starts.h. */
#include "functrace/stack_starts.h"

#include <dwarf.h>
#include <gelf.h>
#include <string.h>

#define HEAD_BYTES 12u
#define ENTRY_BYTES 8u

static bool find_segment(Elf *elf, GElf_Phdr *head)
{
	size_t count;
	if (elf_getphdrnum(elf, &count) != 0)
		return false;
	for (size_t i = 0; i < count && i < 256; i++)
		if (gelf_getphdr(elf, (int)i, head) && head->p_type == PT_GNU_EH_FRAME)
			return true;
	return false;
}

static bool is_understood(const uint8_t *bytes)
{
	const uint8_t pointer = bytes[1];
	return bytes[0] == 1 && pointer == (DW_EH_PE_pcrel | DW_EH_PE_sdata4) &&
	       bytes[2] == DW_EH_PE_udata4 && bytes[3] == (DW_EH_PE_datarel | DW_EH_PE_sdata4);
}

void ky_stack_starts_read(struct ky_stack_starts *starts, Elf *elf)
{
	GElf_Phdr head;
	uint32_t count;
	*starts = (struct ky_stack_starts){0};
	if (!find_segment(elf, &head) || head.p_filesz < HEAD_BYTES)
		return;
	const Elf_Data *data =
		elf_getdata_rawchunk(elf, (int64_t)head.p_offset, head.p_filesz, ELF_T_BYTE);
	if (!data || data->d_size < HEAD_BYTES || !is_understood(data->d_buf))
		return;
	memcpy(&count, (const uint8_t *)data->d_buf + 8, sizeof(count));
	const uint64_t room = (data->d_size - HEAD_BYTES) / ENTRY_BYTES;
	starts->table = (const uint8_t *)data->d_buf + HEAD_BYTES;
	starts->count = count < room ? count : room;
	starts->address = head.p_vaddr;
}

static uint64_t start_of(const struct ky_stack_starts *starts, uint64_t index)
{
	int32_t offset;
	memcpy(&offset, starts->table + ENTRY_BYTES * index, sizeof(offset));
	return starts->address + (uint64_t)(int64_t)offset;
}

bool ky_stack_starts_find(const struct ky_stack_starts *starts, uint64_t address, uint64_t *start)
{
	uint64_t low = 0;
	uint64_t high = starts->count;
	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;
		if (start_of(starts, middle) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return false;
	*start = start_of(starts, low - 1);
	return *start <= address;
}
