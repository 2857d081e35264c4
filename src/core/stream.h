/* SPDX-License-Identifier: MIT */
/*
 * stream.h: all rings of a drum as one stream of events in the order of their times.
 *
 *   ring 0 ─ cursor ─ piece ─┐
 *   ring 1 ─ cursor ─ piece ─┼─ the earliest next ─▶ decode ─▶ event()
 *   ring 2 ─ cursor ─ piece ─┘
 *
 * Each input holds one copied piece of a block at a time. Events are delivered up to the horizon, the last reading of the
 * clocks; newer ones wait for the next call. It trusts nothing in the drum, so it works on any process's.
 *
 * Invariants: inputs[i] reads ring i. The queue holds inputs with a next event, each once, and next_ticks of a input is
 * at most that of its children. at <= block.count of each input.
 */
#ifndef KY_CORE_STREAM_H
#define KY_CORE_STREAM_H

#include "core/clock.h"
#include "core/decode.h"
#include "core/ring_read.h"
#include "core/sites.h"

struct ky_stream_input {
	struct ky_ring_cursor cursor;
	struct ky_thread *thread;
	struct ky_block block; /* the piece; words points to words */
	uint32_t at;           /* next event in the piece */
	uint32_t high;
	uint64_t next_ticks;
	uint64_t owned; /* when the thread's last block began; 0: the thread has ended, or left */
	uint64_t populated; /* blocks of the ring's first lap that have memory */
	uint64_t *words;    /* KY_BLOCK_WORDS of them, as soon as there is a ring */
};

/*
 * The receiver of the stream. block, when set, gets the pieces unchanged and event gets nothing. words, when set, may get
 * the words of an event first, not decoded; it returns true if it took the event.
 */
struct ky_stream_sink {
	void (*thread)(void *context, const struct ky_thread *thread);
	void (*event)(void *context, const struct ky_event *event);
	void (*block)(void *context, const struct ky_block *block, const struct ky_thread *thread);
	bool (*words)(void *context, const struct ky_thread *thread, const struct ky_site *site,
		      const uint64_t *words, uint64_t time_ns);
	/* The thread has ended then: after its last event. Those of signal handlers have rings of their own and do not count. */
	void (*end)(void *context, const struct ky_thread *thread, uint64_t time_ns);
	void *context;
};

struct ky_stream {
	struct ky_drum_view view;
	struct ky_sites sites;
	struct ky_clock_map clock;
	struct ky_decoder decoder;
	struct ky_stream_sink sink;
	struct ky_stream_input **inputs; /* by ring */
	uint32_t inputs_count;
	struct ky_stream_input **queue; /* those with a next event, the earliest first */
	uint32_t queue_count;
	uint8_t *wanted; /* by category: 0 not known yet, 1 yes, 2 no; NULL: all are wanted */
	char *globs;
	bool populating;           /* see ky_stream_populate */
	uint64_t start_ticks;      /* earlier events are left out */
	uint64_t events;           /* delivered */
	uint64_t lost;             /* overwritten before they were read */
	uint64_t damaged;          /* places that are no event, or no ring */
	uint64_t damaged_at;       /* the first of them, from the beginning of the drum */
	uint64_t rings_bytes;      /* of all inputs; more than the space: rings overlap */
	uint64_t rings_data_bytes; /* of these, with data, as far as it is known */
	uint64_t
		pieces_left; /* in this call: it must end though the drum is filled faster than read */
	uint64_t pieces_max; /* in a call, about; 0: a few times what the rings hold */
	uint64_t *reads;     /* stall.h: for each ring how many of its blocks were read; or NULL */
	uint32_t turn;       /* the ring that a call begins with */
};

/*
 * Open a stream of events from now on (newest), or of all that the rings hold from start_ticks on. globs selects
 * categories, NULL is all. The drum's memory must stay mapped. Return 0, or a negative error; *what says why.
 */
int ky_stream_open(struct ky_stream *stream, const void *base, uint64_t bytes, const char *globs,
		   bool newest, uint64_t start_ticks, const char **what);
/* Do the same with a drum of which some pages have no data. */
int ky_stream_open_sparse(struct ky_stream *stream, const void *base, uint64_t bytes,
			  const struct ky_drum_pages *pages, const char *globs, bool newest,
			  uint64_t start_ticks, const char **what);
void ky_stream_close(struct ky_stream *stream);

/*
 * Deliver the events before the last reading of the clocks, less lag_ticks: an event that began just before it may still
 * be on its way into a ring, and would come out of order. Return 0 or -ENOMEM.
 */
int ky_stream_read(struct ky_stream *stream, uint64_t lag_ticks);
/* Deliver all events: of a dead process's drum, to which no reading is added. Return 0 or -ENOMEM. */
int ky_stream_read_all(struct ky_stream *stream);

/* Deliver the events up to a tick, by the stream's clock: for a reader that has readings of its own. */
int ky_stream_read_to(struct ky_stream *stream, uint64_t horizon_ticks);

/* Deliver what no event brought: names that threads were given since their last one, losses after it. */
void ky_stream_read_rest(struct ky_stream *stream);

/* Report whether the globs select the trace point. */
bool ky_stream_wants(struct ky_stream *stream, const struct ky_site *site);

/*
 * From now on, also populate the rings' memory ahead of their writers in the first lap. Otherwise that lap faults at every
 * page, which makes one event in some hundreds take a hundred times as long. Populate as much as each ring has used so
 * far, up to a bound: an idle thread gets none, and memory at most doubles. Only for the process's own, writable drum.
 */
void ky_stream_populate(struct ky_stream *stream);

/* Report whether there is anything to read. */
bool ky_stream_pending(const struct ky_stream *stream);

/* Return how close to a loss the fullest ring is: the part of it that waits to be read, in percent. */
uint32_t ky_stream_pressure(const struct ky_stream *stream);

#endif
