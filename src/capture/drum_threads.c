/* SPDX-License-Identifier: MIT */
/*
 * drum_threads.c: copies of a stream's threads, by their index there.
 *
 * A thread's number in its namespace is in a file of its own. The numbers read are kept, or else
 * each thread of a large process would cost a look at all the others. A number may belong to
 * another thread by now, so it is read once more before it is used.
 */
#include "capture/drum_threads.h"

#include "base/array.h"
#include "core/layout.h"
#include "process/proc.h"
#include "process/proc_maps.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The limit of files read in vain, of all looks together: some tenths of a second. */
#define IN_VAIN_MAX 20000u
/* Listing so many threads takes as long as one file. */
#define LISTED_A_LOOK 16u
/* What a file needs for each name in addition to it. */
#define NAMES_BYTES_MAX (UINT64_C(64) << 20)
#define NAME_BYTES 32u
#define CHILD_ALIAS (1u << 30) /* above all thread ids */
#define GENERATIONS 64

void ky_drum_threads_open(struct ky_drum_threads *threads, pid_t pid, pid_t own_pid, ino_t inode)
{
	*threads = (struct ky_drum_threads){
		.pid = pid, .own_pid = own_pid, .inode = inode, .names_left = NAMES_BYTES_MAX};
}

void ky_drum_threads_close(struct ky_drum_threads *threads)
{
	for (uint32_t i = 0; i < threads->room; i++)
		free(threads->threads[i]);
	KY_ARRAY_FREE(threads->threads, threads->room);
	KY_ARRAY_FREE(threads->numbers, threads->numbers_room);
	memset(threads, 0, sizeof(*threads));
}

KY_ORDER(by_tid, struct ky_drum_number, KY_COMPARE(a->tid, b->tid))

/* Return the thread's inner number, as it was at the last look or read now. */
static int32_t own_number(const struct ky_drum_threads *threads, int32_t tid, uint32_t *looks)
{
	const struct ky_drum_number key = {.tid = tid};
	const struct ky_drum_number *known =
		threads->numbers_count ? bsearch(&key, threads->numbers, threads->numbers_count,
						 sizeof(key), by_tid)
				       : NULL;
	*looks += !known;
	return known ? known->own : ky_proc_inner_pid(tid);
}

/* List all threads that exist now. Without memory some are missing. */
static void look_around(struct ky_drum_threads *threads, uint32_t *looks)
{
	struct ky_drum_number *numbers = NULL;
	uint32_t count = 0, room = 0;
	DIR *const tasks = ky_proc_tasks(threads->pid);
	for (int32_t tid; (tid = ky_proc_next(tasks)) > 0;) {
		const int32_t own = own_number(threads, tid, looks);
		if (!KY_ARRAY_ADD(numbers, count, room, (struct ky_drum_number){tid, own}))
			break;
	}
	ky_proc_close(tasks);
	*looks += 1 + count / LISTED_A_LOOK;
	if (count)
		qsort(numbers, count, sizeof(*numbers), by_tid);
	KY_ARRAY_FREE(threads->numbers, threads->numbers_room);
	threads->numbers = numbers;
	threads->numbers_room = room;
	threads->numbers_count = count;
}

static int32_t known_number(const struct ky_drum_threads *threads, int32_t own)
{
	for (uint32_t i = 0; i < threads->numbers_count; i++)
		if (threads->numbers[i].own == own)
			return threads->numbers[i].tid;
	return 0;
}

/* Return our number of the thread with that inner number; 0: none now. */
static int32_t find_number(struct ky_drum_threads *threads, int32_t own, uint32_t *looks)
{
	const int32_t known = known_number(threads, own);
	*looks += known != 0;
	if (known && ky_proc_inner_pid(known) == own)
		return known;
	if (known) /* numbers are used again */
		threads->numbers_count = 0;
	look_around(threads, looks);
	return known_number(threads, own);
}

/*
 * Report whether the number belongs to a thread of another process now. A drum may claim any: scheduling and samples of that
 * thread would be taken for the process's own.
 */
static bool is_anothers(pid_t pid, int32_t tid)
{
	return tid > 0 && syscall(SYS_tgkill, pid, tid, 0) != 0 && errno == ESRCH &&
	       (kill(tid, 0) == 0 || errno == EPERM);
}

/* Give the thread a new name. */
static void take_name(struct ky_drum_threads *threads, struct ky_thread *mine, struct ky_text name)
{
	if (mine->name.data == name.data || name.bytes + NAME_BYTES > threads->names_left)
		return;
	threads->names_left -= name.bytes + NAME_BYTES;
	mine->name = name;
}

