/* SPDX-License-Identifier: MIT */
/*
 * clocks.h: converts the times of all clocks of a trace to one clock. A snapshot holds the times of several clocks at
 * one moment; two clocks that occur together in snapshots can be converted into each other, and so can clocks that
 * are joined by a chain of such pairs.
 *
 *   TSC ───── snapshot 1, 2, 3 ───── BOOTTIME ───── snapshot 4 ───── REALTIME
 *
 * A time is converted by the last snapshot before it, by offset only, as in Perfetto. A time before the first
 * snapshot uses the first.
 */
#ifndef KY_MODEL_CLOCKS_H
#define KY_MODEL_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

/* Clocks by Perfetto's numbers. Larger ones are a trace's own; ky_clock_of_sequence() makes them. */
enum ky_clock {
	KY_CLOCK_REALTIME = 1,
	KY_CLOCK_REALTIME_COARSE = 2,
	KY_CLOCK_MONOTONIC = 3,
	KY_CLOCK_MONOTONIC_COARSE = 4,
	KY_CLOCK_MONOTONIC_RAW = 5,
	KY_CLOCK_BOOTTIME = 6,
	KY_CLOCK_TSC = 9,
	KY_CLOCK_PERF = 10,
	KY_CLOCK_TRACE_FILE = 11
};

struct ky_clock_reading {
	uint64_t clock;
	int64_t ns; /* its time, in nanoseconds */
};

struct ky_clocks;

int ky_clocks_open(struct ky_clocks **clocks);
void ky_clocks_close(struct ky_clocks **clocks);

/* Return the number of a clock (64 to 127) that belongs to one sequence of packets. */
static inline uint64_t ky_clock_of_sequence(uint32_t sequence, uint32_t clock)
{
	return clock >= 64 && clock < 128 ? (uint64_t)sequence << 32 | clock : clock;
}

/* Add a snapshot. 0 or -ENOMEM. */
int ky_clocks_add(struct ky_clocks *clocks, const struct ky_clock_reading *readings,
		  uint32_t count);
/* Convert a time; false when no chain of snapshots joins the clocks. Equal clocks always convert. */
bool ky_clocks_convert(struct ky_clocks *clocks, uint64_t from, uint64_t to, int64_t ns,
		       int64_t *converted);
/* Do the same for many times: those from *first to *last all convert by adding *offset. */
bool ky_clocks_convert_range(struct ky_clocks *clocks, uint64_t from, uint64_t to, int64_t ns,
			     int64_t *offset, int64_t *first, int64_t *last);
/* Report whether a snapshot has the clock. */
bool ky_clocks_known(const struct ky_clocks *clocks, uint64_t clock);
/* Return Perfetto's name of a clock ("BOOTTIME"), or NULL for a clock of the trace's own. */
const char *ky_clock_name(uint64_t clock);

#endif
