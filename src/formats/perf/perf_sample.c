/* SPDX-License-Identifier: MIT */
/*
 * perf_sample.c: a sample: thread, place, time, call stack and weight. As in Perfetto, the events also become counters of each
 * CPU: added up from the periods, or as the sample read them.
 */
#include "formats/perf/perf_session.h"

#include "base/array.h"
#include "model/kernel.h"

#include <stdlib.h>

/* ---- frames ---- */

/*
 * From an address in a process to frames: the function there, and those that are inlined in it. The same few
 * addresses come again and again: a table that forgets answers most, and the rest costs a walk through the space
 * and a search for the name.
 *
 * Names that came with the recording are asked first. They know the address of a call, of which a stack has only where it
 * returns to: one behind.
 */

#define KERNEL_PID UINT32_MAX

/* An address on a stack. returns: it is where a call returns to, and not where the thread was. */
struct stack_address {
	uint32_t pid;
	bool returns;
	uint64_t ip;
	uint64_t time;
};

struct ky_perf_frame_slot {
	uint64_t ip;
	uint32_t view;
	uint32_t frame;                      /* of the function itself */
	const struct ky_given_name *inlined; /* in it, the innermost first */
	uint32_t inlined_count;
	bool returns; /* as in struct stack_address */
};
#define FRAME_SLOTS 32768u

