/* SPDX-License-Identifier: MIT */
/*
 * view.h: prepares a finished trace for display: the tracks in display order, and a pyramid over each, so that the cost of
 * drawing depends on the pixels and not on the events.
 *
 *   trace ──▶ view ─┬─ tracks: group, slices, counter, sched, state, samples        (view_tracks.c)
 *                   └─ lanes of a track: the events of one row, in time order        (view_lanes.c)
 *                        level 2   █               a node: begin, end, time covered, and the longest
 *                        level 1   ████████        of KY_LANE_FAN of the level below
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
	KY_VIEW_LOSS     /* lost events; events: rows of losses */
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
	double min, max;          /* of COUNTER */
	uint32_t lanes_at, lanes; /* private */
};

struct ky_view_lane; /* private: view_lanes.h */
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
	struct ky_view_lane *lanes;
	uint32_t lanes_count;
	struct ky_view_table *tables; /* private: by enum ky_view_events */
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
bool ky_view_place_slice(const struct ky_view *view, uint32_t slice, struct ky_view_place *place);
bool ky_view_place(const struct ky_view *view, enum ky_view_kind kind, uint32_t event,
		   struct ky_view_place *place);

#endif
