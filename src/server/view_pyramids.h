/* SPDX-License-Identifier: MIT */
/*
 * view_pyramids.h: the pyramids of a view: each has the events of one row of a track in time order, and nodes over them.
 *
 *   table   a table of the trace as pyramids see it: times, names, and the key by which a row finds its pyramid:
 *           pyramid_of[key[row]] + row_of[row]
 *   order   its rows, pyramid by pyramid │ pyramid 0     │ pyramid 1 │ pyramid 2 ...
 *   nodes   of each pyramid, level by level: one for KY_PYRAMID_FAN rows each, then one for KY_PYRAMID_FAN of those, and so on
 *           until there are at most KY_PYRAMID_FAN. A pyramid with so few rows has no nodes.
 *
 * A node takes 32 bytes for KY_PYRAMID_FAN rows, so a pyramid takes less than 9 bytes per row.
 */
#ifndef KY_SERVER_VIEW_PYRAMIDS_H
#define KY_SERVER_VIEW_PYRAMIDS_H

#include "server/view.h"

#define KY_PYRAMID_FAN 8u
#define KY_VIEW_CPUS_MAX 65536u /* others are dropped */

/* A node of spans. Durations are floats: they are compared and shown, not added up. */
struct ky_span_node {
	int64_t begin, end; /* of all its rows */
	float busy;         /* sum of their durations */
	float longest_dur;
	uint32_t longest; /* row */
	uint32_t name;    /* its name */
};

/* A node of a counter. */
struct ky_point_node {
	int64_t begin, end; /* of the first and the last row */
	double min, max;
};

_Static_assert(sizeof(struct ky_span_node) == 32, "keeps pyramids small");
_Static_assert(sizeof(struct ky_point_node) == 32, "keeps pyramids small");

struct ky_view_table {
	uint32_t count;
	const int64_t *ts;
	const int64_t *dur;        /* NULL: they have none */
	const double *value;       /* of counters */
	const uint32_t *name;      /* string; NULL: no names */
	const uint32_t *name_via;  /* if set, name is a row of this; KY_NONE: no name */
	const uint32_t *key;       /* NULL: all have key 0 */
	const uint16_t *row;       /* NULL: all are in row 0 */
	const uint32_t *unless_of; /* if set, rows with unless[unless_of[row]] are left out */
	const uint8_t *unless;
	uint32_t *pyramid_of; /* by key; KY_NONE: not shown */
	uint64_t pyramid_of_room;
	uint32_t keys;
	uint32_t *order;
	uint64_t order_room, order_count;
	union {
		struct ky_span_node *spans;
		struct ky_point_node *points;
	};
	uint64_t nodes_room, nodes_count;
};

struct ky_view_pyramid {
	uint64_t nodes_at; /* of the lowest level */
	uint32_t first;    /* in order */
	uint32_t count;
	uint32_t track; /* of the view */
	uint16_t row;
	uint8_t kind; /* of its track */
	uint8_t levels;
};

/* Set up the tables, without pyramids. Return 0 or -ENOMEM. */
int ky_view_pyramids_open(struct ky_view *view);
void ky_view_pyramids_close(struct ky_view *view);
uint64_t ky_view_pyramids_memory(const struct ky_view *view);
/*
 * Fill the pyramids of the view's tracks, which are already numbered (pyramid_of). Return 0, -ENOMEM, or the result of
 * progress.
 */
int ky_view_pyramids_fill(struct ky_view *view, const struct ky_view_options *options);

/* Return the number of nodes above a level of that many. */
static inline uint32_t ky_view_pyramids_above(uint32_t count)
{
	return count / KY_PYRAMID_FAN + (count % KY_PYRAMID_FAN != 0);
}

/* Return when a row ends: with the trace if it never ended, and never before it begins. */
static inline int64_t ky_view_pyramids_end(const struct ky_view_table *table, uint32_t row,
					   int64_t trace_end)
{
	const int64_t ts = table->ts[row], dur = table->dur ? table->dur[row] : 0;
	int64_t end;
	if (dur < 0)
		return trace_end > ts ? trace_end : ts;
	return __builtin_add_overflow(ts, dur, &end) ? INT64_MAX : end;
}

static inline uint32_t ky_view_pyramids_name(const struct ky_view_table *table, uint32_t row)
{
	const uint32_t name = table->name ? table->name[row] : 0;
	if (!table->name_via)
		return name;
	return name == KY_NONE ? 0 : table->name_via[name];
}

/* Return the pyramid of a row, or KY_NONE. A loss without a time has no pyramid. */
static inline uint32_t ky_view_pyramids_find(const struct ky_view_table *table, uint32_t row)
{
	const uint32_t key = table->key ? table->key[row] : 0;
	if (key >= table->keys || table->pyramid_of[key] == KY_NONE ||
	    (!table->key && table->ts[row] == KY_TIME_NONE))
		return KY_NONE;
	if (table->unless && table->unless_of[row] != KY_NONE &&
	    table->unless[table->unless_of[row]])
		return KY_NONE;
	return table->pyramid_of[key] + (table->row ? table->row[row] : 0);
}

/* Return a node of one row. */
static inline struct ky_span_node ky_view_pyramids_span(const struct ky_view_table *table,
							uint32_t row, int64_t trace_end)
{
	const int64_t end = ky_view_pyramids_end(table, row, trace_end);
	const float dur = (float)((uint64_t)end - (uint64_t)table->ts[row]);
	return (struct ky_span_node){.begin = table->ts[row],
				     .end = end,
				     .busy = dur,
				     .longest_dur = dur,
				     .longest = row,
				     .name = ky_view_pyramids_name(table, row)};
}

/* Add the next node in time order. */
static inline void ky_view_pyramids_join_span(struct ky_span_node *node,
					      const struct ky_span_node *next)
{
	node->end = next->end > node->end ? next->end : node->end;
	node->busy += next->busy;
	if (next->longest_dur > node->longest_dur) {
		node->longest_dur = next->longest_dur;
		node->longest = next->longest;
		node->name = next->name;
	}
}

static inline struct ky_point_node ky_view_pyramids_point(const struct ky_view_table *table,
							  uint32_t row)
{
	const double value = table->value[row];
	return (struct ky_point_node){table->ts[row], table->ts[row], value, value};
}

/* NaN counts only where there is no number. */
static inline void ky_view_pyramids_join_point(struct ky_point_node *node,
					       const struct ky_point_node *next)
{
	node->end = next->end;
	if (!(node->min <= next->min) && next->min == next->min)
		node->min = next->min;
	if (!(node->max >= next->max) && next->max == next->max)
		node->max = next->max;
}

#endif
