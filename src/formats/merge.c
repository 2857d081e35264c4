/* SPDX-License-Identifier: MIT */
/*
 * merge.c: puts a finished trace into another one through the intake, so that what belongs together across traces
 * (threads, flows) comes together as if one reader had read all.
 *
 * Numbers of strings, processes, threads, tracks, sets of arguments, frames and callsites are other ones there: map
 * has them, by table.
 */
#include "formats/merge.h"

#include "base/map.h"
#include "formats/address.h"
#include "formats/flow_marks.h"
#include "formats/walk.h"
#include "model/intake.h"
#include "model/kernel.h"
#include "model/tables.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

struct trace_merge {
	struct ky_trace *into;
	const struct ky_trace *from;
	int64_t offset;
	uint32_t machine;
	uint64_t number; /* of this merge, to keep its flows apart */
	uint32_t *strings, *processes, *threads, *tracks, *sets, *mappings, *frames, *callsites;
	struct ky_flow_marks flow_marks;
	bool kernel; /* what the kernel said is wanted */
};

/* ---- numbers ---- */

static uint32_t string_of(struct trace_merge *m, uint32_t string)
{
	if (!string)
		return 0;
	if (!m->strings[string])
		m->strings[string] = ky_string(m->into, ky_text_of(m->from, string),
					       ky_strings_bytes(&m->from->strings, string));
	return m->strings[string];
}

static int64_t time_of(const struct trace_merge *m, int64_t ts)
{
	int64_t moved;
	if (ts == KY_TIME_NONE || __builtin_add_overflow(ts, m->offset, &moved))
		return ts;
	return moved;
}

static uint32_t mapped(const uint32_t *map, uint32_t row)
{
	return row == KY_NONE ? KY_NONE : map[row];
}

static void put_arg(struct trace_merge *m, uint32_t arg)
{
	const struct ky_args *args = &m->from->args;
	const uint32_t key = string_of(m, args->key[arg]);
	const enum ky_arg_type type = args->type[arg];
	const uint64_t value = args->value[arg];
	ky_args_add(m->into, key, type,
		    type >= KY_ARG_STRING ? string_of(m, (uint32_t)value) : value);
}

static uint32_t set_of(struct trace_merge *m, uint32_t set)
{
	if (!set)
		return 0;
	if (!m->sets[set]) {
		const uint32_t end = ky_arg_set_end(m->from, set);
		ky_args_begin(m->into);
		for (uint32_t arg = ky_arg_set_first(m->from, set); arg < end; arg++)
			put_arg(m, arg);
		m->sets[set] = ky_args_end(m->into);
	}
	return m->sets[set];
}

/* ---- processes and threads ---- */

static bool is_later(int64_t a, int64_t b)
{
	return b == KY_TIME_NONE || a < b;
}

static void put_processes(struct trace_merge *m)
{
	const struct ky_processes *p = &m->from->processes;
	struct ky_processes *q = &m->into->processes;
	struct ky_pair_map seen = {0};
	for (uint32_t i = 0; i < p->rows.count; i++) {
		bool made = true;
		ky_trace_machine(m->into, m->machine + p->machine[i]);
		ky_pair_map_add(&seen, (uint64_t)p->pid[i], p->machine[i], &made);
		const uint32_t row =
			made ? ky_process(m->into, p->pid[i]) : ky_process_new(m->into, p->pid[i]);
		m->processes[i] = row;
		if (p->name[i])
			ky_process_name(m->into, row, string_of(m, p->name[i]),
					(enum ky_name_from)p->name_from[i]);
		if (row >= q->rows.count)
			continue;
		if (p->cmdline[i])
			q->cmdline[row] = string_of(m, p->cmdline[i]);
		if (p->parent[i] != KY_NONE && p->parent[i] < i)
			q->parent[row] = m->processes[p->parent[i]];
		if (p->start_ts[i] != KY_TIME_NONE &&
		    is_later(time_of(m, p->start_ts[i]), q->start_ts[row]))
			q->start_ts[row] = time_of(m, p->start_ts[i]);
		if (p->uid[i] >= 0)
			q->uid[row] = p->uid[i];
		if (p->args[i])
			q->args[row] = set_of(m, p->args[i]);
	}
	ky_pair_map_free(&seen);
}

