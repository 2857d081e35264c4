/* SPDX-License-Identifier: MIT */
/*
 * ends.c: what was open when its thread or process ended, or went on with another program, ends then. Kernel events say when
 * threads and processes ended; captures say when programs did.
 */
#include <stdlib.h>

#include "base/array.h"
#include "model/build.h"
#include "model/intake.h"

void ky_put_program_end(struct ky_trace *trace, int64_t ts, uint32_t process)
{
	struct ky_build *build = trace->build;
	const struct ky_program_end end = {process, ts};
	if (!KY_ARRAY_ADD(build->program_ends, build->program_ends_count, build->program_ends_room,
			  end))
		ky_trace_no_memory(trace);
}

KY_ORDER(by_process_and_time, struct ky_program_end,
	 KY_COMPARE_THEN(a->process, b->process, KY_COMPARE(a->ts, b->ts)))

/* Return the first end of a program of the process that is not before ts; INT64_MAX: none. */
static int64_t program_end(const struct ky_build *build, uint32_t process, int64_t ts)
{
	const struct ky_program_end wanted = {process, ts};
	const uint32_t low =
		KY_ARRAY_SEARCH(0, build->program_ends_count, at,
				by_process_and_time(&build->program_ends[at], &wanted) < 0);
	if (low == build->program_ends_count || build->program_ends[low].process != process)
		return INT64_MAX;
	return build->program_ends[low].ts;
}

static int64_t earlier(int64_t end, int64_t known, int64_t ts)
{
	return known != KY_TIME_NONE && known >= ts && known < end ? known : end;
}

/* Return when what began then on the track ended at the latest; INT64_MAX: not known. */
static int64_t end_on_track(const struct ky_trace *trace, uint32_t track, int64_t ts)
{
	const uint32_t thread = ky_track_thread(trace, track);
	const uint32_t process = ky_track_process(trace, track);
	int64_t end = INT64_MAX;
	if (thread != KY_NONE)
		end = earlier(end, trace->threads.end_ts[thread], ts);
	if (process != KY_NONE) {
		end = earlier(end, trace->processes.end_ts[process], ts);
		end = earlier(end, program_end(trace->build, process, ts), ts);
	}
	return end;
}

void ky_ends_finish(struct ky_trace *trace)
{
	struct ky_build *build = trace->build;
	struct ky_slices *slices = &trace->slices;
	if (build->program_ends_count)
		qsort(build->program_ends, build->program_ends_count, sizeof(*build->program_ends),
		      by_process_and_time);
	for (uint32_t i = 0; i < slices->rows.count; i++) {
		if (slices->dur[i] >= 0)
			continue;
		const int64_t end = end_on_track(trace, slices->track[i], slices->ts[i]);
		if (end != INT64_MAX)
			slices->dur[i] = end - slices->ts[i];
	}
}
