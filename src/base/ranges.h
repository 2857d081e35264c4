/* SPDX-License-Identifier: MIT */
/*
 * ranges.h: what lies where in address spaces: ranges that do not overlap, each with a number. A new range
 * takes its place from those that were there, which keep what is left of them. A space that is made as
 * a copy of another (fork) shares all with it until one of them changes.
 *
 * All spaces are treaps in one array of nodes; a node belongs to the space that made it, and another that
 * wants to change it makes its own. So a new range costs O(log n) in time and memory, also behind
 * any number of forks. Priorities are seeded at run time: no input can make a tree deep.
 */
#ifndef KY_BASE_RANGES_H
#define KY_BASE_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct ky_ranges_node;

struct ky_ranges {
	struct ky_ranges_node *nodes; /* the first is no node */
	uint32_t count;
	uint64_t room;
	uint32_t owners;
	uint64_t random;
	bool failed; /* memory was short: ranges are missing */
};

/* A space; all zero is an empty one. */
struct ky_space {
	uint32_t root;
	uint32_t owner;
};

void ky_ranges_free(struct ky_ranges *ranges);
/* Puts start to before end; whether it took the place of others. */
bool ky_ranges_put(struct ky_ranges *ranges, struct ky_space *space, uint64_t start, uint64_t end,
		   uint32_t value);
/* The range that has the address; false when there is none. */
bool ky_ranges_find(const struct ky_ranges *ranges, const struct ky_space *space, uint64_t address,
		    uint32_t *value);
/* Makes copy the same as space is now. */
void ky_ranges_copy(struct ky_ranges *ranges, struct ky_space *space, struct ky_space *copy);

#endif
