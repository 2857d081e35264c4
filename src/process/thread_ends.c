/* SPDX-License-Identifier: MIT */
/* thread_ends.c: see thread_ends.h. */
#include "process/thread_ends.h"

#include <stdlib.h>

bool ky_event_ends_add(struct ky_event_ends *ends, const struct ky_thread_end *end)
{
	if (ends->count == ends->room) {
		const uint32_t room = ends->room ? 2 * ends->room : 64;
		struct ky_thread_end *grown = realloc(ends->ends, room * sizeof(*grown));
		if (!grown)
			return false;
		ends->ends = grown;
		ends->room = room;
	}
	ends->ends[ends->count++] = *end;
	return true;
}

static int compare(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int by_thread(const void *a, const void *b)
{
	const struct ky_thread_end *left = a, *right = b;
	const int pid = compare(left->pid, right->pid);
	const int tid = compare(left->tid, right->tid);
	return pid ? pid : tid ? tid : compare(left->ns, right->ns);
}

void ky_event_ends_sort(struct ky_event_ends *ends)
{
	if (ends->count)
		qsort(ends->ends, ends->count, sizeof(*ends->ends), by_thread);
}

int64_t ky_event_ends_after(const struct ky_event_ends *ends, int64_t pid, int64_t tid, int64_t ns)
{
	const struct ky_thread_end wanted = {pid, tid, ns};
	uint32_t from = 0, to = ends->count;
	while (from < to) {
		const uint32_t middle = from + (to - from) / 2;
		if (by_thread(&ends->ends[middle], &wanted) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	const bool found =
		from < ends->count && ends->ends[from].pid == pid && ends->ends[from].tid == tid;
	return found ? ends->ends[from].ns : INT64_MAX;
}

void ky_event_ends_free(struct ky_event_ends *ends)
{
	free(ends->ends);
}
