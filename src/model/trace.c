/* SPDX-License-Identifier: MIT */
/* trace.c: the tables of a trace: columns, opening and closing, size. */
#include "model/trace.h"

#include "base/array.h"
#include "model/build.h"
#include "model/index.h"

#include <errno.h>
#include <stdlib.h>

/* ---- the memory under a table ---- */

#define ROWS_FIRST 32u
#define ROWS_MAX (UINT32_MAX - 1)
#define ROWS_STRETCH (64u << 10)

static void **pointer_of(void *table, const struct ky_column *column)
{
	return (void **)((char *)table + column->offset);
}

bool ky_rows_grow(void *table, const struct ky_column *columns, uint32_t columns_count)
{
	struct ky_rows *rows = table;
	if (rows->count < rows->room)
		return true;
	if (rows->room >= ROWS_MAX)
		return false;
	const bool large = rows->room >= ROWS_STRETCH;
	uint64_t room = rows->room ? (uint64_t)rows->room * 2 : ROWS_FIRST;
	if (large)
		room = (uint64_t)rows->room + ROWS_STRETCH;
	if (room > ROWS_MAX)
		room = ROWS_MAX;
	for (uint32_t i = 0; i < columns_count; i++) {
		void **items = pointer_of(table, &columns[i]);
		const size_t bytes = columns[i].item_bytes;
		void *grown = ky_array_resized(*items, (size_t)room * bytes);
		if (!grown)
			return false;
		*items = grown;
		if (large)
			ky_array_populate(grown, rows->room * bytes, (size_t)room * bytes);
	}
	rows->room = (uint32_t)room;
	return true;
}

void ky_rows_free(void *table, const struct ky_column *columns, uint32_t columns_count)
{
	for (uint32_t i = 0; i < columns_count; i++) {
		void **items = pointer_of(table, &columns[i]);
		ky_array_release(*items);
		*items = NULL;
	}
	*(struct ky_rows *)table = (struct ky_rows){0, 0};
}

uint64_t ky_rows_bytes(const void *table, const struct ky_column *columns, uint32_t columns_count)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < columns_count; i++)
		bytes += (uint64_t)((const struct ky_rows *)table)->count * columns[i].item_bytes;
	return bytes;
}

static const struct ky_column processes_columns[] = {
	KY_COLUMN(ky_processes, pid),       KY_COLUMN(ky_processes, name),
	KY_COLUMN(ky_processes, cmdline),   KY_COLUMN(ky_processes, parent),
	KY_COLUMN(ky_processes, start_ts),  KY_COLUMN(ky_processes, end_ts),
	KY_COLUMN(ky_processes, args),      KY_COLUMN(ky_processes, machine),
	KY_COLUMN(ky_processes, uid),       KY_COLUMN(ky_processes, sort_index),
	KY_COLUMN(ky_processes, name_from),
};

static const struct ky_column threads_columns[] = {
	KY_COLUMN(ky_threads, tid),        KY_COLUMN(ky_threads, name),
	KY_COLUMN(ky_threads, process),    KY_COLUMN(ky_threads, start_ts),
	KY_COLUMN(ky_threads, end_ts),     KY_COLUMN(ky_threads, machine),
	KY_COLUMN(ky_threads, sort_index), KY_COLUMN(ky_threads, is_main),
	KY_COLUMN(ky_threads, name_from),  KY_COLUMN(ky_threads, is_idle),
};

static const struct ky_column tracks_columns[] = {
	KY_COLUMN(ky_tracks, name), KY_COLUMN(ky_tracks, owner), KY_COLUMN(ky_tracks, parent),
	KY_COLUMN(ky_tracks, type), KY_COLUMN(ky_tracks, unit),  KY_COLUMN(ky_tracks, args),
	KY_COLUMN(ky_tracks, id),   KY_COLUMN(ky_tracks, kind),  KY_COLUMN(ky_tracks, flags),
};

