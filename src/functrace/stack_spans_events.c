/* SPDX-License-Identifier: MIT */
/*
 * stack_spans_events.c: the perf events of the engine sample: a clock of each thread's CPU time, with the registers
 * and the top of the stack, and records of the threads' starts, ends, mappings and switches; their rings, and the
 * thread that waits for them.
 *
 * The number of stack bytes to copy is the same for all events and can only be set when an event is made. Most stacks
 * are shorter than its first value; when too many are not, all events are made again.
 *
 *   cpu 0   12 ── 15 ── 30                  pending[0] = 12
 *   cpu 1      13 ── 14 ── 31               pending[1] = 13        12, 13, 14, 15; 30 and 31 are too young
 *
 * Records of a ring are in order. A record that is in no ring yet may be older than another CPU's, because its time
 * is taken before it is written: records of the last moment stay in the rings.
 */
#include "base/clock.h"
#include "functrace/stack_spans.h"
#include "process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define PER_SECOND_MAX 10000u
#define STACK_BYTES_FIRST 8192u
/* with the rest of the sample in the 64 KiB that a record may have */
#define STACK_BYTES_MAX 61440u
#define CHECK_SAMPLES 200u
#define CUT_PERCENT 2u
#define RINGS_BYTES (64u << 20) /* of all together, where it is allowed */
#define RING_BYTES_MIN (512u << 10)
#define RING_BYTES_MAX (8u << 20)
#define PASSES_MAX 16u

static int refused(int error, const char *what, char message[KY_MESSAGE_BYTES])
{
	return ky_perf_events_refused(error, what, 2, message);
}

static uint64_t ring_bytes(void)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	const uint64_t share = RINGS_BYTES / (uint64_t)(cpus > 0 ? cpus : 1);
	return share > RING_BYTES_MAX   ? RING_BYTES_MAX
	       : share < RING_BYTES_MIN ? RING_BYTES_MIN
					: share;
}

int ky_stack_spans_open_events(struct ky_stack_spans *spans, char message[KY_MESSAGE_BYTES])
{
	const uint32_t per_second = spans->options.samples_per_second;
	const int most = ky_proc_setting("/proc/sys/kernel/perf_event_max_sample_rate");
	if (!per_second || per_second > PER_SECOND_MAX || per_second > (uint32_t)most)
		return ky_fail(
			message, -EINVAL,
			"functions: %u samples a second: not in the range 1 to %d (the kernel's "
			"perf_event_max_sample_rate is %d)",
			per_second, most < (int)PER_SECOND_MAX ? most : (int)PER_SECOND_MAX, most);
	spans->stack_bytes = STACK_BYTES_FIRST;
	struct perf_event_attr attr = ky_perf_events_clock(per_second, KY_STACK_SAMPLE_TYPE);
	attr.sample_regs_user = KY_STACK_REGISTERS;
	attr.sample_stack_user = spans->stack_bytes;
	attr.context_switch = 1;
	const int error = ky_perf_events_open(&spans->events, &attr, ring_bytes());
	if (error)
		return refused(error, "functions: samples of kymo itself", message);
	spans->pending = calloc(spans->events.cpus_count, sizeof(*spans->pending));
	return spans->pending ? 0 : ky_fail(message, -ENOMEM, "functions: out of memory");
}

/* ---- threads ---- */

/* A process whose threads get events: all of them again, or those that have none. */
struct watching {
	struct ky_stack_spans *spans;
	struct ky_stack_process *process;
	struct ky_perf_set *set;
	struct ky_u64_map done; /* threads that have them */
	uint32_t added;
	int error;
};

static void watch_thread(struct watching *watching, pid_t tid)
{
	bool made;
	const uint32_t *number = ky_u64_map_add(&watching->done, (uint64_t)tid, &made);
	if (!number || !made)
		return;
	const int error = ky_perf_set_add(watching->set, &watching->spans->events,
					  &watching->spans->events.attr, tid);
	if (error == 0)
		watching->added++;
	else if (error != -ESRCH)
		watching->error = error;
	if (!error)
		(void)ky_stack_thread_make(watching->spans, watching->process, tid);
}

/* Note threads that are known by a record of their start: they have their maker's events. */
static void note_known(struct watching *watching, pid_t tid)
{
	bool made;
	const struct ky_stack_thread *thread = ky_stack_thread_find(watching->spans, tid);
	if (thread && thread->process == watching->process)
		(void)ky_u64_map_add(&watching->done, (uint64_t)tid, &made);
}

static void watch_all(struct watching *watching, bool known_too)
{
	DIR *const tasks = ky_proc_tasks(watching->process->pid);
	for (pid_t tid; !watching->error && (tid = ky_proc_next(tasks)) > 0;) {
		if (!known_too)
			note_known(watching, tid);
		watch_thread(watching, tid);
	}
	ky_proc_close(tasks);
}

int ky_stack_spans_watch(struct ky_stack_spans *spans, struct ky_stack_process *process,
			 char message[KY_MESSAGE_BYTES])
{
	struct watching watching = {.spans = spans, .process = process, .set = &spans->set};
	const pid_t pid = process->pid;
	uint32_t added = 0;
	char what[64];
	snprintf(what, sizeof(what), "functions: samples of process %d", (int)pid);
	do {
		watching.added = 0;
		watch_all(&watching, false);
		added += watching.added;
		/* It may have ended: then there is a record of it. */
		ky_stack_spans_drain(spans, true);
		watching.process = ky_stack_process_find(spans, pid);
	} while (watching.process && watching.added && !watching.error);
	ky_u64_map_free(&watching.done);
	if (watching.error)
		return refused(watching.error, what, message);
	return added ? 0
		     : ky_fail(message, -ESRCH, "functions: process %d: it has ended", (int)pid);
}

/*
 * Make all events again. A thread that begins just then may get two clocks: it is sampled more often then, but not
 * less.
 */
static int renew(struct ky_stack_spans *spans)
{
	struct ky_perf_set set = {0};
	struct watching watching = {.spans = spans, .set = &set};
	for (uint32_t i = 0; i < KY_STACK_BUCKETS; i++)
		for (watching.process = spans->processes[i]; watching.process;
		     watching.process = watching.process->next)
			for (uint32_t pass = 0; pass < PASSES_MAX; pass++) {
				watching.added = 0;
				watch_all(&watching, true);
				if (!watching.added)
					break;
			}
	ky_u64_map_free(&watching.done);
	ky_perf_set_close(watching.error ? &set : &spans->set);
	if (!watching.error)
		spans->set = set;
	return watching.error;
}

/* Copy more of the stacks from now on, if too many did not reach their end. Report whether it does. */
static bool widen(struct ky_stack_spans *spans)
{
	if (spans->recent_samples < CHECK_SAMPLES)
		return false;
	const bool enough = spans->recent_cut * 100 <= spans->recent_samples * CUT_PERCENT;
	spans->recent_samples = spans->recent_cut = 0;
	if (enough || spans->stack_bytes == STACK_BYTES_MAX)
		return false;
	const uint32_t before = spans->stack_bytes;
	spans->stack_bytes = 2 * before < STACK_BYTES_MAX ? 2 * before : STACK_BYTES_MAX;
	spans->events.attr.sample_stack_user = spans->stack_bytes;
	if (renew(spans) == 0)
		return true;
	spans->events.attr.sample_stack_user = before;
	spans->stack_bytes = STACK_BYTES_MAX; /* not again */
	return false;
}

/* ---- rings, in the order of time ---- */

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
		widen(spans);
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
