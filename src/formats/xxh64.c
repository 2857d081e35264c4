/* SPDX-License-Identifier: MIT */
/*
 * xxh64.c: XXH64 by its specification (github.com/Cyan4973/xxHash, doc/xxhash_spec.md).
 *
 *   32 bytes at a time ─▶ four sums ─▶ merged ─▶ the rest, 8, 4, 1 at a time ─▶ mixed
 */
#include "formats/xxh64.h"

#include <string.h>

#define PRIME_1 UINT64_C(0x9e3779b185ebca87)
#define PRIME_2 UINT64_C(0xc2b2ae3d27d4eb4f)
#define PRIME_3 UINT64_C(0x165667b19e3779f9)
#define PRIME_4 UINT64_C(0x85ebca77c2b2ae63)
#define PRIME_5 UINT64_C(0x27d4eb2f165667c5)

static inline uint64_t rotate(uint64_t value, int bits)
{
	return value << bits | value >> (64 - bits);
}

static inline uint64_t load_64(const uint8_t *from)
{
	uint64_t value;
	memcpy(&value, from, sizeof(value));
	return value;
}

static inline uint32_t load_32(const uint8_t *from)
{
	uint32_t value;
	memcpy(&value, from, sizeof(value));
	return value;
}

static inline uint64_t add_to_sum(uint64_t sum, uint64_t input)
{
	return rotate(sum + input * PRIME_2, 31) * PRIME_1;
}

static inline uint64_t merge_sum(uint64_t hash, uint64_t sum)
{
	return (hash ^ add_to_sum(0, sum)) * PRIME_1 + PRIME_4;
}

/* Hash the whole stripes of 32 bytes and move *at behind them. */
static uint64_t hash_stripes(const uint8_t **at, size_t stripes)
{
	uint64_t a = PRIME_1 + PRIME_2, b = PRIME_2, c = 0, d = 0 - PRIME_1;
	const uint8_t *from = *at;
	for (; stripes; stripes--, from += 32) {
		a = add_to_sum(a, load_64(from));
		b = add_to_sum(b, load_64(from + 8));
		c = add_to_sum(c, load_64(from + 16));
		d = add_to_sum(d, load_64(from + 24));
	}
	*at = from;
	uint64_t hash = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18);
	hash = merge_sum(merge_sum(hash, a), b);
	return merge_sum(merge_sum(hash, c), d);
}

static uint64_t hash_rest(uint64_t hash, const uint8_t *at, size_t bytes)
{
	for (; bytes >= 8; bytes -= 8, at += 8)
		hash = rotate(hash ^ add_to_sum(0, load_64(at)), 27) * PRIME_1 + PRIME_4;
	if (bytes >= 4) {
		hash = rotate(hash ^ load_32(at) * PRIME_1, 23) * PRIME_2 + PRIME_3;
		at += 4;
		bytes -= 4;
	}
	for (; bytes; bytes--, at++)
		hash = rotate(hash ^ *at * PRIME_5, 11) * PRIME_1;
	return hash;
}

uint64_t ky_xxh64(const void *data, size_t bytes)
{
	const uint8_t *at = data;
	uint64_t hash = PRIME_5;
	if (bytes >= 32)
		hash = hash_stripes(&at, bytes / 32);
	hash = hash_rest(hash + bytes, at, bytes % 32);
	hash = (hash ^ hash >> 33) * PRIME_2;
	hash = (hash ^ hash >> 29) * PRIME_3;
	return hash ^ hash >> 32;
}
