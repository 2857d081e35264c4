/* SPDX-License-Identifier: MIT */
/*
 * sched_stats.c: see sched_stats.h. One pass over the threads' states, which are in the order of time, with the slices beside it: of
 * each thread the slice that began last is known, and the innermost one that is open is that or one around it.
 */
#include "query/sched_stats.h"

#include "base/array.h"
#include "base/map.h"
#include "query/filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum state_class { RUNNING, RUNNABLE, SLEEPING, BLOCKED, OTHER, DEAD };

/* What is known of a thread while the states are passed. */
struct thread_now {
	uint32_t row;   /* its row in the statistics, or KY_NONE */
	uint32_t last;  /* its last state, or KY_NONE */
	uint32_t cpu;   /* where it last ran, or KY_NONE */
	uint32_t run;   /* its last run in stats->runs, or KY_NONE */
	uint32_t slice; /* that began last, or KY_NONE */
	uint32_t off_state, off_span, waker;
	int64_t off_ns;   /* when it left the CPU; KY_TIME_NONE: unknown */
	int64_t ready_ns; /* since when it is runnable; KY_TIME_NONE: it is not */
};

/* A thread begins or ceases to wait for a CPU. */
struct queue_edge {
	int64_t ts;
	uint32_t cpu; /* KY_NONE: which one is unknown */
	int32_t change;
};

struct sched_pass {
	struct ky_sched_stats *stats;
	const struct ky_trace *trace;
	struct ky_filter filter;
	struct thread_now *threads;
	uint32_t slice;          /* the next to pass */
	struct ky_pair_map offs; /* (thread, waker), (state, span): number */
	struct ky_pair_map places;
	struct ky_u64_map cpus; /* CPU: its row in the statistics */
	struct queue_edge *edges;
	uint64_t edges_count, edges_room;
};

static enum state_class class_of(const struct ky_trace *trace, uint32_t state)
{
	const char *const text = state ? ky_text_of(trace, state) : "";
	if (strcmp(text, "Running") == 0)
		return RUNNING;
	return *text == 'R'                   ? RUNNABLE
	       : *text == 'S'                 ? SLEEPING
	       : *text == 'D'                 ? BLOCKED
	       : *text == 'X' || *text == 'Z' ? DEAD
					      : OTHER;
}

static int64_t state_end(const struct ky_trace *trace, uint32_t row)
{
	const struct ky_thread_states *const states = &trace->thread_states;
	return states->dur[row] < 0 ? trace->end_ns
				    : ky_add_clamped(states->ts[row], states->dur[row]);
}

/* Return the part of a time that is in the range. */
static int64_t clip(const struct sched_pass *pass, int64_t begin, int64_t end)
{
	begin = begin > pass->filter.from_ns ? begin : pass->filter.from_ns;
	end = end < pass->filter.to_ns ? end : pass->filter.to_ns;
	return end > begin ? ky_sub_clamped(end, begin) : 0;
}

static bool in_range(const struct sched_pass *pass, int64_t ts)
{
	return ts >= pass->filter.from_ns && ts < pass->filter.to_ns;
}

static void add_time(struct ky_sched_times *times, int64_t ts, int64_t ns)
{
	times->count++;
	times->total_ns = ky_add_clamped(times->total_ns, ns);
	if (ns > times->max_ns || times->count == 1) {
		times->max_ns = ns;
		times->max_ts = ts;
	}
}

/* ---- the span that a thread is in ---- */

static void pass_slices(struct sched_pass *pass, int64_t ts)
{
	const struct ky_slices *const slices = &pass->trace->slices;
	for (; pass->slice < slices->rows.count && slices->ts[pass->slice] <= ts; pass->slice++) {
		const uint32_t thread = ky_track_thread(pass->trace, slices->track[pass->slice]);
		if (thread != KY_NONE && slices->kind[pass->slice] == KY_SLICE_SPAN)
			pass->threads[thread].slice = pass->slice;
	}
}

/* Report whether it is made of the same switches (functrace/off_cpu.h). */
static bool is_off_cpu(const struct ky_trace *trace, uint32_t slice)
{
	const uint32_t name = trace->slices.name[slice];
	return name && strcmp(ky_text_of(trace, name), "off CPU") == 0;
}