static const struct ky_column slices_columns[] = {
	KY_COLUMN(ky_slices, ts),   KY_COLUMN(ky_slices, dur),      KY_COLUMN(ky_slices, track),
	KY_COLUMN(ky_slices, name), KY_COLUMN(ky_slices, category), KY_COLUMN(ky_slices, parent),
	KY_COLUMN(ky_slices, args), KY_COLUMN(ky_slices, depth),    KY_COLUMN(ky_slices, kind),
};

static const struct ky_column counters_columns[] = {
	KY_COLUMN(ky_counters, ts),
	KY_COLUMN(ky_counters, value),
	KY_COLUMN(ky_counters, track),
	KY_COLUMN(ky_counters, args),
};

static const struct ky_column flows_columns[] = {
	KY_COLUMN(ky_flows, out),  KY_COLUMN(ky_flows, in),       KY_COLUMN(ky_flows, id),
	KY_COLUMN(ky_flows, name), KY_COLUMN(ky_flows, category),
};

static const struct ky_column args_columns[] = {
	KY_COLUMN(ky_args, key),
	KY_COLUMN(ky_args, type),
	KY_COLUMN(ky_args, value),
};

static const struct ky_column arg_sets_columns[] = {
	KY_COLUMN(ky_arg_sets, first),
};

static const struct ky_column sched_columns[] = {
	KY_COLUMN(ky_sched, ts),     KY_COLUMN(ky_sched, dur),       KY_COLUMN(ky_sched, cpu),
	KY_COLUMN(ky_sched, thread), KY_COLUMN(ky_sched, end_state), KY_COLUMN(ky_sched, priority),
};

static const struct ky_column thread_states_columns[] = {
	KY_COLUMN(ky_thread_states, ts),      KY_COLUMN(ky_thread_states, dur),
	KY_COLUMN(ky_thread_states, thread),  KY_COLUMN(ky_thread_states, state),
	KY_COLUMN(ky_thread_states, cpu),     KY_COLUMN(ky_thread_states, waker),
	KY_COLUMN(ky_thread_states, io_wait), KY_COLUMN(ky_thread_states, blocked_function),
};

static const struct ky_column raw_events_columns[] = {
	KY_COLUMN(ky_raw_events, ts),   KY_COLUMN(ky_raw_events, name),
	KY_COLUMN(ky_raw_events, cpu),  KY_COLUMN(ky_raw_events, thread),
	KY_COLUMN(ky_raw_events, args),
};

static const struct ky_column mappings_columns[] = {
	KY_COLUMN(ky_mappings, build_id), KY_COLUMN(ky_mappings, name),
	KY_COLUMN(ky_mappings, start),    KY_COLUMN(ky_mappings, end),
	KY_COLUMN(ky_mappings, offset),   KY_COLUMN(ky_mappings, load_bias),
};

static const struct ky_column frames_columns[] = {
	KY_COLUMN(ky_frames, name), KY_COLUMN(ky_frames, mapping), KY_COLUMN(ky_frames, rel_pc),
	KY_COLUMN(ky_frames, file), KY_COLUMN(ky_frames, line),
};

static const struct ky_column callsites_columns[] = {
	KY_COLUMN(ky_callsites, parent),
	KY_COLUMN(ky_callsites, frame),
	KY_COLUMN(ky_callsites, depth),
};

static const struct ky_column samples_columns[] = {
	KY_COLUMN(ky_samples, ts),       KY_COLUMN(ky_samples, thread),
	KY_COLUMN(ky_samples, callsite), KY_COLUMN(ky_samples, cpu),
	KY_COLUMN(ky_samples, mode),     KY_COLUMN(ky_samples, weight),
	KY_COLUMN(ky_samples, event),
};

static const struct ky_column logs_columns[] = {
	KY_COLUMN(ky_logs, ts),  KY_COLUMN(ky_logs, thread),  KY_COLUMN(ky_logs, priority),
	KY_COLUMN(ky_logs, tag), KY_COLUMN(ky_logs, message),
};

