/* SPDX-License-Identifier: MIT */
/*
 * view_tracks.c: plans the tracks in display order:
 *
 *   snapshots, lost events
 *   CPUs            what runs on each, then their slices, then their counters
 *   processes       first those with events of their own, then those that only the kernel saw:
 *                   its own track, threads, the main one first, async and other tracks, counters
 *     thread        state, slices, nested tracks, counters, samples; a thread with just one of these is that track
 *   threads of unknown processes, tracks without an owner, kernel threads
 */
#include "server/view_pyramids.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum root_rank {
	RANK_SNAPSHOTS,
	RANK_LOSSES,
	RANK_CPUS,
	RANK_PROCESSES,
	RANK_PROCESSES_SEEN,
	RANK_THREADS,
	RANK_GLOBALS,
	RANK_KERNEL
};

enum cpu_rank { RANK_CPU_SCHED, RANK_CPU_SLICES, RANK_CPU_COUNTERS };

/* Threads come first; async tracks may have many rows, and counters may be many. */
enum process_rank { RANK_TRACKS, RANK_THREAD, RANK_ASYNC, RANK_COUNTERS };

enum thread_rank { RANK_STATE, RANK_SLICES, RANK_NESTED, RANK_THREAD_COUNTERS, RANK_SAMPLES };

/* ---- groups, made when first needed ---- */

static uint32_t root_group(struct ky_view_plan *plan, uint32_t *group, enum root_rank rank,
			   const char *key, const char *name)
{
	if (*group != KY_NONE)
		return *group;
	const uint32_t node = ky_view_plan_add(plan, KY_NONE, KY_VIEW_GROUP);
	if (node == KY_NONE || !ky_view_plan_key(plan, node, "%s", key) ||
	    !ky_view_plan_name(plan, node, "%s", name))
		return KY_NONE;
	plan->nodes[node].rank[0] = rank;
	return *group = node;
}

static uint32_t globals_group(struct ky_view_plan *plan)
{
	return root_group(plan, &plan->globals, RANK_GLOBALS, "global", "Global tracks");
}

/* Report whether it is kthreadd, one of its children, or an idle task. */
static bool is_kernel(const struct ky_trace *trace, uint32_t process)
{
	const struct ky_processes *const processes = &trace->processes;
	const uint32_t parent = processes->parent[process];
	const int64_t pid = processes->pid[process];
	return pid == 2 || pid == 0 || (parent != KY_NONE && processes->pid[parent] == 2);
}

/* give_rank() moves processes with events of their own up. */
static uint32_t make_process(struct ky_view_plan *plan, uint32_t process)
{
	const struct ky_trace *const trace = plan->view->trace;
	const struct ky_processes *const processes = &trace->processes;
	const char *const name = ky_text_of(trace, processes->name[process]);
	const uint32_t machine = processes->machine[process];
	const uint32_t node = ky_view_plan_add(plan, KY_NONE, KY_VIEW_GROUP);
	if (node == KY_NONE)
		return KY_NONE;
	const bool named =
		machine ? ky_view_plan_key(plan, node, "m%" PRIu32 ".p%" PRId64, machine,
					   processes->pid[process])
			: ky_view_plan_key(plan, node, "p%" PRId64, processes->pid[process]);
	if (!named || !ky_view_plan_name(plan, node, "%s %" PRId64,
					 name && *name ? name : "Process", processes->pid[process]))
		return KY_NONE;
	plan->nodes[node].track.process = process;
	plan->nodes[node].rank[0] = RANK_PROCESSES_SEEN;
	plan->nodes[node].rank[1] = processes->sort_index[process];
	plan->nodes[node].rank[2] = processes->start_ts[process];
	return node;
}

static uint32_t process_group(struct ky_view_plan *plan, uint32_t process)
{
	if (process >= plan->view->trace->processes.rows.count)
		return globals_group(plan);
	if (plan->process_node[process] == KY_NONE)
		plan->process_node[process] = make_process(plan, process);
	return plan->process_node[process];
}

static uint32_t group_of_thread(struct ky_view_plan *plan, uint32_t thread)
{
	const struct ky_trace *const trace = plan->view->trace;
	const uint32_t process = trace->threads.process[thread];
	const bool known = process < trace->processes.rows.count;
	if (known ? is_kernel(trace, process) : trace->threads.is_idle[thread])
		return root_group(plan, &plan->kernel, RANK_KERNEL, "kernel", "Kernel threads");
	if (!known)
		return root_group(plan, &plan->threads, RANK_THREADS, "threads", "Threads");
	return process_group(plan, process);
}

