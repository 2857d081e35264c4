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

void ky_perf_switch(struct ky_perf *perf, const struct ky_perf_record *record,
		    const struct ky_perf_where *where, bool cpu_wide)
{
	const bool out = record->misc & PERF_RECORD_MISC_SWITCH_OUT;
	const bool preempted = out && record->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
	const uint32_t bytes = record->bytes - KY_PERF_RECORD_HEAD_BYTES - where->trailer_bytes;
	int32_t other = 0;
	if (where->cpu == KY_NONE || where->tid == KY_NONE || perf->has_sched_switch)
		return;
	if (cpu_wide) {
		if (bytes < 8) {
			ky_perf_record_short(perf, record);
			return;
		}
		other = (int32_t)ky_perf_u32(record->body + 4, perf->big);
	}
	const int32_t now = running_on(perf, where->cpu);
	if (out)
		put(perf, where, (int32_t)where->tid, other < 0 ? 0 : other, preempted);
	else if (now != (int32_t)where->tid)
		put(perf, where, cpu_wide ? other : now, (int32_t)where->tid, false);
}
