/* SPDX-License-Identifier: MIT */
/* thread_ends.c: see thread_ends.h. */
#include "process/thread_ends.h"

#include "base/array.h"

#include <stdlib.h>

bool ky_thread_ends_add(struct ky_thread_ends *ends, const struct ky_thread_end *end)
{
	return KY_ARRAY_ADD(ends->ends, ends->count, ends->room, *end);
}

KY_ORDER(by_thread, struct ky_thread_end,
	 KY_COMPARE_THEN(a->pid, b->pid, KY_COMPARE_THEN(a->tid, b->tid, KY_COMPARE(a->ns, b->ns))))

void ky_thread_ends_sort(struct ky_thread_ends *ends)
{
	if (ends->count)
		qsort(ends->ends, ends->count, sizeof(*ends->ends), by_thread);
}

int64_t ky_thread_ends_after(const struct ky_thread_ends *ends, int64_t pid, int64_t tid,
			     int64_t ns)
{
	const struct ky_thread_end wanted = {pid, tid, ns};
	const uint32_t from =
		KY_ARRAY_SEARCH(0, ends->count, at, by_thread(&ends->ends[at], &wanted) < 0);
	const bool found =
		from < ends->count && ends->ends[from].pid == pid && ends->ends[from].tid == tid;
	return found ? ends->ends[from].ns : INT64_MAX;
}

void ky_thread_ends_free(struct ky_thread_ends *ends)
{
	KY_ARRAY_FREE(ends->ends, ends->room);
}