/* Return the name of the innermost span of a thread that is open at that time, or 0. */
static uint32_t span_at(struct sched_pass *pass, uint32_t thread, int64_t ts)
{
	const struct ky_slices *const slices = &pass->trace->slices;
	pass_slices(pass, ts);
	uint32_t slice = pass->threads[thread].slice;
	while (slice != KY_NONE && ((slices->dur[slice] >= 0 &&
				     ky_add_clamped(slices->ts[slice], slices->dur[slice]) <= ts) ||
				    is_off_cpu(pass->trace, slice)))
		slice = slices->parent[slice];
	return slice == KY_NONE ? 0 : slices->name[slice];
}

/* ---- adding ---- */

static struct ky_sched_off *off_of(struct sched_pass *pass, uint32_t thread,
				   const struct thread_now *now)
{
	struct ky_sched_stats *const stats = pass->stats;
	bool made;
	uint64_t *const number =
		ky_pair_map_add(&pass->offs, (uint64_t)thread << 32 | now->waker,
				(uint64_t)now->off_state << 32 | now->off_span, &made);
	if (!number)
		return NULL;
	if (!made)
		return &stats->offs[*number];
	*number = stats->offs_count;
	struct ky_sched_off *const off =
		KY_ARRAY_NEW(stats->offs, stats->offs_count, stats->offs_room);
	if (off)
		*off = (struct ky_sched_off){.thread = thread,
					     .state = now->off_state,
					     .span = now->off_span,
					     .waker = now->waker};
	return off;
}

static int add_place(struct sched_pass *pass, uint32_t thread, uint32_t cpu, int64_t ns)
{
	struct ky_sched_stats *const stats = pass->stats;
	bool made;
	uint64_t *const number = ky_pair_map_add(&pass->places, thread, cpu, &made);
	if (!number)
		return -ENOMEM;
	if (made) {
		*number = stats->places_count;
		if (!KY_ARRAY_ADD(stats->places, stats->places_count, stats->places_room,
				  (struct ky_sched_place){.thread = thread, .cpu = cpu}))
			return -ENOMEM;
	}
	stats->places[*number].run_ns = ky_add_clamped(stats->places[*number].run_ns, ns);
	return 0;
}

/* Return the row of a CPU, a new one if needed; NULL without memory. */
static struct ky_sched_cpu *cpu_of(struct sched_pass *pass, uint32_t cpu)
{
	struct ky_sched_stats *const stats = pass->stats;
	bool made;
	uint32_t *const number = ky_u64_map_add(&pass->cpus, cpu, &made);
	if (!number)
		return NULL;
	if (!made)
		return &stats->cpus[*number];
	*number = stats->cpus_count;
	struct ky_sched_cpu *const one =
		KY_ARRAY_NEW(stats->cpus, stats->cpus_count, stats->cpus_room);
	if (one)
		one->cpu = cpu;
	return one;
}

static int add_waiting(struct sched_pass *pass, uint32_t cpu, int64_t begin, int64_t end)
{
	const struct ky_filter *const filter = &pass->filter;
	begin = begin > filter->from_ns ? begin : filter->from_ns;
	end = end < filter->to_ns ? end : filter->to_ns;
	if (end <= begin)
		return 0;
	if (cpu != KY_NONE && !cpu_of(pass, cpu))
		return -ENOMEM;
	const struct queue_edge in = {begin, cpu, 1}, out = {end, cpu, -1};
	return KY_ARRAY_ADD(pass->edges, pass->edges_count, pass->edges_room, in) &&
			       KY_ARRAY_ADD(pass->edges, pass->edges_count, pass->edges_room, out)
		       ? 0
		       : -ENOMEM;
}

/* ---- states ---- */

static int add_run(struct sched_pass *pass, uint32_t state, uint32_t thread, struct thread_now *now)
{
	const struct ky_thread_states *const states = &pass->trace->thread_states;
	struct ky_sched_stats *const stats = pass->stats;
	const int64_t ts = states->ts[state];
	struct ky_sched_run run = {.ts = ts,
				   .run_ns = ky_sub_clamped(state_end(pass->trace, state), ts),
				   .wait_ns = -1,
				   .delay_ns = -1,
				   .cpu = states->cpu[state],
				   .thread = thread,
				   .waker = now->waker};
	if (now->ready_ns != KY_TIME_NONE)
		run.delay_ns = ky_sub_clamped(ts, now->ready_ns);
	if (now->off_ns != KY_TIME_NONE)
		run.wait_ns = ky_sub_clamped(now->ready_ns != KY_TIME_NONE ? now->ready_ns : ts,
					     now->off_ns);
	now->run = stats->runs_count;
	return KY_ARRAY_ADD(stats->runs, stats->runs_count, stats->runs_room, run) ? 0 : -ENOMEM;
}

