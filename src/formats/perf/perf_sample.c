/* SPDX-License-Identifier: MIT */
/*
 * perf_sample.c: a sample: thread, place, time, call stack and weight. As in
 * Perfetto, the events also become counters of each CPU: added up from the periods, or as the sample read them.
 */
#include "base/array.h"
#include "formats/perf/perf_session.h"

#include "model/kernel.h"

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
			const struct ky_perf_at at = {where->pid, i != first, ip, where->time};
			callsite = ky_perf_callsite(perf, callsite, at, here);
		}
		end = first ? first - 1 : 0;
	}
	if (callsite == KY_NONE && sample->has_ip)
		callsite = ky_perf_callsite(
			perf, KY_NONE,
			(struct ky_perf_at){where->pid, false, sample->ip, where->time}, mode);
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