static struct ky_perf_frame_slot *slot_of(struct ky_perf *perf, uint32_t view, uint64_t ip)
{
	if (!perf->frame_slots)
		perf->frame_slots = calloc(FRAME_SLOTS, sizeof(*perf->frame_slots));
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
static void find_made(struct ky_perf *perf, const struct stack_address *at, uint32_t mapping,
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

static void find_kernel(struct ky_perf *perf, const struct stack_address *at, uint32_t mapping,
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

static void find_in_file(struct ky_perf *perf, const struct stack_address *at,
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
		 const struct stack_address *at, struct ky_perf_frame_slot *slot)
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

/* Return the callsite of the function at that address, called from the one given (KY_NONE: the outermost). */
static uint32_t add_address(struct ky_perf *perf, uint32_t callsite, struct stack_address at,
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

/* ---- samples ---- */

static enum ky_cpu_mode mode_of(unsigned misc)
{
	static const uint8_t modes[8] = {
		KY_CPU_MODE_UNKNOWN,    KY_CPU_MODE_KERNEL,       KY_CPU_MODE_USER,
		KY_CPU_MODE_HYPERVISOR, KY_CPU_MODE_GUEST_KERNEL, KY_CPU_MODE_GUEST_USER,
	};
	return modes[misc & PERF_RECORD_MISC_CPUMODE_MASK];
}

static enum ky_cpu_mode mode_of_context(uint64_t marker, enum ky_cpu_mode mode)
{
	switch (marker) {
	case (uint64_t)PERF_CONTEXT_HV:
		return KY_CPU_MODE_HYPERVISOR;
	case (uint64_t)PERF_CONTEXT_KERNEL:
		return KY_CPU_MODE_KERNEL;
	case (uint64_t)PERF_CONTEXT_USER:
		return KY_CPU_MODE_USER;
	case (uint64_t)PERF_CONTEXT_GUEST_KERNEL:
		return KY_CPU_MODE_GUEST_KERNEL;
	case (uint64_t)PERF_CONTEXT_GUEST_USER:
		return KY_CPU_MODE_GUEST_USER;
	default:
		return mode;
	}
}

/*
 * The innermost comes first in the record: the tree is built from the other end, a context at a time. The first address of each
 * context is where the thread was, the others where it returns to.
 */
static uint32_t callsite_of(struct ky_perf *perf, const struct ky_perf_fields *sample,
			    const struct ky_perf_where *where, enum ky_cpu_mode mode)
{
	uint32_t callsite = KY_NONE;
	uint64_t end = sample->chain_words;
	while (end) {
		uint64_t first = end;
		while (first && ky_perf_u64(sample->chain + 8 * (first - 1), perf->big) <
					KY_PERF_CONTEXT_FIRST)
			first--;
		const enum ky_cpu_mode here =
			first ? mode_of_context(
					ky_perf_u64(sample->chain + 8 * (first - 1), perf->big),
					mode)
			      : mode;
		for (uint64_t i = end; i-- > first;) {
			const uint64_t ip = ky_perf_u64(sample->chain + 8 * i, perf->big);
			const struct stack_address at = {where->pid, i != first, ip, where->time};
			callsite = add_address(perf, callsite, at, here);
		}
		end = first ? first - 1 : 0;
	}
	if (callsite == KY_NONE && sample->has_ip)
		callsite = add_address(
			perf, KY_NONE,
			(struct stack_address){where->pid, false, sample->ip, where->time}, mode);
	return callsite;
}

/* Return the counter of an event on a CPU, or of the event when CPUs are unknown; NULL without memory. */
static struct ky_perf_total *total_of(struct ky_perf *perf, const struct ky_perf_attr *attr,
				      uint32_t cpu)
{
	bool made;
	const uint64_t key = (uint64_t)(attr - perf->attrs) << 32 | cpu;
	uint32_t *number = ky_u64_map_add(&perf->total_of, key, &made);
	if (!number)
		return NULL;
	if (made) {
		if (!KY_ARRAY_GROW_ZERO(perf->totals, perf->totals_room, perf->totals_count + 1)) {
			*number = KY_NONE;
			return NULL;
		}
		const struct ky_track_spec spec = {
			.kind = cpu == KY_NONE ? KY_TRACK_COUNTER : KY_TRACK_CPU_COUNTER,
			.owner = cpu,
			.name = attr->name,
			.type = ky_string_z(perf->trace, cpu == KY_NONE ? "perf_global_counter"
									: "perf_cpu_counter"),
			.id = (uint64_t)(attr - perf->attrs),
		};
		perf->totals[perf->totals_count].track = ky_track(perf->trace, &spec);
		*number = perf->totals_count++;
	}
	return *number == KY_NONE ? NULL : &perf->totals[*number];
}

static void put_total(struct ky_perf *perf, const struct ky_perf_attr *attr,
		      const struct ky_perf_where *where, double value, bool add)
{
	struct ky_perf_total *total = attr ? total_of(perf, attr, where->cpu) : NULL;
	if (!total)
		return;
	total->value = add ? total->value + value : value;
	ky_put_counter(perf->trace, (int64_t)where->time, total->track, total->value);
}

/* Read the counts of the events up to then. */
static void take_read(struct ky_perf *perf, struct ky_perf_cursor *cursor,
		      const struct ky_perf_where *where)
{
	const uint64_t format = where->attr->read_format;
	const bool group = format & PERF_FORMAT_GROUP;
	const uint64_t times = (uint64_t)__builtin_popcountll(
		format & (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING));
	const uint64_t count = group ? ky_perf_take_u64(cursor) : 1;
	if (group)
		ky_perf_take(cursor, 8 * times);
	for (uint64_t i = 0; i < count && !cursor->short_of; i++) {
		const uint64_t value = ky_perf_take_u64(cursor);
		if (!group)
			ky_perf_take(cursor, 8 * times);
		const struct ky_perf_attr *attr = where->attr;
		if (format & PERF_FORMAT_ID)
			attr = ky_perf_attr_by_id(perf, ky_perf_take_u64(cursor));
		if (format & (1u << 4)) /* PERF_FORMAT_LOST */
			ky_perf_take(cursor, 8);
		if (!cursor->short_of)
			put_total(perf, attr, where, (double)value, false);
	}
}

void ky_perf_sample(struct ky_perf *perf, const struct ky_perf_raw *record,
		    const struct ky_perf_where *where)
{
	const uint32_t bytes = record->bytes - KY_PERF_RECORD_HEAD_BYTES;
	struct ky_perf_cursor cursor = {record->body, record->body + bytes, perf->big, false};
	struct ky_perf_fields sample;
	const enum ky_cpu_mode mode = mode_of(record->misc);
	ky_perf_record_sample(&sample, &cursor, where->attr->sample_type, where->attr->read_format);
	if (where->attr->sample_type & PERF_SAMPLE_READ)
		take_read(perf, &sample.values, where);
	if (cursor.short_of)
		ky_perf_record_short(perf, record);
	uint64_t period = sample.has_period ? sample.period : where->attr->period;
	if (!(where->attr->sample_type & PERF_SAMPLE_READ) && (sample.has_period || period))
		put_total(perf, where->attr, where, (double)period, true);
	const uint32_t callsite = callsite_of(perf, &sample, where, mode);
	ky_put_tid_sample(perf->trace, (int64_t)where->time, (int32_t)where->pid,
			  (int32_t)where->tid, callsite, where->cpu, mode,
			  period ? (double)period : 1, where->attr->name);
	perf->samples++;
	if (sample.raw && where->attr->type == PERF_TYPE_TRACEPOINT)
		ky_perf_tracepoint(perf, where->attr->config, sample.raw, sample.raw_bytes, where);
}
