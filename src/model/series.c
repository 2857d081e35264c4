/* SPDX-License-Identifier: MIT */
/*
 * series.c: kernel events that depend on those before them: counters of the thread that has a tid at that time, sums
 * over all events so far, and spans that take a free track while they last.
 */
#include "model/kernel_state.h"

static uint32_t low(uint64_t bits)
{
	return (uint32_t)bits;
}

static uint32_t high(uint64_t bits)
{
	return (uint32_t)(bits >> 32);
}

static uint64_t joined(const uint32_t *words)
{
	return (uint64_t)words[1] << 32 | words[0];
}

void ky_put_tid_counter(struct ky_trace *trace, int64_t ts, int32_t tid, enum ky_track_kind kind,
			uint32_t name, double value, uint32_t args)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_TID_COUNTER, low(bits), high(bits), (uint32_t)tid,
		      (uint32_t)kind, name, args);
}

void ky_put_sum(struct ky_trace *trace, int64_t ts, uint32_t track, uint64_t add, uint32_t unit,
		uint32_t args)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_SUM, low(add), high(add), track, unit, args);
}

void ky_put_counter_since(struct ky_trace *trace, int64_t ts, uint32_t track, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_SINCE, low(bits), high(bits), track);
}

static void put_lane(struct ky_trace *trace, int64_t ts, enum ky_kernel_sub sub,
		     const struct ky_lane_span *span)
{
	const uint64_t cookie = (uint64_t)span->cookie;
	KY_PUT_KERNEL(trace, ts, sub, low(cookie), high(cookie), span->type, span->track,
		      span->category, span->name, span->args, span->latency);
}

void ky_put_lane_begin(struct ky_trace *trace, int64_t ts, const struct ky_lane_span *span)
{
	put_lane(trace, ts, KY_KERNEL_LANE_BEGIN, span);
}

void ky_put_lane_end(struct ky_trace *trace, int64_t ts, const struct ky_lane_span *span)
{
	put_lane(trace, ts, KY_KERNEL_LANE_END, span);
}

static void apply_counter(struct ky_trace *trace, int64_t ts, const uint32_t *words)
{
	uint32_t owner = ky_kernel_thread(trace, (int32_t)words[2]);
	enum ky_track_kind kind = (enum ky_track_kind)words[3];
	double value;
	const uint64_t bits = joined(words);
	memcpy(&value, &bits, sizeof(value));
	if (owner == KY_NONE)
		return;
	if (kind == KY_TRACK_PROCESS_COUNTER && trace->threads.process[owner] != KY_NONE)
		owner = trace->threads.process[owner];
	else
		kind = KY_TRACK_THREAD_COUNTER;
	ky_build_counter(trace, ts, ky_track_counter(trace, kind, owner, words[4]), value,
			 words[5]);
}

static void apply_sum(struct ky_trace *trace, int64_t ts, const uint32_t *words)
{
	bool made;
	uint64_t *sum = ky_pair_map_add(&trace->build->kernel->sums, words[2], 0, &made);
	if (!sum) {
		ky_trace_no_memory(trace);
		return;
	}
	*sum += joined(words);
	/* Whole units, as in Perfetto. */
	const uint64_t units = *sum / (words[3] ? words[3] : 1);
	ky_build_counter(trace, ts, words[2], (double)units, words[4]);
}

static void apply_since(struct ky_trace *trace, int64_t ts, const uint32_t *words)
{
	bool made;
	const uint64_t bits = joined(words);
	uint64_t *last = ky_pair_map_add(&trace->build->kernel->sums, words[2], 1, &made);
	if (!last) {
		ky_trace_no_memory(trace);
		return;
	}
	if (*last)
		memcpy(&trace->counters.value[*last - 1], &bits, sizeof(bits));
	const uint32_t rows = trace->counters.rows.count;
	ky_build_counter(trace, ts, words[2], 0, 0);
	if (trace->counters.rows.count > rows)
		*last = (uint64_t)rows + 1;
}

static void apply_lane(struct ky_trace *trace, int64_t ts, uint32_t sub, const uint32_t *words)
{
	const struct ky_lane_key key = {
		.type = words[2],
		.process = KY_NONE,
		.name = words[3],
		.cookie = (int64_t)joined(words),
	};
	struct ky_lane *lane =
		sub == KY_KERNEL_LANE_BEGIN ? ky_lane_begin(trace, &key) : ky_lane_end(trace, &key);
	if (lane && sub == KY_KERNEL_LANE_BEGIN) {
		lane->begins = words[7] != 0;
		lane->last_begin_ts = ts;
		ky_build_begin(trace, ts, lane->track, words[4], words[5], words[6]);
	} else if (lane) {
		ky_build_end(trace, ts, lane->track, words[4], words[5], words[6]);
		if (lane->begins && words[7])
			ky_build_counter(trace, ts, words[7] - 1,
					 (double)(ts - lane->last_begin_ts), 0);
	} else if (sub == KY_KERNEL_LANE_END) {
		ky_problem(trace, "misplaced_end_event", KY_DATA_LOSS, KY_NO_PLACE,
			   "a span of a device ends that did not begin");
	}
}

void ky_series_apply(struct ky_trace *trace, int64_t ts, uint32_t sub, const uint32_t *words)
{
	if (sub == KY_KERNEL_TID_COUNTER)
		apply_counter(trace, ts, words);
	else if (sub == KY_KERNEL_SUM)
		apply_sum(trace, ts, words);
	else if (sub == KY_KERNEL_SINCE)
		apply_since(trace, ts, words);
	else
		apply_lane(trace, ts, sub, words);
}
