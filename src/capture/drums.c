/* SPDX-License-Identifier: MIT */
/*
 * drums.c: the drums of a capture: search, rounds, windows, ends.
 *
 *   add ─▶ open ── ended, exec ─▶ read to the last event ── while a window can reach it ──▶ closed
 *               └─ others write into it ─▶ left ─▶ none does ─▶ the same
 *
 * A closed drum leaves its facts, so that totals are right, and its identity, so that it is not read a
 * second time. The oldest of very many are summed up as one.
 *
 * The next round is due when a ring will be a tenth full, judging by the last round, but within the
 * bounds below. With triggers that look at events it is never late.
 */
#include "capture/drums.h"

#include "base/array.h"
#include "base/fail.h"
#include "capture/attached_drum.h"
#include "os/os.h"
#include "process/drum_find.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILL_PERCENT 10u
#define SOONEST_US 1000u
#define LATEST_US 20000u
#define LATEST_EVENTS_US 3000u
#define HURRY_PERCENT 50u
/* Windows are written late. */
#define LATE_NS UINT64_C(1000000000)
#define LEFT_EVERY_NS UINT64_C(100000000)
#define CLOSED_MAX 4096u
#define TABLE_BYTES (256 << 10)
/* A process may have more drums; these are ignored. */
#define DRUMS_A_PROCESS 16

struct closed {
	dev_t device;
	ino_t inode;
	uint64_t made_ns;
	struct ky_drums_facts facts;
};

struct ky_drums {
	struct ky_drums_options options;
	char *categories, *event_categories;
	struct ky_drum_clocks clocks;
	struct ky_recorder_slot_owner own;
	uint64_t opened_ns;
	uint64_t round_ns; /* when the last round began */
	uint64_t left_ns;  /* when those that were left are checked next */
	struct ky_attached_drum **open;
	uint32_t open_count, open_room;
	struct closed *closed;
	uint32_t closed_count, closed_room;
};

/* Copy a list; NULL and "" are the same. */
static bool copy_globs(char **copy, const char *globs)
{
	*copy = globs && *globs ? strdup(globs) : NULL;
	return *copy || !globs || !*globs;
}

int ky_drums_open(struct ky_drums **out, const struct ky_drums_options *options)
{
	*out = NULL;
	struct ky_drums *drums = calloc(1, sizeof(*drums));
	if (!drums)
		return -ENOMEM;
	/*
	 * A drum's tables of trace points are megabytes of which a few pages are used. Memory from the heap, where they
	 * would come from once some were freed, would have to be zeroed, and all of it would be used.
	 */
	(void)mallopt(M_MMAP_THRESHOLD, TABLE_BYTES);
	drums->options = *options;
	drums->own = ky_recorder_slot_self();
	drums->opened_ns = ky_os_boottime();
	const bool copied = copy_globs(&drums->categories, options->categories) &&
			    copy_globs(&drums->event_categories, options->event_categories);
	drums->options.categories = drums->categories;
	drums->options.event_categories = drums->event_categories;
	const int error = copied ? ky_drum_clocks_open(&drums->clocks) : -ENOMEM;
	if (error) {
		free(drums->categories);
		free(drums->event_categories);
		free(drums);
		return error;
	}
	*out = drums;
	return 0;
}

/* Take new clock readings; now: what is about to be read needs one after it. */
static void follow_clocks(struct ky_drums *drums, bool now)
{
	if (!ky_drum_clocks_round(&drums->clocks, now))
		return;
	for (uint32_t i = 0; i < drums->open_count; i++)
		ky_attached_drum_follow_clock(drums->open[i]);
}

/* ---- ends ---- */

/* Sum up the two oldest as one, of no process. */
static void join_oldest(struct ky_drums *drums)
{
	struct closed *all = drums->closed;
	struct ky_drums_facts *sum = &all[1].facts;
	sum->pid = 0;
	strcpy(sum->name, "(ended processes)");
	sum->events += all[0].facts.events;
	sum->lost += all[0].facts.lost;
	sum->damaged += all[0].facts.damaged;
	all[1].inode = 0;
	memmove(all, all + 1, --drums->closed_count * sizeof(*all));
}

static struct closed *make_closed(struct ky_drums *drums)
{
	if (drums->closed_count == CLOSED_MAX)
		join_oldest(drums);
	return KY_ARRAY_NEW(drums->closed, drums->closed_count, drums->closed_room);
}

