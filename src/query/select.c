/* SPDX-License-Identifier: MIT */
/* select.c: see select.h. */
#include "query/select.h"

#include <string.h>

#define BITS 11
#define FEW 32

/* Map values to unsigned numbers of the same order. */
static uint64_t ordered(int64_t value)
{
	return (uint64_t)value ^ (UINT64_C(1) << 63);
}

static int64_t select_few(int64_t *values, uint64_t count, uint64_t rank)
{
	for (uint64_t i = 1; i < count; i++) {
		const int64_t value = values[i];
		uint64_t at = i;
		for (; at && values[at - 1] > value; at--)
			values[at] = values[at - 1];
		values[at] = value;
	}
	return values[rank];
}

static void range(const int64_t *values, uint64_t count, int64_t *min, int64_t *max)
{
	*min = *max = values[0];
	for (uint64_t i = 1; i < count; i++) {
		*min = values[i] < *min ? values[i] : *min;
		*max = values[i] > *max ? values[i] : *max;
	}
}

/* Move the values of one bucket to the front and return their number. */
static uint64_t gather(int64_t *values, uint64_t count, uint64_t base, unsigned shift,
		       uint64_t bucket)
{
	uint64_t kept = 0;
	for (uint64_t i = 0; i < count; i++) {
		const int64_t value = values[i];
		if ((ordered(value) - base) >> shift != bucket)
			continue;
		values[i] = values[kept];
		values[kept++] = value;
	}
	return kept;
}

int64_t ky_select(int64_t *values, uint64_t count, uint64_t rank)
{
	uint64_t counts[1u << BITS];
	while (count > FEW) {
		int64_t min, max;
		range(values, count, &min, &max);
		if (min == max)
			return min;
		const uint64_t base = ordered(min);
		const unsigned width = 64 - (unsigned)__builtin_clzll(ordered(max) - base);
		const unsigned shift = width > BITS ? width - BITS : 0;
		memset(counts, 0, sizeof(counts));
		for (uint64_t i = 0; i < count; i++)
			counts[(ordered(values[i]) - base) >> shift]++;
		uint64_t bucket = 0;
		while (rank >= counts[bucket])
			rank -= counts[bucket++];
		if (!shift)
			return (int64_t)(ordered(min) + bucket - (UINT64_C(1) << 63));
		count = gather(values, count, base, shift, bucket);
	}
	return select_few(values, count, rank);
}
