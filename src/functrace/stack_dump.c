/* SPDX-License-Identifier: MIT */
/* stack_dump.c: see stack_dump.h. */
#include "functrace/stack_dump.h"

/* Convert the registers from the kernel's order to DWARF's. */
static void take_registers(struct ky_stack_dump *dump, struct ky_perf_cursor *cursor)
{
	static const uint8_t number[KY_STACK_REGISTERS_COUNT] = {
		0, 3, 2, 1, 4, 5, 6, KY_STACK_SP, KY_STACK_PC, 8, 9, 10, 11, 12, 13, 14, 15};
	const uint64_t abi = ky_perf_take_u64(cursor);
	dump->has_registers = abi == PERF_SAMPLE_REGS_ABI_64;
	for (unsigned i = 0; abi != PERF_SAMPLE_REGS_ABI_NONE && i < KY_STACK_REGISTERS_COUNT; i++)
		dump->registers[number[i]] = ky_perf_take_u64(cursor);
}

bool ky_stack_dump_read(struct ky_stack_dump *dump, const struct perf_event_header *head)
{
	struct ky_perf_cursor cursor = {(const uint8_t *)(head + 1),
					(const uint8_t *)head + head->size, KY_PERF_BIG_HERE,
					false};
	*dump = (struct ky_stack_dump){0};
	dump->pid = ky_perf_take_u32(&cursor);
	dump->tid = ky_perf_take_u32(&cursor);
	dump->ns = ky_perf_take_u64(&cursor);
	take_registers(dump, &cursor);
	const uint64_t room = ky_perf_take_u64(&cursor);
	dump->stack = ky_perf_take(&cursor, room);
	dump->stack_bytes = room ? ky_perf_take_u64(&cursor) : 0;
	return !cursor.short_of && dump->stack_bytes <= room;
}
