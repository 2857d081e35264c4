/* SPDX-License-Identifier: MIT */
/*
 * view.h: a finished trace made ready to be looked at: the tracks in the order in which people read them, and over
 * each a pyramid, so that what a screen shows of it costs time by its pixels and not by its events.
 *
 *   trace ──▶ view ─┬─ tracks: group, slices, counter, sched, state, samples        (view_tracks.c)
 *                   └─ lanes of a track: what lies in one row, in the order of time  (view_lanes.c)
 *                        level 2   █               a node: begin, end, time covered, and the longest
 *                        level 1   ████████        of KY_LANE_FAN of the level below
 *                        rows      ▪▪▪▪▪▪▪▪▪▪▪▪    (view_lanes.c)
 *
 * A tile (wire.h) is made by a walk from above that goes no deeper than where a node is narrower than a pixel.
 *
 * Nothing changes after ky_view_open(): any number of threads may ask. A view belongs to one generation of what is
 * looked at; a live one is replaced as a whole (serve.h).
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
	KY_VIEW_SAMPLES, /* of a thread: stacks of samples joined to spans; events: rows of view->sample_spans */
	KY_VIEW_LOSS /* where events were lost; events: rows of losses */
};

struct ky_view_track {
	enum ky_view_kind kind;
	uint32_t parent; /* track or KY_NONE; always before its children */
	char *key; /* what it is in every load of the same trace: "p12/t13/slices"; no two are alike */
	char *name;               /* for people */
	uint32_t process, thread; /* or KY_NONE */
	uint32_t cpu;             /* of SCHED; or KY_NONE */
	uint32_t unit;            /* string, of COUNTER */
	uint16_t rows;            /* of SLICES and SAMPLES: how deep it is; of GROUP 0; else 1 */
	uint64_t events;
	double min, max;          /* of COUNTER */
	uint32_t lanes_at, lanes; /* private */
};

struct ky_view_lane; /* private: view_lanes.h */
struct ky_view_table;

/* Stacks of consecutive samples of one thread that share a frame at a depth, as a span. */
struct ky_sample_spans {
	int64_t *ts, *dur;
	uint32_t *frame, *callsite, *thread;
	uint32_t *samples; /* how many */
	uint16_t *depth;   /* its row: 0 is the outermost frame */
	uint32_t count;
};

struct ky_view {
	struct ky_trace *trace; /* the view's, closed with it */
	char *name;             /* of the trace: file names */
	uint32_t generation;
	bool live; /* more may come */
	int64_t base_ns; /* of the trace's clock: time 0 of all that the page is told. The first generation's begin */
	struct ky_view_track *tracks;
	uint32_t tracks_count;
	struct ky_sample_spans sample_spans;
	uint32_t *track_of; /* a view's track for each track of the trace, or KY_NONE */
	uint16_t *row_of;   /* a row for each slice where that is not its depth; NULL: none is so */
	struct ky_view_lane *lanes;
	uint32_t lanes_count;
	struct ky_view_table *tables; /* private: by enum ky_view_events */
};

struct ky_view_options {
	const char *name;
	uint32_t generation;
	bool live;
	int64_t base_ns; /* KY_TIME_NONE: the trace's begin */
	/* Not 0 gives up with it. May be NULL. */
	int (*progress)(void *context, const char *stage, uint64_t done, uint64_t all);
	void *context;
};

/* Takes the trace, also when it fails. 0, -ENOMEM, or what progress returned. */
int ky_view_open(struct ky_view **view, struct ky_trace *trace,
		 const struct ky_view_options *options);
void ky_view_close(struct ky_view **view);
/* Bytes of all but the trace. */
uint64_t ky_view_memory(const struct ky_view *view);

/* Where an event is drawn. False: nowhere. */
struct ky_view_place {
	uint32_t track;
	uint16_t row;
};
bool ky_view_place_slice(const struct ky_view *view, uint32_t slice, struct ky_view_place *place);
bool ky_view_place(const struct ky_view *view, enum ky_view_kind kind, uint32_t event,
		   struct ky_view_place *place);

#endif
