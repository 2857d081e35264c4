/* SPDX-License-Identifier: MIT */
/*
 * sql_tables.c: the tables as data. Names and order of columns are Perfetto's (trace_processor v55); what it
 * does not have is hidden, so that SELECT * gives the same columns, or is a table of ours (loss, problem).
 */
#include "query/sql_table.h"

#define AT(field) (uint16_t) offsetof(struct ky_trace, field)
#define ENTRY(name, kind, flags, index, offset, make)                                              \
	{                                                                                          \
		name, kind, flags, index, offset, make                                             \
	}
#define ID(name) ENTRY(name, KY_SQL_ROW, 0, KY_SQL_NO_INDEX, 0, NULL)
#define COLUMN(name, kind, field) ENTRY(name, kind, 0, KY_SQL_NO_INDEX, AT(field), NULL)
#define FEW(name, kind, field) ENTRY(name, kind, KY_SQL_FEW, KY_SQL_NO_INDEX, AT(field), NULL)
#define INDEXED(name, kind, field, index) ENTRY(name, kind, KY_SQL_FEW, index, AT(field), NULL)
#define HIDDEN(name, kind, field) ENTRY(name, kind, KY_SQL_HIDDEN, KY_SQL_NO_INDEX, AT(field), NULL)
#define MADE(name, make) ENTRY(name, KY_SQL_MADE, 0, KY_SQL_NO_INDEX, 0, make)
#define MADE_TEXT(name, make) ENTRY(name, KY_SQL_MADE, KY_SQL_TEXT, KY_SQL_NO_INDEX, 0, make)
#define NONE(name) ENTRY(name, KY_SQL_NULL, 0, KY_SQL_NO_INDEX, 0, NULL)
/* The first hidden column is the function's argument. */
#define ARGUMENT(name) ENTRY(name, KY_SQL_ARG, KY_SQL_HIDDEN, KY_SQL_NO_INDEX, 0, NULL)

#define SLICE_COLUMNS                                                                              \
	ID("id"), COLUMN("ts", KY_SQL_I64, slices.ts), COLUMN("dur", KY_SQL_I64, slices.dur),      \
		INDEXED("track_id", KY_SQL_U32, slices.track, KY_INDEX_SLICE_TRACK),               \
		FEW("category", KY_SQL_STRING, slices.category),                                   \
		INDEXED("name", KY_SQL_STRING, slices.name, KY_INDEX_SLICE_NAME),                  \
		FEW("depth", KY_SQL_U16, slices.depth),                                            \
		{"parent_id", KY_SQL_REF, 0, KY_INDEX_SLICE_PARENT, AT(slices.parent), NULL},      \
		COLUMN("arg_set_id", KY_SQL_SET, slices.args), NONE("thread_ts"),                  \
		NONE("thread_dur"), NONE("thread_instruction_count"),                              \
		NONE("thread_instruction_delta")

static const struct ky_sql_column slice_columns[] = {
	SLICE_COLUMNS,
	FEW("cat", KY_SQL_STRING, slices.category),
	ID("slice_id"),
};

static const struct ky_sql_column slice_function_columns[] = {SLICE_COLUMNS, ARGUMENT("_of")};

static const struct ky_sql_column instant_columns[] = {
	COLUMN("ts", KY_SQL_I64, slices.ts),
	INDEXED("track_id", KY_SQL_U32, slices.track, KY_INDEX_SLICE_TRACK),
	INDEXED("name", KY_SQL_STRING, slices.name, KY_INDEX_SLICE_NAME),
	COLUMN("arg_set_id", KY_SQL_SET, slices.args),
};

static const struct ky_sql_column thread_columns[] = {
	ID("utid"),
	ID("id"),
	COLUMN("tid", KY_SQL_I64, threads.tid),
	FEW("name", KY_SQL_STRING, threads.name),
	COLUMN("start_ts", KY_SQL_TIME, threads.start_ts),
	COLUMN("end_ts", KY_SQL_TIME, threads.end_ts),
	FEW("upid", KY_SQL_REF, threads.process),
	MADE("is_main_thread", ky_sql_cell_main_thread),
	FEW("is_idle", KY_SQL_U8, threads.is_idle),
	FEW("machine_id", KY_SQL_U32, threads.machine),
	NONE("arg_set_id"),
};

