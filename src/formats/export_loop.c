/* SPDX-License-Identifier: MIT */
/* export_loop.c: the loop that exporters have in common. */
#include "formats/export_loop.h"

#define PUSH_BYTES (256u << 10)
#define PROGRESS_ITEMS 16384u

/* A trace may have both scheduling slices and thread states: a format that carries one of them lacks nothing. */
static void leave_out(const struct ky_export_job *job, const struct ky_export_rows *rows,
		      enum ky_walk_what what)
{
	struct ky_export_left *left = job->left;
	if (what == KY_WALK_SCHED)
		left->sched += !rows->state || !job->trace->thread_states.rows.count;
	else if (what == KY_WALK_STATE)
		left->sched += !job->trace->sched.rows.count;
	else if (what == KY_WALK_SAMPLE)
		left->samples++;
	else if (what == KY_WALK_LOG)
		left->logs++;
	else if (what == KY_WALK_RAW)
		left->raw_events++;
}

int ky_export_loop(const struct ky_export_job *job, const struct ky_export_rows *rows, void *self)
{
	const ky_export_row_fn by_what[KY_WALK_WHATS] = {
		[KY_WALK_BEGIN] = rows->slice,   [KY_WALK_END] = rows->slice,
		[KY_WALK_INSTANT] = rows->slice, [KY_WALK_COUNTER] = rows->counter,
		[KY_WALK_SCHED] = rows->sched,   [KY_WALK_STATE] = rows->state,
		[KY_WALK_SAMPLE] = rows->sample, [KY_WALK_LOG] = rows->log,
		[KY_WALK_RAW] = rows->raw,
	};
	struct ky_out *out = job->out;
	struct ky_walk *walk;
	struct ky_walk_item next;
	int error = ky_walk_open(&walk, job->trace, job->selection, rows->named_ends, job->left);
	if (error)
		return error;
	for (uint32_t items = 0; !error && ky_walk_next(walk, &next); items++) {
		if (by_what[next.what])
			by_what[next.what](self, &next);
		else
			leave_out(job, rows, next.what);
		if (out->used >= PUSH_BYTES)
			error = ky_out_push(out);
		if (!error && job->progress && items % PROGRESS_ITEMS == 0)
			error = job->progress(job->context, ky_walk_done(walk), ky_walk_all(walk));
	}
	if (!error)
		error = ky_walk_error(walk);
	ky_walk_close(&walk);
	return error ? error : out->error;
}

uint64_t ky_export_loop_snapshots(const struct ky_trace *trace)
{
	const struct ky_clock_rows *rows = &trace->clock_rows;
	uint64_t count = 0;
	for (uint32_t i = 0; i < rows->rows.count; i++)
		count += !i || rows->snapshot[i] != rows->snapshot[i - 1];
	return count;
}
