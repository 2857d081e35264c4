/* SPDX-License-Identifier: MIT */
/*
 * hits.h: a set of rows of a table, as a bit for each, with the number of members before each block: so many bytes
 * that searches of any result can be kept, and both the n-th member and the number of a member are found at once.
 */
#ifndef KY_SERVER_HITS_H
#define KY_SERVER_HITS_H

#include <stdbool.h>
#include <stdint.h>

struct ky_hits {
	uint64_t *bits;
	uint32_t *before; /* members before each block; NULL until it is sealed */
	uint32_t rows, count;
};

/* 0 or -ENOMEM. */
int ky_hits_open(struct ky_hits *hits, uint32_t rows);
void ky_hits_free(struct ky_hits *hits);

static inline void ky_hits_add(struct ky_hits *hits, uint32_t row)
{
	hits->bits[row / 64] |= UINT64_C(1) << row % 64;
}

static inline bool ky_hits_has(const struct ky_hits *hits, uint32_t row)
{
	return hits->bits[row / 64] >> row % 64 & 1;
}

/* No more are added. */
void ky_hits_seal(struct ky_hits *hits);
/* How many members are before that row (at most rows). */
uint32_t ky_hits_before(const struct ky_hits *hits, uint32_t row);
/* The row of the member of that number, which is below count. */
uint32_t ky_hits_get(const struct ky_hits *hits, uint32_t number);

#endif