static const struct ky_column losses_columns[] = {
	KY_COLUMN(ky_losses, ts),  KY_COLUMN(ky_losses, events), KY_COLUMN(ky_losses, thread),
	KY_COLUMN(ky_losses, cpu), KY_COLUMN(ky_losses, what),
};

static const struct ky_column clock_rows_columns[] = {
	KY_COLUMN(ky_clock_rows, snapshot), KY_COLUMN(ky_clock_rows, ts),
	KY_COLUMN(ky_clock_rows, clock),    KY_COLUMN(ky_clock_rows, value),
	KY_COLUMN(ky_clock_rows, machine),
};

static const struct ky_column metadata_columns[] = {
	KY_COLUMN(ky_metadata, key),
	KY_COLUMN(ky_metadata, text),
	KY_COLUMN(ky_metadata, number),
};

static const struct ky_column flow_ends_columns[] = {
	KY_COLUMN(ky_flow_ends, slice),   KY_COLUMN(ky_flow_ends, id),
	KY_COLUMN(ky_flow_ends, name),    KY_COLUMN(ky_flow_ends, category),
	KY_COLUMN(ky_flow_ends, arrives),
};

static const struct ky_column problems_columns[] = {
	KY_COLUMN(ky_problems, name),   KY_COLUMN(ky_problems, severity),
	KY_COLUMN(ky_problems, number), KY_COLUMN(ky_problems, first_at),
	KY_COLUMN(ky_problems, first),  KY_COLUMN(ky_problems, input),
};

