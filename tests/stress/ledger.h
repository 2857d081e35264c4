/* SPDX-License-Identifier: MIT */
/*
 * ledger.h: what the traced process has recorded, in memory that it shares with its parent, and the tally that a reader makes
 * of what it finds.
 *
 *   traced process: event n of stream s ─▶ ring ─▶ reader: tally
 *                   counts it           ─▶ ledger ─────────▶ each event once, as it was written; those
 *                                                            that are missing are counted as lost
 *
 * A stream is what one thread, handler or plugin records, numbered from 0.
 */
#ifndef KY_TESTS_LEDGER_H
#define KY_TESTS_LEDGER_H

#include "core/event.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define STREAMS_MAX (1u << 16)

struct ledger {
	_Atomic uint32_t streams;  /* given out so far */
	_Atomic uint64_t recorded; /* events whose macro has returned */
	_Atomic uint64_t unsure;   /* a handler jumped out of them: recorded or not */
	_Atomic uint32_t ready;    /* the drum is made */
	_Atomic uint32_t done;     /* all threads have ended */
	_Atomic uint32_t forks, forks_wrong;
	/* The readers inside the process. */
	_Atomic uint64_t session_events, session_lost, session_error;
	_Atomic uint64_t subscriber_events, subscriber_lost, subscriber_wrong;
	_Atomic uint64_t drum_lost; /* by nesting and for want of a ring */
	/* Of the first streams: how many events have returned, for processes that are killed. */
#define COMMITTED_MAX 64u
	_Atomic uint64_t committed[COMMITTED_MAX];
};

/* Return the checksum of an event. */
static inline uint32_t checksum(uint32_t stream, uint64_t number)
{
	uint64_t x = ((uint64_t)stream << 40 ^ number) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)((x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 32);
}

#define TEXT_BYTES 64u
/* Make the text of an event: 0 to 62 bytes. */
void make_text(char text[TEXT_BYTES], uint32_t stream, uint64_t number);

struct tally_stream {
	uint64_t *bits;
	uint64_t words;
	uint64_t count, first, last;
};

struct tally {
	uint64_t events;
	uint64_t lost; /* by events of kind LOST */
	uint64_t wrong;
	uint64_t duplicates;
	uint64_t late; /* time went backwards */
	uint64_t last_ns;
	struct tally_stream streams[STREAMS_MAX];
};

struct tally *tally_open(void);
void tally_close(struct tally *tally);
void tally_clear(struct tally *tally);
/* Note an event by its values. */
void tally_note(struct tally *tally, uint64_t stream, uint64_t number, uint64_t check);
/* A stream's sink. */
void tally_event(void *tally, const struct ky_event *event);
/* Note all events of a JSON file that a session wrote, even if it is cut off. Return false if there is none. */
bool tally_json(struct tally *tally, const char *path);

#endif
