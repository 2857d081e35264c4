/* SPDX-License-Identifier: MIT */
/*
 * perf_frame.c: from an address in a process to frames: the function there, and those that are inlined in it. The same few
 * addresses come again and again: a table that forgets answers most, and the rest costs a walk through the space
 * and a search for the name.
 *
 * Names that came with the recording are asked first. They know the address of a call, of which a stack has only where it
 * returns to: one behind.
 */
#include "formats/perf/perf_session.h"

#include <stdlib.h>

#define KERNEL_PID UINT32_MAX

static struct ky_perf_frame_slot *slot_of(struct ky_perf *perf, uint32_t view, uint64_t ip)
{
	if (!perf->frame_slots)
		perf->frame_slots = calloc(KY_PERF_FRAME_SLOTS, sizeof(*perf->frame_slots));
	const uint64_t hash = (ip ^ (uint64_t)view << 40) * 0x9e3779b97f4a7c15u;
	return perf->frame_slots ? &perf->frame_slots[hash >> 49] : NULL;
}

/* The function itself becomes the frame; functions inlined in it are remembered. */
static void take_given(struct ky_perf *perf, struct ky_perf_frame_slot *slot, uint32_t mapping,
		       uint64_t rel_pc, const struct ky_given_name *names, uint32_t count)
{
	const struct ky_given_name *outer = &names[count - 1];
	slot->frame = ky_frame(perf->trace, mapping, rel_pc, outer->name, outer->file, outer->line);
	slot->inlined = count > 1 ? names : NULL;
	slot->inlined_count = count - 1;
}

/* Code that the program made itself, which may be another at another time. */
static void find_made(struct ky_perf *perf, const struct ky_perf_at *at, uint32_t mapping,
		      uint64_t rel_pc, struct ky_perf_frame_slot *slot)
{
	uint32_t file = 0;
	uint32_t line = 0;
	uint32_t count;
	const struct ky_given_name *names =
		perf->given ? ky_symbols_given_in_process(perf->given, (int32_t)at->pid,
							  at->ip - at->returns, &count)
			    : NULL;
	if (names) {
		take_given(perf, slot, mapping, rel_pc, names, count);
		return;
	}
	const uint32_t name = perf->symbols ? ky_symbols_in_jit(perf->symbols, at->pid, at->ip,
								at->time, &file, &line)
					    : 0;
	slot->frame = ky_frame(perf->trace, mapping, rel_pc, name, file, line);
}

static void find_kernel(struct ky_perf *perf, const struct ky_perf_at *at, uint32_t mapping,
			uint64_t rel_pc, struct ky_perf_frame_slot *slot)
{
	uint32_t count;
	const struct ky_given_name *names =
		perf->given ? ky_symbols_given_in_kernel(perf->given, at->ip - at->returns, &count)
			    : NULL;
	if (names) {
		take_given(perf, slot, mapping, rel_pc, names, count);
		return;
	}
	const uint32_t name = perf->symbols ? ky_symbols_in_kernel(perf->symbols, at->ip) : 0;
	slot->frame = ky_frame(perf->trace, mapping, rel_pc, name, 0, 0);
}

static void find_in_file(struct ky_perf *perf, const struct ky_perf_at *at,
			 const struct ky_perf_mapped *mapped, uint64_t rel_pc,
			 struct ky_perf_frame_slot *slot)
{
	const struct ky_mappings *mappings = &perf->trace->mappings;
	uint32_t count;
	const struct ky_given_name *names =
		perf->given && mapped->mapping < mappings->rows.count
			? ky_symbols_given_in_file(perf->given, mappings->name[mapped->mapping],
						   mappings->build_id[mapped->mapping],
						   rel_pc - at->returns, &count)
			: NULL;
	if (names) {
		take_given(perf, slot, mapped->mapping, rel_pc, names, count);
		return;
	}
	const uint32_t name =
		perf->symbols ? ky_symbols_in_file(perf->symbols, mapped->file, rel_pc) : 0;
	slot->frame = ky_frame(perf->trace, mapped->mapping, rel_pc, name, 0, 0);
}

/* Fill the slot; whether it holds for the next time too. */
static bool find(struct ky_perf *perf, const struct ky_perf_space *space,
		 const struct ky_perf_at *at, struct ky_perf_frame_slot *slot)
{
	uint32_t number;
	if (!ky_ranges_find(&perf->ranges, &space->space, at->ip, &number)) {
		if (at->pid == KERNEL_PID)
			find_kernel(perf, at, KY_NONE, at->ip, slot);
		else
			find_made(perf, at, KY_NONE, at->ip, slot);
		return false;
	}
	const struct ky_perf_mapped *mapped = &perf->mapped[number];
	const uint64_t rel_pc = at->ip - mapped->start + mapped->offset;
	if (mapped->anonymous) {
		find_made(perf, at, mapped->mapping, rel_pc, slot);
		return false;
	}
	if (at->pid == KERNEL_PID)
		find_kernel(perf, at, mapped->mapping, rel_pc, slot);
	else
		find_in_file(perf, at, mapped, rel_pc, slot);
	return true;
}

/* Add the function, then those inlined in it, from the outside in. */
static uint32_t add_frames(struct ky_perf *perf, uint32_t callsite,
			   const struct ky_perf_frame_slot *slot)
{
	struct ky_trace *trace = perf->trace;
	callsite = ky_callsite(trace, callsite, slot->frame);
	if (slot->frame >= trace->frames.rows.count)
		return callsite;
	const uint32_t mapping = trace->frames.mapping[slot->frame];
	const uint64_t rel_pc = trace->frames.rel_pc[slot->frame];
	for (uint32_t i = slot->inlined_count; i-- > 0;) {
		const struct ky_given_name *name = &slot->inlined[i];
		callsite = ky_callsite(
			trace, callsite,
			ky_frame(trace, mapping, rel_pc, name->name, name->file, name->line));
	}
	return callsite;
}

uint32_t ky_perf_callsite(struct ky_perf *perf, uint32_t callsite, struct ky_perf_at at,
			  enum ky_cpu_mode mode)
{
	if (mode == KY_CPU_MODE_KERNEL)
		at.pid = KERNEL_PID;
	const struct ky_perf_space *space = ky_perf_space(perf, at.pid);
	if (!space)
		return ky_callsite(perf->trace, callsite,
				   ky_frame(perf->trace, KY_NONE, at.ip, 0, 0, 0));
	struct ky_perf_frame_slot *slot = slot_of(perf, space->view, at.ip);
	if (slot && slot->view == space->view && slot->ip == at.ip && slot->returns == at.returns)
		return add_frames(perf, callsite, slot);
	struct ky_perf_frame_slot found = {.ip = at.ip, .view = space->view, .returns = at.returns};
	if (find(perf, space, &at, &found) && slot)
		*slot = found;
	return add_frames(perf, callsite, &found);
}
