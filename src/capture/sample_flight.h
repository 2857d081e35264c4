/* SPDX-License-Identifier: MIT */
/*
 * sample_flight.h: the last records of a flight recorder, in memory.
 *
 *   base: what was known ──▶│ first ── records that are kept ── used │
 *         before the first   └ those about processes move into base when they are dropped
 *
 * A window writes, the first time, all of base, and each time the records about processes and the samples in it,
 * each once. Records about processes that are dropped later are written too, since later windows need it.
 */
#ifndef KY_CAPTURE_SAMPLE_FLIGHT_H
#define KY_CAPTURE_SAMPLE_FLIGHT_H

#include "capture/sample_processes.h"

struct ky_sample_flight {
	struct ky_sample_processes base;
	uint8_t *bytes;
	size_t first, used, room;
	bool begun;              /* a window was written */
	struct ky_perf_out late; /* dropped, and to be written: the caller empties it */
	uint64_t dropped; /* samples that were young enough, but for which there was no memory */
};

void ky_sample_flight_free(struct ky_sample_flight *flight);
void ky_sample_flight_keep(struct ky_sample_flight *flight, const struct perf_event_header *record);
/* Drops what is older. */
void ky_sample_flight_drop(struct ky_sample_flight *flight, uint64_t before);
/* Appends what belongs into a window; base is the caller's to write when it is the first. */
void ky_sample_flight_window(struct ky_sample_flight *flight, uint64_t from, uint64_t to,
			     struct ky_perf_out *out);
/* A new file was begun with base alone: records about processes must be written again. */
void ky_sample_flight_again(struct ky_sample_flight *flight);

#endif