static void close_at(struct ky_drums *drums, uint32_t index)
{
	struct ky_attached_drum *drum = drums->open[index];
	struct closed *closed = make_closed(drums);
	ky_attached_drum_leave(drum);
	if (closed) {
		*closed = (struct closed){.device = drum->map.device,
					  .inode = drum->map.inode,
					  .made_ns = drum->made_ns};
		ky_attached_drum_facts(drum, &closed->facts);
	}
	ky_attached_drum_close(&drum);
	drums->open[index] = drums->open[--drums->open_count];
}

/* Report whether a window can still need the drum. */
static bool is_of_interest(const struct ky_drums *drums, const struct ky_attached_drum *drum,
			   uint64_t now_ns)
{
	const struct ky_drums_options *o = &drums->options;
	return o->flight && o->bundle && now_ns - drum->ended_ns < o->before_ns + LATE_NS;
}

static void close_ended(struct ky_drums *drums)
{
	const uint64_t now_ns = ky_os_boottime();
	for (uint32_t i = drums->open_count; i-- > 0;)
		if (drums->open[i]->ended && !is_of_interest(drums, drums->open[i], now_ns))
			close_at(drums, i);
}

static void end_drum(struct ky_attached_drum *drum)
{
	if (drum->ended)
		return;
	drum->ended = true;
	drum->ended_ns = ky_os_boottime();
	ky_attached_drum_read(drum, true);
	ky_attached_drum_leave(drum);
}

/* End the drum of a process that no longer writes, unless others do. */
static void leave_drum(struct ky_attached_drum *drum)
{
	drum->left = drum->made && ky_drum_map_is_written(&drum->map);
	if (drum->left)
		ky_attached_drum_read(drum, true);
	else
		end_drum(drum);
}

/* End the drums that no process writes any more. */
static void look_at_left(struct ky_drums *drums, uint64_t now_ns)
{
	if (now_ns < drums->left_ns)
		return;
	drums->left_ns = now_ns + LEFT_EVERY_NS;
	for (uint32_t i = 0; i < drums->open_count; i++)
		if (drums->open[i]->left && !drums->open[i]->ended)
			leave_drum(drums->open[i]);
}

void ky_drums_ended(struct ky_drums *drums, pid_t pid)
{
	follow_clocks(drums, true);
	for (uint32_t i = 0; i < drums->open_count; i++) {
		if (drums->open[i]->pid == pid)
			leave_drum(drums->open[i]);
		else if (drums->open[i]->made && !drums->open[i]->ended)
			ky_attached_drum_read(drums->open[i], true);
	}
	close_ended(drums);
}

/* A process that ended before its drum came is not reported again. */
static bool is_gone(pid_t pid)
{
	return kill(pid, 0) != 0 && errno == ESRCH;
}

pid_t ky_drums_gone(const struct ky_drums *drums)
{
	for (uint32_t i = 0; i < drums->open_count; i++) {
		const struct ky_attached_drum *drum = drums->open[i];
		if (!drum->ended && !drum->left && is_gone(drum->pid))
			return drum->pid;
	}
	return 0;
}

void ky_drums_close(struct ky_drums **out)
{
	struct ky_drums *drums = *out;
	if (!drums)
		return;
	*out = NULL;
	/* First give the slots back, so that nothing more is recorded for us, then read what was. */
	for (uint32_t i = 0; i < drums->open_count; i++)
		ky_attached_drum_leave(drums->open[i]);
	(void)ky_drums_round(drums, true);
	while (drums->open_count)
		ky_attached_drum_close(&drums->open[--drums->open_count]);
	ky_drum_clocks_close(&drums->clocks);
	KY_ARRAY_FREE(drums->open, drums->open_room);
	KY_ARRAY_FREE(drums->closed, drums->closed_room);
	free(drums->categories);
	free(drums->event_categories);
	free(drums);
}

/* ---- search ---- */

/* The identity of a drum, from its descriptor, before it is mapped. */
struct identity {
	dev_t device;
	ino_t inode;
	uint64_t made_ns;
};

