/* SPDX-License-Identifier: MIT */
/* hits.c: see hits.h. */
#include "server/hits.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define BLOCK_WORDS 8u

static uint32_t words_of(uint32_t rows)
{
	return rows / 64 + 1;
}

int ky_hits_open(struct ky_hits *hits, uint32_t rows)
{
	const uint32_t blocks = words_of(rows) / BLOCK_WORDS + 1;
	*hits = (struct ky_hits){
		.bits = calloc(words_of(rows), sizeof(*hits->bits)),
		.before = malloc(((size_t)blocks + 1) * sizeof(*hits->before)),
		.rows = rows,
	};
	if (hits->bits && hits->before)
		return 0;
	ky_hits_free(hits);
	return -ENOMEM;
}

void ky_hits_free(struct ky_hits *hits)
{
	free(hits->bits);
	free(hits->before);
	*hits = (struct ky_hits){0};
}

void ky_hits_seal(struct ky_hits *hits)
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

uint32_t ky_hits_before(const struct ky_hits *hits, uint32_t row)
{
	assert(row <= hits->rows);
	const uint32_t word = row / 64, block = word / BLOCK_WORDS;
	uint32_t count = hits->before[block];
	for (uint32_t i = block * BLOCK_WORDS; i < word; i++)
		count += (uint32_t)__builtin_popcountll(hits->bits[i]);
	const uint64_t below = (UINT64_C(1) << row % 64) - 1;
	return count + (uint32_t)__builtin_popcountll(hits->bits[word] & below);
}

/* The block that has the member: the last with no more than number before it. */
static uint32_t block_of(const struct ky_hits *hits, uint32_t number)
{
	uint32_t low = 0, high = (words_of(hits->rows) + BLOCK_WORDS - 1) / BLOCK_WORDS;
	while (high - low > 1) {
		const uint32_t middle = low + (high - low) / 2;
		if (hits->before[middle] <= number)
			low = middle;
		else
			high = middle;
	}
	return low;
}

uint32_t ky_hits_get(const struct ky_hits *hits, uint32_t number)
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
