/* SPDX-License-Identifier: MIT */
/*
 * window.c: the stretches of time that a flight recorder kept. Between two of them kernel events are missing: it is
 * unknown what ran and ended there.
 *
 *   ┌ window ────────┐                ┌ window ───
 *   │ a runs ────────┤                │  ... switched away from b
 *   └────────────────┘                └───────────
 *                    ▲ everything open ends here, by a gap record staged one nanosecond later, so that it follows the
 *                      window's last events
 */
#include "model/kernel_state.h"

#include <stdlib.h>

/*
 * A file may have any number of windows and threads: the limit of rows visited at the ends of
 * windows.
 */
#define GAP_ROWS_MAX (UINT64_C(1) << 28)

const struct ky_window *ky_window_of(const struct ky_window *windows, uint32_t count, int64_t ts)
{
	uint32_t low = 0, high = count;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		if (windows[middle].to_ns < ts)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count ? &windows[low] : NULL;
}

void ky_trace_windows(struct ky_trace *trace, const struct ky_window *windows, uint32_t count)
{
	struct ky_build *build = trace->build;
	build->windows = count ? malloc(count * sizeof(*windows)) : NULL;
	if (count && !build->windows) {
		ky_trace_no_memory(trace);
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		build->windows[i] = windows[i];
		if (windows[i].to_ns == INT64_MAX)
			continue;
		KY_PUT_KERNEL(trace, windows[i].to_ns + 1, KY_KERNEL_GAP, 0);
		trace->events--; /* it is no event */
	}
	build->windows_count = count;
}

bool ky_window_wants(const struct ky_trace *trace, int64_t ts, uint32_t sub)
{
	const struct ky_build *build = trace->build;
	/* The identity of a task is valid in all windows. */
	if (sub >= KY_KERNEL_TASK_NEW && sub <= KY_KERNEL_TASK_HINT)
		return true;
	const struct ky_window *window = ky_window_of(build->windows, build->windows_count, ts);
	return window && window->from_ns <= ts;
}

static void end_cpus(struct ky_trace *trace, int64_t ts)
{
	const struct ky_kernel_state *state = trace->build->kernel;
	for (uint64_t i = 0; i < state->cpus_room; i++) {
		struct ky_cpu_state *cpu = &state->cpus[i];
		if (cpu->slice)
			trace->sched.dur[cpu->slice - 1] = ts - trace->sched.ts[cpu->slice - 1];
		cpu->slice = 0;
	}
}

static void end_states(struct ky_trace *trace, int64_t ts)
{
	const struct ky_kernel_state *state = trace->build->kernel;
	for (uint64_t i = 0; i < state->threads_room; i++) {
		ky_sched_close_state(trace, ts, &state->threads[i]);
		state->threads[i] = (struct ky_thread_rows){0};
	}
}

/* End the spans of threads and CPUs; those with an id may reach into another window. */
static void end_spans(struct ky_trace *trace, int64_t ts)
{
	struct ky_build *build = trace->build;
	for (uint32_t i = 0; i < build->states_room && i < trace->tracks.rows.count; i++) {
		const uint8_t kind = trace->tracks.kind[i];
		if ((kind != KY_TRACK_THREAD && kind != KY_TRACK_CPU) || build->states[i].finite)
			continue;
		for (uint32_t open = build->states[i].depth; open; open--)
			(void)ky_build_end(trace, ts, i, 0, 0, 0);
	}
}

void ky_window_end(struct ky_trace *trace, int64_t ts)
{
	struct ky_kernel_state *state = trace->build->kernel;
	state->gap_rows += state->cpus_room + state->threads_room + trace->build->states_room;
	if (state->gap_rows > GAP_ROWS_MAX)
		return;
	end_cpus(trace, ts);
	end_states(trace, ts);
	end_spans(trace, ts);
}