static int identify(int fd, struct identity *identity)
{
	struct stat status;
	struct ky_drum_header header;
	memset(&header, 0, sizeof(header));
	if (!ky_drum_find_is_local(fd))
		return -ENOTSUP;
	if (fstat(fd, &status) != 0 || pread(fd, &header, sizeof(header), 0) < 0)
		return -errno;
	*identity = (struct identity){.device = status.st_dev,
				      .inode = status.st_ino,
				      .made_ns = header.made_boottime_ns};
	return 0;
}

static bool is_known(const struct ky_drums *drums, const struct identity *identity)
{
	/* An open drum holds its file, so that no other file can have its number. */
	for (uint32_t i = 0; i < drums->open_count; i++)
		if (drums->open[i]->map.device == identity->device &&
		    drums->open[i]->map.inode == identity->inode)
			return true;
	for (uint32_t i = drums->closed_count; i-- > 0;) {
		const struct closed *closed = &drums->closed[i];
		if (closed->device == identity->device && closed->inode == identity->inode &&
		    closed->made_ns == identity->made_ns)
			return true;
	}
	return false;
}

/*
 * After an exec, the process no longer writes to the drum that it had before. One that kymo made is
 * replaced by another of its kind.
 */
static bool is_replaced(const struct ky_attached_drum *drum, const struct ky_attached_drum *newest)
{
	return !drum->ended && !drum->left && drum->layer == newest->layer &&
	       drum->pid == newest->pid && drum->image != newest->image &&
	       drum->made_ns < newest->made_ns;
}

static void end_replaced(struct ky_drums *drums, const struct ky_attached_drum *newest)
{
	for (uint32_t i = 0; i < drums->open_count; i++) {
		if (!is_replaced(drums->open[i], newest))
			continue;
		follow_clocks(drums, true);
		leave_drum(drums->open[i]);
	}
	close_ended(drums);
}

static int add(struct ky_drums *drums, int fd, pid_t pid, bool made, char message[KY_MESSAGE_BYTES])
{
	struct identity identity;
	message[0] = '\0';
	int error = identify(fd, &identity);
	if (error)
		return ky_fail(message, error, "process %d: its buffer cannot be read: %s",
			       (int)pid, strerror(-error));
	if (is_known(drums, &identity))
		return 1;
	if (!KY_ARRAY_GROW(drums->open, drums->open_room, drums->open_count + 1))
		return ky_fail(message, -ENOMEM, "process %d: not enough memory", (int)pid);
	struct ky_attached_drum *drum;
	error = ky_attached_drum_open(&drum, fd, pid, made, &drums->options, &drums->clocks,
				      &drums->own, drums->opened_ns, message);
	if (error)
		return error;
	drums->open[drums->open_count++] = drum;
	end_replaced(drums, drum);
	if (is_gone(pid))
		ky_drums_ended(drums, pid);
	return 0;
}

int ky_drums_add(struct ky_drums *drums, int fd, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	return add(drums, fd, pid, false, message);
}

int ky_drums_add_made(struct ky_drums *drums, int fd, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	return add(drums, fd, pid, true, message);
}

/* The drums of one process, as they are found. */
struct drum_search {
	struct ky_drums *drums;
	pid_t pid;
	char *message;
	int found, added, error;
};

static int add_found(void *context, int fd)
{
	struct drum_search *search = context;
	const int result = ky_drums_add(search->drums, fd, search->pid, search->message);
	search->added += result == 0;
	if (result < 0)
		search->error = result;
	return ++search->found == DRUMS_A_PROCESS;
}

int ky_drums_add_process(struct ky_drums *drums, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	struct drum_search search = {.drums = drums, .pid = pid, .message = message};
	message[0] = '\0';
	const int found = ky_drum_find(pid, add_found, &search);
	if (found == -ESRCH)
		return ky_fail(message, found, "no process with PID %d", (int)pid);
	if (found < 0)
		return ky_fail(
			message, found,
			"process %d: cannot look for its buffer: %s; run as the user of the "
			"process, or as root (needed when the process changed its user or is not dumpable)",
			(int)pid, strerror(-found));
	if (found == 0)
		return ky_fail(
			message, -ENOENT,
			"process %d: no events: expected a program with kymo trace points, started with KYMO_CATEGORIES='*'",
			(int)pid);
	return search.added || !search.error ? search.added : search.error;
}

/* ---- rounds ---- */

