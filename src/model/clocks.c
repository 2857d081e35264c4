/* SPDX-License-Identifier: MIT */
/*
 * clocks.c: see clocks.h. For each pair of clocks that some snapshot has, an edge: the moments in both, ordered by
 * the first. A conversion walks the shortest chain of edges.
 */
#include "model/clocks.h"

#include "base/array.h"
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>

#define READINGS_MAX 64u
#define HOPS_MAX 8u

struct moment {
	int64_t from, to;
};

struct edge {
	uint32_t from, to; /* nodes */
	struct moment *moments;
	uint32_t count, room;
	bool ordered;
	uint32_t next; /* edge of the same from, index + 1 */
};

struct node {
	uint64_t clock;
	uint32_t edges; /* index + 1 */
	/* Of the current search. */
	uint32_t seen;
	uint32_t by; /* edge that led here */
	uint32_t
		queued; /* the node at this place of the queue, which is as long as the list of nodes */
};

/* The last found chain of edges from one clock to another. */
struct path {
	uint64_t from, to;
	uint32_t edges[HOPS_MAX];
	uint32_t count;
	bool known, exists;
};

struct ky_clocks {
	struct ky_pair_map nodes_by_clock;
	struct ky_pair_map edges_by_pair;
	struct node *nodes;
	uint32_t nodes_count, nodes_room;
	struct edge *edges;
	uint32_t edges_count, edges_room;
	uint32_t searches;
	struct path paths[16];
};

int ky_clocks_open(struct ky_clocks **clocks)
{
	*clocks = calloc(1, sizeof(**clocks));
	return *clocks ? 0 : -ENOMEM;
}

void ky_clocks_close(struct ky_clocks **clocks)
{
	struct ky_clocks *c = *clocks;
	if (!c)
		return;
	for (uint32_t i = 0; i < c->edges_count; i++)
		KY_ARRAY_FREE(c->edges[i].moments, c->edges[i].room);
	KY_ARRAY_FREE(c->edges, c->edges_room);
	KY_ARRAY_FREE(c->nodes, c->nodes_room);
	ky_pair_map_free(&c->nodes_by_clock);
	ky_pair_map_free(&c->edges_by_pair);
	free(c);
	*clocks = NULL;
}

/* Return the clock's node, made on first use; UINT32_MAX without memory. */
static uint32_t node_of(struct ky_clocks *c, uint64_t clock)
{
	bool made;
	if (!KY_ARRAY_GROW(c->nodes, c->nodes_room, (uint64_t)c->nodes_count + 1))
		return UINT32_MAX;
	uint64_t *found = ky_pair_map_add(&c->nodes_by_clock, clock, 0, &made);
	if (!found)
		return UINT32_MAX;
	if (made) {
		c->nodes[c->nodes_count] = (struct node){.clock = clock};
		*found = c->nodes_count++;
	}
	return (uint32_t)*found;
}

static struct edge *edge_of(struct ky_clocks *c, uint32_t from, uint32_t to)
{
	bool made;
	if (!KY_ARRAY_GROW(c->edges, c->edges_room, (uint64_t)c->edges_count + 1))
		return NULL;
	uint64_t *found = ky_pair_map_add(&c->edges_by_pair, from, to, &made);
	if (!found)
		return NULL;
	if (made) {
		*found = c->edges_count++;
		c->edges[*found] = (struct edge){
			.from = from, .to = to, .ordered = true, .next = c->nodes[from].edges};
		c->nodes[from].edges = (uint32_t)*found + 1;
	}
	return &c->edges[*found];
}

static int add_moment(struct ky_clocks *c, uint32_t from, uint32_t to, int64_t from_ns,
		      int64_t to_ns)
{
	struct edge *edge = edge_of(c, from, to);
	if (!edge || !KY_ARRAY_GROW(edge->moments, edge->room, (uint64_t)edge->count + 1))
		return -ENOMEM;
	if (edge->count && edge->moments[edge->count - 1].from > from_ns)
		edge->ordered = false;
	edge->moments[edge->count++] = (struct moment){from_ns, to_ns};
	return 0;
}

int ky_clocks_add(struct ky_clocks *c, const struct ky_clock_reading *readings, uint32_t count)
{
	uint32_t nodes[READINGS_MAX];
	if (count > READINGS_MAX)
		count = READINGS_MAX;
	for (uint32_t i = 0; i < count; i++) {
		nodes[i] = node_of(c, readings[i].clock);
		if (nodes[i] == UINT32_MAX)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < count; j++)
			if (nodes[i] != nodes[j] &&
			    add_moment(c, nodes[i], nodes[j], readings[i].ns, readings[j].ns) != 0)
				return -ENOMEM;
	for (uint32_t i = 0; i < 16; i++)
		c->paths[i].known = false;
	return 0;
}

KY_ORDER(compare_moments, struct moment, KY_COMPARE(a->from, b->from))

/* Return the moment that converts ns: the last one before it, or the first one. */
static const struct moment *moment_of(struct edge *edge, int64_t ns)
{
	if (!edge->ordered) {
		qsort(edge->moments, edge->count, sizeof(*edge->moments), compare_moments);
		edge->ordered = true;
	}
	const uint32_t low = KY_ARRAY_SEARCH(0, edge->count, at, edge->moments[at].from <= ns);
	return &edge->moments[low ? low - 1 : 0];
}

