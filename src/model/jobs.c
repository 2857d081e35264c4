/* SPDX-License-Identifier: MIT */
/*
 * jobs.c: work that a thread submits to a device, which does one job after the other.
 *
 *   thread   ┤queued├ ──flow──╮
 *   ring     ├── job 1 ──┤├── job 2 ──┤         a slice from when the job is first in line until it is done
 *
 * Buffers that a thread queues and takes back have the two instants and the flow only. Fences of a timeline are in
 * line like jobs, from when they are emitted if the driver reports that, else from when they are made.
 */
#include "base/array.h"
#include "model/kernel_state.h"

/* ---- putting ---- */

void ky_put_job(struct ky_trace *trace, int64_t ts, const struct ky_job *job)
{
	KY_PUT_KERNEL(trace, ts, KY_KERNEL_JOB, KY_TWO_WORDS(job->key), KY_TWO_WORDS(job->run),
		      job->step, (uint32_t)job->tid, job->track, job->category, job->name,
		      job->args);
}

/* ---- lines ---- */

static struct ky_line *line_of(struct ky_trace *trace, uint32_t track)
{
	struct ky_jobs *jobs = &trace->build->kernel->jobs;
	bool made;
	uint64_t *slot = NULL;
	if (KY_ARRAY_GROW_ZERO(jobs->lines, jobs->lines_room, (uint64_t)jobs->lines_count + 1))
		slot = ky_pair_map_add(&jobs->line_by_track, track, 0, &made);
	if (!slot) {
		ky_trace_no_memory(trace);
		return NULL;
	}
	if (made) {
		*slot = jobs->lines_count++;
		jobs->lines[*slot] = (struct ky_line){.track = track};
	}
	return &jobs->lines[*slot];
}

static struct ky_job_entry *first_of(const struct ky_jobs *jobs, const struct ky_line *line)
{
	return line->first ? &jobs->entries[line->first - 1] : NULL;
}

/* Add a job to the end of the line; false without memory. */
static bool append(struct ky_trace *trace, struct ky_line *line, const struct ky_job *job)
{
	struct ky_jobs *jobs = &trace->build->kernel->jobs;
	uint32_t number = jobs->free;
	if (number) {
		jobs->free = jobs->entries[number - 1].next;
	} else if (KY_ARRAY_GROW_ZERO(jobs->entries, jobs->entries_room,
				      (uint64_t)jobs->entries_count + 1)) {
		number = ++jobs->entries_count;
	} else {
		ky_trace_no_memory(trace);
		return false;
	}
	jobs->entries[number - 1] =
		(struct ky_job_entry){.key = job->key, .name = job->name, .args = job->args};
	if (line->last)
		jobs->entries[line->last - 1].next = number;
	else
		line->first = number;
	line->last = number;
	return true;
}

static void remove_first(struct ky_jobs *jobs, struct ky_line *line)
{
	const uint32_t number = line->first;
	line->first = jobs->entries[number - 1].next;
	if (!line->first)
		line->last = 0;
	jobs->entries[number - 1].next = jobs->free;
	jobs->free = number;
}

/* ---- flows from who queued it ---- */

static void arrive(struct ky_trace *trace, uint32_t track, uint64_t key, uint32_t slice)
{
	struct ky_pair_map *queued = &trace->build->kernel->jobs.queued;
	const uint64_t *out = ky_pair_map_find(queued, track, key);
	if (!out || slice == KY_NONE)
		return;
	ky_flows_add(trace, (uint32_t)*out, slice, (struct ky_flow_parts){0});
	ky_pair_map_remove(queued, track, key);
}

static void by_thread(struct ky_trace *trace, int64_t ts, const struct ky_job *job)
{
	const uint32_t thread = ky_kernel_thread(trace, job->tid);
	if (thread == KY_NONE)
		return;
	const uint32_t slice = ky_build_instant(trace, ts, ky_track_of_thread(trace, thread),
						job->category, job->name, job->args);
	if (job->step == KY_JOB_TAKEN) {
		arrive(trace, job->track, job->key, slice);
		return;
	}
	bool made;
	uint64_t *out = slice == KY_NONE ? NULL
					 : ky_pair_map_add(&trace->build->kernel->jobs.queued,
							   job->track, job->key, &made);
	if (out)
		*out = slice;
}