static uint32_t make_thread(struct ky_view_plan *plan, uint32_t thread)
{
	const struct ky_trace *const trace = plan->view->trace;
	const struct ky_threads *const threads = &trace->threads;
	const char *const name = ky_text_of(trace, threads->name[thread]);
	const uint32_t group = group_of_thread(plan, thread);
	const uint32_t node =
		group == KY_NONE ? KY_NONE : ky_view_plan_add(plan, group, KY_VIEW_GROUP);
	if (node == KY_NONE || !ky_view_plan_key(plan, node, "t%" PRId64, threads->tid[thread]) ||
	    !ky_view_plan_name(plan, node, "%s %" PRId64, name && *name ? name : "Thread",
			       threads->tid[thread]))
		return KY_NONE;
	struct ky_view_plan_node *const made = &plan->nodes[node];
	made->track.thread = thread;
	made->track.process = threads->process[thread];
	made->folds = true;
	made->rank[0] = RANK_THREAD;
	/* The main thread comes before all that have no rank of their own. */
	made->rank[1] = 2 * (int64_t)threads->sort_index[thread] + !threads->is_main[thread];
	made->rank[2] = threads->tid[thread];
	return node;
}

static uint32_t thread_group(struct ky_view_plan *plan, uint32_t thread)
{
	if (thread >= plan->view->trace->threads.rows.count)
		return globals_group(plan);
	if (plan->thread_node[thread] == KY_NONE)
		plan->thread_node[thread] = make_thread(plan, thread);
	return plan->thread_node[thread];
}

/* Note that its process has events of its own. */
static void give_rank(struct ky_view_plan *plan, uint32_t node)
{
	const uint32_t process = plan->nodes[node].track.process;
	if (process < plan->view->trace->processes.rows.count &&
	    plan->process_node[process] != KY_NONE)
		plan->nodes[plan->process_node[process]].rank[0] = RANK_PROCESSES;
}

/* ---- without owner, of CPUs ---- */

static int add_losses(struct ky_view_plan *plan)
{
	if (!plan->tally->losses)
		return 0;
	const uint32_t node = ky_view_plan_add(plan, KY_NONE, KY_VIEW_LOSS);
	if (node == KY_NONE || !ky_view_plan_key(plan, node, "losses") ||
	    !ky_view_plan_name(plan, node, "Lost events"))
		return -ENOMEM;
	plan->nodes[node].source = 0;
	plan->nodes[node].rank[0] = RANK_LOSSES;
	plan->nodes[node].track.events = plan->tally->losses;
	return 0;
}

static uint32_t cpu_group(struct ky_view_plan *plan)
{
	return root_group(plan, &plan->cpus, RANK_CPUS, "cpus", "CPUs");
}

static int add_sched(struct ky_view_plan *plan, uint32_t cpu)
{
	const uint32_t group = cpu_group(plan);
	const uint32_t node =
		group == KY_NONE ? KY_NONE : ky_view_plan_add(plan, group, KY_VIEW_SCHED);
	if (node == KY_NONE || !ky_view_plan_key(plan, node, "cpu%" PRIu32 "/sched", cpu) ||
	    !ky_view_plan_name(plan, node, "CPU %" PRIu32, cpu))
		return -ENOMEM;
	plan->nodes[node].source = cpu;
	plan->nodes[node].rank[0] = RANK_CPU_SCHED;
	plan->nodes[node].rank[1] = cpu;
	plan->nodes[node].track.cpu = cpu;
	plan->nodes[node].track.events = plan->tally->sched[cpu];
	return 0;
}

/* ---- of threads ---- */

static int add_of_thread(struct ky_view_plan *plan, uint32_t thread, enum ky_view_kind kind,
			 enum thread_rank rank, uint64_t events, uint16_t rows)
{
	const char *const name = kind == KY_VIEW_STATE ? "state" : "samples";
	const uint32_t group = thread_group(plan, thread);
	const uint32_t node = group == KY_NONE ? KY_NONE : ky_view_plan_add(plan, group, kind);
	if (node == KY_NONE || !ky_view_plan_key(plan, node, "%s", name) ||
	    !ky_view_plan_name(plan, node, "%s", name))
		return -ENOMEM;
	plan->nodes[node].source = thread;
	plan->nodes[node].rank[0] = rank;
	plan->nodes[node].track.events = events;
	plan->nodes[node].track.rows = rows;
	if (kind == KY_VIEW_SAMPLES)
		give_rank(plan, node);
	return 0;
}

static int add_threads(struct ky_view_plan *plan)
{
	const struct ky_view_tally *const tally = plan->tally;
	int error = 0;
	for (uint32_t i = 0; !error && i < plan->view->trace->threads.rows.count; i++) {
		if (tally->states[i])
			error = add_of_thread(plan, i, KY_VIEW_STATE, RANK_STATE, tally->states[i],
					      1);
		if (!error && tally->sample_spans[i])
			error = add_of_thread(plan, i, KY_VIEW_SAMPLES, RANK_SAMPLES,
					      tally->sample_spans[i], tally->sample_rows[i]);
	}
	return error;
}

