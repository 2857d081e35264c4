/* SPDX-License-Identifier: MIT */
/*
 * view.h: prepares a finished trace for display: the tracks in display order, and a pyramid over each, so that the cost of
 * drawing depends on the pixels and not on the events.
 *
 *   trace ──▶ view ─┬─ tracks: group, slices, counter, sched, state, samples        (view_tracks.c)
 *                   └─ pyramids of a track: the events of one row, in time order     (view_pyramids.c)
 *                        level 2   █               a node: begin, end, time covered, and the longest
 *                        level 1   ████████        of KY_PYRAMID_FAN of the level below
 *                        rows      ▪▪▪▪▪▪▪▪▪▪▪▪
 *
 * A tile (wire.h) is made by a walk from the top that stops where a node is narrower than a pixel.
 *
 * Nothing changes after ky_view_open(): any number of threads may read. A view belongs to one generation of the trace; a live
 * trace gets a new view for each (generations.h).
 */
#ifndef KY_SERVER_VIEW_H
#define KY_SERVER_VIEW_H

#include "base/buffer.h"
#include "model/trace.h"

enum ky_view_kind {
	KY_VIEW_GROUP,   /* of other tracks: a process, the CPUs, ... */
	KY_VIEW_SLICES,  /* events: rows of slices */
	KY_VIEW_COUNTER, /* events: rows of counters */
	KY_VIEW_SCHED,   /* of a CPU; events: rows of sched */
	KY_VIEW_STATE,   /* of a thread; events: rows of thread_states */
	KY_VIEW_SAMPLES, /* of a thread; events: rows of view->sample_spans */
	KY_VIEW_LOSS,    /* lost events; events: rows of losses */
	KY_VIEW_KINDS
};

struct ky_view_track {
	enum ky_view_kind kind;
	uint32_t parent; /* track or KY_NONE; always before its children */
	char *key;       /* "p12/t13/slices": unique, and the same in every load of the trace */
	char *name;      /* for display */
	uint32_t process, thread; /* or KY_NONE */
	uint32_t cpu;             /* of SCHED; or KY_NONE */
	uint32_t unit;            /* string, of COUNTER */
	uint16_t rows;            /* of SLICES and SAMPLES: its depth; of GROUP 0; else 1 */
	uint64_t events;
	double min, max;                /* of COUNTER */
	uint32_t pyramids_at, pyramids; /* private */
};

struct ky_view_pyramid; /* private: view_pyramids.h */
struct ky_view_table;

/* Spans of frames, joined from the samples of each thread (sample_spans.c). */
struct ky_sample_spans {
	int64_t *ts, *dur;
	uint32_t *frame, *callsite, *thread;
	uint32_t *samples; /* how many */
	uint16_t *depth;   /* row; 0 is the outermost frame */
	uint32_t count;
};

struct ky_view {
	struct ky_trace *trace; /* owned */
	char *name;             /* of the trace: file names */
	uint32_t generation;
	bool live;       /* more may come */
	int64_t base_ns; /* time 0 of the page, by the trace's clock: where the first generation begins */
	struct ky_view_track *tracks;
	uint32_t tracks_count;
	struct ky_sample_spans sample_spans;
	uint32_t *track_of; /* the view's track of each track of the trace, or KY_NONE */
	uint16_t *row_of;   /* the row of each slice; NULL: its depth */
	struct ky_view_pyramid *pyramids;
	uint32_t pyramids_count;
	struct ky_view_table *tables; /* private: by kind; that of groups is empty */
};

struct ky_view_options {
	const char *name;
	uint32_t generation;
	bool live;
	int64_t base_ns; /* KY_TIME_NONE: where the trace begins */
	/* May be NULL. A result other than 0 ends ky_view_open() with it. */
	int (*progress)(void *context, const char *stage, uint64_t done, uint64_t all);
	void *context;
};

/* Open a view. Takes the trace, even on failure. Return 0, -ENOMEM, or the result of progress. */
int ky_view_open(struct ky_view **view, struct ky_trace *trace,
		 const struct ky_view_options *options);
void ky_view_close(struct ky_view **view);
/* Return the bytes of the view without the trace. */
uint64_t ky_view_memory(const struct ky_view *view);

struct ky_view_place {
	uint32_t track;
	uint16_t row;
};
/* Find where an event is drawn. Return false if nowhere. */
bool ky_view_place(const struct ky_view *view, enum ky_view_kind kind, uint32_t event,
		   struct ky_view_place *place);

/* ---- private: what the files that make the tracks share; all of it is temporary ---- */

/*
 *   tally    the number of events and the depth of each track of the trace             (view_strands.c)
 *   strands  tracks of the trace that are shown as one: async tracks of the same name, a thread's track and what overlapped
 *            in it, packed into rows                                                  (view_strands.c)
 *   plan     groups and tracks as a tree, in any order                                (view_tracks.c)
 *   view     the same, in display order                                               (view_plan.c)
 */

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
/* Set a name, and a key: the parent's, a slash, and a text. Long ones are cut. Return false without memory. */
bool ky_view_plan_key(struct ky_view_plan *plan, uint32_t node, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
bool ky_view_plan_name(struct ky_view_plan *plan, uint32_t node, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Make the view's tracks and pyramids from the nodes with events. Return 0 or -ENOMEM. */
int ky_view_plan_finish(struct ky_view_plan *plan);

/* Fill the plan. Return 0 or -ENOMEM. */
int ky_view_tracks(struct ky_view_plan *plan);

/* Make view->sample_spans (sample_spans.c). Return 0 or -ENOMEM. */
int ky_sample_spans_open(struct ky_view *view);
void ky_sample_spans_close(struct ky_sample_spans *spans);

#endif
