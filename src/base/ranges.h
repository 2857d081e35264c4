/* SPDX-License-Identifier: MIT */
/*
 * ranges.h: address spaces: ranges that do not overlap, each with a value. A new range replaces what it covers; the rest
 * of the ranges there before stays. A space that is a copy of another (fork) shares all with it until one of them changes.
 *
 * All spaces are treaps in one array of nodes; a node belongs to the space that made it, and another space that wants to
 * change it makes a copy. So a new range costs O(log n) in time and memory, also after any number of forks.
 * Priorities are seeded at run time: no input can make a tree deep.
 */
#ifndef KY_BASE_RANGES_H
#define KY_BASE_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct ky_ranges_node;

struct ky_ranges {
	struct ky_ranges_node *nodes; /* the first one is unused */
	uint32_t count;
	uint64_t room;
	uint32_t owners;
	uint64_t random;
	bool failed; /* without memory: ranges are missing */
};

/* A space; all zero is an empty one. */
struct ky_space {
	uint32_t root;
	uint32_t owner;
};

/* Free all spaces. */
void ky_ranges_free(struct ky_ranges *ranges);
/* Put a range from start to before end; report whether it replaced others. */
bool ky_ranges_put(struct ky_ranges *ranges, struct ky_space *space, uint64_t start, uint64_t end,
		   uint32_t value);
/* Find the value of the range that has the address; false when there is none. */
bool ky_ranges_find(const struct ky_ranges *ranges, const struct ky_space *space, uint64_t address,
		    uint32_t *value);
/* Make a copy of a space as it is now. */
void ky_ranges_copy(struct ky_ranges *ranges, struct ky_space *space, struct ky_space *copy);

#endif
