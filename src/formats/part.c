/* SPDX-License-Identifier: MIT */
/*
 * part.c: see part.h.
 *
 *   table ─▶ numbers of the rows that stay ─▶ their cells ─▶ edges cut, strings, sets and slices by their new numbers
 *
 * Processes, threads, tracks and what describes the trace stay as they are; strings and sets of arguments stay where
 * something uses them. A flow of which one end stays becomes a loose end.
 */
#include "formats/part.h"

#include "base/array.h"
#include "formats/walk.h"
#include "model/intake.h"
#include "model/tables.h"

#include <errno.h>
#include <stdlib.h>

struct part {
	const struct ky_trace *from;
	struct ky_trace *into;
	const struct ky_export_selection *selection;
	uint32_t *strings, *sets, *slices; /* new numbers; of sets and strings 0: none yet */
	uint32_t *rows;                    /* that stay, of the table at hand */
	uint64_t rows_room;
	uint32_t rows_count;
};

bool ky_part_is_all(const struct ky_export_selection *s)
{
	return s->from_ns == KY_TIME_NONE && s->to_ns == KY_TIME_NONE && !s->tracks &&
	       !s->categories && !s->threads;
}

/* ---- rows that stay ---- */

static void keep(struct part *p, uint32_t row)
{
	if (!KY_ARRAY_ADD(p->rows, p->rows_count, p->rows_room, row))
		p->into->error = -ENOMEM;
}

static int64_t end_of(int64_t ts, int64_t dur)
{
	int64_t end;
	return dur < 0 || __builtin_add_overflow(ts, dur, &end) ? INT64_MAX : end;
}

static bool wants_slice(const struct part *p, uint32_t row)
{
	const struct ky_slices *s = &p->from->slices;
	const struct ky_export_selection *selection = p->selection;
	return ky_selected_range(selection, s->ts[row], end_of(s->ts[row], s->dur[row])) &&
	       (!selection->tracks || selection->tracks[s->track[row]]) &&
	       (!selection->categories || selection->categories[s->category[row]]);
}

static void keep_slices(struct part *p)
{
	for (uint32_t i = 0; i < p->from->slices.rows.count; i++) {
		p->slices[i] = KY_NONE;
		if (!wants_slice(p, i))
			continue;
		p->slices[i] = p->rows_count;
		keep(p, i);
	}
}

/* A part begins with the values that its counters have there. */
static void keep_counters(struct part *p)
{
	const struct ky_counters *c = &p->from->counters;
	const struct ky_export_selection *s = p->selection;
	const uint32_t tracks = p->from->tracks.rows.count;
	const bool carries = s->cut && s->from_ns != KY_TIME_NONE;
	uint32_t *last = carries ? calloc((size_t)tracks + 1, sizeof(*last)) : NULL;
	if (carries && !last)
		p->into->error = -ENOMEM;
	for (uint32_t i = 0; last && i < c->rows.count && c->ts[i] <= s->from_ns; i++)
		last[c->track[i]] = c->ts[i] < s->from_ns ? i + 1 : 0;
	for (uint32_t i = 0; last && i < tracks; i++)
		if (last[i] && (!s->tracks || s->tracks[i]))
			keep(p, last[i] - 1);
	for (uint32_t i = 0; i < c->rows.count; i++)
		if (ky_selected_range(s, c->ts[i], c->ts[i]) &&
		    (!s->tracks || s->tracks[c->track[i]]))
			keep(p, i);
	free(last);
}

static void keep_of_threads(struct part *p, const struct ky_rows *rows, const int64_t *ts,
			    const int64_t *dur, const uint32_t *thread)
{
	for (uint32_t i = 0; i < rows->count; i++) {
		const bool in =
			ts[i] == KY_TIME_NONE ||
			ky_selected_range(p->selection, ts[i], dur ? end_of(ts[i], dur[i]) : ts[i]);
		if (in && ky_selected_thread(p->selection, thread[i]))
			keep(p, i);
	}
}

static void keep_flows(struct part *p)
{
	const struct ky_flows *f = &p->from->flows;
	for (uint32_t i = 0; i < f->rows.count; i++)
		if (p->slices[f->out[i]] != KY_NONE && p->slices[f->in[i]] != KY_NONE)
			keep(p, i);
}