static uint32_t thread_row(struct trace_merge *m, uint32_t i, bool first)
{
	const struct ky_threads *t = &m->from->threads;
	const uint32_t process = mapped(m->processes, t->process[i]);
	if (!first)
		return ky_thread_new(m->into, process, t->tid[i]);
	if (t->process[i] == KY_NONE)
		return ky_thread_by_tid(m->into, t->tid[i]);
	return ky_thread(m->into, m->from->processes.pid[t->process[i]], t->tid[i]);
}

static void put_threads(struct trace_merge *m)
{
	const struct ky_threads *t = &m->from->threads;
	struct ky_threads *u = &m->into->threads;
	struct ky_pair_map seen = {0};
	for (uint32_t i = 0; i < t->rows.count; i++) {
		bool made = true;
		const uint64_t pid = t->process[i] == KY_NONE
					     ? UINT64_MAX
					     : (uint64_t)m->processes[t->process[i]];
		ky_trace_machine(m->into, m->machine + t->machine[i]);
		ky_pair_map_add(&seen, (uint64_t)t->tid[i], pid, &made);
		const uint32_t row = thread_row(m, i, made);
		m->threads[i] = row;
		if (t->name[i])
			ky_thread_name(m->into, row, string_of(m, t->name[i]),
				       (enum ky_name_from)t->name_from[i]);
		if (row >= u->rows.count)
			continue;
		u->is_idle[row] = t->is_idle[i];
		if (t->start_ts[i] != KY_TIME_NONE)
			u->start_ts[row] = time_of(m, t->start_ts[i]);
		if (t->end_ts[i] != KY_TIME_NONE)
			u->end_ts[row] = time_of(m, t->end_ts[i]);
	}
	ky_pair_map_free(&seen);
}

/* ---- tracks ---- */

static uint32_t owner_of(const struct trace_merge *m, uint32_t track)
{
	const uint32_t owner = m->from->tracks.owner[track];
	switch (m->from->tracks.kind[track]) {
	case KY_TRACK_PROCESS:
	case KY_TRACK_PROCESS_COUNTER:
		return mapped(m->processes, owner);
	case KY_TRACK_THREAD:
	case KY_TRACK_THREAD_COUNTER:
		return mapped(m->threads, owner);
	default:
		return owner;
	}
}

static uint32_t track_of(struct trace_merge *m, uint32_t track, const struct ky_address *address)
{
	const struct ky_tracks *t = &m->from->tracks;
	const struct ky_track_spec spec = {.kind = t->kind[track],
					   .flags = t->flags[track],
					   .owner = owner_of(m, track),
					   .name = string_of(m, t->name[track]),
					   .type = string_of(m, t->type[track]),
					   .id = t->id[track]};
	if (ky_track_is_counter(spec.kind))
		return ky_track(m->into, &spec);
	if (address->form == KY_AT_THREAD && spec.owner != KY_NONE)
		return ky_track_of_thread(m->into, spec.owner);
	return ky_track_new(m->into, &spec);
}

static int put_tracks(struct trace_merge *m)
{
	const struct ky_tracks *t = &m->from->tracks;
	struct ky_tracks *u = &m->into->tracks;
	struct ky_addresses addresses;
	const int error = ky_addresses_open(&addresses, m->from, false);
	if (error)
		return error;
	for (uint32_t i = 0; i < t->rows.count; i++) {
		const uint32_t row = track_of(m, i, &addresses.tracks[i]);
		m->tracks[i] = row;
		if (row >= u->rows.count)
			continue;
		if (t->parent[i] != KY_NONE && t->parent[i] < i)
			u->parent[row] = m->tracks[t->parent[i]];
		if (t->unit[i])
			u->unit[row] = string_of(m, t->unit[i]);
		if (t->args[i])
			u->args[row] = set_of(m, t->args[i]);
	}
	ky_addresses_close(&addresses);
	return 0;
}

