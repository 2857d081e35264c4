/* SPDX-License-Identifier: MIT */
/* list_rows.c: see list.h. */
#include "base/array.h"
#include "base/clock.h"
#include "cli/list.h"

#include "capture/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct ky_list {
	struct ky_process_list *processes;
	struct ky_list_row *rows;
	uint32_t count, room;
	char note[KY_MESSAGE_BYTES];
};

/* ---- processes come and go ---- */

static struct ky_list_row *row_of(struct ky_list *list, pid_t pid)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (list->rows[i].facts.pid == pid)
			return &list->rows[i];
	return NULL;
}

static void close_row(struct ky_list_row *row)
{
	ky_drums_close(&row->drums);
	if (row->fd >= 0)
		close(row->fd);
}

static void remove_row(struct ky_list *list, pid_t pid)
{
	struct ky_list_row *const row = row_of(list, pid);
	if (!row)
		return;
	close_row(row);
	*row = list->rows[--list->count];
}

static void on_drum(void *context, pid_t pid, int fd)
{
	struct ky_list *const list = context;
	const struct ky_drums_options options = {.flight = true};
	struct ky_list_row row = {.fd = -1, .per_second = -1};
	char message[KY_MESSAGE_BYTES] = "";
	remove_row(list, pid);
	if (!KY_ARRAY_GROW(list->rows, list->room, list->count + 1) ||
	    ky_drums_open(&row.drums, &options) != 0)
		return;
	row.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (ky_drums_add(row.drums, fd, pid, message) != 0 ||
	    !ky_drums_facts(row.drums, 0, &row.facts)) {
		memcpy(list->note, message, sizeof(list->note));
		close_row(&row);
		return;
	}
	row.facts.pid = pid;
	list->rows[list->count++] = row;
}

static void on_ended(void *context, pid_t pid, int status)
{
	(void)status;
	remove_row(context, pid);
}

int ky_list_open(struct ky_list **out, const pid_t *pids, uint32_t count,
		 char message[KY_MESSAGE_BYTES])
{
	*out = NULL;
	struct ky_list *list = calloc(1, sizeof(*list));
	if (!list)
		return ky_fail(message, -ENOMEM, "not enough memory");
	const struct ky_processes_events events = {
		.drum = on_drum, .ended = on_ended, .context = list};
	int error = ky_processes_open(&list->processes,
				      count ? KY_PROCESSES_GIVEN : KY_PROCESSES_ALL, &events);
	if (error)
		snprintf(message, KY_MESSAGE_BYTES, "processes cannot be followed: %s",
			 strerror(-error));
	for (uint32_t i = 0; error == 0 && i < count; i++)
		error = ky_processes_add(list->processes, pids[i], message);
	if (error)
		ky_list_close(&list);
	*out = list;
	return error;
}

void ky_list_close(struct ky_list **at)
{
	struct ky_list *const list = *at;
	*at = NULL;
	if (!list)
		return;
	for (uint32_t i = 0; i < list->count; i++)
		close_row(&list->rows[i]);
	ky_processes_close(&list->processes);
	KY_ARRAY_FREE(list->rows, list->room);
	free(list);
}

void ky_list_round(struct ky_list *list)
{
	ky_processes_round(list->processes);
}

bool ky_list_wait(struct ky_list *list, uint64_t duration_ns, int other, int another)
{
	const uint64_t end = (uint64_t)ky_clock_monotonic() + duration_ns;
	for (uint64_t now; (now = (uint64_t)ky_clock_monotonic()) < end;) {
		struct pollfd fds[] = {{.fd = ky_processes_fd(list->processes), .events = POLLIN},
				       {.fd = other, .events = POLLIN},
				       {.fd = another, .events = POLLIN}};
		poll(fds, 3, (int)((end - now + 999999) / 1000000));
		if (fds[1].revents || fds[2].revents)
			return true;
		ky_list_round(list);
	}
	return false;
}

/* ---- what they tell ---- */

static void sample_row(struct ky_list_row *row, uint64_t now)
{
	const pid_t pid = row->facts.pid;
	struct stat status;
	ky_drums_tidy(row->drums);
	ky_drums_facts(row->drums, 0, &row->facts);
	row->facts.pid = pid;
	row->memory_bytes = fstat(row->fd, &status) == 0 ? (uint64_t)status.st_blocks * 512 : 0;
	if (row->sampled_ns && now > row->sampled_ns)
		row->per_second = row->facts.events < row->sampled_events
					  ? 0 /* the process may change its rings at any time */
					  : (double)(row->facts.events - row->sampled_events) *
						    1e9 / (double)(now - row->sampled_ns);
	row->sampled_ns = now;
	row->sampled_events = row->facts.events;
}

KY_ORDER(by_rate, struct ky_list_row,
	 KY_COMPARE_THEN(b->per_second, a->per_second, KY_COMPARE(a->facts.pid, b->facts.pid)))

void ky_list_sample(struct ky_list *list)
{
	for (uint32_t i = 0; i < list->count; i++)
		sample_row(&list->rows[i], (uint64_t)ky_clock_monotonic());
	if (list->count)
		qsort(list->rows, list->count, sizeof(*list->rows), by_rate);
}

uint32_t ky_list_count(const struct ky_list *list)
{
	return list->count;
}

const struct ky_list_row *ky_list_at(const struct ky_list *list, uint32_t index)
{
	return &list->rows[index];
}

uint32_t ky_list_hidden(const struct ky_list *list)
{
	struct ky_processes_facts facts;
	ky_processes_facts(list->processes, &facts);
	return facts.hidden;
}

uint32_t ky_list_crowded(const struct ky_list *list)
{
	struct ky_processes_facts facts;
	ky_processes_facts(list->processes, &facts);
	return facts.crowded;
}

const char *ky_list_note(const struct ky_list *list)
{
	return list->note;
}