/* Handle that a thread runs: what it waited for is over. */
static int begin_run(struct sched_pass *pass, uint32_t state, uint32_t thread,
		     struct thread_now *now)
{
	const struct ky_thread_states *const states = &pass->trace->thread_states;
	struct ky_sched_thread *const row = &pass->stats->threads[now->row];
	const int64_t ts = states->ts[state];
	const uint32_t cpu = states->cpu[state];
	int error = 0;
	row->runs += in_range(pass, ts);
	row->migrations +=
		in_range(pass, ts) && now->cpu != KY_NONE && cpu != KY_NONE && now->cpu != cpu;
	now->cpu = cpu != KY_NONE ? cpu : now->cpu;
	if (now->ready_ns != KY_TIME_NONE && in_range(pass, ts))
		add_time(&row->delay, now->ready_ns, ky_sub_clamped(ts, now->ready_ns));
	if (now->off_ns != KY_TIME_NONE && in_range(pass, ts)) {
		struct ky_sched_off *const off = off_of(pass, thread, now);
		if (!off)
			return -ENOMEM;
		add_time(&off->times, now->off_ns, ky_sub_clamped(ts, now->off_ns));
	}
	if (in_range(pass, ts))
		error = add_run(pass, state, thread, now);
	else
		now->run = KY_NONE;
	if (!error && cpu != KY_NONE)
		error = add_place(pass, thread, cpu, clip(pass, ts, state_end(pass->trace, state)));
	now->off_ns = now->ready_ns = KY_TIME_NONE;
	now->waker = KY_NONE;
	return error;
}

/* Handle that a thread left the CPU, in that state. */
static void end_run(struct sched_pass *pass, uint32_t state, uint32_t thread,
		    struct thread_now *now, enum state_class class)
{
	const struct ky_thread_states *const states = &pass->trace->thread_states;
	struct ky_sched_thread *const row = &pass->stats->threads[now->row];
	now->off_ns = states->ts[state];
	now->off_state = states->state[state];
	now->off_span = span_at(pass, thread, now->off_ns);
	if (now->run != KY_NONE) {
		pass->stats->runs[now->run].state = now->off_state;
		pass->stats->runs[now->run].span = now->off_span;
	}
	row->switches += in_range(pass, now->off_ns);
	row->preempted += in_range(pass, now->off_ns) && class == RUNNABLE;
}

static void add_state(struct sched_pass *pass, struct ky_sched_thread *row, uint32_t state,
		      enum state_class class)
{
	if (class == DEAD)
		return;
	int64_t *const sums[] = {[RUNNING] = &row->run_ns,
				 [RUNNABLE] = &row->runnable_ns,
				 [SLEEPING] = &row->sleep_ns,
				 [BLOCKED] = &row->disk_ns,
				 [OTHER] = &row->other_ns};
	*sums[class] = ky_add_clamped(*sums[class], clip(pass, pass->trace->thread_states.ts[state],
							 state_end(pass->trace, state)));
}

static int take_state(struct sched_pass *pass, uint32_t state)
{
	const struct ky_thread_states *const states = &pass->trace->thread_states;
	const uint32_t thread = states->thread[state];
	struct thread_now *const now = &pass->threads[thread];
	/* perf knows when tasks began that it did not watch then. */
	if (now->row == KY_NONE || states->ts[state] < pass->trace->begin_ns)
		return 0;
	const enum state_class class = class_of(pass->trace, states->state[state]);
	const uint32_t last = now->last;
	int error = 0;
	/* After a gap nothing is known of what came before. */
	const bool joined = last != KY_NONE && state_end(pass->trace, last) == states->ts[state];
	if (!joined)
		now->off_ns = now->ready_ns = KY_TIME_NONE;
	add_state(pass, &pass->stats->threads[now->row], state, class);
	if (joined && class != RUNNING && class_of(pass->trace, states->state[last]) == RUNNING)
		end_run(pass, state, thread, now, class);
	if (class == RUNNABLE) {
		now->ready_ns = now->ready_ns == KY_TIME_NONE ? states->ts[state] : now->ready_ns;
		now->waker = states->waker[state] != KY_NONE ? states->waker[state] : now->waker;
	} else if (class != RUNNING) {
		now->ready_ns = KY_TIME_NONE; /* runs are missing */
	} else {
		const int64_t ready = now->ready_ns;
		error = begin_run(pass, state, thread, now);
		if (!error && ready != KY_TIME_NONE)
			error = add_waiting(pass, states->cpu[state], ready, states->ts[state]);
	}
	now->last = state;
	return error;
}