/* ---- events ---- */

static void put_flow(struct trace_merge *m, int64_t ts, uint32_t track, enum ky_flow_step step,
		     uint64_t id, uint32_t category, uint32_t name, uint64_t scope)
{
	const uint64_t key =
		ky_flow_key(m->into, id, string_of(m, category), string_of(m, name), scope);
	ky_put_flow(m->into, ts, track, step, KY_BIND_LAST, key);
}

/*
 * Arrows that were whole stay what they are, by a scope of their own; ends that were loose have one scope for
 * all traces, so that they may meet.
 */
static void put_flows(struct trace_merge *m, uint32_t slice, int64_t ts, uint32_t track)
{
	static const enum ky_flow_step steps[] = {KY_FLOW_BEGIN, KY_FLOW_STEP, KY_FLOW_END};
	uint32_t count;
	const struct ky_flow_mark *marks = ky_flow_marks_of(&m->flow_marks, slice, false, &count);
	for (uint32_t i = 0; i < count; i++)
		put_flow(m, ts, track, steps[marks[i].phase], marks[i].id, marks[i].category,
			 marks[i].name,
			 marks[i].loose ? 0 : ky_hash_pair(m->number, (uint64_t)marks[i].flow + 1));
}

static void put_slice(struct trace_merge *m, const struct ky_walk_item *item)
{
	const struct ky_slices *s = &m->from->slices;
	const uint32_t row = item->row;
	const uint32_t track = m->tracks[s->track[row]];
	const int64_t ts = time_of(m, item->ts);
	const uint32_t category = string_of(m, s->category[row]), name = string_of(m, s->name[row]);
	if (item->what == KY_WALK_END) {
		ky_put_end(m->into, ts, track, item->named ? category : 0, item->named ? name : 0,
			   0);
		return;
	}
	if (item->what == KY_WALK_BEGIN)
		ky_put_begin(m->into, ts, track, category, name, set_of(m, s->args[row]));
	else
		ky_put_instant(m->into, ts, track, category, name, set_of(m, s->args[row]));
	put_flows(m, row, ts, track);
}

static void put_sample(struct trace_merge *m, const struct ky_walk_item *item)
{
	const struct ky_samples *s = &m->from->samples;
	const uint32_t row = item->row;
	ky_put_sample(m->into, time_of(m, item->ts), mapped(m->threads, s->thread[row]),
		      mapped(m->callsites, s->callsite[row]), s->cpu[row],
		      (enum ky_cpu_mode)s->mode[row], s->weight[row], string_of(m, s->event[row]));
}

/* ---- scheduling ---- */

static void put_cells(struct trace_merge *m, const void *cells, void *to,
		      const struct ky_column *column, uint32_t rows)
{
	int64_t *times = to;
	uint32_t *numbers = to;
	if (rows)
		memcpy(to, cells, (size_t)rows * column->item_bytes);
	for (uint32_t i = 0; i < rows; i++) {
		if (column->holds == KY_HOLDS_ORDER || column->holds == KY_HOLDS_TIME)
			times[i] = time_of(m, times[i]);
		else if (column->holds == KY_HOLDS_STRING)
			numbers[i] = string_of(m, numbers[i]);
		else if (column->holds == KY_HOLDS_ROW || column->holds == KY_HOLDS_ROW_OR)
			numbers[i] = mapped(m->threads, numbers[i]); /* all are threads */
	}
}

