/* SPDX-License-Identifier: MIT */
/* search_hits.c: see search.h. */
#include "server/search.h"

#include "base/array.h"
#include "model/index.h"
#include "server/api.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define BLOCK_WORDS 8u

static uint32_t words_of(uint32_t rows)
{
	return rows / 64 + 1;
}

int ky_search_hits_open(struct ky_search_hits *hits, uint32_t rows)
{
	const uint32_t blocks = words_of(rows) / BLOCK_WORDS + 1;
	*hits = (struct ky_search_hits){
		.bits = calloc(words_of(rows), sizeof(*hits->bits)),
		.before = malloc(((size_t)blocks + 1) * sizeof(*hits->before)),
		.rows = rows,
	};
	if (hits->bits && hits->before)
		return 0;
	ky_search_hits_free(hits);
	return -ENOMEM;
}

void ky_search_hits_free(struct ky_search_hits *hits)
{
	free(hits->bits);
	free(hits->before);
	*hits = (struct ky_search_hits){0};
}

void ky_search_hits_seal(struct ky_search_hits *hits)
{
	const uint32_t words = words_of(hits->rows);
	hits->count = 0;
	for (uint32_t i = 0; i < words; i++) {
		if (i % BLOCK_WORDS == 0)
			hits->before[i / BLOCK_WORDS] = hits->count;
		hits->count += (uint32_t)__builtin_popcountll(hits->bits[i]);
	}
	hits->before[(words + BLOCK_WORDS - 1) / BLOCK_WORDS] = hits->count;
}

uint32_t ky_search_hits_before(const struct ky_search_hits *hits, uint32_t row)
{
	assert(row <= hits->rows);
	const uint32_t word = row / 64, block = word / BLOCK_WORDS;
	uint32_t count = hits->before[block];
	for (uint32_t i = block * BLOCK_WORDS; i < word; i++)
		count += (uint32_t)__builtin_popcountll(hits->bits[i]);
	const uint64_t below = (UINT64_C(1) << row % 64) - 1;
	return count + (uint32_t)__builtin_popcountll(hits->bits[word] & below);
}

/* Return the block that has the member: the last one with no more than number before it. */
static uint32_t block_of(const struct ky_search_hits *hits, uint32_t number)
{
	return KY_ARRAY_SEARCH(1, (words_of(hits->rows) + BLOCK_WORDS - 1) / BLOCK_WORDS, at,
			       hits->before[at] <= number) -
	       1;
}

uint32_t ky_search_hits_get(const struct ky_search_hits *hits, uint32_t number)
{
	assert(number < hits->count);
	const uint32_t block = block_of(hits, number);
	uint32_t left = number - hits->before[block], word = block * BLOCK_WORDS;
	for (uint32_t in; left >= (in = (uint32_t)__builtin_popcountll(hits->bits[word])); word++)
		left -= in;
	uint64_t bits = hits->bits[word];
	while (left-- > 0)
		bits &= bits - 1;
	return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

/* ---- the order of matches ---- */

struct timed {
	int64_t ts;
	uint32_t row;
};

KY_ORDER(by_time, struct timed, KY_COMPARE_THEN(a->ts, b->ts, KY_COMPARE(a->row, b->row)))

int ky_search_hits_order(struct ky_api *api)
{
	const struct ky_sample_spans *const spans = &api->view->sample_spans;
	struct ky_searches *const searches = &api->searches;
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

uint64_t ky_search_hits_count(const struct ky_search *search)
{
	return (uint64_t)search->slices.count + search->spans.count;
}

/* Return how many matches begin before a time. */
static uint32_t slices_before(const struct ky_search *search, const struct ky_api *api, int64_t ts)
{
	return ky_search_hits_before(&search->slices, ky_index_time(api->view->trace->slices.ts,
								    search->slices.rows, ts));
}

static uint32_t spans_before(const struct ky_search *search, const struct ky_api *api, int64_t ts)
{
	return ky_search_hits_before(&search->spans,
				     ky_index_time(api->searches.order_ts, search->spans.rows, ts));
}

uint64_t ky_search_hits_number(const struct ky_search *search, const struct ky_api *api,
			       enum ky_view_kind kind, uint32_t at)
{
	if (kind == KY_VIEW_SLICES)
		return (uint64_t)ky_search_hits_before(&search->slices, at) +
		       spans_before(search, api, api->view->trace->slices.ts[at]);
	/* Slices that begin at the same time come first. */
	const int64_t ts = api->searches.order_ts[at];
	const uint32_t slices =
		ts == INT64_MAX ? search->slices.count : slices_before(search, api, ts + 1);
	return (uint64_t)ky_search_hits_before(&search->spans, at) + slices;
}

uint64_t ky_search_hits_at(const struct ky_search *search, const struct ky_api *api, int64_t ts)
{
	return (uint64_t)slices_before(search, api, ts) + spans_before(search, api, ts);
}

/* Binary search for the first matching slice whose number is not below the given one. */
void ky_search_hits_match(const struct ky_search *search, const struct ky_api *api, uint64_t number,
			  enum ky_view_kind *kind, uint32_t *event)
{
	const int64_t *const ts = api->view->trace->slices.ts;
	const uint32_t low = KY_ARRAY_SEARCH(
		0, search->slices.count, at,
		at + (uint64_t)spans_before(search, api,
					    ts[ky_search_hits_get(&search->slices, at)]) <
			number);
	*kind = KY_VIEW_SLICES;
	if (low < search->slices.count) {
		*event = ky_search_hits_get(&search->slices, low);
		if ((uint64_t)low + spans_before(search, api, ts[*event]) == number)
			return;
	}
	*kind = KY_VIEW_SAMPLES;
	*event = api->searches.order[ky_search_hits_get(&search->spans, (uint32_t)(number - low))];
}
