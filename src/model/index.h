/* SPDX-License-Identifier: MIT */
/*
 * index.h: rows by a common key, made on first use: slices of a track or of a name, counters of a track, samples of a
 * thread, ...
 *
 *   begins: [0, 3, 3, 7, ...]     key k's rows are rows[begins[k]] .. rows[begins[k + 1]], ascending, and
 *   rows:   [0, 4, 9, 1, ...]     so in the order of time
 */
#ifndef KY_MODEL_INDEX_H
#define KY_MODEL_INDEX_H

#include "model/trace.h"

enum ky_index_of {
	KY_INDEX_SLICE_TRACK,
	KY_INDEX_SLICE_NAME,
	KY_INDEX_SLICE_PARENT,
	KY_INDEX_COUNTER_TRACK,
	KY_INDEX_SCHED_CPU,
	KY_INDEX_SCHED_THREAD,
	KY_INDEX_STATE_THREAD,
	KY_INDEX_SAMPLE_THREAD,
	KY_INDEX_FLOW_OUT,
	KY_INDEX_FLOW_IN,
	KY_INDEX_COUNT
};

struct ky_index_rows {
	const uint32_t *rows;
	uint32_t count;
	bool failed; /* there was no memory for the index */
};

/* Called by ky_trace_open() and ky_trace_close(). */
int ky_index_open(struct ky_trace *trace);
void ky_index_close(struct ky_trace *trace);

/* Return the rows of a key, from any thread; no rows for KY_NONE. */
struct ky_index_rows ky_index_get(struct ky_trace *trace, enum ky_index_of of, uint32_t key);

/* Return the first row of an ordered column that is not before a time. */
uint32_t ky_index_time(const int64_t *ts, uint32_t count, int64_t from);

#endif