static void keep_flow_ends(struct part *p)
{
	const struct ky_flow_ends *f = &p->from->flow_ends;
	for (uint32_t i = 0; i < f->rows.count; i++)
		if (p->slices[f->slice[i]] != KY_NONE)
			keep(p, i);
}

static void keep_rows(struct part *p, const void *table)
{
	const struct ky_trace *t = p->from;
	p->rows_count = 0;
	if (table == &t->slices)
		keep_slices(p);
	else if (table == &t->counters)
		keep_counters(p);
	else if (table == &t->flows)
		keep_flows(p);
	else if (table == &t->flow_ends)
		keep_flow_ends(p);
	else if (table == &t->sched)
		keep_of_threads(p, table, t->sched.ts, t->sched.dur, t->sched.thread);
	else if (table == &t->thread_states)
		keep_of_threads(p, table, t->thread_states.ts, t->thread_states.dur,
				t->thread_states.thread);
	else if (table == &t->raw_events)
		keep_of_threads(p, table, t->raw_events.ts, NULL, t->raw_events.thread);
	else if (table == &t->samples)
		keep_of_threads(p, table, t->samples.ts, NULL, t->samples.thread);
	else if (table == &t->logs)
		keep_of_threads(p, table, t->logs.ts, NULL, t->logs.thread);
	else if (table == &t->losses)
		keep_of_threads(p, table, t->losses.ts, NULL, t->losses.thread);
	else
		for (uint32_t i = 0; i < ((const struct ky_rows *)table)->count; i++)
			keep(p, i);
}

/* ---- cells ---- */

static uint32_t string_of(struct part *p, uint32_t string)
{
	if (string && !p->strings[string])
		p->strings[string] = ky_string(p->into, ky_text_of(p->from, string),
					       ky_strings_bytes(&p->from->strings, string));
	return string ? p->strings[string] : 0;
}

static uint32_t set_of(struct part *p, uint32_t set)
{
	const struct ky_args *args = &p->from->args;
	const uint32_t first = ky_arg_set_first(p->from, set);
	const uint32_t count = ky_arg_set_end(p->from, set) - first;
	if (!set || p->sets[set])
		return set ? p->sets[set] : 0;
	uint32_t *keys = malloc(((size_t)count + 1) * sizeof(*keys));
	uint64_t *values = malloc(((size_t)count + 1) * sizeof(*values));
	for (uint32_t i = 0; keys && values && i < count; i++) {
		const bool text = args->type[first + i] >= KY_ARG_STRING;
		const uint64_t value = args->value[first + i];
		keys[i] = string_of(p, args->key[first + i]);
		values[i] = text ? string_of(p, (uint32_t)value) : value;
	}
	if (keys && values)
		p->sets[set] = ky_args_set(p->into, count, keys, args->type + first, values);
	else
		p->into->error = -ENOMEM;
	free(keys);
	free(values);
	return p->sets[set];
}

static void copy_cells(struct part *p, const void *from, void *to, const struct ky_column *column)
{
	const char *cells = *ky_column_of((void *)(uintptr_t)from, column);
	char *copies = *ky_column_of(to, column);
	const size_t bytes = column->item_bytes;
	for (uint32_t i = 0; i < p->rows_count; i++)
		memcpy(copies + i * bytes, cells + p->rows[i] * bytes, bytes);
	uint32_t *numbers = (uint32_t *)(void *)copies;
	for (uint32_t i = 0; column->holds == KY_HOLDS_STRING && i < p->rows_count; i++)
		numbers[i] = string_of(p, numbers[i]);
	for (uint32_t i = 0; column->holds == KY_HOLDS_SET && i < p->rows_count; i++)
		numbers[i] = set_of(p, numbers[i]);
	for (uint32_t i = 0;
	     column->target == offsetof(struct ky_trace, slices) && i < p->rows_count; i++)
		numbers[i] = p->slices[numbers[i]];
}

static int copy_table(struct part *p, const struct ky_table_spec *spec)
{
	const void *from = ky_table_of(p->from, spec);
	struct ky_rows *to = ky_table_of(p->into, spec);
	if (from == &p->from->args || from == &p->from->arg_sets)
		return 0;
	keep_rows(p, from);
	if (p->into->error ||
	    !ky_rows_reserve(to, spec->columns, spec->columns_count, p->rows_count))
		return -ENOMEM;
	to->count = p->rows_count;
	for (uint32_t i = 0; p->rows_count && i < spec->columns_count; i++)
		copy_cells(p, from, to, &spec->columns[i]);
	return p->into->error;
}

