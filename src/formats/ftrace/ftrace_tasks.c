/* SPDX-License-Identifier: MIT */
/*
 * ftrace_tasks.c: tasks that a recording's lists name: those that were there before its events, and those that alone were
 * recorded.
 *
 * Names and processes of threads come from the kernel's saved_cmdlines, and from the list of /proc that kymo makes when it
 * records. Only of threads that had an event something is put, after the last page: lists may come before or behind the
 * pages, and a machine has thousands of threads that a trace says nothing about.
 */
#include "formats/ftrace/ftrace_format.h"

#include "base/array.h"

#include <stdlib.h>

/* The kernel's PID_MAX_LIMIT. */
#define TIDS_MAX (4u << 20)
#define WORD_BITS 64u

void ky_tid_set_add(struct ky_tid_set *set, int32_t tid)
{
	const uint32_t word = (uint32_t)tid / WORD_BITS;
	if (tid <= 0 || tid >= (int32_t)TIDS_MAX)
		return;
	if (!KY_ARRAY_GROW_ZERO(set->bits, set->words, word + 1))
		return;
	set->bits[word] |= UINT64_C(1) << (uint32_t)tid % WORD_BITS;
}

static bool tid_set_has(const struct ky_tid_set *set, int32_t tid)
{
	const uint32_t word = (uint32_t)tid / WORD_BITS;
	return tid > 0 && word < set->words && set->bits[word] >> (uint32_t)tid % WORD_BITS & 1;
}

static void add(struct ky_ftrace_format *format, const struct ky_ftrace_comm *comm)
{
	(void)KY_ARRAY_ADD(format->comms, format->comms_count, format->comms_room, *comm);
}

/* Take a number and the blank behind it; NULL when it is not a number. */
static const char *take_number(const char *line, int32_t *number)
{
	char *end;
	const long value = strtol(line, &end, 10);
	*number = (int32_t)value;
	return end == line || *end != ' ' || value <= 0 || value > INT32_MAX ? NULL : end + 1;
}

/* "1234 bash". */
static void take_comm(struct ky_ftrace_format *format, char *line)
{
	struct ky_ftrace_comm comm = {.ts = KY_TIME_NONE};
	const char *name = take_number(line, &comm.tid);
	if (!name || strcmp(name, "<...>") == 0)
		return;
	comm.comm = ky_string_z(format->trace, name);
	add(format, &comm);
}

/* "1230 1234 bash", or "time 5203000111222" before such. */
static void take_task(struct ky_ftrace_format *format, char *line)
{
	struct ky_ftrace_comm comm = {.ts = format->tasks_ts};
	if (strncmp(line, "time ", 5) == 0) {
		const uint64_t ts = strtoull(line + 5, NULL, 10);
		format->tasks_ts = ts <= INT64_MAX ? (int64_t)ts : KY_TIME_NONE;
		return;
	}
	const char *second = take_number(line, &comm.tgid);
	const char *name = second ? take_number(second, &comm.tid) : NULL;
	if (!name)
		return;
	comm.comm = *name ? ky_string_z(format->trace, name) : 0;
	add(format, &comm);
}

void ky_ftrace_format_comms(struct ky_ftrace_format *format, const char *text, size_t bytes)
{
	ky_ftrace_format_lines(format, text, bytes, take_comm);
}

void ky_ftrace_format_tasks(struct ky_ftrace_format *format, const char *text, size_t bytes)
{
	ky_ftrace_format_lines(format, text, bytes, take_task);
}

/* ---- recordings of only some tasks ---- */

/*
 * Recordings of only some tasks (set_event_pid). They have a switch when it is from or to such a task, and
 * a wakeup when it is by or of one, but nothing that other tasks do in between. So the time of others must not be
 * shown: a task that was switched to once would seem to run until one of ours comes back.
 *
 * The set of tasks is known only at the end: those in the lists, those with an event about the running task alone, and
 * their children. So switches and wakeups wait, and the other tasks' sides are then left out.
 *
 *   ours ─▶ another    ours ends, the CPU does nothing that is to be shown
 *   another ─▶ ours    ours begins
 */

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
	const bool to_ours = tid_set_has(tids, event->next_tid);
	if (held->is_waking) {
		if (to_ours)
			ky_put_waking(format->trace, held->ts, event->next_tid, event->next_comm,
				      event->prev_tid);
		return;
	}
	if (!tid_set_has(tids, event->prev_tid))
		event->prev_tid = NOBODY;
	if (!to_ours) {
		event->next_tid = NOBODY;
		event->next_comm = 0;
	}
	ky_put_switch(format->trace, held->ts, event);
}

static void put_watched(struct ky_ftrace_format *format)
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

/* ---- the end ---- */

static void put_task(struct ky_ftrace_format *format, const struct ky_ftrace_comm *comm)
{
	struct ky_trace *trace = format->trace;
	const int64_t ts =
		comm->ts == KY_TIME_NONE || comm->ts > format->last_ts ? format->last_ts : comm->ts;
	if (comm->tgid)
		ky_put_task_group(trace, ts, comm->tid, comm->tgid);
	if (comm->comm && comm->tgid == comm->tid)
		ky_put_task_rename(trace, ts, comm->tid, comm->comm);
	else if (comm->comm)
		ky_put_task_hint(trace, ts, comm->tid, comm->comm);
}

void ky_ftrace_format_finish(struct ky_ftrace_format *format)
{
	put_watched(format);
	/* A process has a name by its main thread, which may have slept all the time. */
	for (uint32_t i = 0; i < format->comms_count; i++)
		if (format->comms[i].tgid && tid_set_has(&format->seen, format->comms[i].tid))
			ky_tid_set_add(&format->seen, format->comms[i].tgid);
	for (uint32_t i = 0; i < format->comms_count; i++)
		if (tid_set_has(&format->seen, format->comms[i].tid))
			put_task(format, &format->comms[i]);
}