/* ---- CPUs ---- */

/* Add a slice; it ends with the next one of its CPU at the latest. */
static void add_cpu_slice(const struct sched_pass *pass, struct ky_sched_cpu *cpu, uint32_t row,
			  int64_t next_ts)
{
	const struct ky_sched *const sched = &pass->trace->sched;
	const int64_t ts = sched->ts[row];
	const int64_t end = sched->dur[row] < 0 ? next_ts : ky_add_clamped(ts, sched->dur[row]);
	const bool idle = pass->trace->threads.is_idle[sched->thread[row]];
	int64_t *const sum = idle ? &cpu->idle_ns : &cpu->busy_ns;
	*sum = ky_add_clamped(*sum, clip(pass, ts, end));
	cpu->runs += !idle && in_range(pass, ts);
}

static int add_cpus(struct sched_pass *pass)
{
	const struct ky_sched *const sched = &pass->trace->sched;
	struct ky_u64_map last = {0}; /* CPU: its last slice, plus 1 */
	int error = 0;
	for (uint32_t i = 0; i < sched->rows.count && !error; i++) {
		bool made;
		uint32_t *const before = ky_u64_map_add(&last, sched->cpu[i], &made);
		struct ky_sched_cpu *const cpu = before ? cpu_of(pass, sched->cpu[i]) : NULL;
		if (!cpu) {
			error = -ENOMEM;
			break;
		}
		if (!made)
			add_cpu_slice(pass, cpu, *before - 1, sched->ts[i]);
		*before = i + 1;
	}
	const struct ky_u64_slot *slot;
	for (uint32_t at = 0; !error && (slot = ky_u64_map_next(&last, &at));)
		add_cpu_slice(pass, cpu_of(pass, (uint32_t)slot->key), slot->value - 1,
			      pass->trace->end_ns);
	ky_u64_map_free(&last);
	return error;
}

static int by_time(const void *a_, const void *b_)
{
	const struct queue_edge *const a = a_, *const b = b_;
	if (a->ts != b->ts)
		return a->ts < b->ts ? -1 : 1;
	return (a->change > b->change) - (a->change < b->change);
}

/* Count a thread more or less that waits for this CPU; *depth is how many do. */
static void add_depth(struct ky_sched_cpu *cpu, uint32_t *depth, const struct queue_edge *edge)
{
	*depth += (uint32_t)edge->change;
	/* The ends minus the beginnings: sums in between may wrap. */
	cpu->waiting_ns =
		(int64_t)((uint64_t)cpu->waiting_ns - (uint64_t)edge->change * (uint64_t)edge->ts);
	if (*depth > cpu->depth_max && edge->change > 0) {
		cpu->depth_max = *depth;
		cpu->depth_max_ts = edge->ts;
	}
}

/* Find how many threads waited at once, on each CPU and on all. */
static int add_depths(struct sched_pass *pass)
{
	struct ky_sched_stats *const stats = pass->stats;
	uint32_t *const depths = calloc((size_t)stats->cpus_count + 1, sizeof(*depths));
	uint32_t all = 0;
	if (!depths)
		return -ENOMEM;
	if (pass->edges_count)
		qsort(pass->edges, pass->edges_count, sizeof(*pass->edges), by_time);
	for (uint64_t i = 0; i < pass->edges_count; i++) {
		const struct queue_edge *const edge = &pass->edges[i];
		/* add_waiting() made the rows of all that are known. */
		const uint32_t *const number = ky_u64_map_find(&pass->cpus, edge->cpu);
		if (number)
			add_depth(&stats->cpus[*number], &depths[*number], edge);
		all += (uint32_t)edge->change;
		if (all > stats->depth_max && edge->change > 0) {
			stats->depth_max = all;
			stats->depth_max_ts = edge->ts;
		}
	}
	free(depths);
	return 0;
}

/* ---- the whole ---- */

static int open_threads(struct sched_pass *pass)
{
	const struct ky_threads *const threads = &pass->trace->threads;
	const uint32_t count = threads->rows.count;
	struct ky_sched_stats *const stats = pass->stats;
	pass->threads = malloc((count + 1) * sizeof(*pass->threads));
	stats->threads = calloc(count + 1, sizeof(*stats->threads));
	if (!pass->threads || !stats->threads)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const bool wanted =
			!threads->is_idle[i] && (!pass->filter.threads || pass->filter.threads[i]);
		pass->threads[i] =
			(struct thread_now){.row = wanted ? stats->threads_count : KY_NONE,
					    .last = KY_NONE,
					    .cpu = KY_NONE,
					    .run = KY_NONE,
					    .slice = KY_NONE,
					    .waker = KY_NONE,
					    .off_ns = KY_TIME_NONE,
					    .ready_ns = KY_TIME_NONE};
		if (wanted)
			stats->threads[stats->threads_count++].thread = i;
	}
	return 0;
}

