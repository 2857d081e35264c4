/* SPDX-License-Identifier: MIT */
/* tables.c: see tables.h. A column that is missing here is in no .kymo file. */
#include "model/tables.h"

#define AT(table, field) (uint16_t) offsetof(struct ky_##table, field)
#define SIZE(table, field) (uint16_t)sizeof(*((struct ky_##table *)0)->field)
#define CELL(table, field, holds, limit, target)                                                   \
	{                                                                                          \
		AT(table, field), SIZE(table, field), #field, KY_HOLDS_##holds, limit, target      \
	}
#define COLUMN(table, field, holds) CELL(table, field, holds, 0, 0)
#define CHOICE(table, field, limit) CELL(table, field, CHOICE, limit, 0)
#define TARGET(of) (uint16_t) offsetof(struct ky_trace, of)
#define ROW(table, field, of) CELL(table, field, ROW, 0, TARGET(of))
#define ROW_OR(table, field, of) CELL(table, field, ROW_OR, 0, TARGET(of))

static const struct ky_column args[] = {
	COLUMN(args, key, STRING),
	CHOICE(args, type, KY_ARG_JSON + 1),
	COLUMN(args, value, VALUE),
};

static const struct ky_column arg_sets[] = {
	COLUMN(arg_sets, first, FIRST),
};

static const struct ky_column processes[] = {
	COLUMN(processes, pid, NUMBER),     COLUMN(processes, name, STRING),
	COLUMN(processes, cmdline, STRING), COLUMN(processes, parent, ABOVE),
	COLUMN(processes, start_ts, TIME),  COLUMN(processes, end_ts, TIME),
	COLUMN(processes, args, SET),       COLUMN(processes, machine, NUMBER),
	COLUMN(processes, uid, MINUS),      COLUMN(processes, sort_index, NUMBER),
	CHOICE(processes, name_from, 5),
};

static const struct ky_column threads[] = {
	COLUMN(threads, tid, NUMBER),        COLUMN(threads, name, STRING),
	ROW_OR(threads, process, processes), COLUMN(threads, start_ts, TIME),
	COLUMN(threads, end_ts, TIME),       COLUMN(threads, machine, NUMBER),
	COLUMN(threads, sort_index, NUMBER), CHOICE(threads, is_main, 2),
	CHOICE(threads, name_from, 5),       CHOICE(threads, is_idle, 2),
};

static const struct ky_column tracks[] = {
	COLUMN(tracks, name, STRING),  CHOICE(tracks, kind, KY_TRACK_CPU_COUNTER + 1),
	COLUMN(tracks, owner, OWNER),  COLUMN(tracks, parent, ABOVE),
	COLUMN(tracks, type, STRING),  COLUMN(tracks, unit, STRING),
	COLUMN(tracks, args, SET),     COLUMN(tracks, id, NUMBER),
	COLUMN(tracks, flags, NUMBER),
};

static const struct ky_column slices[] = {
	COLUMN(slices, ts, ORDER),
	COLUMN(slices, dur, DURATION),
	ROW(slices, track, tracks),
	COLUMN(slices, name, STRING),
	COLUMN(slices, category, STRING),
	COLUMN(slices, parent, BEFORE),
	COLUMN(slices, args, SET),
	COLUMN(slices, depth, NUMBER),
	CHOICE(slices, kind, KY_SLICE_INSTANT + 1),
};

static const struct ky_column counters[] = {
	COLUMN(counters, ts, ORDER),
	COLUMN(counters, value, REAL),
	ROW(counters, track, tracks),
	COLUMN(counters, args, SET),
};

static const struct ky_column flows[] = {
	ROW(flows, out, slices),     ROW(flows, in, slices),          COLUMN(flows, id, NUMBER),
	COLUMN(flows, name, STRING), COLUMN(flows, category, STRING),
};

static const struct ky_column flow_ends[] = {
	ROW(flow_ends, slice, slices),   COLUMN(flow_ends, id, NUMBER),
	COLUMN(flow_ends, name, STRING), COLUMN(flow_ends, category, STRING),
	CHOICE(flow_ends, arrives, 2),
};

static const struct ky_column sched[] = {
	COLUMN(sched, ts, ORDER),         COLUMN(sched, dur, DURATION),
	COLUMN(sched, cpu, CPU),          ROW(sched, thread, threads),
	COLUMN(sched, end_state, STRING), COLUMN(sched, priority, NUMBER),
};

