/* SPDX-License-Identifier: MIT */
/*
 * stack_spans_rings.c: the records of all rings in the order of time, and the thread that waits for them.
 *
 *   cpu 0   12 ── 15 ── 30                  pending[0] = 12
 *   cpu 1      13 ── 14 ── 31               pending[1] = 13        12, 13, 14, 15; 30 and 31 are too young
 *
 * Records of a ring are in order. A record that is in no ring yet may be older than another CPU's, because its time
 * is taken before it is written: records of the last moment stay in the rings.
 */
#include "functrace/stack_spans_parts.h"

#include "base/clock.h"

#include <signal.h>
#include <sys/epoll.h>
#include <time.h>

#define HOLD_NS 1000000u
#define WAIT_MS 10
#define GIVE_BACK_EVERY 32u

uint64_t ky_stack_spans_now(void)
{
	return (uint64_t)ky_clock_monotonic();
}

/* Return the ring whose next record is the oldest; count: all are empty. */
static uint32_t oldest(const struct ky_stack_spans *spans, uint64_t *ns)
{
	const uint32_t count = spans->events.cpus_count;
	uint32_t found = count;
	*ns = UINT64_MAX;
	for (uint32_t i = 0; i < count; i++) {
		const uint64_t at = spans->pending[i] ? ky_perf_record_time(spans->pending[i],
									    KY_STACK_SAMPLE_TYPE)
						      : 0;
		if (!spans->pending[i] || (found < count && at >= *ns))
			continue;
		*ns = at;
		found = i;
	}
	return found;
}

/* Give all but the pending record back to the kernel. */
static void give_back(struct ky_stack_spans *spans)
{
	for (uint32_t i = 0; i < spans->events.cpus_count; i++) {
		struct ky_perf_ring *ring = &spans->events.cpus[i].ring;
		const uint16_t bytes = spans->pending[i] ? spans->pending[i]->size : 0;
		ring->at -= bytes;
		ky_perf_ring_end(ring);
		ring->at += bytes;
	}
}

static void begin_all(struct ky_stack_spans *spans)
{
	for (uint32_t i = 0; i < spans->events.cpus_count; i++) {
		ky_perf_ring_begin(&spans->events.cpus[i].ring);
		spans->pending[i] = ky_perf_ring_next(&spans->events.cpus[i].ring);
	}
}

/* Put the pending records back: they will be read again. */
static void end_all(struct ky_stack_spans *spans)
{
	for (uint32_t i = 0; i < spans->events.cpus_count; i++) {
		if (spans->pending[i])
			spans->events.cpus[i].ring.at -= spans->pending[i]->size;
		spans->pending[i] = NULL;
	}
	give_back(spans);
}

void ky_stack_spans_drain(struct ky_stack_spans *spans, bool all)
{
	const uint64_t until = all ? UINT64_MAX : ky_stack_spans_now() - HOLD_NS;
	uint64_t ns;
	begin_all(spans);
	for (uint32_t taken = 0;; taken++) {
		const uint32_t cpu = oldest(spans, &ns);
		if (cpu == spans->events.cpus_count || ns > until)
			break;
		ky_stack_spans_take(spans, spans->pending[cpu]);
		spans->pending[cpu] = ky_perf_ring_next(&spans->events.cpus[cpu].ring);
		if (taken % GIVE_BACK_EVERY == GIVE_BACK_EVERY - 1)
			give_back(spans);
	}
	end_all(spans);
}

/* ---- the thread ---- */

static void *run(void *context)
{
	struct ky_stack_spans *spans = context;
	struct epoll_event ready;
	while (!__atomic_load_n(&spans->stopping, __ATOMIC_RELAXED)) {
		(void)epoll_wait(spans->events.poll_fd, &ready, 1, WAIT_MS);
		pthread_mutex_lock(&spans->lock);
		ky_stack_spans_drain(spans, false);
		ky_stack_spans_widen(spans);
		pthread_mutex_unlock(&spans->lock);
	}
	return NULL;
}

/* Block signals in this thread: kymo waits for them elsewhere. */
int ky_stack_spans_start(struct ky_stack_spans *spans)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	const int error = pthread_create(&spans->thread, NULL, run, spans);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	spans->has_thread = error == 0;
	return -error;
}

void ky_stack_spans_stop(struct ky_stack_spans *spans)
{
	__atomic_store_n(&spans->stopping, true, __ATOMIC_RELAXED);
	if (spans->has_thread)
		pthread_join(spans->thread, NULL);
	spans->has_thread = false;
}
