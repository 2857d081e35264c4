/* SPDX-License-Identifier: MIT */
/*
 * view_parts.h: what the files that make a view's tracks share. All of it is temporary.
 *
 *   tally    the number of events and the depth of each track of the trace             (view_tally.c)
 *   strands  tracks of the trace that are shown as one: async tracks of the same name, a thread's track and what overlapped
 *            in it, packed into rows                                                  (view_strands.c)
 *   plan     groups and tracks as a tree, in any order                                (view_tracks.c)
 *   view     the same, in display order                                               (view_plan.c)
 */
#ifndef KY_SERVER_VIEW_PARTS_H
#define KY_SERVER_VIEW_PARTS_H

#include "server/view_lanes.h"

/* ---- tally ---- */

struct ky_view_tally_track {
	uint32_t slices, counters; /* a sane track has only one kind */
	uint16_t rows;             /* of slices */
	double min, max;           /* of counters */
};

struct ky_view_tally {
	struct ky_view_tally_track *tracks; /* of the trace */
	uint32_t *states;                   /* by thread */
	uint32_t *sample_spans;             /* by thread */
	uint16_t *sample_rows;              /* by thread */
	uint32_t *sched;                    /* by CPU */
	uint32_t cpus;
	uint32_t losses; /* with a known time */
};

/* Return 0 or -ENOMEM. */
int ky_view_tally_open(struct ky_view_tally *tally, const struct ky_view *view);
void ky_view_tally_close(struct ky_view_tally *tally);

/* ---- strands ---- */

struct ky_view_strand {
	uint32_t parent;   /* strand or KY_NONE */
	uint32_t track;    /* of the trace: the first of its tracks */
	uint32_t tracks;   /* how many, without overflow */
	uint32_t overflow; /* how many overflow tracks */
	uint64_t events;
	uint16_t rows;     /* before packing: of its deepest track; then in all */
	uint16_t base_row; /* where packing begins */
	bool packed;       /* all its tracks, or only overflow if base_row is not 0 */
	uint32_t node;     /* of the plan */
	uint32_t inner;    /* node for its children, or KY_NONE */
	int64_t *free_at;  /* packing: by row, from base_row on */
	uint32_t free_room, free_used;
};

struct ky_view_strands {
	struct ky_view_strand *items;
	uint64_t room;
	uint32_t count;
	uint32_t *of; /* the strand of each track of the trace, or KY_NONE */
	bool packed;  /* some are */
};

/* Return 0 or -ENOMEM. */
int ky_view_strands_open(struct ky_view_strands *strands, const struct ky_trace *trace,
			 const struct ky_view_tally *tally);
void ky_view_strands_close(struct ky_view_strands *strands);
/* Make view->row_of if anything is packed. Return 0 or -ENOMEM. */
int ky_view_strands_pack(struct ky_view_strands *strands, struct ky_view *view);

/* ---- plan ---- */

struct ky_view_plan_node {
	struct ky_view_track track; /* parent is a node */
	int64_t rank[3];            /* among siblings; then by number */
	uint32_t source;            /* strand, track of the trace, CPU or thread, by kind */
	uint32_t children, first_child;
	bool folds; /* a group that is replaced by its only child */
};

struct ky_view_plan {
	struct ky_view *view;
	const struct ky_view_tally *tally;
	struct ky_view_strands *strands;
	struct ky_view_plan_node *nodes;
	uint64_t room;
	uint32_t count;
	uint32_t *process_node, *thread_node;    /* KY_NONE: none yet */
	uint32_t cpus, globals, threads, kernel; /* groups, or KY_NONE */
};

/* Add a node with only its parent and kind set, and return it; KY_NONE without memory. */
uint32_t ky_view_plan_add(struct ky_view_plan *plan, uint32_t parent, enum ky_view_kind kind);
/*
 * Set a name, and a key: the parent's, a slash, and a text. Long ones are cut. Return false without memory.
 */
bool ky_view_plan_key(struct ky_view_plan *plan, uint32_t node, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
bool ky_view_plan_name(struct ky_view_plan *plan, uint32_t node, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Make the view's tracks and lanes from the nodes with events. Return 0 or -ENOMEM. */
int ky_view_plan_finish(struct ky_view_plan *plan);

/* Fill the plan. Return 0 or -ENOMEM. */
int ky_view_tracks(struct ky_view_plan *plan);

/* Make view->sample_spans (sample_spans.c). Return 0 or -ENOMEM. */
int ky_sample_spans_open(struct ky_view *view);
void ky_sample_spans_close(struct ky_sample_spans *spans);

#endif