static const struct ky_column thread_states[] = {
	COLUMN(thread_states, ts, TIME),       COLUMN(thread_states, dur, DURATION),
	ROW(thread_states, thread, threads),   COLUMN(thread_states, state, STRING),
	COLUMN(thread_states, cpu, CPU_OR),    ROW_OR(thread_states, waker, threads),
	COLUMN(thread_states, io_wait, MINUS), COLUMN(thread_states, blocked_function, STRING),
};

static const struct ky_column raw_events[] = {
	COLUMN(raw_events, ts, ORDER),  COLUMN(raw_events, name, STRING),
	COLUMN(raw_events, cpu, MINUS), ROW_OR(raw_events, thread, threads),
	COLUMN(raw_events, args, SET),
};

static const struct ky_column mappings[] = {
	COLUMN(mappings, build_id, STRING), COLUMN(mappings, name, STRING),
	COLUMN(mappings, start, NUMBER),    COLUMN(mappings, end, NUMBER),
	COLUMN(mappings, offset, NUMBER),   COLUMN(mappings, load_bias, NUMBER),
};

static const struct ky_column frames[] = {
	COLUMN(frames, name, STRING),   ROW_OR(frames, mapping, mappings),
	COLUMN(frames, rel_pc, NUMBER), COLUMN(frames, file, STRING),
	COLUMN(frames, line, NUMBER),
};

static const struct ky_column callsites[] = {
	COLUMN(callsites, parent, BEFORE),
	ROW(callsites, frame, frames),
	COLUMN(callsites, depth, NUMBER),
};

static const struct ky_column samples[] = {
	COLUMN(samples, ts, ORDER),
	ROW_OR(samples, thread, threads),
	ROW_OR(samples, callsite, callsites),
	COLUMN(samples, cpu, MINUS),
	CHOICE(samples, mode, KY_CPU_MODE_GUEST_USER + 1),
	COLUMN(samples, weight, REAL),
	COLUMN(samples, event, STRING),
};

static const struct ky_column logs[] = {
	COLUMN(logs, ts, ORDER),   ROW_OR(logs, thread, threads), COLUMN(logs, priority, NUMBER),
	COLUMN(logs, tag, STRING), COLUMN(logs, message, STRING),
};

static const struct ky_column losses[] = {
	COLUMN(losses, ts, TIME),   COLUMN(losses, events, NUMBER), ROW_OR(losses, thread, threads),
	COLUMN(losses, cpu, MINUS), COLUMN(losses, what, STRING),
};

static const struct ky_column clock_rows[] = {
	COLUMN(clock_rows, snapshot, NUMBER), COLUMN(clock_rows, ts, TIME),
	COLUMN(clock_rows, clock, NUMBER),    COLUMN(clock_rows, value, NUMBER),
	COLUMN(clock_rows, machine, NUMBER),
};

static const struct ky_column metadata[] = {
	COLUMN(metadata, key, STRING),
	COLUMN(metadata, text, STRING),
	COLUMN(metadata, number, NUMBER),
};

static const struct ky_column problems[] = {
	COLUMN(problems, name, STRING),   CHOICE(problems, severity, KY_ERROR + 1),
	COLUMN(problems, number, NUMBER), COLUMN(problems, first_at, NUMBER),
	COLUMN(problems, first, STRING),  COLUMN(problems, input, STRING),
};

#define TABLE(table, events)                                                                       \
	{                                                                                          \
#table, (uint32_t)offsetof(struct ky_trace, table),                                \
			sizeof(table) / sizeof((table)[0]), table, events                          \
	}

const struct ky_table_spec ky_tables[] = {
	TABLE(args, false),       TABLE(arg_sets, false),     TABLE(processes, false),
	TABLE(threads, false),    TABLE(tracks, false),       TABLE(slices, true),
	TABLE(counters, true),    TABLE(flows, true),         TABLE(flow_ends, false),
	TABLE(sched, true),       TABLE(thread_states, true), TABLE(raw_events, true),
	TABLE(mappings, false),   TABLE(frames, false),       TABLE(callsites, false),
	TABLE(samples, true),     TABLE(logs, true),          TABLE(losses, false),
	TABLE(clock_rows, false), TABLE(metadata, false),     TABLE(problems, false),
};

const uint32_t ky_tables_count = sizeof(ky_tables) / sizeof(ky_tables[0]);
