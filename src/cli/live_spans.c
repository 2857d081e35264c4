/* SPDX-License-Identifier: MIT */
/*
 * live_spans.c: the spans that are open in each thread; see live.h.
 *
 * A thread is known by the address of its ky_thread, which is one drum's: a thread's spans and its function calls are stacks of their own.
 * The address may be used again after its drum was closed; then another thread begins with nothing open.
 */
#include "base/array.h"
#include "cli/live.h"

#include <stdlib.h>

#define THREADS_MAX 65536u
#define DEPTH_MAX 4096u

struct ky_live_thread *ky_live_spans_thread(struct ky_live_spans *spans,
					    const struct ky_thread *thread)
{
	bool made;
	if (spans->count == THREADS_MAX)
		ky_live_spans_free(spans);
	uint32_t *const number = ky_u64_map_add(&spans->index, (uint64_t)(uintptr_t)thread, &made);
	if (!number)
		return NULL;
	if (made) {
		struct ky_live_thread *const one =
			KY_ARRAY_NEW(spans->threads, spans->count, spans->room);
		if (!one) {
			ky_u64_map_remove(&spans->index, (uint64_t)(uintptr_t)thread);
			return NULL;
		}
		*number = spans->count - 1;
	}
	struct ky_live_thread *const one = &spans->threads[*number];
	if (one->pid != thread->pid || one->tid != thread->tid)
		ky_live_spans_lost(one);
	one->thread = thread;
	one->pid = thread->pid;
	one->tid = thread->tid;
	return one;
}

bool ky_live_spans_begin(struct ky_live_thread *thread, uint64_t begin_ns, uint32_t row, char *name)
{
	const struct ky_live_span span = {.begin_ns = begin_ns, .row = row, .name = name};
	if (thread->depth < DEPTH_MAX && !thread->skipped &&
	    KY_ARRAY_ADD(thread->open, thread->depth, thread->room, span))
		return true;
	thread->skipped++;
	free(name);
	return false;
}

bool ky_live_spans_end(struct ky_live_thread *thread, struct ky_live_span *span)
{
	if (thread->skipped) {
		thread->skipped--;
		return false;
	}
	if (!thread->depth)
		return false;
	*span = thread->open[--thread->depth];
	return true;
}

void ky_live_spans_lost(struct ky_live_thread *thread)
{
	thread->skipped = 0;
	while (thread->depth)
		free(thread->open[--thread->depth].name);
}

void ky_live_spans_free(struct ky_live_spans *spans)
{
	for (uint32_t i = 0; i < spans->count; i++) {
		ky_live_spans_lost(&spans->threads[i]);
		KY_ARRAY_FREE(spans->threads[i].open, spans->threads[i].room);
	}
	KY_ARRAY_FREE(spans->threads, spans->room);
	ky_u64_map_free(&spans->index);
	spans->count = 0;
}