/* ---- the device ---- */

static void begin_first(struct ky_trace *trace, int64_t ts, const struct ky_line *line)
{
	const struct ky_job_entry *entry = first_of(&trace->build->kernel->jobs, line);
	if (!entry)
		return;
	const uint64_t key = entry->key;
	const uint32_t slice = ky_build_begin(trace, ts, line->track, 0, entry->name, entry->args);
	arrive(trace, line->track, key, slice);
}

static void push(struct ky_trace *trace, int64_t ts, struct ky_line *line, const struct ky_job *job)
{
	if (append(trace, line, job) && line->first == line->last)
		begin_first(trace, ts, line);
}

static void pop(struct ky_trace *trace, int64_t ts, struct ky_line *line)
{
	remove_first(&trace->build->kernel->jobs, line);
	ky_build_end(trace, ts, line->track, 0, 0, 0);
	begin_first(trace, ts, line);
}

static void run(struct ky_trace *trace, int64_t ts, const struct ky_job *job)
{
	struct ky_line *line = line_of(trace, job->track);
	bool made;
	uint64_t *busy =
		line ? ky_pair_map_add(&trace->build->kernel->jobs.busy, job->run, 0, &made) : NULL;
	if (!busy)
		return;
	*busy = job->track;
	push(trace, ts, line, job);
}

static void done(struct ky_trace *trace, int64_t ts, const struct ky_job *job)
{
	struct ky_pair_map *busy = &trace->build->kernel->jobs.busy;
	const uint64_t *track = ky_pair_map_find(busy, job->run, 0);
	struct ky_line *line = track ? line_of(trace, (uint32_t)*track) : NULL;
	if (!line)
		return;
	ky_pair_map_remove(busy, job->run, 0);
	if (line->first)
		pop(trace, ts, line);
}

static void fence(struct ky_trace *trace, int64_t ts, const struct ky_job *job)
{
	struct ky_jobs *jobs = &trace->build->kernel->jobs;
	struct ky_line *line = line_of(trace, job->track);
	if (!line)
		return;
	if (job->step == KY_FENCE_SIGNALED) {
		const struct ky_job_entry *first = first_of(jobs, line);
		if (first && job->key >= first->key)
			pop(trace, ts, line);
		return;
	}
	if (job->step == KY_FENCE_EMIT && !line->emits) {
		line->emits = true;
		if (line->first)
			ky_build_end(trace, ts, line->track, 0, 0, 0);
		while (line->first)
			remove_first(jobs, line);
	}
	if (job->step == KY_FENCE_EMIT || !line->emits)
		push(trace, ts, line, job);
}

void ky_job_apply(struct ky_trace *trace, int64_t ts, const uint32_t *words)
{
	const struct ky_job job = {
		.key = ky_words_u64(words),
		.run = ky_words_u64(words + 2),
		.step = words[4],
		.tid = (int32_t)words[5],
		.track = words[6],
		.category = words[7],
		.name = words[8],
		.args = words[9],
	};
	if (job.step == KY_JOB_QUEUED || job.step == KY_JOB_TAKEN)
		by_thread(trace, ts, &job);
	else if (job.step == KY_JOB_RUNS)
		run(trace, ts, &job);
	else if (job.step == KY_JOB_DONE)
		done(trace, ts, &job);
	else
		fence(trace, ts, &job);
}

void ky_jobs_free(struct ky_jobs *jobs)
{
	KY_ARRAY_FREE(jobs->lines, jobs->lines_room);
	KY_ARRAY_FREE(jobs->entries, jobs->entries_room);
	ky_pair_map_free(&jobs->line_by_track);
	ky_pair_map_free(&jobs->queued);
	ky_pair_map_free(&jobs->busy);
}
