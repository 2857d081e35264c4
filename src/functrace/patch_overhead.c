/* SPDX-License-Identifier: MIT */
/*
 * patch_overhead.c: keeps what tracing costs within a share of each thread's time: see patch_parts.h.
 *
 *   a thread's cost    its calls since the last look, times what a call costs on this machine
 *   its own time       its CPU time without that
 *   its load           the cost as a part of its own time; 1: as much as is allowed
 *
 * When a thread's load is above 1, the functions that are called most lose their jumps, until the rest fits. When there is
 * room, those that fit in again get them back. Nobody counts the calls of a function without a jump: after a while it
 * gets its jump back for a short time, to see whether it is still called that often; each time in vain it stays out for
 * twice as long. Until then its calls are estimated from its rate.
 *
 * All is by CPU time: a program that waits, or that has to share the CPUs, is looked at as rarely as it runs.
 */
#include "base/array.h"
#include "base/clock.h"
#include "functrace/patch_parts.h"
#include "process/proc.h"

#include <stdlib.h>
#include <time.h>

#define MILLISECOND UINT64_C(1000000)
/* Looks are rare once the program is known; when functions have got their jumps back they are frequent again. */
#define LOOKS_SOON 5u
#define LOOK_FIRST_NS (5 * MILLISECOND)
#define LOOK_NS (100 * MILLISECOND)
/* A look needs this much CPU time of the process, and of a thread to consider it. */
#define LOOK_CPU_NS (4 * MILLISECOND)
#define THREAD_CPU_NS (MILLISECOND / 2)
/* The part of what is allowed that is used when functions are taken out, and when they are put back. */
#define LOAD_AFTER 0.9
#define LOAD_FILLED 0.8
#define BACK_NS (500 * MILLISECOND)
#define TRY_NS (2000 * MILLISECOND)
#define TRY_DOUBLINGS 5u
/* What a traced call costs, as many times as reading the counter and storing it, as `make bench` measures it. */
#define COST_CALL 2.6
#define COST_ENTRY 1.2
#define MEASURE_TIMES 2000u
#define MEASURE_TRIES 5u

struct looked {
	double load;   /* of the thread with the highest */
	double own_ns; /* of all threads */
};

struct chosen {
	uint32_t *entries;
	uint32_t count, room;
};

/* ---- measuring ---- */

/* Measure how long it takes to read the counter and to store it: the shortest of some times. */
static double measure_reading(void)
{
	double best = 1e9;
	for (uint32_t i = 0; i < MEASURE_TRIES; i++) {
		volatile uint64_t store = 0;
		const int64_t began = ky_clock_monotonic();
		for (uint32_t j = 0; j < MEASURE_TIMES; j++) {
#ifdef __x86_64__
			store = __builtin_ia32_rdtsc();
#else
			store = j;
#endif
		}
		(void)store;
		const double ns = (double)(ky_clock_monotonic() - began) / MEASURE_TIMES;
		best = ns < best ? ns : best;
	}
	return best;
}

static uint64_t process_cpu_ns(pid_t pid)
{
	clockid_t clock;
	return clock_getcpuclockid(pid, &clock) == 0 ? (uint64_t)ky_clock_ns(clock) : 0;
}

/* Take a thread, with what it has done since the last look. */
static void take_thread(const struct ky_patch *patch, struct looked *looked, double calls,
			double cpu_ns)
{
	const double allowed = (double)patch->options.overhead_percent / 100;
	double own_ns = cpu_ns - calls * patch->call_ns;
	if (cpu_ns < (double)THREAD_CPU_NS)
		return;
	/* The measured cost is not that exact. */
	own_ns = own_ns > cpu_ns / 10 ? own_ns : cpu_ns / 10;
	const double load = calls * patch->call_ns / own_ns / allowed;
	looked->own_ns += own_ns;
	looked->load = load > looked->load ? load : looked->load;
}

/* Look at a state: its calls are totals[index]. */
static void look_at_state(struct ky_patch *patch, struct looked *looked, uint32_t index)
{
	struct ky_patch_load *then = &patch->loads[index];
	uint32_t tid = 0;
	uint64_t cpu_ns = 0;
	(void)ky_remote_read(&patch->remote,
			     patch->home.states + index * patch->home.state_bytes +
				     offsetof(struct ky_agent_state, tid),
			     &tid, sizeof(tid));
	if (tid)
		cpu_ns = ky_proc_cpu_ns(patch->remote.pid, (pid_t)tid);
	const uint32_t calls = patch->totals[index];
	if (tid && tid == then->tid && cpu_ns > then->cpu_ns)
		take_thread(patch, looked, calls - then->calls, (double)(cpu_ns - then->cpu_ns));
	*then = (struct ky_patch_load){.tid = tid, .calls = calls, .cpu_ns = cpu_ns};
}

/*
 * Look at all threads. Where their numbers are those of another namespace, the process is looked at as if it were one
 * thread.
 */
static bool look(struct ky_patch *patch, struct looked *looked, uint64_t calls, uint64_t cpu_ns)
{
	*looked = (struct looked){0};
	if (!KY_ARRAY_GROW_ZERO(patch->loads, patch->loads_room, patch->totals_count + 1))
		return false;
	if (patch->home.pid != (uint32_t)patch->remote.pid)
		take_thread(patch, looked, (double)calls, (double)cpu_ns);
	else
		for (uint32_t i = 1; i < patch->totals_count; i++)
			look_at_state(patch, looked, i);
	return looked->own_ns > 0;
}

/* ---- choosing ---- */

static const struct ky_patch_spot *sorted; /* of the patch being looked at */