static const struct ky_sql_column process_columns[] = {
	ID("upid"),
	ID("id"),
	COLUMN("pid", KY_SQL_I64, processes.pid),
	FEW("name", KY_SQL_STRING, processes.name),
	COLUMN("start_ts", KY_SQL_TIME, processes.start_ts),
	COLUMN("end_ts", KY_SQL_TIME, processes.end_ts),
	FEW("parent_upid", KY_SQL_REF, processes.parent),
	FEW("uid", KY_SQL_I32_OR, processes.uid),
	NONE("android_appid"),
	NONE("android_user_id"),
	FEW("cmdline", KY_SQL_STRING, processes.cmdline),
	COLUMN("arg_set_id", KY_SQL_SET, processes.args),
	FEW("machine_id", KY_SQL_U32, processes.machine),
};

static const struct ky_sql_column track_columns[] = {
	ID("id"),
	FEW("name", KY_SQL_STRING, tracks.name),
	FEW("type", KY_SQL_STRING, tracks.type),
	NONE("dimension_arg_set_id"),
	FEW("parent_id", KY_SQL_REF, tracks.parent),
	COLUMN("source_arg_set_id", KY_SQL_SET, tracks.args),
	MADE("machine_id", ky_sql_cell_track_machine),
	NONE("track_group_id"),
};

/* The tables of tracks with an owner; the last column is the owner. */
#define OWNED_TRACK_COLUMNS(title)                                                                 \
	ID("id"), FEW("name", KY_SQL_STRING, tracks.name),                                         \
		FEW("type", KY_SQL_STRING, tracks.type),                                           \
		FEW("parent_id", KY_SQL_REF, tracks.parent),                                       \
		COLUMN("source_arg_set_id", KY_SQL_SET, tracks.args),                              \
		MADE("machine_id", ky_sql_cell_track_machine),                                     \
		FEW(title, KY_SQL_REF, tracks.owner)

static const struct ky_sql_column thread_track_columns[] = {OWNED_TRACK_COLUMNS("utid")};
static const struct ky_sql_column process_track_columns[] = {OWNED_TRACK_COLUMNS("upid")};
static const struct ky_sql_column cpu_track_columns[] = {OWNED_TRACK_COLUMNS("cpu")};

static const struct ky_sql_column counter_track_columns[] = {
	ID("id"),
	FEW("name", KY_SQL_STRING, tracks.name),
	FEW("parent_id", KY_SQL_REF, tracks.parent),
	FEW("type", KY_SQL_STRING, tracks.type),
	NONE("dimension_arg_set_id"),
	COLUMN("source_arg_set_id", KY_SQL_SET, tracks.args),
	MADE("machine_id", ky_sql_cell_track_machine),
	FEW("unit", KY_SQL_STRING, tracks.unit),
	MADE_TEXT("description", ky_sql_cell_track_description),
};

#define OWNED_COUNTER_COLUMNS(title)                                                               \
	ID("id"), FEW("name", KY_SQL_STRING, tracks.name),                                         \
		FEW("type", KY_SQL_STRING, tracks.type),                                           \
		FEW("parent_id", KY_SQL_REF, tracks.parent),                                       \
		COLUMN("source_arg_set_id", KY_SQL_SET, tracks.args),                              \
		MADE("machine_id", ky_sql_cell_track_machine),                                     \
		FEW("unit", KY_SQL_STRING, tracks.unit),                                           \
		MADE_TEXT("description", ky_sql_cell_track_description),                           \
		FEW(title, KY_SQL_REF, tracks.owner)

static const struct ky_sql_column thread_counter_columns[] = {OWNED_COUNTER_COLUMNS("utid")};
static const struct ky_sql_column process_counter_columns[] = {OWNED_COUNTER_COLUMNS("upid")};
static const struct ky_sql_column cpu_counter_columns[] = {OWNED_COUNTER_COLUMNS("cpu")};

