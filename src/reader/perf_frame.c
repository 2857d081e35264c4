/* SPDX-License-Identifier: MIT */
/*
 * perf_frame.c: from an address in a process to a frame. The same few addresses come again and again: a
 * table that forgets answers most, and the rest costs a walk through the space and a search for the name.
 */
#include "perf_session.h"

#include <stdlib.h>

#define KERNEL_PID UINT32_MAX

static struct ky_perf_frame_slot *slot_of(struct ky_perf *perf, uint32_t view, uint64_t ip)
{
	if (!perf->frame_slots)
		perf->frame_slots = calloc(KY_PERF_FRAME_SLOTS, sizeof(*perf->frame_slots));
	const uint64_t hash = (ip ^ (uint64_t)view << 40) * 0x9e3779b97f4a7c15u;
	return perf->frame_slots ? &perf->frame_slots[hash >> 49] : NULL;
}

/* Code that the program made itself, which may be another at another time. */
static uint32_t made_frame(struct ky_perf *perf, uint32_t pid, uint64_t ip, uint32_t mapping,
			   uint64_t rel_pc, uint64_t time)
{
	uint32_t file = 0;
	uint32_t line = 0;
	const uint32_t name =
		perf->symbols ? ky_symbols_in_jit(perf->symbols, pid, ip, time, &file, &line) : 0;
	return ky_frame(perf->trace, mapping, rel_pc, name, file, line);
}

static uint32_t find_frame(struct ky_perf *perf, const struct ky_perf_space *space, uint32_t pid,
			   uint64_t ip, uint64_t time, bool *keep)
{
	uint32_t number;
	if (!ky_ranges_find(&perf->ranges, &space->space, ip, &number)) {
		if (pid == KERNEL_PID && perf->symbols) {
			const uint32_t name = ky_symbols_in_kernel(perf->symbols, ip);
			return ky_frame(perf->trace, KY_NONE, ip, name, 0, 0);
		}
		return made_frame(perf, pid, ip, KY_NONE, ip, time);
	}
	const struct ky_perf_mapped *mapped = &perf->mapped[number];
	const uint64_t rel_pc = ip - mapped->start + mapped->offset;
	if (mapped->anonymous)
		return made_frame(perf, pid, ip, mapped->mapping, rel_pc, time);
	*keep = true;
	uint32_t name = 0;
	if (perf->symbols)
		name = pid == KERNEL_PID ? ky_symbols_in_kernel(perf->symbols, ip)
					 : ky_symbols_in_file(perf->symbols, mapped->file, rel_pc);
	return ky_frame(perf->trace, mapped->mapping, rel_pc, name, 0, 0);
}

uint32_t ky_perf_frame(struct ky_perf *perf, uint32_t pid, uint64_t ip, enum ky_cpu_mode mode,
		       uint64_t time)
{
	if (mode == KY_CPU_MODE_KERNEL)
		pid = KERNEL_PID;
	const struct ky_perf_space *space = ky_perf_space(perf, pid);
	if (!space)
		return ky_frame(perf->trace, KY_NONE, ip, 0, 0, 0);
	struct ky_perf_frame_slot *slot = slot_of(perf, space->view, ip);
	if (slot && slot->view == space->view && slot->ip == ip)
		return slot->frame;
	bool keep = false;
	const uint32_t frame = find_frame(perf, space, pid, ip, time, &keep);
	if (slot && keep)
		*slot = (struct ky_perf_frame_slot){.ip = ip, .view = space->view, .frame = frame};
	return frame;
}
