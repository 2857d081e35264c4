/* SPDX-License-Identifier: MIT */
/*
 * decode.h: decode an event's words into a struct ky_event. The words are untrusted: a length that does not fit ends the
 * arguments there, nothing more.
 */
#ifndef KY_CORE_DECODE_H
#define KY_CORE_DECODE_H

#include "core/clock.h"
#include "core/event.h"

/* The strings and arguments of one event. */
struct ky_decoder {
	struct kymo_arg args[KYMO_ARGS_MAX];
	/* Every string of the largest event with a final NUL, and a formatted message. */
	char text[KYMO_I_ITEMS_MAX * (KYMO_STRING_MAX + 1)];
	char message[1024];
	uint32_t used;
	int32_t tid; /* explicit, 0 when the event has none */
};

/* Decode the header and its items, as many as the header says. ns is the time of the header. */
void ky_decode(struct ky_decoder *decoder, const struct ky_site *site, const uint64_t *words,
	       uint64_t ns, const struct ky_clock_map *clock, struct ky_event *event);

#endif