#define TABLE(member)                                                                              \
	{                                                                                          \
#member, offsetof(struct ky_trace, member), member##_columns,                      \
			sizeof(member##_columns) / sizeof(member##_columns[0])                     \
	}

const struct ky_table_columns ky_trace_tables[] = {
	TABLE(processes), TABLE(threads),       TABLE(tracks),     TABLE(slices),
	TABLE(counters),  TABLE(flows),         TABLE(args),       TABLE(arg_sets),
	TABLE(sched),     TABLE(thread_states), TABLE(raw_events), TABLE(mappings),
	TABLE(frames),    TABLE(callsites),     TABLE(samples),    TABLE(logs),
	TABLE(losses),    TABLE(clock_rows),    TABLE(metadata),   TABLE(problems),
	TABLE(flow_ends),
};
const uint32_t ky_trace_tables_count = sizeof(ky_trace_tables) / sizeof(ky_trace_tables[0]);

static void *table_of(const struct ky_trace *trace, const struct ky_table_columns *table)
{
	return (char *)trace + table->offset;
}

void ky_trace_no_memory(struct ky_trace *trace)
{
	trace->error = -ENOMEM;
}

uint32_t ky_append_slow(struct ky_trace *trace, void *table)
{
	const struct ky_table_columns *of = ky_trace_tables;
	while (table_of(trace, of) != table)
		of++;
	if (!ky_rows_grow(table, of->columns, of->columns_count)) {
		ky_trace_no_memory(trace);
		return KY_NONE;
	}
	return ((struct ky_rows *)table)->count++;
}

static void close_build(struct ky_trace *trace)
{
	struct ky_build *build = trace->build;
	if (!build)
		return;
	ky_kernel_close(trace);
	ky_stage_close(&build->stage);
	ky_overflow_free(build);
	struct ky_pair_map *maps[] = {
		&build->process_by_pid, &build->thread_by_tid, &build->thread_by_process,
		&build->expected,       &build->track_by_spec, &build->flow_open,
		&build->flow_keys,      &build->mappings,      &build->frames,
		&build->callsites,
	};
	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
		ky_pair_map_free(maps[i]);
	for (uint64_t i = 0; i < build->states_room; i++)
		KY_ARRAY_FREE(build->states[i].stack, build->states[i].room);
	KY_ARRAY_FREE(build->states, build->states_room);
	KY_ARRAY_FREE(build->process_track, build->process_track_room);
	KY_ARRAY_FREE(build->thread_track, build->thread_track_room);
	KY_ARRAY_FREE(build->flow_parts, build->flow_parts_room);
	KY_ARRAY_FREE(build->pending_flows, build->pending_room);
	free(build->windows);
	free(build);
	trace->build = NULL;
}

static int open_parts(struct ky_trace *trace)
{
	trace->build = calloc(1, sizeof(*trace->build));
	if (!trace->build || ky_stage_open(&trace->build->stage) != 0 ||
	    ky_strings_init(&trace->strings) != 0 || ky_clocks_open(&trace->clocks) != 0 ||
	    ky_index_open(trace) != 0 || ky_kernel_open(trace) != 0)
		return -ENOMEM;
	/* Set 0 is no set. */
	const uint32_t none = ky_append(trace, &trace->arg_sets);
	if (none == KY_NONE)
		return -ENOMEM;
	trace->arg_sets.first[none] = 0;
	trace->clock = KY_CLOCK_BOOTTIME;
	trace->build->last_ts = INT64_MIN;
	return 0;
}

int ky_trace_open(struct ky_trace **out)
{
	struct ky_trace *trace = calloc(1, sizeof(*trace));
	if (trace && open_parts(trace) != 0)
		ky_trace_close(&trace);
	*out = trace;
	return trace ? 0 : -ENOMEM;
}

void ky_trace_close(struct ky_trace **out)
{
	struct ky_trace *trace = *out;
	if (!trace)
		return;
	close_build(trace);
	ky_index_close(trace);
	ky_clocks_close(&trace->clocks);
	ky_strings_free(&trace->strings);
	for (uint32_t i = 0; i < ky_trace_tables_count; i++)
		ky_rows_free(table_of(trace, &ky_trace_tables[i]), ky_trace_tables[i].columns,
			     ky_trace_tables[i].columns_count);
	free(trace);
	*out = NULL;
}

uint64_t ky_trace_memory(const struct ky_trace *trace)
{
	uint64_t bytes = ky_strings_memory(&trace->strings);
	for (uint32_t i = 0; i < ky_trace_tables_count; i++)
		bytes +=
			ky_rows_bytes(table_of(trace, &ky_trace_tables[i]),
				      ky_trace_tables[i].columns, ky_trace_tables[i].columns_count);
	return bytes;
}

/* Widen the trace's bounds to a table's ordered times and their ends. */
static void widen(struct ky_trace *trace, const int64_t *ts, const int64_t *dur, uint32_t count,
		  bool *any)
{
	if (!count)
		return;
	if (!*any || ts[0] < trace->begin_ns)
		trace->begin_ns = ts[0];
	if (!*any || ts[count - 1] > trace->end_ns)
		trace->end_ns = ts[count - 1];
	*any = true;
	for (uint32_t i = 0; dur && i < count; i++) {
		int64_t end;
		if (dur[i] > 0 && !__builtin_add_overflow(ts[i], dur[i], &end) &&
		    end > trace->end_ns)
			trace->end_ns = end;
	}
}

static void find_bounds(struct ky_trace *t)
{
	bool any = false;
	widen(t, t->slices.ts, t->slices.dur, t->slices.rows.count, &any);
	widen(t, t->counters.ts, NULL, t->counters.rows.count, &any);
	widen(t, t->sched.ts, t->sched.dur, t->sched.rows.count, &any);
	widen(t, t->raw_events.ts, NULL, t->raw_events.rows.count, &any);
	widen(t, t->samples.ts, NULL, t->samples.rows.count, &any);
	widen(t, t->logs.ts, NULL, t->logs.rows.count, &any);
}

int ky_trace_finish(struct ky_trace *trace, ky_progress_fn progress, void *context)
{
	int error = ky_stage_drain(&trace->build->stage, ky_build_record, trace, progress, context);
	if (!error)
		ky_kernel_finish(trace);
	if (!error)
		ky_flows_finish(trace);
	close_build(trace);
	find_bounds(trace);
	trace->lost = 0;
	for (uint32_t i = 0; i < trace->losses.rows.count; i++)
		trace->lost += trace->losses.events[i];
	trace->finished = true;
	return error ? error : trace->error;
}