static uint32_t next_round(const struct ky_drums *drums, uint32_t pressure, uint64_t elapsed_ns)
{
	const uint64_t latest = drums->options.event ? LATEST_EVENTS_US : LATEST_US;
	if (pressure >= HURRY_PERCENT)
		return 0;
	if (pressure == 0)
		return (uint32_t)latest;
	const uint64_t next = elapsed_ns / 1000 * FILL_PERCENT / pressure;
	return (uint32_t)(next < SOONEST_US ? SOONEST_US : next < latest ? next : latest);
}

uint32_t ky_drums_round(struct ky_drums *drums, bool all)
{
	const uint64_t now_ns = ky_os_boottime();
	const uint64_t elapsed_ns = now_ns - drums->round_ns;
	uint32_t pressure = 0;
	drums->round_ns = now_ns;
	follow_clocks(drums, all);
	look_at_left(drums, now_ns);
	for (uint32_t i = 0; i < drums->open_count; i++) {
		struct ky_attached_drum *drum = drums->open[i];
		if (drum->ended)
			continue;
		const uint32_t waiting = ky_attached_drum_pressure(drum);
		pressure = waiting > pressure ? waiting : pressure;
		ky_attached_drum_read(drum, all);
	}
	close_ended(drums);
	return next_round(drums, pressure, elapsed_ns);
}

/* Report whether threads may have rings in several drums. */
static bool has_layers(const struct ky_drums *drums)
{
	for (uint32_t i = 0; i < drums->open_count; i++)
		if (drums->open[i]->layer != KY_DRUM_OWN)
			return true;
	return false;
}

void ky_drums_window(struct ky_drums *drums, uint64_t from_ns, uint64_t to_ns)
{
	struct ky_open_order order = {0};
	if (!drums->options.flight)
		return;
	follow_clocks(drums, true);
	for (uint32_t i = 0; i < drums->open_count; i++)
		ky_attached_drum_window(drums->open[i], from_ns, to_ns);
	const bool layers = has_layers(drums);
	for (uint32_t i = 0; layers && i < drums->open_count; i++)
		ky_attached_drum_note_open(drums->open[i], from_ns, &order);
	ky_open_order_sort(&order);
	for (uint32_t i = 0; i < drums->open_count; i++)
		ky_attached_drum_window_end(drums->open[i], from_ns, to_ns, &order);
	ky_open_order_free(&order);
	close_ended(drums);
}

uint64_t ky_drums_mark(struct ky_drums *drums, uint64_t since_ns)
{
	const uint64_t now_ns = ky_os_boottime();
	uint64_t latest_ns = 0;
	for (uint32_t i = 0; i < drums->open_count; i++) {
		const uint64_t mark_ns = ky_attached_drum_mark(drums->open[i]);
		/* A mark in the future is not valid, and must not hide the others. */
		if (mark_ns > latest_ns && mark_ns <= now_ns)
			latest_ns = mark_ns;
	}
	return latest_ns > since_ns ? latest_ns : 0;
}

/* ---- facts ---- */

uint32_t ky_drums_count(const struct ky_drums *drums)
{
	return drums->open_count + drums->closed_count;
}

bool ky_drums_facts(const struct ky_drums *drums, uint32_t index, struct ky_drums_facts *facts)
{
	if (index < drums->open_count)
		ky_attached_drum_facts(drums->open[index], facts);
	else if (index - drums->open_count < drums->closed_count)
		*facts = drums->closed[index - drums->open_count].facts;
	else
		return false;
	return true;
}

bool ky_drums_category(const struct ky_drums *drums, uint32_t index, uint32_t category, char *name,
		       size_t room, bool *on)
{
	return index < drums->open_count &&
	       ky_attached_drum_category(drums->open[index], category, name, room, on);
}

int ky_drums_edit_own(struct ky_drums *drums, const char *categories, bool on,
		      char message[KY_MESSAGE_BYTES])
{
	int error = 0;
	for (uint32_t i = 0; i < drums->open_count && !error; i++)
		if (drums->open[i]->layer == KY_DRUM_OWN)
			error = ky_attached_drum_edit_own(drums->open[i], categories, on, message);
	return error;
}

void ky_drums_tidy(struct ky_drums *drums)
{
	for (uint32_t i = 0; i < drums->open_count; i++)
		ky_attached_drum_tidy(drums->open[i]);
}
