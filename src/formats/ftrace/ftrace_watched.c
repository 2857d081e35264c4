/* SPDX-License-Identifier: MIT */
/*
 * ftrace_watched.c: recordings of only some tasks (set_event_pid). They have a switch when it is from or to such a task, and
 * a wakeup when it is by or of one, but nothing that other tasks do in between. So the time of others must not be
 * shown: a task that was switched to once would seem to run until one of ours comes back.
 *
 * The set of tasks is known only at the end: those in the lists, those with an event about the running task alone, and
 * their children. So switches and wakeups wait, and the other tasks' sides are then left out.
 *
 *   ours ─▶ another    ours ends, the CPU does nothing that is to be shown
 *   another ─▶ ours    ours begins
 */
#include <stdlib.h>

#include "base/array.h"
#include "formats/ftrace/ftrace_format.h"

#define NOBODY (-1)

/* A switch, or (is_waking) a wakeup: then next is whom, and prev by whom. */
struct held {
	int64_t ts;
	struct ky_switch event;
	bool is_waking;
};

struct ky_ftrace_watched {
	struct ky_tid_set tids;
	struct held *held;
	uint32_t count, room;
};

static bool hold(struct ky_ftrace_watched *watched, const struct held *held)
{
	return KY_ARRAY_ADD(watched->held, watched->count, watched->room, *held);
}

bool ky_ftrace_watched_switch(struct ky_ftrace_watched *watched, int64_t ts,
			      const struct ky_switch *event)
{
	const struct held held = {.ts = ts, .event = *event};
	return hold(watched, &held);
}

bool ky_ftrace_watched_waking(struct ky_ftrace_watched *watched, int64_t ts, int32_t tid,
			      uint32_t comm, int32_t waker_tid)
{
	const struct held held = {
		.ts = ts,
		.event = {.prev_tid = waker_tid, .next_tid = tid, .next_comm = comm},
		.is_waking = true,
	};
	return hold(watched, &held);
}

void ky_ftrace_watched_add(struct ky_ftrace_watched *watched, int32_t tid)
{
	ky_tid_set_add(&watched->tids, tid);
}

/* "1234", or "no pid". */
static void take_pid(struct ky_ftrace_format *format, char *line)
{
	char *end;
	const long pid = strtol(line, &end, 10);
	if (end != line && *end == '\0' && pid > 0 && pid <= INT32_MAX)
		ky_tid_set_add(&format->watched->tids, (int32_t)pid);
}

void ky_ftrace_format_watched(struct ky_ftrace_format *format, const char *text, size_t bytes)
{
	/* Not later: what was put already would not fit to what waits. */
	if (!format->watched && !format->events)
		format->watched = calloc(1, sizeof(*format->watched));
	if (format->watched)
		ky_ftrace_format_lines(format, text, bytes, take_pid);
}

static void put_held(struct ky_ftrace_format *format, struct held *held)
{
	const struct ky_tid_set *tids = &format->watched->tids;
	struct ky_switch *event = &held->event;
	const bool to_ours = ky_tid_set_has(tids, event->next_tid);
	if (held->is_waking) {
		if (to_ours)
			ky_put_waking(format->trace, held->ts, event->next_tid, event->next_comm,
				      event->prev_tid);
		return;
	}
	if (!ky_tid_set_has(tids, event->prev_tid))
		event->prev_tid = NOBODY;
	if (!to_ours) {
		event->next_tid = NOBODY;
		event->next_comm = 0;
	}
	ky_put_switch(format->trace, held->ts, event);
}

void ky_ftrace_watched_finish(struct ky_ftrace_format *format)
{
	struct ky_ftrace_watched *watched = format->watched;
	if (!watched)
		return;
	for (uint32_t i = 0; i < watched->count; i++)
		put_held(format, &watched->held[i]);
	KY_ARRAY_FREE(watched->held, watched->room);
	KY_ARRAY_FREE(watched->tids.bits, watched->tids.words);
	free(watched);
	format->watched = NULL;
}