static const struct ky_sql_column counter_columns[] = {
	ID("id"),
	COLUMN("ts", KY_SQL_I64, counters.ts),
	INDEXED("track_id", KY_SQL_U32, counters.track, KY_INDEX_COUNTER_TRACK),
	COLUMN("value", KY_SQL_REAL, counters.value),
	COLUMN("arg_set_id", KY_SQL_SET, counters.args),
};

static const struct ky_sql_column args_columns[] = {
	ID("id"),
	{"arg_set_id", KY_SQL_MADE, 0, KY_SQL_INDEX_ARGS, 0, ky_sql_cell_arg_set},
	MADE_TEXT("flat_key", ky_sql_cell_arg_flat_key),
	FEW("key", KY_SQL_STRING, args.key),
	MADE("int_value", ky_sql_cell_arg_int),
	MADE_TEXT("string_value", ky_sql_cell_arg_string),
	MADE("real_value", ky_sql_cell_arg_real),
	MADE_TEXT("value_type", ky_sql_cell_arg_type),
	MADE_TEXT("display_value", ky_sql_cell_arg_display),
};

#define FLOW_COLUMNS                                                                               \
	ID("id"), {"slice_out", KY_SQL_REF, 0, KY_INDEX_FLOW_OUT, AT(flows.out), NULL},            \
		{"slice_in", KY_SQL_REF, 0, KY_INDEX_FLOW_IN, AT(flows.in), NULL},                 \
		COLUMN("trace_id", KY_SQL_U64, flows.id), NONE("arg_set_id")

static const struct ky_sql_column flow_columns[] = {
	FLOW_COLUMNS,
	HIDDEN("name", KY_SQL_STRING, flows.name),
	HIDDEN("category", KY_SQL_STRING, flows.category),
};
static const struct ky_sql_column flow_function_columns[] = {FLOW_COLUMNS, ARGUMENT("_of")};

#define SCHED_COLUMNS                                                                              \
	ID("id"), COLUMN("ts", KY_SQL_I64, sched.ts), COLUMN("dur", KY_SQL_I64, sched.dur),        \
		INDEXED("cpu", KY_SQL_U32, sched.cpu, KY_INDEX_SCHED_CPU),                         \
		INDEXED("utid", KY_SQL_REF, sched.thread, KY_INDEX_SCHED_THREAD),                  \
		FEW("end_state", KY_SQL_STRING, sched.end_state),                                  \
		FEW("priority", KY_SQL_I32, sched.priority),                                       \
		INDEXED("ucpu", KY_SQL_U32, sched.cpu, KY_INDEX_SCHED_CPU)

static const struct ky_sql_column sched_slice_columns[] = {SCHED_COLUMNS};
static const struct ky_sql_column sched_columns[] = {
	SCHED_COLUMNS,
	MADE("ts_end", ky_sql_cell_sched_end),
};

static const struct ky_sql_column thread_state_columns[] = {
	ID("id"),
	COLUMN("ts", KY_SQL_I64, thread_states.ts),
	COLUMN("dur", KY_SQL_I64, thread_states.dur),
	FEW("cpu", KY_SQL_REF, thread_states.cpu),
	INDEXED("utid", KY_SQL_REF, thread_states.thread, KY_INDEX_STATE_THREAD),
	FEW("state", KY_SQL_STRING, thread_states.state),
	FEW("io_wait", KY_SQL_I8_OR, thread_states.io_wait),
	FEW("blocked_function", KY_SQL_STRING, thread_states.blocked_function),
	FEW("waker_utid", KY_SQL_REF, thread_states.waker),
	NONE("waker_id"),
	NONE("irq_context"),
	FEW("ucpu", KY_SQL_REF, thread_states.cpu),
};

