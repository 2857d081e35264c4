/* SPDX-License-Identifier: MIT */
/*
 * ftrace_tasks.c: names and processes of threads that were there before the events: by the kernel's saved_cmdlines, and
 * by the list of /proc that kymo makes when it records.
 *
 * Only of threads that had an event something is put, after the last page: lists may come before or behind the
 * pages, and a machine has thousands of threads that a trace says nothing about.
 */
#include <stdlib.h>

#include "base/array.h"
#include "formats/ftrace/ftrace_format.h"

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

bool ky_tid_set_has(const struct ky_tid_set *set, int32_t tid)
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
	ky_ftrace_watched_finish(format);
	/* A process has a name by its main thread, which may have slept all the time. */
	for (uint32_t i = 0; i < format->comms_count; i++)
		if (format->comms[i].tgid && ky_tid_set_has(&format->seen, format->comms[i].tid))
			ky_tid_set_add(&format->seen, format->comms[i].tgid);
	for (uint32_t i = 0; i < format->comms_count; i++)
		if (ky_tid_set_has(&format->seen, format->comms[i].tid))
			put_task(format, &format->comms[i]);
}