/* ---- forked children ---- */

static pid_t parent_of(pid_t pid)
{
	struct ky_proc_status status;
	return ky_proc_status(pid, 0, &status) == 0 ? status.parent : 0;
}

static bool descends(pid_t pid, pid_t from)
{
	for (int i = 0; i < GENERATIONS && pid > 1; i++, pid = parent_of(pid))
		if (pid == from)
			return true;
	return false;
}

static bool is_gone(pid_t pid)
{
	return pid <= 0 || (kill(pid, 0) != 0 && errno == ESRCH);
}

/* Report whether the process has the drum mapped: it may have been given to another parent. */
static bool has_drum(const struct ky_drum_threads *threads, pid_t pid)
{
	struct ky_proc_maps maps;
	struct ky_proc_mapping mapping;
	bool found = false;
	if (ky_proc_maps_open(&maps, pid) != 0)
		return false;
	while (!found && ky_proc_maps_next(&maps, &mapping))
		found = mapping.inode && mapping.inode == threads->inode;
	ky_proc_maps_close(&maps);
	return found;
}

/* Report whether a process that is there writes into the drum: the drum may claim that any does. */
static bool is_child(struct ky_drum_threads *threads, pid_t pid)
{
	if (threads->in_vain >= IN_VAIN_MAX)
		return false;
	const bool child = descends(pid, threads->pid) || has_drum(threads, pid);
	threads->in_vain += child ? 0 : GENERATIONS;
	return child;
}

/* Return our number of a descendant with that inner number; 0: none now. */
static int32_t find_child(struct ky_drum_threads *threads, int32_t own)
{
	int32_t found = 0;
	uint32_t looks = 0;
	DIR *const processes = threads->in_vain < IN_VAIN_MAX ? ky_proc_processes() : NULL;
	for (pid_t pid; !found && (pid = ky_proc_next(processes)) > 0;) {
		looks++;
		if (pid != own && ky_proc_inner_pid(pid) == own && descends(pid, threads->pid))
			found = pid;
	}
	ky_proc_close(processes);
	threads->in_vain += found ? 0 : looks;
	return found;
}

/*
 * In a file it has a number of its own, because another process's thread may once have had its
 * number here. An inner number must not be taken for one of ours.
 */
static void number_child(struct ky_drum_threads *threads, struct ky_thread *mine)
{
	const int32_t own = mine->pid & ~(int32_t)KY_PID_APART;
	const bool first = mine->tid == own;
	mine->alias = (int32_t)(CHILD_ALIAS + mine->index);
	const bool same = threads->own_pid == threads->pid && own == mine->pid;
	if (!same || (!is_gone(own) && !is_child(threads, own))) {
		const int32_t here = same ? 0 : find_child(threads, own);
		mine->pid = here ? here : own | (int32_t)KY_PID_APART;
	}
	if (first)
		mine->tid = mine->pid;
	else if (is_anothers(mine->pid, mine->tid))
		mine->tid |= (int32_t)KY_PID_APART;
}

static struct ky_thread *copy(struct ky_drum_threads *threads, const struct ky_thread *thread)
{
	struct ky_thread *mine = malloc(sizeof(*mine));
	if (!mine)
		return NULL;
	*mine = *thread;
	mine->name = (struct ky_text){"", 0};
	take_name(threads, mine, thread->name);
	if (thread->pid != threads->own_pid) {
		number_child(threads, mine);
		return mine;
	}
	mine->pid = threads->pid;
	const bool look = threads->own_pid != threads->pid && threads->in_vain < IN_VAIN_MAX;
	uint32_t looks = 0;
	const int32_t tid = look ? find_number(threads, thread->tid, &looks) : 0;
	threads->in_vain += tid ? 0 : looks;
	if (tid)
		mine->tid = tid;
	else if (is_anothers(threads->pid, thread->tid))
		mine->tid = thread->tid | (int32_t)KY_PID_APART;
	if (mine->tid != thread->tid)
		mine->alias = thread->tid;
	return mine;
}

const struct ky_thread *ky_drum_threads_get(struct ky_drum_threads *threads,
					    const struct ky_thread *thread)
{
	if (!KY_ARRAY_GROW_ZERO(threads->threads, threads->room, (uint64_t)thread->index + 1))
		return NULL;
	struct ky_thread **mine = &threads->threads[thread->index];
	if (!*mine)
		*mine = copy(threads, thread);
	else
		take_name(threads, *mine, thread->name);
	return *mine;
}