static const struct ky_sql_column ftrace_event_columns[] = {
	ID("id"),
	COLUMN("ts", KY_SQL_I64, raw_events.ts),
	FEW("name", KY_SQL_STRING, raw_events.name),
	FEW("cpu", KY_SQL_REF, raw_events.cpu),
	FEW("utid", KY_SQL_REF, raw_events.thread),
	COLUMN("arg_set_id", KY_SQL_SET, raw_events.args),
	NONE("common_flags"),
	FEW("ucpu", KY_SQL_REF, raw_events.cpu),
};

static const struct ky_sql_column stack_sample_columns[] = {
	ID("id"),
	COLUMN("ts", KY_SQL_I64, samples.ts),
	FEW("callsite_id", KY_SQL_REF, samples.callsite),
	INDEXED("utid", KY_SQL_REF, samples.thread, KY_INDEX_SAMPLE_THREAD),
	NONE("process_priority"),
	HIDDEN("weight", KY_SQL_REAL, samples.weight),
	HIDDEN("event", KY_SQL_STRING, samples.event),
};

static const struct ky_sql_column perf_sample_columns[] = {
	ID("id"),
	COLUMN("ts", KY_SQL_I64, samples.ts),
	INDEXED("utid", KY_SQL_REF, samples.thread, KY_INDEX_SAMPLE_THREAD),
	FEW("cpu", KY_SQL_REF, samples.cpu),
	MADE_TEXT("cpu_mode", ky_sql_cell_cpu_mode),
	FEW("callsite_id", KY_SQL_REF, samples.callsite),
	NONE("unwind_error"),
	NONE("perf_session_id"),
	HIDDEN("weight", KY_SQL_REAL, samples.weight),
	HIDDEN("event", KY_SQL_STRING, samples.event),
};

static const struct ky_sql_column callsite_columns[] = {
	ID("id"),
	FEW("depth", KY_SQL_U32, callsites.depth),
	COLUMN("parent_id", KY_SQL_REF, callsites.parent),
	COLUMN("frame_id", KY_SQL_U32, callsites.frame),
};

static const struct ky_sql_column frame_columns[] = {
	ID("id"),
	FEW("name", KY_SQL_STRING, frames.name),
	FEW("mapping", KY_SQL_REF, frames.mapping),
	COLUMN("rel_pc", KY_SQL_U64, frames.rel_pc),
	MADE("symbol_set_id", ky_sql_cell_symbol_set),
	NONE("deobfuscated_name"),
};

static const struct ky_sql_column symbol_columns[] = {
	ID("id"),
	ID("symbol_set_id"),
	FEW("name", KY_SQL_STRING, frames.name),
	FEW("source_file", KY_SQL_STRING, frames.file),
	COLUMN("line_number", KY_SQL_SET, frames.line),
	NONE("inlined"),
};

static const struct ky_sql_column mapping_columns[] = {
	ID("id"),
	FEW("build_id", KY_SQL_STRING, mappings.build_id),
	COLUMN("exact_offset", KY_SQL_U64, mappings.offset),
	COLUMN("start_offset", KY_SQL_U64, mappings.offset),
	COLUMN("start", KY_SQL_U64, mappings.start),
	COLUMN("end", KY_SQL_U64, mappings.end),
	COLUMN("load_bias", KY_SQL_U64, mappings.load_bias),
	FEW("name", KY_SQL_STRING, mappings.name),
};

static const struct ky_sql_column log_columns[] = {
	ID("id"),
	COLUMN("ts", KY_SQL_I64, logs.ts),
	FEW("utid", KY_SQL_REF, logs.thread),
	FEW("prio", KY_SQL_U8, logs.priority),
	FEW("tag", KY_SQL_STRING, logs.tag),
	COLUMN("msg", KY_SQL_STRING, logs.message),
};

static const struct ky_sql_column clock_snapshot_columns[] = {
	ID("id"),
	COLUMN("ts", KY_SQL_I64, clock_rows.ts),
	FEW("clock_id", KY_SQL_U64, clock_rows.clock),
	MADE_TEXT("clock_name", ky_sql_cell_clock_name),
	COLUMN("clock_value", KY_SQL_I64, clock_rows.value),
	COLUMN("snapshot_id", KY_SQL_U32, clock_rows.snapshot),
	FEW("machine_id", KY_SQL_U32, clock_rows.machine),
};