/* Put a table as it is: that of one trace only, for what runs on one CPU is one thing at a time. */
static void put_table(struct trace_merge *m, const void *table)
{
	const struct ky_table_spec *spec = ky_tables_find(m->from, table);
	const uint32_t rows = ((const struct ky_rows *)table)->count;
	struct ky_rows *into = ky_table_of(m->into, spec);
	if (!m->kernel || into->count)
		return;
	if (!ky_rows_reserve(into, spec->columns, spec->columns_count, rows)) {
		m->into->error = -ENOMEM;
		return;
	}
	into->count = rows;
	for (uint32_t i = 0; i < spec->columns_count; i++)
		put_cells(m, *ky_column_of(ky_table_of(m->from, spec), &spec->columns[i]),
			  *ky_column_of(into, &spec->columns[i]), &spec->columns[i], rows);
}

static void put_raw(struct trace_merge *m, const struct ky_walk_item *item)
{
	const struct ky_raw_events *r = &m->from->raw_events;
	const uint32_t thread = r->thread[item->row];
	ky_put_raw(m->into, time_of(m, item->ts), r->cpu[item->row],
		   thread == KY_NONE ? -1 : (int32_t)m->from->threads.tid[thread],
		   string_of(m, r->name[item->row]), set_of(m, r->args[item->row]));
}

static void put_item(struct trace_merge *m, const struct ky_walk_item *item)
{
	const struct ky_trace *from = m->from;
	const uint32_t row = item->row;
	switch (item->what) {
	case KY_WALK_BEGIN:
	case KY_WALK_END:
	case KY_WALK_INSTANT:
		put_slice(m, item);
		break;
	case KY_WALK_COUNTER:
		ky_put_counter_args(m->into, time_of(m, item->ts),
				    m->tracks[from->counters.track[row]], from->counters.value[row],
				    set_of(m, from->counters.args[row]));
		break;
	case KY_WALK_SAMPLE:
		put_sample(m, item);
		break;
	case KY_WALK_LOG:
		ky_put_log(m->into, time_of(m, item->ts),
			   mapped(m->threads, from->logs.thread[row]), from->logs.priority[row],
			   string_of(m, from->logs.tag[row]),
			   string_of(m, from->logs.message[row]));
		break;
	case KY_WALK_RAW:
		if (m->kernel)
			put_raw(m, item);
		break;
	default:
		break;
	}
}

/* ---- everything but events ---- */

static void put_stacks(struct trace_merge *m)
{
	const struct ky_trace *f = m->from;
	for (uint32_t i = 0; i < f->mappings.rows.count; i++) {
		const struct ky_mapping_spec spec = {string_of(m, f->mappings.build_id[i]),
						     string_of(m, f->mappings.name[i]),
						     f->mappings.start[i],
						     f->mappings.end[i],
						     f->mappings.offset[i],
						     f->mappings.load_bias[i]};
		m->mappings[i] = ky_mapping(m->into, &spec);
	}
	for (uint32_t i = 0; i < f->frames.rows.count; i++)
		m->frames[i] = ky_frame(m->into, mapped(m->mappings, f->frames.mapping[i]),
					f->frames.rel_pc[i], string_of(m, f->frames.name[i]),
					string_of(m, f->frames.file[i]), f->frames.line[i]);
	/* A parent comes before its children. */
	for (uint32_t i = 0; i < f->callsites.rows.count; i++)
		m->callsites[i] = ky_callsite(m->into, mapped(m->callsites, f->callsites.parent[i]),
					      m->frames[f->callsites.frame[i]]);
}

static void put_clocks(struct trace_merge *m)
{
	const struct ky_clock_rows *c = &m->from->clock_rows;
	/* The clocks of another machine are not those of this one. */
	if (m->machine)
		return;
	for (uint32_t from = 0, to; from < c->rows.count; from = to) {
		struct ky_clock_reading readings[16];
		uint32_t count = 0;
		for (to = from; to < c->rows.count && c->snapshot[to] == c->snapshot[from]; to++)
			if (count < 16)
				readings[count++] =
					(struct ky_clock_reading){c->clock[to], c->value[to]};
		ky_put_clocks(m->into, time_of(m, c->ts[from]), readings, count);
	}
}

