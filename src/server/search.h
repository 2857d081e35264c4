/* SPDX-License-Identifier: MIT */
/*
 * search.h: finds the events that have a text in their name, category or arguments, and numbers them in time order.
 *
 *   search.c        compares each string of the trace once, then selects rows by their strings
 *   search_hits.c   the sets of matching rows, and the numbers of matches
 */
#ifndef KY_SERVER_SEARCH_H
#define KY_SERVER_SEARCH_H

#include "server/view.h"

#include <pthread.h>

/* ---- sets of rows ---- */

/*
 * A set of rows of a table: one bit per row, and the number of members before each block. It is small enough to keep for
 * any result, and finds both the n-th member and the number of a member at once.
 */
struct ky_search_hits {
	uint64_t *bits;
	uint32_t *before; /* members before each block; valid after ky_search_hits_seal() */
	uint32_t rows, count;
};

/* Return 0 or -ENOMEM. */
int ky_search_hits_open(struct ky_search_hits *hits, uint32_t rows);
void ky_search_hits_free(struct ky_search_hits *hits);

static inline void ky_search_hits_add(struct ky_search_hits *hits, uint32_t row)
{
	hits->bits[row / 64] |= UINT64_C(1) << row % 64;
}

static inline bool ky_search_hits_has(const struct ky_search_hits *hits, uint32_t row)
{
	return hits->bits[row / 64] >> row % 64 & 1;
}

/* Count the members; none may be added afterwards. */
void ky_search_hits_seal(struct ky_search_hits *hits);
/* Return how many members come before a row (at most rows). */
uint32_t ky_search_hits_before(const struct ky_search_hits *hits, uint32_t row);
/* Return the row of a member by its number, which is below count. */
uint32_t ky_search_hits_get(const struct ky_search_hits *hits, uint32_t number);

/* ---- searches ---- */

#define KY_SEARCHES_KEPT 4u

struct ky_search {
	char *text;    /* NULL: unused */
	uint64_t used; /* value of searches->asked at its last use */
	struct ky_search_hits slices, spans;
	uint32_t *names; /* strings that match as names */
	uint32_t names_count;
	struct ky_search_track {
		uint32_t track;
		uint64_t count, first;
	} * tracks;
	uint32_t tracks_count;
};

/* The last searches of a view. */
struct ky_searches {
	pthread_mutex_t lock;
	struct ky_search kept[KY_SEARCHES_KEPT];
	uint64_t asked;
	uint32_t *order;   /* rows of view->sample_spans in time order; NULL: not made yet */
	int64_t *order_ts; /* their times */
};

struct ky_api;

/* Search a view, with the lock of api->searches held. Return 0, -ENOMEM, or -EINTR when the API is stopping. */
int ky_search_run(struct ky_search *search, struct ky_api *api, const char *text);
void ky_search_free(struct ky_search *search);

/* ---- numbers of matches: in time order, slices before sample spans that begin at the same time ---- */

/* Make searches->order, with the lock held. Return 0 or -ENOMEM. */
int ky_search_hits_order(struct ky_api *api);
/* Return how many matches there are in all. */
uint64_t ky_search_hits_count(const struct ky_search *search);
/* Return the number of the first match that begins at or after a time. */
uint64_t ky_search_hits_at(const struct ky_search *search, const struct ky_api *api, int64_t ts);
/* Return the number of a match: of a slice by its row, of a sample span by its place in searches->order. */
uint64_t ky_search_hits_number(const struct ky_search *search, const struct ky_api *api,
			       enum ky_view_kind kind, uint32_t at);
/* Find the match of a number, which is below the count. */
void ky_search_hits_match(const struct ky_search *search, const struct ky_api *api, uint64_t number,
			  enum ky_view_kind *kind, uint32_t *event);

#endif