static const struct ky_sql_column metadata_columns[] = {
	ID("id"),
	FEW("name", KY_SQL_STRING, metadata.key),
	MADE_TEXT("key_type", ky_sql_cell_metadata_type),
	MADE("int_value", ky_sql_cell_metadata_int),
	FEW("str_value", KY_SQL_STRING, metadata.text),
	NONE("machine_id"),
	NONE("trace_id"),
};

static const struct ky_sql_column stats_columns[] = {
	FEW("name", KY_SQL_STRING, problems.name),
	NONE("idx"),
	MADE_TEXT("severity", ky_sql_cell_severity),
	MADE_TEXT("source", ky_sql_cell_source),
	COLUMN("value", KY_SQL_U64, problems.number),
	FEW("description", KY_SQL_STRING, problems.first),
	{"key", KY_SQL_NULL, KY_SQL_HIDDEN, KY_SQL_NO_INDEX, 0, NULL},
};

static const struct ky_sql_column problem_columns[] = {
	ID("id"),
	FEW("name", KY_SQL_STRING, problems.name),
	MADE_TEXT("severity", ky_sql_cell_severity),
	COLUMN("number", KY_SQL_U64, problems.number),
	MADE("first_at", ky_sql_cell_first_at),
	FEW("first", KY_SQL_STRING, problems.first),
	FEW("input", KY_SQL_STRING, problems.input),
};

static const struct ky_sql_column loss_columns[] = {
	ID("id"),
	COLUMN("ts", KY_SQL_TIME, losses.ts),
	MADE("events", ky_sql_cell_lost_events),
	FEW("utid", KY_SQL_REF, losses.thread),
	FEW("cpu", KY_SQL_REF, losses.cpu),
	FEW("what", KY_SQL_STRING, losses.what),
};

/* ---- which rows ---- */

static bool holds_instant(const struct ky_trace *trace, uint32_t row)
{
	return trace->slices.dur[row] == 0;
}

static bool holds_counter(const struct ky_trace *trace, uint32_t row)
{
	return ky_track_is_counter(trace->tracks.kind[row]);
}

#define HOLDS_KIND(function, wanted)                                                               \
	static bool function(const struct ky_trace *trace, uint32_t row)                           \
	{                                                                                          \
		return trace->tracks.kind[row] == (wanted);                                        \
	}
HOLDS_KIND(holds_thread_track, KY_TRACK_THREAD)
HOLDS_KIND(holds_process_track, KY_TRACK_PROCESS)
HOLDS_KIND(holds_cpu_track, KY_TRACK_CPU)
HOLDS_KIND(holds_thread_counter, KY_TRACK_THREAD_COUNTER)
HOLDS_KIND(holds_process_counter, KY_TRACK_PROCESS_COUNTER)
HOLDS_KIND(holds_cpu_counter, KY_TRACK_CPU_COUNTER)

/* Samples with a CPU are perf's; the others come from profilers inside programs. */
static bool holds_perf_sample(const struct ky_trace *trace, uint32_t row)
{
	return trace->samples.cpu[row] != KY_NONE ||
	       trace->samples.mode[row] != KY_CPU_MODE_UNKNOWN;
}

static bool holds_stack_sample(const struct ky_trace *trace, uint32_t row)
{
	return !holds_perf_sample(trace, row);
}

static bool holds_symbol(const struct ky_trace *trace, uint32_t row)
{
	return trace->frames.file[row] != 0;
}

#define COLUMNS(columns) columns, (uint8_t)(sizeof(columns) / sizeof((columns)[0]))
#define ALL NULL, NULL
#define SOME(holds) holds, NULL
#define FUNCTION(function) NULL, function

