/* SPDX-License-Identifier: MIT */
/*
 * search_order.c: matches of slices and of samples are numbered together, in the order of time; slices first where both
 * begin at once. Nothing is sorted for it but the spans of samples, once: numbers are found by halves.
 */
#include "server/answer_parts.h"

#include "model/index.h"

#include <errno.h>
#include <stdlib.h>

struct timed {
	int64_t ts;
	uint32_t row;
};

static int by_time(const void *a_, const void *b_)
{
	const struct timed *const a = a_, *const b = b_;
	if (a->ts != b->ts)
		return a->ts < b->ts ? -1 : 1;
	return (a->row > b->row) - (a->row < b->row);
}

int ky_search_order(struct ky_answers *answers)
{
	const struct ky_sample_spans *const spans = &answers->view->sample_spans;
	struct ky_searches *const searches = &answers->searches;
	const size_t room = (size_t)spans->count + 1;
	if (searches->order)
		return 0;
	struct timed *const timed = malloc(room * sizeof(*timed));
	uint32_t *const order = malloc(room * sizeof(*order));
	int64_t *const ts = malloc(room * sizeof(*ts));
	const bool enough = timed && order && ts;
	for (uint32_t i = 0; enough && i < spans->count; i++)
		timed[i] = (struct timed){spans->ts[i], i};
	if (enough)
		qsort(timed, spans->count, sizeof(*timed), by_time);
	for (uint32_t i = 0; enough && i < spans->count; i++) {
		order[i] = timed[i].row;
		ts[i] = timed[i].ts;
	}
	free(timed);
	searches->order = enough ? order : NULL;
	searches->order_ts = enough ? ts : NULL;
	if (enough)
		return 0;
	free(order);
	free(ts);
	return -ENOMEM;
}

uint64_t ky_search_count(const struct ky_search *search)
{
	return (uint64_t)search->slices.count + search->spans.count;
}

/* How many matches begin before that time. */
static uint32_t slices_before(const struct ky_search *search, const struct ky_answers *answers,
			      int64_t ts)
{
	return ky_hits_before(&search->slices, ky_index_time(answers->view->trace->slices.ts,
							     search->slices.rows, ts));
}

static uint32_t spans_before(const struct ky_search *search, const struct ky_answers *answers,
			     int64_t ts)
{
	return ky_hits_before(&search->spans,
			      ky_index_time(answers->searches.order_ts, search->spans.rows, ts));
}

uint64_t ky_search_number(const struct ky_search *search, const struct ky_answers *answers,
			  enum ky_view_kind kind, uint32_t at)
{
	if (kind == KY_VIEW_SLICES)
		return (uint64_t)ky_hits_before(&search->slices, at) +
		       spans_before(search, answers, answers->view->trace->slices.ts[at]);
	/* Slices that begin with it come first. */
	const int64_t ts = answers->searches.order_ts[at];
	const uint32_t slices =
		ts == INT64_MAX ? search->slices.count : slices_before(search, answers, ts + 1);
	return (uint64_t)ky_hits_before(&search->spans, at) + slices;
}

uint64_t ky_search_at(const struct ky_search *search, const struct ky_answers *answers, int64_t ts)
{
	return (uint64_t)slices_before(search, answers, ts) + spans_before(search, answers, ts);
}

/* The first slice among the matches whose number is not below that: by halves. */
void ky_search_get(const struct ky_search *search, const struct ky_answers *answers,
		   uint64_t number, enum ky_view_kind *kind, uint32_t *event)
{
	const int64_t *const ts = answers->view->trace->slices.ts;
	uint32_t low = 0, high = search->slices.count;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		const int64_t at = ts[ky_hits_get(&search->slices, middle)];
		if ((uint64_t)middle + spans_before(search, answers, at) < number)
			low = middle + 1;
		else
			high = middle;
	}
	*kind = KY_VIEW_SLICES;
	if (low < search->slices.count) {
		*event = ky_hits_get(&search->slices, low);
		if ((uint64_t)low + spans_before(search, answers, ts[*event]) == number)
			return;
	}
	*kind = KY_VIEW_SAMPLES;
	*event = answers->searches.order[ky_hits_get(&search->spans, (uint32_t)(number - low))];
}