/* Keep what was wrong with the input. */
static void put_problems(struct trace_merge *m)
{
	const struct ky_problems *const problems = &m->from->problems;
	for (uint32_t i = 0; i < problems->rows.count; i++) {
		const char *const name = ky_text_of(m->from, problems->name[i]);
		const enum ky_severity severity = (enum ky_severity)problems->severity[i];
		if (!name || !problems->number[i])
			continue;
		ky_problem(m->into, name, severity, problems->first_at[i], "%s",
			   problems->first[i] ? ky_text_of(m->from, problems->first[i]) : "");
		ky_problems(m->into, name, severity, problems->first_at[i],
			    problems->number[i] - 1);
	}
}

static void put_rest(struct trace_merge *m)
{
	put_problems(m);
	const struct ky_trace *f = m->from;
	for (uint32_t i = 0; i < f->losses.rows.count; i++)
		ky_put_lost_text(m->into, time_of(m, f->losses.ts[i]),
				 mapped(m->threads, f->losses.thread[i]), f->losses.cpu[i],
				 f->losses.events[i],
				 f->losses.what[i] ? ky_text_of(f, f->losses.what[i]) : "lost");
	for (uint32_t i = 0; i < f->metadata.rows.count; i++) {
		const char *key = ky_text_of(f, f->metadata.key[i]);
		if (key && f->metadata.text[i])
			ky_put_metadata(m->into, key, string_of(m, f->metadata.text[i]));
		else if (key)
			ky_put_metadata_number(m->into, key, f->metadata.number[i]);
	}
}

static int put_events(struct trace_merge *m)
{
	struct ky_export_left left = {0};
	struct ky_walk *walk;
	struct ky_walk_item item;
	int error = ky_flow_marks_open(&m->flow_marks, m->from, NULL, NULL, &left);
	if (!error)
		error = ky_walk_open(&walk, m->from, NULL, true, &left);
	if (error)
		return error;
	while (ky_walk_next(walk, &item))
		put_item(m, &item);
	put_table(m, &m->from->sched);
	put_table(m, &m->from->thread_states);
	error = ky_walk_error(walk);
	ky_walk_close(&walk);
	return error;
}

static int open_maps(struct trace_merge *m)
{
	const struct ky_trace *f = m->from;
	const struct {
		uint32_t **map;
		uint32_t count;
	} maps[] = {
		{&m->strings, f->strings.count},      {&m->processes, f->processes.rows.count},
		{&m->threads, f->threads.rows.count}, {&m->tracks, f->tracks.rows.count},
		{&m->sets, f->arg_sets.rows.count},   {&m->mappings, f->mappings.rows.count},
		{&m->frames, f->frames.rows.count},   {&m->callsites, f->callsites.rows.count},
	};
	for (uint32_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		*maps[i].map = calloc((size_t)maps[i].count + 1, sizeof(uint32_t));
		if (!*maps[i].map)
			return -ENOMEM;
	}
	return 0;
}

static void close_maps(struct trace_merge *m)
{
	free(m->strings);
	free(m->processes);
	free(m->threads);
	free(m->tracks);
	free(m->sets);
	free(m->mappings);
	free(m->frames);
	free(m->callsites);
	ky_flow_marks_close(&m->flow_marks);
}

static _Atomic uint64_t merges;

int ky_merge_add(struct ky_trace *into, const struct ky_trace *from, int64_t offset_ns,
		 uint32_t machine, bool kernel)
{
	struct trace_merge m = {.into = into,
				.from = from,
				.offset = offset_ns,
				.machine = machine,
				.number = atomic_fetch_add(&merges, 1) + 1,
				.kernel = kernel};
	int error = open_maps(&m);
	if (!error) {
		put_processes(&m);
		put_threads(&m);
		put_stacks(&m);
		put_clocks(&m);
		put_rest(&m);
		error = put_tracks(&m);
	}
	if (!error)
		error = put_events(&m);
	ky_trace_machine(into, 0);
	close_maps(&m);
	return error ? error : into->error;
}
