/* SPDX-License-Identifier: MIT */
/*
 * kymo_maker.h: made-up rings for the tests of .kymo files. A maker invents threads, trace points
 * with every type of argument and pieces of rings, hands them to the writer as the sink does, and
 * remembers them: what a reader must find is worked out from the words themselves.
 */
#ifndef KY_TESTS_KYMO_MAKER_H
#define KY_TESTS_KYMO_MAKER_H

#include "core/clock.h"
#include "core/ring_read.h"
#include "core/sites.h"
#include "formats/format.h"

#define MAKER_RINGS 5u
#define MAKER_SITES 12u
#define MAKER_PID 4242
#define MAKER_FIRST_SITE 300u /* its number in the words; the others follow, 7 apart */
#define MAKER_START_TICKS UINT64_C(0x5ffffff00) /* the low half runs over soon */
#define MAKER_START_NS UINT64_C(432000123456789)

struct maker_piece {
	struct ky_block block; /* words are its own */
	bool at_flush;         /* the batch ended behind it */
};

struct maker {
	const struct ky_format *format;
	void *writer;
	struct ky_out out;
	uint64_t random;
	uint64_t ticks; /* now */
	struct ky_drum_view view;
	struct ky_sites sites;
	struct ky_site site[MAKER_SITES];
	struct ky_thread thread[MAKER_RINGS];
	struct ky_clock_map clock;
	uint64_t numbers[MAKER_RINGS];
	struct maker_piece *pieces;
	uint32_t pieces_count;
	uint64_t lost;
	size_t file_at; /* where in out it begins */
	uint8_t *file;  /* what was written, after maker_finish() */
	size_t file_bytes;
};

void maker_open(struct maker *maker, uint64_t seed);
void maker_close(struct maker *maker);
/* Begins another file behind the one that is finished, as rotation does. */
void maker_reopen(struct maker *maker);
/* A number below the limit; the same for the same seed. */
uint64_t maker_random(struct maker *maker, uint64_t limit);

/* Rounds as of a drain thread: pieces of all rings over the same time, then a clock sample. */
void maker_rounds(struct maker *maker, uint32_t rounds, uint32_t events);
/* One piece of words as given; they are copied. */
void maker_piece(struct maker *maker, uint32_t ring, const uint64_t *words, uint32_t count,
		 uint64_t lost);
/* An event's words at to; returns how many. ticks moves on. */
uint32_t maker_event(struct maker *maker, uint32_t site, uint64_t *to);
/* The header word of an event now. */
uint64_t maker_word(struct maker *maker, uint32_t site_number, uint32_t length, bool end);
void maker_clock(struct maker *maker);
void maker_finish(struct maker *maker);

#endif
