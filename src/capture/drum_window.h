/* SPDX-License-Identifier: MIT */
/*
 * drum_window.h: the events of a drum's rings in a window of time, unless an earlier window held them.
 *
 *   ring    │····■■■■■■····│■■■■■■■■······│······  ■ held by an earlier window
 *                window:  ▕▁▁▁▁▁▁▁▁▁▁▏
 *                                ▕▁▁▁▏             what is handed out: whole events
 */
#ifndef KY_CAPTURE_DRUM_WINDOW_H
#define KY_CAPTURE_DRUM_WINDOW_H

#include "core/stream.h"

/* A part of a ring that was handed out. Places count words from the ring's first block on. */
struct ky_drum_held {
	uint64_t from, to;
};

struct ky_drum_window_ring {
	struct ky_drum_held *held; /* in order, disjoint */
	uint32_t count;
	uint32_t room;
};

struct ky_drum_window {
	struct ky_drum_window_ring *rings;
	uint32_t rings_count, rings_room;
	uint64_t lost;    /* overwritten while a window was read */
	uint64_t damaged; /* places that are not an event, or not a ring */
	uint64_t *words;
};

/* Free it. All zero is empty. */
void ky_drum_window_free(struct ky_drum_window *window);

/*
 * Hand the pieces with events from from_ns to to_ns (CLOCK_BOOTTIME) to the stream's sink, thread() and block(). The
 * stream gives view, clock, trace points and categories, and is not read. Return 0 or -ENOMEM.
 */
int ky_drum_window_read(struct ky_drum_window *window, struct ky_stream *stream, uint64_t from_ns,
			uint64_t to_ns);

/* ---- the spans that were open when it began ---- */

/*
 *   ring    │ begin A   begin B   end B   begin C │ window: ... end C ... end A
 *                                                 ▲ here A and C begin once more
 *
 * The end of a function's call does not name the function: an end whose beginning is not in the file would have no name.
 * And a span that is open from before the window until after it is often what the snapshot is about. What the ring no
 * longer has stays unknown.
 */

/*
 * A thread has a ring in several drums: its trace points, its functions' calls, its time off the CPU. Their spans are in each
 * other, in the order of their true beginnings, which is gathered here first.
 */
struct ky_open_order {
	struct ky_open_begin {
		uint32_t pid, tid;
		uint64_t ns;
	} * begins;
	uint32_t count, room;
};

/* Note the open spans of a drum of the process. Return 0 or -ENOMEM. */
int ky_drum_window_note_open(struct ky_stream *stream, uint32_t pid, uint64_t from_ns,
			     struct ky_open_order *order);
void ky_open_order_sort(struct ky_open_order *order);
void ky_open_order_free(struct ky_open_order *order);

/*
 * Hand a piece with the beginnings, at from_ns, to the stream's sink for each ring that has any. To be called after the
 * window was read, which must not wait. An order without any is of drums that have no thread in common. Return 0 or -ENOMEM.
 */
int ky_drum_window_open_spans(struct ky_stream *stream, uint32_t pid, uint64_t from_ns,
			      const struct ky_open_order *order);

#endif