static int by_recent(const void *a, const void *b)
{
	const uint64_t x = sorted[*(const uint32_t *)a].recent,
		       y = sorted[*(const uint32_t *)b].recent;
	return x < y ? 1 : x > y ? -1 : 0;
}

static int by_rate(const void *a, const void *b)
{
	const double x = sorted[*(const uint32_t *)a].rate, y = sorted[*(const uint32_t *)b].rate;
	return x > y ? 1 : x < y ? -1 : 0;
}

/* Choose the entries whose jumps may be taken out (out), or were taken out here. */
static void choose(const struct ky_patch *patch, struct chosen *chosen, bool out)
{
	for (uint32_t i = 0; i < patch->table_count && i + 1 < patch->home.counts; i++) {
		const struct ky_patch_spot *spot = &patch->spots[i];
		const bool fits = out ? patch->table[i].set && !spot->hot && spot->recent
				      : spot->hot && spot->outs;
		if (fits && spot->wanted && spot->function &&
		    !KY_ARRAY_ADD(chosen->entries, chosen->count, chosen->room, i))
			return;
	}
	sorted = patch->spots;
	if (chosen->count)
		qsort(chosen->entries, chosen->count, sizeof(chosen->entries[0]),
		      out ? by_recent : by_rate);
}

static void take_out(struct ky_patch *patch, const struct looked *looked, uint64_t now)
{
	struct chosen chosen = {0};
	double calls = 0, most;
	uint32_t count = 0;
	choose(patch, &chosen, true);
	for (uint32_t i = 0; i < chosen.count; i++)
		calls += (double)patch->spots[chosen.entries[i]].recent;
	most = calls * LOAD_AFTER / looked->load;
	for (; count < chosen.count && calls > most; count++) {
		struct ky_patch_spot *spot = &patch->spots[chosen.entries[count]];
		calls -= (double)spot->recent;
		spot->rate = (double)spot->recent / looked->own_ns;
		spot->out_since = now;
	}
	ky_patch_table_take_out(patch, chosen.entries, count);
	for (uint32_t i = 0; i < count; i++) {
		struct ky_patch_spot *spot = &patch->spots[chosen.entries[i]];
		if (!spot->hot)
			continue;
		spot->outs++;
		ky_patch_table_left_out(patch, chosen.entries[i]);
	}
	KY_ARRAY_FREE(chosen.entries, chosen.room);
}

static uint64_t wait_of(const struct ky_patch_spot *spot)
{
	const uint32_t doublings = spot->outs - 1 < TRY_DOUBLINGS ? spot->outs - 1 : TRY_DOUBLINGS;
	return TRY_NS << doublings;
}

static void put_back(struct ky_patch *patch, const struct looked *looked, uint64_t now)
{
	struct chosen chosen = {0};
	const double most = (double)patch->options.overhead_percent / 100 / patch->call_ns;
	double room = (LOAD_FILLED - looked->load) * most; /* calls a nanosecond */
	uint32_t count = 0;
	bool tries = false;
	choose(patch, &chosen, false);
	for (uint32_t i = 0; i < chosen.count; i++) {
		const struct ky_patch_spot *spot = &patch->spots[chosen.entries[i]];
		const uint64_t out_ns = now - spot->out_since;
		const bool fits = spot->rate <= room && out_ns >= BACK_NS;
		if (!fits && (tries || out_ns < wait_of(spot)))
			continue;
		tries |= !fits;
		room -= fits ? spot->rate : 0;
		chosen.entries[count++] = chosen.entries[i];
	}
	if (count) {
		ky_patch_table_put_back(patch, chosen.entries, count);
		patch->looks = 2;
	}
	for (uint32_t i = 0; i < count; i++)
		ky_patch_table_left_out(patch, chosen.entries[i]);
	KY_ARRAY_FREE(chosen.entries, chosen.room);
}

/* Estimate the calls of functions without their jumps. */
static void estimate(struct ky_patch *patch, double own_ns)
{
	for (uint32_t i = 0; i < patch->table_count; i++) {
		struct ky_patch_spot *spot = &patch->spots[i];
		if (spot->hot && spot->outs)
			spot->missed += spot->rate * own_ns;
	}
}

/* ---- looks ---- */

bool ky_patch_overhead_due(struct ky_patch *patch, uint64_t elapsed_ns, bool rests)
{
	const bool soon = patch->looks < LOOKS_SOON;
	const uint64_t least = soon ? LOOK_FIRST_NS << patch->looks : LOOK_NS;
	if (!patch->options.overhead_percent)
		return rests && elapsed_ns >= LOOK_NS;
	if (patch->call_ns <= 0)
		patch->call_ns = measure_reading() * (patch->entry_only ? COST_ENTRY : COST_CALL);
	return elapsed_ns >= least && (rests || soon) &&
	       process_cpu_ns(patch->remote.pid) - patch->cpu_ns >= LOOK_CPU_NS;
}

void ky_patch_overhead_look(struct ky_patch *patch)
{
	const uint64_t now = (uint64_t)ky_clock_monotonic();
	const uint64_t cpu_ns = process_cpu_ns(patch->remote.pid);
	const uint64_t calls = patch->facts.calls;
	struct looked looked;
	const bool known = look(patch, &looked, calls - patch->calls_then, cpu_ns - patch->cpu_ns);
	const bool first = patch->cpu_ns == 0;
	patch->cpu_ns = cpu_ns;
	patch->calls_then = calls;
	patch->looks += patch->looks < LOOKS_SOON;
	if (!known || first)
		return;
	estimate(patch, looked.own_ns);
	if (looked.load > 1)
		take_out(patch, &looked, now);
	else if (looked.load < LOAD_FILLED && patch->facts.hot)
		put_back(patch, &looked, now);
}
