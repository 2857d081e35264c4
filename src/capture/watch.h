/* SPDX-License-Identifier: MIT */
/*
 * watch.h: triggers that are found by looking at the events: span:, gap:, counter:, and api (kymo_snapshot(),
 * KYMO_SCOPE_OVER). Costs the program nothing.
 *
 * For each thread the spans that are open and of interest, for each process and gap the end of the last event, for
 * each counter its last value: a counter fires when it crosses the limit, not again while it stays there.
 */
#ifndef KY_CAPTURE_WATCH_H
#define KY_CAPTURE_WATCH_H

#include "capture/trigger.h"

struct ky_watch;

/* triggers stay the caller's; those of other kinds are passed over. 0, -ENOMEM, or -E2BIG: more than 64. */
int ky_watch_open(struct ky_watch **watch, const struct ky_trigger *triggers, uint32_t count,
		  ky_fired_fn fired, void *context);
void ky_watch_close(struct ky_watch **watch);
/* As struct ky_drums_options has it; context is the watch. */
void ky_watch_event(void *watch, pid_t pid, const struct ky_event *event);
/*
 * Spans that are still open and gaps that go on: called every few milliseconds. All events up to now_ns (CLOCK_BOOTTIME)
 * must have been seen, for one whose end was not read yet looks open: read the clock, then have a round of all
 * drums (ky_drums_round() with all), then tick with that time.
 */
void ky_watch_tick(struct ky_watch *watch, uint64_t now_ns);
/* The process ended: what was open in it is forgotten. */
void ky_watch_ended(struct ky_watch *watch, pid_t pid);
/* Which categories must be on for the triggers to see their events: a list of globs, or NULL when none. */
const char *ky_watch_categories(const struct ky_watch *watch);
/* Events that were not looked at, for what is kept of a program is bounded. */
uint64_t ky_watch_dropped(const struct ky_watch *watch);

#endif
