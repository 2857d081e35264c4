/* SPDX-License-Identifier: MIT */
/*
 * drum_window.h: the events of a drum's rings in a window of time, that no window before held.
 *
 *   ring    │····■■■■■■····│■■■■■■■■······│······  ■ held by a window before
 *                window:  ▕▁▁▁▁▁▁▁▁▁▁▏
 *                                ▕▁▁▁▏             what is handed out: whole events
 */
#ifndef KY_CAPTURE_DRUM_WINDOW_H
#define KY_CAPTURE_DRUM_WINDOW_H

#include "core/stream.h"

/* A part of a ring that was handed out: places count words from the ring's first block on. */
struct ky_drum_held {
	uint64_t from, to;
};

struct ky_drum_window_ring {
	struct ky_drum_held *held; /* in order, apart from each other */
	uint32_t count;
	uint32_t room;
};

struct ky_drum_window {
	struct ky_drum_window_ring *rings;
	uint32_t rings_count, rings_room;
	uint64_t lost;    /* overwritten while a window was read */
	uint64_t damaged; /* what was no event, or no ring */
	uint64_t *words;
};

/* Zeroed is empty. */
void ky_drum_window_free(struct ky_drum_window *window);

/*
 * Hands the pieces with events from from_ns to to_ns (CLOCK_BOOTTIME) to the stream's sink,
 * thread() and block(). The stream gives view, clock, trace points and categories, and is not read.
 * 0 or -ENOMEM.
 */
int ky_drum_window_read(struct ky_drum_window *window, struct ky_stream *stream, uint64_t from_ns,
			uint64_t to_ns);

#endif
