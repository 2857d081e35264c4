/* SPDX-License-Identifier: MIT */
/*
 * event_ends.c: see event_ends.h. A number of a thread may be used again: the end that counts is the first after what the
 * thread did last.
 */
#include "event_ends.h"

#include <stdlib.h>

static bool make_room(void **items, uint32_t count, uint32_t *room, size_t bytes)
{
	if (count < *room)
		return true;
	const uint32_t more = *room ? 2 * *room : 64;
	void *grown = realloc(*items, more * bytes);
	if (!grown)
		return false;
	*items = grown;
	*room = more;
	return true;
}

bool ky_event_ends_open(struct ky_event_ends *ends, const struct ky_open_span *span)
{
	void *spans = ends->spans;
	const bool good = make_room(&spans, ends->spans_count, &ends->spans_room, sizeof(*span));
	ends->spans = spans;
	if (good)
		ends->spans[ends->spans_count++] = *span;
	return good;
}

bool ky_event_ends_thread(struct ky_event_ends *ends, uint32_t thread, int64_t ns)
{
	void *all = ends->ends;
	const bool good = make_room(&all, ends->ends_count, &ends->ends_room, sizeof(*ends->ends));
	ends->ends = all;
	if (good)
		ends->ends[ends->ends_count++] = (struct ky_thread_end){thread, ns};
	return good;
}

static int by_thread(const void *a, const void *b)
{
	const struct ky_thread_end *left = a, *right = b;
	if (left->thread != right->thread)
		return left->thread < right->thread ? -1 : 1;
	return (left->ns > right->ns) - (left->ns < right->ns);
}

/* The first that is not before it; NULL: none. */
static const struct ky_thread_end *find(const struct ky_event_ends *ends,
					const struct ky_open_span *span)
{
	const struct ky_thread_end wanted = {span->thread, span->last_ns};
	uint32_t from = 0, to = ends->ends_count;
	while (from < to) {
		const uint32_t middle = from + (to - from) / 2;
		if (by_thread(&ends->ends[middle], &wanted) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from < ends->ends_count && ends->ends[from].thread == span->thread
		       ? &ends->ends[from]
		       : NULL;
}

void ky_event_ends_put(struct ky_event_ends *ends, struct ky_trace *trace)
{
	if (ends->ends_count)
		qsort(ends->ends, ends->ends_count, sizeof(*ends->ends), by_thread);
	for (uint32_t i = ends->spans_count; i-- > 0;) {
		const struct ky_open_span *span = &ends->spans[i];
		const struct ky_thread_end *end = find(ends, span);
		if (end)
			ky_put_end(trace, end->ns, span->track, span->category, span->name, 0);
	}
}

void ky_event_ends_free(struct ky_event_ends *ends)
{
	free(ends->spans);
	free(ends->ends);
}