/* ---- edges ---- */

static void cut(const struct ky_export_selection *s, const struct ky_rows *rows, int64_t *ts,
		int64_t *dur)
{
	for (uint32_t i = 0; s->cut && i < rows->count; i++) {
		int64_t end = dur ? end_of(ts[i], dur[i]) : INT64_MAX;
		if (s->from_ns != KY_TIME_NONE && ts[i] < s->from_ns && ts[i] != KY_TIME_NONE)
			ts[i] = s->from_ns;
		if (s->to_ns != KY_TIME_NONE && end != INT64_MAX && end > s->to_ns)
			end = s->to_ns;
		if (dur)
			dur[i] = end == INT64_MAX ? -1 : end - ts[i];
	}
}

/* The parent is the innermost slice around it that stays. */
static void move_up(struct part *p)
{
	struct ky_slices *slices = &p->into->slices;
	const uint32_t *parents = p->from->slices.parent;
	for (uint32_t i = 0; i < p->from->slices.rows.count; i++) {
		const uint32_t row = p->slices[i];
		uint32_t above = parents[i];
		if (row == KY_NONE)
			continue;
		while (above != KY_NONE && p->slices[above] == KY_NONE)
			above = parents[above];
		slices->parent[row] = above == KY_NONE ? KY_NONE : p->slices[above];
		slices->depth[row] =
			above == KY_NONE ? 0 : (uint16_t)(slices->depth[p->slices[above]] + 1);
	}
}

/* Add the ends of flows whose other end does not stay. */
static int loosen_flows(struct part *p)
{
	const struct ky_flows *f = &p->from->flows;
	struct ky_flow_ends *ends = &p->into->flow_ends;
	const struct ky_table_spec *spec = ky_tables_find(p->into, ends);
	for (uint32_t i = 0; i < f->rows.count; i++) {
		const uint32_t out = p->slices[f->out[i]], in = p->slices[f->in[i]];
		if ((out == KY_NONE) == (in == KY_NONE))
			continue;
		if (!ky_rows_grow(ends, spec->columns, spec->columns_count))
			return -ENOMEM;
		const uint32_t row = ends->rows.count++;
		ends->slice[row] = out == KY_NONE ? in : out;
		ends->arrives[row] = out == KY_NONE;
		ends->id[row] = f->id[i];
		ends->name[row] = string_of(p, f->name[i]);
		ends->category[row] = string_of(p, f->category[i]);
	}
	return 0;
}

static int fill(struct part *p)
{
	struct ky_trace *into = p->into;
	int error = 0;
	into->clock = p->from->clock;
	into->format = p->from->format;
	for (uint32_t i = 0; !error && i < ky_tables_count; i++)
		error = copy_table(p, &ky_tables[i]);
	if (!error)
		error = loosen_flows(p);
	if (error)
		return error;
	move_up(p);
	cut(p->selection, &into->slices.rows, into->slices.ts, into->slices.dur);
	cut(p->selection, &into->counters.rows, into->counters.ts, NULL);
	cut(p->selection, &into->sched.rows, into->sched.ts, into->sched.dur);
	cut(p->selection, &into->thread_states.rows, into->thread_states.ts,
	    into->thread_states.dur);
	for (uint32_t i = 0; i < ky_tables_count; i++)
		if (ky_tables[i].events)
			into->events += ((struct ky_rows *)ky_table_of(into, &ky_tables[i]))->count;
	return into->error;
}

int ky_part_make(struct ky_trace **part, const struct ky_trace *trace,
		 const struct ky_export_selection *selection)
{
	struct part p = {.from = trace, .selection = selection};
	int error = ky_trace_open(part);
	p.into = *part;
	p.strings = calloc((size_t)trace->strings.count + 1, sizeof(*p.strings));
	p.sets = calloc((size_t)trace->arg_sets.rows.count + 1, sizeof(*p.sets));
	p.slices = calloc((size_t)trace->slices.rows.count + 1, sizeof(*p.slices));
	if (!error)
		error = p.strings && p.sets && p.slices ? fill(&p) : -ENOMEM;
	free(p.strings);
	free(p.sets);
	free(p.slices);
	KY_ARRAY_FREE(p.rows, p.rows_room);
	if (error)
		ky_trace_close(part);
	return error;
}
