/* SPDX-License-Identifier: MIT */
/*
 * drum_clock.h: the clocks of drums, from readings that kymo takes itself. Processes of one machine
 * have the same counter, so a drum's own readings are needed only for the time before kymo looked,
 * and need not be true.
 */
#ifndef KY_CAPTURE_DRUM_CLOCK_H
#define KY_CAPTURE_DRUM_CLOCK_H

#include "core/clock.h"
#include "core/drum_view.h"

struct ky_drum_clocks {
	struct ky_clock_map cpu;       /* the CPU's counter, if there is one */
	struct ky_clock_map monotonic; /* for programs that cannot use it */
};

/* Take the first two readings, 5 ms apart. Return 0 or -ENOMEM. */
int ky_drum_clocks_open(struct ky_drum_clocks *clocks);
void ky_drum_clocks_close(struct ky_drum_clocks *clocks);
/*
 * Take another reading when the last is old, or (now) unless it is very new. Return true when it
 * did: then ky_drum_clock_follow() has something to do.
 */
bool ky_drum_clocks_round(struct ky_drum_clocks *clocks, bool now);
/* Return the readings of a drum's counter; NULL when this machine does not have that counter. */
const struct ky_clock_map *ky_drum_clocks_of(const struct ky_drum_clocks *clocks,
					     uint32_t tick_source);

/*
 * Make *map hold our readings, and before them the drum's own that are plausible. Return 0 or
 * -ENOMEM.
 */
int ky_drum_clock_begin(struct ky_clock_map *map, const struct ky_drum_view *view,
			const struct ky_clock_map *ours);
/* Add our new readings. Return 0 or -ENOMEM. */
int ky_drum_clock_follow(struct ky_clock_map *map, const struct ky_clock_map *ours);

#endif