static int64_t convert_by(struct edge *edge, int64_t ns)
{
	if (!edge->count) /* there was no memory for its first moment */
		return ns;
	const struct moment *moment = moment_of(edge, ns);
	return (int64_t)((uint64_t)ns - (uint64_t)moment->from + (uint64_t)moment->to);
}

/* Store the way by which the search reached target. */
static void trace_back(struct ky_clocks *c, struct path *path, uint32_t start, uint32_t target)
{
	uint32_t chain[HOPS_MAX];
	uint32_t count = 0;
	for (uint32_t node = target; node != start; node = c->edges[c->nodes[node].by].from) {
		if (count == HOPS_MAX)
			return;
		chain[count++] = c->nodes[node].by;
	}
	path->exists = true;
	path->count = count;
	for (uint32_t i = 0; i < count; i++)
		path->edges[i] = chain[count - 1 - i];
}

static void search(struct ky_clocks *c, struct path *path)
{
	const uint64_t *start = ky_pair_map_find(&c->nodes_by_clock, path->from, 0);
	const uint64_t *target = ky_pair_map_find(&c->nodes_by_clock, path->to, 0);
	if (!start || !target)
		return;
	const uint32_t round = ++c->searches;
	uint32_t head = 0;
	uint32_t tail = 0;
	c->nodes[tail++].queued = (uint32_t)*start;
	c->nodes[*start].seen = round;
	while (head < tail && c->nodes[*target].seen != round) {
		const uint32_t node = c->nodes[head++].queued;
		for (uint32_t e = c->nodes[node].edges; e; e = c->edges[e - 1].next) {
			struct node *to = &c->nodes[c->edges[e - 1].to];
			if (to->seen == round)
				continue;
			to->seen = round;
			to->by = e - 1;
			c->nodes[tail++].queued = c->edges[e - 1].to;
		}
	}
	if (c->nodes[*target].seen == round)
		trace_back(c, path, (uint32_t)*start, (uint32_t)*target);
}

static const struct path *path_of(struct ky_clocks *c, uint64_t from, uint64_t to)
{
	struct path *path = &c->paths[(from ^ from >> 32 ^ to * 7) % 16];
	if (!path->known || path->from != from || path->to != to) {
		*path = (struct path){.from = from, .to = to, .known = true};
		search(c, path);
	}
	return path;
}

bool ky_clocks_convert(struct ky_clocks *c, uint64_t from, uint64_t to, int64_t ns,
		       int64_t *converted)
{
	*converted = ns;
	if (from == to)
		return true;
	const struct path *path = path_of(c, from, to);
	for (uint32_t i = 0; path->exists && i < path->count; i++)
		*converted = convert_by(&c->edges[path->edges[i]], *converted);
	return path->exists;
}

/* Return a - b, saturated. */
static int64_t minus(int64_t a, int64_t b)
{
	int64_t difference;
	if (__builtin_sub_overflow(a, b, &difference))
		return b < 0 ? INT64_MAX : INT64_MIN;
	return difference;
}

bool ky_clocks_convert_range(struct ky_clocks *c, uint64_t from, uint64_t to, int64_t ns,
			     int64_t *offset, int64_t *first, int64_t *last)
{
	*offset = 0;
	*first = INT64_MIN;
	*last = INT64_MAX;
	if (from == to)
		return true;
	const struct path *path = path_of(c, from, to);
	for (uint32_t i = 0; path->exists && i < path->count; i++) {
		struct edge *edge = &c->edges[path->edges[i]];
		const int64_t here = (int64_t)((uint64_t)ns + (uint64_t)*offset);
		if (!edge->count)
			continue;
		const struct moment *moment = moment_of(edge, here);
		const struct moment *next = moment + 1;
		/* The first moment also serves earlier times. */
		if (moment != edge->moments && minus(moment->from, *offset) > *first)
			*first = minus(moment->from, *offset);
		if (next < edge->moments + edge->count && minus(next->from - 1, *offset) < *last)
			*last = minus(next->from - 1, *offset);
		*offset = (int64_t)((uint64_t)*offset - (uint64_t)moment->from +
				    (uint64_t)moment->to);
	}
	return path->exists;
}

bool ky_clocks_known(const struct ky_clocks *c, uint64_t clock)
{
	return ky_pair_map_find(&c->nodes_by_clock, clock, 0) != NULL;
}

const char *ky_clock_name(uint64_t clock)
{
	static const char *const names[] = {
		[KY_CLOCK_REALTIME] = "REALTIME",
		[KY_CLOCK_REALTIME_COARSE] = "REALTIME_COARSE",
		[KY_CLOCK_MONOTONIC] = "MONOTONIC",
		[KY_CLOCK_MONOTONIC_COARSE] = "MONOTONIC_COARSE",
		[KY_CLOCK_MONOTONIC_RAW] = "MONOTONIC_RAW",
		[KY_CLOCK_BOOTTIME] = "BOOTTIME",
		[KY_CLOCK_TSC] = "TSC",
		[KY_CLOCK_PERF] = "PERF",
		[KY_CLOCK_TRACE_FILE] = "TRACE_FILE",
	};
	return clock < sizeof(names) / sizeof(names[0]) ? names[clock] : NULL;
}