/* Leave out threads that the scheduler did nothing with in the range. */
static void drop_idle(struct ky_sched_stats *stats)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < stats->threads_count; i++) {
		const struct ky_sched_thread *const row = &stats->threads[i];
		if (row->runs || row->switches || row->run_ns || row->runnable_ns)
			stats->threads[kept++] = *row;
	}
	stats->threads_count = kept;
}

static int compare_cpus(const void *a_, const void *b_)
{
	const struct ky_sched_cpu *const a = a_, *const b = b_;
	return (a->cpu > b->cpu) - (a->cpu < b->cpu);
}

static int compare_places(const void *a_, const void *b_)
{
	const struct ky_sched_place *const a = a_, *const b = b_;
	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return (a->cpu > b->cpu) - (a->cpu < b->cpu);
}

static int compare_offs(const void *a_, const void *b_)
{
	const struct ky_sched_off *const a = a_, *const b = b_;
	if (a->times.total_ns != b->times.total_ns)
		return a->times.total_ns < b->times.total_ns ? 1 : -1;
	return (a->times.max_ts > b->times.max_ts) - (a->times.max_ts < b->times.max_ts);
}

static int compare_runs(const void *a_, const void *b_)
{
	const struct ky_sched_run *const a = a_, *const b = b_;
	const int64_t a_end = ky_add_clamped(a->ts, a->run_ns);
	const int64_t b_end = ky_add_clamped(b->ts, b->run_ns);
	if (a_end != b_end)
		return a_end < b_end ? -1 : 1;
	return (a->cpu > b->cpu) - (a->cpu < b->cpu);
}

static int make(struct sched_pass *pass)
{
	struct ky_sched_stats *const stats = pass->stats;
	int error = open_threads(pass);
	for (uint32_t i = 0; i < pass->trace->thread_states.rows.count && !error; i++)
		error = take_state(pass, i);
	if (!error)
		error = add_cpus(pass);
	if (!error)
		error = add_depths(pass);
	if (error)
		return error;
	drop_idle(stats);
	if (stats->cpus_count)
		qsort(stats->cpus, stats->cpus_count, sizeof(*stats->cpus), compare_cpus);
	if (stats->places_count)
		qsort(stats->places, stats->places_count, sizeof(*stats->places), compare_places);
	if (stats->offs_count)
		qsort(stats->offs, stats->offs_count, sizeof(*stats->offs), compare_offs);
	if (stats->runs_count)
		qsort(stats->runs, stats->runs_count, sizeof(*stats->runs), compare_runs);
	return 0;
}

int ky_sched_stats_make(struct ky_sched_stats *stats, const struct ky_trace *trace,
			const struct ky_stats_filter *filter)
{
	struct sched_pass pass = {.stats = stats, .trace = trace};
	*stats = (struct ky_sched_stats){0};
	int error = ky_filter_open(&pass.filter, trace, filter);
	if (!error) {
		const struct ky_filter *const range = &pass.filter;
		stats->begin_ns =
			range->from_ns > trace->begin_ns ? range->from_ns : trace->begin_ns;
		stats->end_ns = range->to_ns < trace->end_ns ? range->to_ns : trace->end_ns;
		error = make(&pass);
		ky_filter_close(&pass.filter);
	}
	ky_pair_map_free(&pass.offs);
	ky_pair_map_free(&pass.places);
	ky_u64_map_free(&pass.cpus);
	KY_ARRAY_FREE(pass.edges, pass.edges_room);
	free(pass.threads);
	if (error)
		ky_sched_stats_free(stats);
	return error;
}

void ky_sched_stats_free(struct ky_sched_stats *stats)
{
	free(stats->threads);
	KY_ARRAY_FREE(stats->places, stats->places_room);
	KY_ARRAY_FREE(stats->cpus, stats->cpus_room);
	KY_ARRAY_FREE(stats->offs, stats->offs_room);
	KY_ARRAY_FREE(stats->runs, stats->runs_room);
	*stats = (struct ky_sched_stats){0};
}
