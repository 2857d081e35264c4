/* SPDX-License-Identifier: MIT */
/* reach.c: see reach.h. */
#include "query/reach.h"
#include "query/filter.h"

#include <errno.h>
#include <stdlib.h>

/* What never ended lasts to the trace's end. */
static int64_t block_end(const struct ky_trace *trace, uint32_t first, uint32_t count)
{
	const int64_t *const ts = trace->slices.ts + first, *const dur = trace->slices.dur + first;
	int64_t last = INT64_MIN;
	for (uint32_t i = 0; i < count; i++) {
		const int64_t end = dur[i] < 0 ? trace->end_ns : ky_add_clamped(ts[i], dur[i]);
		last = end > last ? end : last;
	}
	return last;
}

int ky_reach_make(struct ky_reach *reach, const struct ky_trace *trace)
{
	const uint32_t rows = trace->slices.rows.count;
	const uint32_t blocks = rows / KY_REACH_ROWS + (rows % KY_REACH_ROWS != 0);
	reach->ends = malloc(((size_t)blocks + 1) * sizeof(*reach->ends));
	if (!reach->ends)
		return -ENOMEM;
	for (uint32_t i = 0; i < blocks; i++) {
		const uint32_t left = rows - i * KY_REACH_ROWS;
		reach->ends[i] = block_end(trace, i * KY_REACH_ROWS,
					   left < KY_REACH_ROWS ? left : KY_REACH_ROWS);
	}
	return 0;
}

void ky_reach_free(struct ky_reach *reach)
{
	free(reach->ends);
	*reach = (struct ky_reach){0};
}
