/* SPDX-License-Identifier: MIT */
/*
 * losses.h: what a drum counted that is not in its rings, by cause. All readers of a drum (sessions, subscribers, captures,
 * the reader of drum files) report these, besides what was overwritten before they read it.
 */
#ifndef KY_CORE_LOSSES_H
#define KY_CORE_LOSSES_H

#include "core/layout.h"

enum ky_lost_cause {
	/* Events: */
	KY_LOST_RINGLESS,
	KY_LOST_NESTED,
	KY_LOST_UNFINISHED,
	KY_LOST_DAMAGED,
	KY_LOST_EVENTS, /* not a cause: those before it count events */
	/* What events have: */
	KY_LOST_SITES = KY_LOST_EVENTS,
	KY_LOST_STRINGS,
	KY_LOST_NAMES,
	KY_LOST_CATEGORIES,
	KY_LOST_CAUSES
};

struct ky_lost_counts {
	uint64_t count[KY_LOST_CAUSES];
};
_Static_assert(sizeof(((struct ky_drum_header *)0)->left_losses) == sizeof(struct ky_lost_counts),
	       "layout");

/* Read the counts. damaged is how many events the reader could not decode. */
struct ky_lost_counts ky_losses_read(const struct ky_drum_header *live, uint64_t damaged);
/* Return how many events are lost, by all causes. */
uint64_t ky_losses_events(const struct ky_lost_counts *losses);
/* Return in words what is lost by the cause, and why. */
const char *ky_losses_text(enum ky_lost_cause cause);
/* Return the same for a file, which says itself when events are lost: why. */
const char *ky_losses_what(enum ky_lost_cause cause);

#endif
