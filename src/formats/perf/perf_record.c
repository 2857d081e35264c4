/* SPDX-License-Identifier: MIT */
/* perf_record.c: the kernel's records: which wait for their turn, and what each means. */
#include "formats/perf/perf_session.h"

void ky_perf_record_short(struct ky_perf *perf, const struct ky_perf_raw *record)
{
	ky_problem(perf->trace, "perf_record_damaged", KY_DATA_LOSS, record->at,
		   "a record of type %u and %u bytes does not hold what it should", record->type,
		   record->bytes);
}

/* Forks and exits have their time in themselves too. */
static uint64_t time_of(const struct ky_perf *perf, const struct ky_perf_raw *record)
{
	struct ky_perf_where where;
	ky_perf_where(perf, record, &where);
	if (where.timed)
		return where.time == UINT64_MAX ? 0 : where.time;
	if ((record->type == PERF_RECORD_FORK || record->type == PERF_RECORD_EXIT) &&
	    record->bytes >= KY_PERF_RECORD_HEAD_BYTES + 24)
		return ky_perf_u64(record->body + 16, perf->big);
	return 0;
}

/*
 * Records without a time describe the state before: they are handled at once. Samples wait, that they come
 * behind all of these.
 */
void ky_perf_record_take(struct ky_perf *perf, const struct ky_perf_raw *record)
{
	const uint64_t time = time_of(perf, record);
	if (time || record->type == PERF_RECORD_SAMPLE)
		ky_perf_order_add(perf, record, time);
	else
		ky_perf_record_turn(perf, record);
}

static void put_lost(struct ky_perf *perf, const struct ky_perf_raw *record,
		     const struct ky_perf_where *where)
{
	struct ky_perf_record lost;
	if (!ky_perf_record_body(&lost, record, 0, perf->big)) {
		ky_perf_record_short(perf, record);
		return;
	}
	ky_put_lost(perf->trace, where->timed ? (int64_t)where->time : KY_TIME_NONE, KY_NONE,
		    where->cpu, lost.lost,
		    record->type == PERF_RECORD_LOST_SAMPLES ? "perf: hardware samples"
							     : "perf: ring buffer");
}

void ky_perf_record_turn(struct ky_perf *perf, const struct ky_perf_raw *record)
{
	struct ky_perf_where where;
	ky_perf_where(perf, record, &where);
	/* 0 is before all. */
	if (where.timed && where.time)
		where.time = ky_perf_trace_time(perf, where.time);
	if (where.timed)
		ky_perf_task_seen(perf, &where);
	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		ky_perf_mmap(perf, record, &where);
		break;
	case PERF_RECORD_COMM:
		ky_perf_task_comm(perf, record, &where);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		ky_perf_task(perf, record, &where);
		break;
	case PERF_RECORD_SAMPLE:
		if (where.attr)
			ky_perf_sample(perf, record, &where);
		break;
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		put_lost(perf, record, &where);
		break;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		ky_perf_switch(perf, record, &where);
		break;
	case PERF_RECORD_THROTTLE:
		ky_problem(perf->trace, "perf_throttled", KY_INFO, record->at,
			   "sampling was too fast and paused");
		break;
	default:
		break;
	}
}
