/* SPDX-License-Identifier: MIT */
/*
 * watch.h: triggers found by looking at the events: span:, gap:, counter:, and api
 * (kymo_snapshot(), KYMO_SCOPE_OVER). They cost the program nothing.
 *
 * The watch keeps the open spans of each thread, the end of the last event of each process and gap,
 * and the last value of each counter: a counter fires when it crosses the limit, and not again
 * while it stays there.
 */
#ifndef KY_CAPTURE_WATCH_H
#define KY_CAPTURE_WATCH_H

#include "capture/trigger.h"

struct ky_watch;

/*
 * Open a watch. triggers stay the caller's; those of other kinds are ignored. Return 0, -ENOMEM, or
 * -E2BIG: more than 64.
 */
int ky_watch_open(struct ky_watch **watch, const struct ky_trigger *triggers, uint32_t count,
		  ky_fired_fn fired, void *context);
void ky_watch_close(struct ky_watch **watch);
/* Take an event, as struct ky_drums_options has it; context is the watch. */
void ky_watch_event(void *watch, pid_t pid, const struct ky_event *event);
/*
 * Fire for spans that are still open and gaps that last: to be called every few milliseconds. All events up to now_ns
 * (CLOCK_BOOTTIME) must have been seen, because a span whose end was not read yet looks open: read the clock, read all
 * drums (ky_drums_round() with all), then tick with that time.
 */
void ky_watch_tick(struct ky_watch *watch, uint64_t now_ns);
/* Forget what was open in a process that ended. */
void ky_watch_ended(struct ky_watch *watch, pid_t pid);
/* Return the categories that must be on for the triggers to see their events: a list of globs, or NULL. */
const char *ky_watch_categories(const struct ky_watch *watch);
/* Describe the next trigger from *at on whose category had events but none of its name; false: there are no more. */
bool ky_watch_missing(const struct ky_watch *watch, uint32_t *at, char message[KY_MESSAGE_BYTES]);
/* Return the number of events that were not watched, because what is kept of a program is bounded. */
uint64_t ky_watch_dropped(const struct ky_watch *watch);

#endif
