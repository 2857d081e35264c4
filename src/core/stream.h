/* SPDX-License-Identifier: MIT */
/*
 * stream.h: all rings of a drum as one stream of events in the order of their times.
 *
 *   ring 0 ─ cursor ─ piece ─┐
 *   ring 1 ─ cursor ─ piece ─┼─ the earliest next ─▶ decode ─▶ event()
 *   ring 2 ─ cursor ─ piece ─┘
 *
 * Each source holds one copied piece of a block at a time. Events are handed out up to the horizon,
 * the last sample of the clocks; what is newer waits for the next call. Works on the own drum and, as
 * it trusts nothing, on any other.
 */
#ifndef KY_CORE_STREAM_H
#define KY_CORE_STREAM_H

#include "core/clock.h"
#include "core/decode.h"
#include "core/ring_read.h"
#include "core/sites.h"

struct ky_source {
	struct ky_ring_cursor cursor;
	struct ky_thread *thread;
	struct ky_block block; /* the piece; words points to words */
	uint32_t at;           /* next event in the piece */
	uint32_t high;
	uint64_t next_ticks;
	uint64_t populated; /* blocks of the ring's first lap that have memory */
	uint64_t *words;    /* KY_BLOCK_WORDS of them, as soon as there is a ring */
};

/*
 * Who gets the stream. block, when set, gets the pieces as they are and event gets nothing. words, when set,
 * may be asked first, with the words of an event that is not decoded yet: true when it took it.
 */
struct ky_stream_sink {
	void (*thread)(void *context, const struct ky_thread *thread);
	void (*event)(void *context, const struct ky_event *event);
	void (*block)(void *context, const struct ky_block *block, const struct ky_thread *thread);
	bool (*words)(void *context, const struct ky_thread *thread, const struct ky_site *site,
		      const uint64_t *words, uint64_t time_ns);
	void *context;
};

struct ky_stream {
	struct ky_drum_view view;
	struct ky_sites sites;
	struct ky_clock_map clock;
	struct ky_decoder decoder;
	struct ky_stream_sink sink;
	struct ky_source **sources; /* by ring */
	uint32_t sources_count;
	struct ky_source **heap; /* those with a next event, the earliest first */
	uint32_t heap_count;
	uint8_t *wanted; /* by category: 0 not known yet, 1 yes, 2 no; NULL: all are */
	char *globs;
	bool populating;      /* see ky_stream_populate */
	uint64_t start_ticks; /* what came before is left out */
	uint64_t events;      /* handed out */
	uint64_t lost;        /* overwritten before they were read */
	uint64_t damaged;     /* what was no event, or no ring */
	uint64_t damaged_at;  /* the first of them, from the beginning of the drum */
	uint64_t rings_bytes; /* of all sources: rings that overlap are no rings */
	uint64_t
		pieces_left; /* in this call: a drum that is filled faster than read must not hold it */
	uint64_t pieces_max; /* in a call, about; 0: a few times what the rings hold */
	uint32_t turn;       /* the ring that a call begins with */
};

/*
 * From now on (newest), or with all that the rings still hold from start_ticks on. globs selects
 * categories, NULL is all. The drum's memory must stay mapped. 0, or a negative error; *what says why.
 */
int ky_stream_open(struct ky_stream *stream, const void *base, uint64_t bytes, const char *globs,
		   bool newest, uint64_t start_ticks, const char **what);
void ky_stream_close(struct ky_stream *stream);

/*
 * Hands out what came before the last sample of the clocks, less lag_ticks: an event that began just
 * before may still be on its way into a ring, and would come out of order. 0, or -ENOMEM.
 */
int ky_stream_read(struct ky_stream *stream, uint64_t lag_ticks);
/* Hands out all there is: of a dead process's drum, where no sample comes any more. 0, or -ENOMEM. */
int ky_stream_read_all(struct ky_stream *stream);

/*
 * The same up to that tick, by the stream's clock as it is: for a reader that has samples of its own,
 * and does not believe the drum's.
 */
int ky_stream_read_to(struct ky_stream *stream, uint64_t horizon_ticks);

/* Whether events of that trace point are among those asked for. */
bool ky_stream_wants(struct ky_stream *stream, const struct ky_site *site);

/*
 * From now on reading also has memory made for the rings ahead of their writers, in their first lap:
 * else that lap faults at every page, which makes one event in some hundreds a hundred times as long.
 * As much as each ring has used so far, up to a bound: an idle thread gets none, and memory at most
 * doubles. Of the process's own drum alone, which is writable.
 */
void ky_stream_populate(struct ky_stream *stream);

/* Whether there is anything to read. */
bool ky_stream_pending(const struct ky_stream *stream);

/* The largest part of any ring that waits to be read, in percent: how close to a loss. */
uint32_t ky_stream_pressure(const struct ky_stream *stream);

#endif
