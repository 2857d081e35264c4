/* SPDX-License-Identifier: MIT */
/*
 * perf_switch.c: switch records as scheduling. Those of a whole CPU name the thread on the other side, twice:
 * when one leaves and when the other comes. Those of a thread alone say only that it left; what the CPU did
 * until the next one came is then shown as its idle task.
 */
#include "formats/perf/perf_session.h"

#include "model/kernel.h"

static int32_t running_on(const struct ky_perf *perf, uint32_t cpu)
{
	const uint32_t *tid = ky_u64_map_find(&perf->switched_to, cpu);
	return tid ? (int32_t)*tid : -1;
}

static void put(struct ky_perf *perf, const struct ky_perf_where *where, int32_t prev, int32_t next,
		bool preempted)
{
	bool made;
	const struct ky_switch event = {
		.cpu = where->cpu,
		.prev_tid = prev,
		.prev_priority = 0,
		.prev_state = ky_string_z(perf->trace, preempted   ? "R+"
						       : prev == 0 ? "R"
								   : "S"),
		.next_tid = next,
	};
	ky_put_switch(perf->trace, (int64_t)where->time, &event);
	uint32_t *tid = ky_u64_map_add(&perf->switched_to, where->cpu, &made);
	if (tid)
		*tid = (uint32_t)next;
}

void ky_perf_switch(struct ky_perf *perf, const struct ky_perf_raw *raw,
		    const struct ky_perf_where *where)
{
	struct ky_perf_record record;
	if (where->cpu == KY_NONE || where->tid == KY_NONE || perf->has_sched_switch)
		return;
	if (!ky_perf_record_body(&record, raw, where->trailer_bytes, perf->big)) {
		ky_perf_record_short(perf, raw);
		return;
	}
	const bool cpu_wide = record.type == PERF_RECORD_SWITCH_CPU_WIDE;
	const int32_t other = (int32_t)record.switched.other_tid;
	const int32_t now = running_on(perf, where->cpu);
	if (record.switched.out)
		put(perf, where, (int32_t)where->tid, other < 0 ? 0 : other,
		    record.switched.preempted);
	else if (now != (int32_t)where->tid)
		put(perf, where, cpu_wide ? other : now, (int32_t)where->tid, false);
}
