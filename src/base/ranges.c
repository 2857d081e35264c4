/* SPDX-License-Identifier: MIT */
/* ranges.c: the treaps of ranges.h: split at an address, join again. Node 0 is no node. */
#include "base/ranges.h"

#include "base/array.h"

#include <sys/random.h>

struct ky_ranges_node {
	uint64_t start;
	uint64_t end;
	uint32_t value;
	uint32_t left;
	uint32_t right;
	uint32_t priority;
	uint32_t owner;
};

void ky_ranges_free(struct ky_ranges *ranges)
{
	KY_ARRAY_FREE(ranges->nodes, ranges->room);
	*ranges = (struct ky_ranges){0};
}

static uint32_t next_priority(struct ky_ranges *ranges)
{
	ranges->random += 0x9e3779b97f4a7c15u; /* splitmix64 */
	uint64_t z = ranges->random;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (uint32_t)(z >> 32);
}

static bool start(struct ky_ranges *ranges)
{
	if (ranges->count)
		return true;
	if (getrandom(&ranges->random, sizeof(ranges->random), GRND_NONBLOCK) < 0)
		ranges->random = (uint64_t)(uintptr_t)&ranges;
	if (!KY_ARRAY_GROW_ZERO(ranges->nodes, ranges->room, 1))
		return false;
	ranges->count = 1;
	return true;
}

static uint32_t node_new(struct ky_ranges *ranges, const struct ky_ranges_node *like)
{
	if (!start(ranges) || ranges->count == UINT32_MAX ||
	    !KY_ARRAY_GROW(ranges->nodes, ranges->room, ranges->count + 1)) {
		ranges->failed = true;
		return 0;
	}
	ranges->nodes[ranges->count] = *like;
	return ranges->count++;
}

/* Return the node when it is the space's own, else a copy that is; 0 without memory. */
static uint32_t own(struct ky_ranges *ranges, uint32_t owner, uint32_t node)
{
	if (ranges->nodes[node].owner == owner)
		return node;
	struct ky_ranges_node copy = ranges->nodes[node];
	copy.owner = owner;
	return node_new(ranges, &copy);
}

/* Put the nodes that start before the address into *left, the others into *right. */
static void split(struct ky_ranges *ranges, uint32_t owner, uint32_t node, uint64_t address,
		  uint32_t *left, uint32_t *right)
{
	*left = *right = 0;
	node = node ? own(ranges, owner, node) : 0;
	if (!node)
		return;
	uint32_t part;
	if (ranges->nodes[node].start < address) {
		split(ranges, owner, ranges->nodes[node].right, address, &part, right);
		ranges->nodes[node].right = part;
		*left = node;
	} else {
		split(ranges, owner, ranges->nodes[node].left, address, left, &part);
		ranges->nodes[node].left = part;
		*right = node;
	}
}

static uint32_t join(struct ky_ranges *ranges, uint32_t owner, uint32_t left, uint32_t right)
{
	if (!left || !right)
		return left ? left : right;
	const bool left_is_top = ranges->nodes[left].priority >= ranges->nodes[right].priority;
	const uint32_t top = own(ranges, owner, left_is_top ? left : right);
	if (!top)
		return 0;
	if (left_is_top) {
		const uint32_t part = join(ranges, owner, ranges->nodes[top].right, right);
		ranges->nodes[top].right = part;
	} else {
		const uint32_t part = join(ranges, owner, left, ranges->nodes[top].left);
		ranges->nodes[top].left = part;
	}
	return top;
}

/* Return the last node of a tree, 0 for an empty one; the space owns the way to it. */
static uint32_t last(const struct ky_ranges *ranges, uint32_t node)
{
	while (node && ranges->nodes[node].right)
		node = ranges->nodes[node].right;
	return node;
}

/* Return the part of the tree's last range from the address on, as a new node. */
static uint32_t rest(struct ky_ranges *ranges, uint32_t owner, uint32_t tree, uint64_t address)
{
	const uint32_t node = last(ranges, tree);
	if (!node || ranges->nodes[node].end <= address)
		return 0;
	const struct ky_ranges_node part = {.start = address,
					    .end = ranges->nodes[node].end,
					    .value = ranges->nodes[node].value,
					    .priority = next_priority(ranges),
					    .owner = owner};
	return node_new(ranges, &part);
}

bool ky_ranges_put(struct ky_ranges *ranges, struct ky_space *space, uint64_t from, uint64_t end,
		   uint32_t value)
{
	if (from >= end || !start(ranges))
		return false;
	if (!space->owner)
		space->owner = ++ranges->owners;
	const uint32_t owner = space->owner;
	uint32_t before, after, replaced, right;
	split(ranges, owner, space->root, from, &before, &after);
	split(ranges, owner, after, end, &replaced, &right);
	uint32_t left_over = rest(ranges, owner, replaced, end);
	/* split() made the way to the last node the space's own. */
	const uint32_t cut = last(ranges, before);
	const bool cuts = cut && ranges->nodes[cut].end > from;
	if (cuts) {
		if (ranges->nodes[cut].end > end)
			left_over = rest(ranges, owner, before, end);
		ranges->nodes[cut].end = from;
	}
	const struct ky_ranges_node made = {.start = from,
					    .end = end,
					    .value = value,
					    .priority = next_priority(ranges),
					    .owner = owner};
	const uint32_t node = node_new(ranges, &made);
	before = join(ranges, owner, before, node);
	right = join(ranges, owner, left_over, right);
	space->root = join(ranges, owner, before, right);
	return cuts || replaced;
}

bool ky_ranges_find(const struct ky_ranges *ranges, const struct ky_space *space, uint64_t address,
		    uint32_t *value)
{
	uint32_t node = space->root;
	while (node) {
		const struct ky_ranges_node *at = &ranges->nodes[node];
		if (address < at->start) {
			node = at->left;
		} else if (address >= at->end) {
			node = at->right;
		} else {
			*value = at->value;
			return true;
		}
	}
	return false;
}

void ky_ranges_copy(struct ky_ranges *ranges, struct ky_space *space, struct ky_space *copy)
{
	space->owner = ++ranges->owners;
	*copy = (struct ky_space){.root = space->root, .owner = ++ranges->owners};
}
