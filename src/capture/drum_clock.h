/* SPDX-License-Identifier: MIT */
/*
 * drum_clock.h: the clocks of drums, by samples that kymo takes itself. Processes of one machine
 * have the same counter, so what a drum says is needed only for the time before kymo looked, and is
 * never needed to be true.
 */
#ifndef KY_CAPTURE_DRUM_CLOCK_H
#define KY_CAPTURE_DRUM_CLOCK_H

#include "core/clock.h"
#include "core/drum_view.h"

struct ky_drum_clocks {
	struct ky_clock_map cpu;       /* the CPU's counter, if there is one */
	struct ky_clock_map monotonic; /* programs that could not use it */
};

/* Takes the first two samples, 5 ms apart. 0 or -ENOMEM. */
int ky_drum_clocks_open(struct ky_drum_clocks *clocks);
void ky_drum_clocks_close(struct ky_drum_clocks *clocks);
/*
 * Takes another when the last is old, or (now) unless it is quite new. True when it did:
 * ky_drum_clock_follow() has something to do.
 */
bool ky_drum_clocks_round(struct ky_drum_clocks *clocks, bool now);
/* Those of a drum's counter; NULL when it is none of this machine's. */
const struct ky_clock_map *ky_drum_clocks_of(const struct ky_drum_clocks *clocks,
					     uint32_t tick_source);

/*
 * Makes *map, whatever it was, hold the samples of ours, and before them the drum's own that can
 * be. 0 or -ENOMEM.
 */
int ky_drum_clock_begin(struct ky_clock_map *map, const struct ky_drum_view *view,
			const struct ky_clock_map *ours);
/* Adds what is new in ours. 0 or -ENOMEM. */
int ky_drum_clock_follow(struct ky_clock_map *map, const struct ky_clock_map *ours);

#endif