const struct ky_sql_table ky_sql_tables[] = {
	{"slice", AT(slices), true, ALL, COLUMNS(slice_columns)},
	{"slices", AT(slices), true, ALL, COLUMNS(slice_columns)},
	{"instant", AT(slices), true, SOME(holds_instant), COLUMNS(instant_columns)},
	{"thread", AT(threads), false, ALL, COLUMNS(thread_columns)},
	{"process", AT(processes), false, ALL, COLUMNS(process_columns)},
	{"track", AT(tracks), false, ALL, COLUMNS(track_columns)},
	{"thread_track", AT(tracks), false, SOME(holds_thread_track),
	 COLUMNS(thread_track_columns)},
	{"process_track", AT(tracks), false, SOME(holds_process_track),
	 COLUMNS(process_track_columns)},
	{"cpu_track", AT(tracks), false, SOME(holds_cpu_track), COLUMNS(cpu_track_columns)},
	{"counter_track", AT(tracks), false, SOME(holds_counter), COLUMNS(counter_track_columns)},
	{"thread_counter_track", AT(tracks), false, SOME(holds_thread_counter),
	 COLUMNS(thread_counter_columns)},
	{"process_counter_track", AT(tracks), false, SOME(holds_process_counter),
	 COLUMNS(process_counter_columns)},
	{"cpu_counter_track", AT(tracks), false, SOME(holds_cpu_counter),
	 COLUMNS(cpu_counter_columns)},
	{"counter", AT(counters), true, ALL, COLUMNS(counter_columns)},
	{"args", AT(args), false, ALL, COLUMNS(args_columns)},
	{"flow", AT(flows), false, ALL, COLUMNS(flow_columns)},
	{"sched", AT(sched), true, ALL, COLUMNS(sched_columns)},
	{"sched_slice", AT(sched), true, ALL, COLUMNS(sched_slice_columns)},
	{"thread_state", AT(thread_states), false, ALL, COLUMNS(thread_state_columns)},
	{"ftrace_event", AT(raw_events), true, ALL, COLUMNS(ftrace_event_columns)},
	{"raw", AT(raw_events), true, ALL, COLUMNS(ftrace_event_columns)},
	{"cpu_profile_stack_sample", AT(samples), true, SOME(holds_stack_sample),
	 COLUMNS(stack_sample_columns)},
	{"perf_sample", AT(samples), true, SOME(holds_perf_sample), COLUMNS(perf_sample_columns)},
	{"stack_profile_callsite", AT(callsites), false, ALL, COLUMNS(callsite_columns)},
	{"stack_profile_frame", AT(frames), false, ALL, COLUMNS(frame_columns)},
	{"stack_profile_symbol", AT(frames), false, SOME(holds_symbol), COLUMNS(symbol_columns)},
	{"stack_profile_mapping", AT(mappings), false, ALL, COLUMNS(mapping_columns)},
	{"android_logs", AT(logs), true, ALL, COLUMNS(log_columns)},
	{"log", AT(logs), true, ALL, COLUMNS(log_columns)},
	{"clock_snapshot", AT(clock_rows), false, ALL, COLUMNS(clock_snapshot_columns)},
	{"metadata", AT(metadata), false, ALL, COLUMNS(metadata_columns)},
	{"stats", AT(problems), false, ALL, COLUMNS(stats_columns)},
	{"problem", AT(problems), false, ALL, COLUMNS(problem_columns)},
	{"loss", AT(losses), false, ALL, COLUMNS(loss_columns)},
	{"ancestor_slice", AT(slices), true, FUNCTION(ky_sql_ancestors),
	 COLUMNS(slice_function_columns)},
	{"descendant_slice", AT(slices), true, FUNCTION(ky_sql_descendants),
	 COLUMNS(slice_function_columns)},
	{"following_flow", AT(flows), false, FUNCTION(ky_sql_following),
	 COLUMNS(flow_function_columns)},
	{"preceding_flow", AT(flows), false, FUNCTION(ky_sql_preceding),
	 COLUMNS(flow_function_columns)},
	{"directly_connected_flow", AT(flows), false, FUNCTION(ky_sql_connected),
	 COLUMNS(flow_function_columns)},
};

const unsigned ky_sql_tables_count = sizeof(ky_sql_tables) / sizeof(ky_sql_tables[0]);