/* ---- tracks of the trace ---- */

static bool is_snapshots(const struct ky_trace *trace, uint32_t track)
{
	const char *const name = ky_text_of(trace, trace->tracks.name[track]);
	return trace->tracks.kind[track] == KY_TRACK_GLOBAL &&
	       trace->tracks.parent[track] == KY_NONE && name && strcmp(name, "snapshots") == 0;
}

/* Return the group of a track that has no parent track; KY_NONE without memory. */
static uint32_t owner_node(struct ky_view_plan *plan, uint32_t track)
{
	const struct ky_tracks *const tracks = &plan->view->trace->tracks;
	switch (tracks->kind[track]) {
	case KY_TRACK_PROCESS:
	case KY_TRACK_PROCESS_COUNTER:
		return process_group(plan, tracks->owner[track]);
	case KY_TRACK_THREAD:
	case KY_TRACK_THREAD_COUNTER:
		return thread_group(plan, tracks->owner[track]);
	case KY_TRACK_CPU:
	case KY_TRACK_CPU_COUNTER:
		return cpu_group(plan);
	default:
		return globals_group(plan);
	}
}

static int64_t rank_of(const struct ky_tracks *tracks, uint32_t track)
{
	switch (tracks->kind[track]) {
	case KY_TRACK_THREAD:
		return tracks->flags[track] & KY_TRACK_ASYNC ? RANK_NESTED : RANK_SLICES;
	case KY_TRACK_THREAD_COUNTER:
		return RANK_THREAD_COUNTERS;
	case KY_TRACK_CPU:
		return RANK_CPU_SLICES;
	case KY_TRACK_CPU_COUNTER:
		return RANK_CPU_COUNTERS;
	case KY_TRACK_PROCESS_COUNTER:
	case KY_TRACK_COUNTER:
		return RANK_COUNTERS;
	default:
		return tracks->flags[track] & KY_TRACK_ASYNC ? RANK_ASYNC : RANK_TRACKS;
	}
}

static const char *fallback_name(uint8_t kind)
{
	return kind == KY_TRACK_THREAD     ? "slices"
	       : kind == KY_TRACK_PROCESS  ? "Process track"
	       : ky_track_is_counter(kind) ? "counter"
					   : "Track";
}

/* Set name, key and rank of a track of the trace. */
static bool describe(struct ky_view_plan *plan, uint32_t node, uint32_t track, const char *prefix)
{
	const struct ky_trace *const trace = plan->view->trace;
	const struct ky_tracks *const tracks = &trace->tracks;
	const uint8_t kind = tracks->kind[track];
	const char *const own = ky_text_of(trace, tracks->name[track]);
	const char *const name = own && *own ? own : fallback_name(kind);
	plan->nodes[node].rank[0] = rank_of(tracks, track);
	if (kind == KY_TRACK_CPU || kind == KY_TRACK_CPU_COUNTER) {
		plan->nodes[node].rank[1] = tracks->owner[track];
		plan->nodes[node].track.cpu = tracks->owner[track];
		return ky_view_plan_key(plan, node, "cpu%" PRIu32 "/%s%s", tracks->owner[track],
					prefix, name) &&
		       ky_view_plan_name(plan, node, "CPU %" PRIu32 " %s", tracks->owner[track],
					 name);
	}
	return ky_view_plan_key(plan, node, "%s%s", own && *own ? prefix : "", name) &&
	       ky_view_plan_name(plan, node, "%s", name);
}

static uint32_t strand_parent(struct ky_view_plan *plan, const struct ky_view_strand *strand);

/* Return the node for a strand's children: a group of its own. */
static uint32_t strand_group(struct ky_view_plan *plan, uint32_t number)
{
	struct ky_view_strand *const strand = &plan->strands->items[number];
	if (strand->inner != KY_NONE)
		return strand->inner;
	const uint32_t parent = strand_parent(plan, strand);
	const uint32_t node =
		parent == KY_NONE ? KY_NONE : ky_view_plan_add(plan, parent, KY_VIEW_GROUP);
	if (node == KY_NONE || !describe(plan, node, strand->track, "g:"))
		return KY_NONE;
	return strand->inner = node;
}

/* The own tracks of a thread and a process are already below a group of that name. */
static bool is_owners(const struct ky_trace *trace, const struct ky_view_strand *strand)
{
	const uint8_t kind = trace->tracks.kind[strand->track];
	return (kind == KY_TRACK_THREAD || kind == KY_TRACK_PROCESS) &&
	       !(trace->tracks.flags[strand->track] & KY_TRACK_ASYNC) && strand->parent == KY_NONE;
}

