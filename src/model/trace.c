/* SPDX-License-Identifier: MIT */
/* trace.c: the tables of a trace: columns, opening and closing, size. */
#include "model/trace.h"

#include "base/array.h"
#include "base/memory.h"
#include "model/build.h"
#include "model/index.h"
#include "model/tables.h"

#include <errno.h>
#include <stdlib.h>

/* ---- the memory under a table ---- */

#define ROWS_FIRST 32u
#define ROWS_MAX (UINT32_MAX - 1)
#define ROWS_STRETCH (64u << 10)

static bool resize(void *table, const struct ky_column *columns, uint32_t columns_count,
		   uint32_t room, bool populate)
{
	struct ky_rows *rows = table;
	for (uint32_t i = 0; i < columns_count; i++) {
		void **items = ky_column_of(table, &columns[i]);
		const size_t bytes = columns[i].item_bytes;
		void *grown = ky_array_resized(*items, (size_t)room * bytes);
		if (!grown)
			return false;
		*items = grown;
		if (populate)
			ky_array_populate(grown, rows->room * bytes, (size_t)room * bytes);
	}
	rows->room = room;
	return true;
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
	return resize(table, columns, columns_count, (uint32_t)room, large);
}

bool ky_rows_reserve(void *table, const struct ky_column *columns, uint32_t columns_count,
		     uint32_t rows)
{
	const uint32_t room = ((const struct ky_rows *)table)->room;
	return rows <= room ||
	       (rows <= ROWS_MAX && resize(table, columns, columns_count, rows, false));
}

void ky_rows_free(void *table, const struct ky_column *columns, uint32_t columns_count)
{
	for (uint32_t i = 0; i < columns_count; i++) {
		void **items = ky_column_of(table, &columns[i]);
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

/* ---- all tables ---- */

void ky_trace_no_memory(struct ky_trace *trace)
{
	trace->error = -ENOMEM;
}

uint32_t ky_append_slow(struct ky_trace *trace, void *table)
{
	const struct ky_table_spec *of = ky_tables;
	while (ky_table_of(trace, of) != table)
		of++;
	/* After a failure each try would fault in the columns before the one that has no room, in vain. */
	if (trace->error)
		return KY_NONE;
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
	KY_ARRAY_FREE(build->program_ends, build->program_ends_room);
	free(build->windows);
	free(build);
	trace->build = NULL;
}

/* Make room for the first rows of all tables, zeroed: what cannot be added for want of memory is row 0, in a table without rows too. */
static bool grow_tables(struct ky_trace *trace)
{
	for (uint32_t i = 0; i < ky_tables_count; i++) {
		const struct ky_table_spec *const spec = &ky_tables[i];
		void *const table = ky_table_of(trace, spec);
		if (!ky_rows_grow(table, spec->columns, spec->columns_count))
			return false;
		for (uint32_t j = 0; j < spec->columns_count; j++)
			memset(*ky_column_of(table, &spec->columns[j]), 0,
			       ROWS_FIRST * spec->columns[j].item_bytes);
	}
	return true;
}

static int open_parts(struct ky_trace *trace)
{
	if (!grow_tables(trace))
		return -ENOMEM;
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
	if (trace)
		trace->failures = ky_memory_failures();
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
	for (uint32_t i = 0; i < ky_tables_count; i++)
		ky_rows_free(ky_table_of(trace, &ky_tables[i]), ky_tables[i].columns,
			     ky_tables[i].columns_count);
	free(trace);
	*out = NULL;
}

uint64_t ky_trace_memory(const struct ky_trace *trace)
{
	uint64_t bytes = ky_strings_memory(&trace->strings);
	for (uint32_t i = 0; i < ky_tables_count; i++)
		bytes += ky_rows_bytes(ky_table_of(trace, &ky_tables[i]), ky_tables[i].columns,
				       ky_tables[i].columns_count);
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

/* Widen them to the states of threads, which are in no order; some formats know of states before the recording began. */
static void widen_to_states(struct ky_trace *trace, bool *any)
{
	const struct ky_thread_states *const states = &trace->thread_states;
	const bool begin = !*any;
	for (uint32_t i = 0; i < states->rows.count; i++) {
		const int64_t ts = states->ts[i];
		int64_t end;
		if (ts == KY_TIME_NONE)
			continue;
		if (begin && (!*any || ts < trace->begin_ns))
			trace->begin_ns = ts;
		if (states->dur[i] < 0 || __builtin_add_overflow(ts, states->dur[i], &end))
			end = ts;
		if (!*any || end > trace->end_ns)
			trace->end_ns = end;
		*any = true;
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
	widen_to_states(t, &any);
}

int ky_trace_finish(struct ky_trace *trace, ky_progress_fn progress, void *context)
{
	int error = ky_stage_drain(&trace->build->stage, ky_build_record, trace, progress, context);
	if (!error)
		ky_kernel_finish(trace);
	if (!error)
		ky_flows_finish(trace);
	if (!error)
		ky_ends_finish(trace);
	close_build(trace);
	find_bounds(trace);
	trace->lost = 0;
	for (uint32_t i = 0; i < trace->losses.rows.count; i++)
		trace->lost += trace->losses.events[i];
	trace->finished = true;
	if (!error && ky_memory_failures() != trace->failures)
		error = -ENOMEM; /* what it lacks, nobody knows */
	return error ? error : trace->error;
}