static uint32_t strand_parent(struct ky_view_plan *plan, const struct ky_view_strand *strand)
{
	if (strand->parent == KY_NONE)
		return owner_node(plan, strand->track);
	/* A thread's track may have its process's track as parent: it is below that anyway. */
	if (is_owners(plan->view->trace, &plan->strands->items[strand->parent]))
		return owner_node(plan, strand->track);
	return strand_group(plan, strand->parent);
}

static int add_snapshots(struct ky_view_plan *plan, struct ky_view_strand *strand, uint32_t number)
{
	const uint32_t node = ky_view_plan_add(plan, KY_NONE, KY_VIEW_SLICES);
	if (node == KY_NONE || !ky_view_plan_key(plan, node, "snapshots") ||
	    !ky_view_plan_name(plan, node, "Snapshots"))
		return -ENOMEM;
	plan->nodes[node].source = number;
	plan->nodes[node].rank[0] = RANK_SNAPSHOTS;
	plan->nodes[node].track.events = strand->events;
	plan->nodes[node].track.rows = strand->rows;
	return 0;
}

static int add_strand(struct ky_view_plan *plan, uint32_t number, const bool *has_children)
{
	struct ky_view_strand *const strand = &plan->strands->items[number];
	const struct ky_trace *const trace = plan->view->trace;
	if (!strand->events)
		return 0;
	if (is_snapshots(trace, strand->track))
		return add_snapshots(plan, strand, number);
	const bool grouped = has_children[number] && !is_owners(trace, strand);
	const uint32_t parent = grouped ? strand_group(plan, number) : strand_parent(plan, strand);
	const uint32_t node =
		parent == KY_NONE ? KY_NONE : ky_view_plan_add(plan, parent, KY_VIEW_SLICES);
	if (node == KY_NONE || !describe(plan, node, strand->track, "s:"))
		return -ENOMEM;
	/* In a group of its own it comes before its children. */
	if (grouped)
		plan->nodes[node].rank[0] = -1;
	plan->nodes[node].source = number;
	plan->nodes[node].track.events = strand->events;
	plan->nodes[node].track.rows = strand->rows;
	give_rank(plan, node);
	return 0;
}

/* Every ancestor of a strand with events is shown. A strand's parent is made before it. */
static void mark_parents(const struct ky_view_strands *strands, uint32_t strand, bool *has_children)
{
	for (uint32_t at = strands->items[strand].parent; at != KY_NONE && !has_children[at];
	     at = strands->items[at].parent)
		has_children[at] = true;
}

static int add_strands(struct ky_view_plan *plan)
{
	const struct ky_view_strands *const strands = plan->strands;
	bool *const has_children = calloc((size_t)strands->count + 1, sizeof(*has_children));
	int error = has_children ? 0 : -ENOMEM;
	for (uint32_t i = 0; !error && i < strands->count; i++)
		if (strands->items[i].events)
			mark_parents(strands, i, has_children);
	for (uint32_t i = 0; !error && i < strands->count; i++)
		error = add_strand(plan, i, has_children);
	free(has_children);
	return error;
}

static int add_counter(struct ky_view_plan *plan, uint32_t track)
{
	const struct ky_view_tally_track *const tally = &plan->tally->tracks[track];
	const uint32_t group = owner_node(plan, track);
	const uint32_t node =
		group == KY_NONE ? KY_NONE : ky_view_plan_add(plan, group, KY_VIEW_COUNTER);
	if (node == KY_NONE || !describe(plan, node, track, "c:"))
		return -ENOMEM;
	struct ky_view_plan_node *const made = &plan->nodes[node];
	made->source = track;
	made->track.unit = plan->view->trace->tracks.unit[track];
	made->track.events = tally->counters;
	made->track.min = tally->min;
	made->track.max = tally->max;
	give_rank(plan, node);
	return 0;
}

static int add_counters(struct ky_view_plan *plan)
{
	const struct ky_tracks *const tracks = &plan->view->trace->tracks;
	int error = 0;
	for (uint32_t i = 0; !error && i < tracks->rows.count; i++)
		if (plan->tally->tracks[i].counters)
			error = add_counter(plan, i);
	return error;
}

int ky_view_tracks(struct ky_view_plan *plan)
{
	int error = add_losses(plan);
	for (uint32_t cpu = 0; !error && cpu < plan->tally->cpus; cpu++)
		if (plan->tally->sched[cpu])
			error = add_sched(plan, cpu);
	if (!error)
		error = add_counters(plan);
	if (!error)
		error = add_strands(plan);
	return error ? error : add_threads(plan);
}
