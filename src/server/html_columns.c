/* SPDX-License-Identifier: MIT */
/*
 * html_columns.c: the columns of an exported page, and the value of a row in each. They are written column by column: the
 * values of a column are alike, so that gzip packs them well. docs/formats/html.md describes the packings.
 *
 * Predictable values cost next to nothing: a parent is nearly always the last slice of the track that is one level up, a
 * category that of the last slice of the same name; these are stored as 0.
 */
#include "server/html_export.h"

#include "query/filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A column of the file: docs/formats/html.md has the packings. */
typedef uint64_t get_fn(struct ky_html_data *data, uint32_t row);

struct column {
	const char *name;
	enum ky_html_table table;
	char packing;
	get_fn *get; /* return a row's value; called in the order of rows */
};

/* Map 0, -1, 1, -2, ... to 0, 1, 2, 3, ... */
static uint64_t zigzag(uint64_t value)
{
	return value << 1 ^ (value >> 63 ? UINT64_MAX : 0);
}

static bool arg_is_text(const struct ky_html_data *data, uint32_t arg)
{
	const uint8_t type = data->trace->args.type[arg];
	return type == KY_ARG_STRING || type == KY_ARG_JSON;
}

/* ---- values ---- */

static uint64_t time_of(const struct ky_html_data *data, int64_t ts)
{
	return (uint64_t)ky_sub_clamped(ts, data->view->base_ns);
}

/* References to rows are their number in the file plus one; 0 means no row. */
static uint64_t reference(const struct ky_html_data *data, enum ky_html_table table, uint32_t row)
{
	const uint32_t number =
		row == KY_NONE ? KY_NONE : ky_html_rows_find(&data->rows[table], row);
	return number == KY_NONE ? 0 : (uint64_t)number + 1;
}

static uint64_t plus_one(uint32_t value)
{
	return value == KY_NONE ? 0 : (uint64_t)value + 1;
}

#define COLUMN(table_, field_)                                                                     \
	static uint64_t table_##_##field_(struct ky_html_data *data, uint32_t row)                 \
	{                                                                                          \
		return (uint64_t)data->trace->table_.field_[row];                                  \
	}
#define COLUMN_TIME(table_)                                                                        \
	static uint64_t table_##_ts(struct ky_html_data *data, uint32_t row)                       \
	{                                                                                          \
		return time_of(data, data->trace->table_.ts[row]);                                 \
	}
/* -1 becomes 0. */
#define COLUMN_DURATION(table_)                                                                    \
	static uint64_t table_##_dur(struct ky_html_data *data, uint32_t row)                      \
	{                                                                                          \
		return (uint64_t)data->trace->table_.dur[row] + 1;                                 \
	}
#define COLUMN_PLUS_ONE(table_, field_)                                                            \
	static uint64_t table_##_##field_(struct ky_html_data *data, uint32_t row)                 \
	{                                                                                          \
		return plus_one(data->trace->table_.field_[row]);                                  \
	}
#define COLUMN_REFERENCE(table_, field_, to_)                                                      \
	static uint64_t table_##_##field_(struct ky_html_data *data, uint32_t row)                 \
	{                                                                                          \
		return reference(data, to_, data->trace->table_.field_[row]);                      \
	}
/* Return the view's track of an event. */
#define COLUMN_PLACE(table_, kind_)                                                                \
	static uint64_t table_##_view(struct ky_html_data *data, uint32_t row)                     \
	{                                                                                          \
		struct ky_view_place place;                                                        \
		return ky_view_place(data->view, kind_, row, &place) ? (uint64_t)place.track + 1   \
								     : 0;                          \
	}

COLUMN(processes, pid)
COLUMN(processes, name)
COLUMN(threads, tid)
COLUMN(threads, name)
COLUMN_PLUS_ONE(threads, process)

COLUMN(tracks, name)
COLUMN(tracks, unit)

static uint64_t tracks_view(struct ky_html_data *data, uint32_t row)
{
	return plus_one(data->view->track_of[row]);
}

static uint64_t tracks_thread(struct ky_html_data *data, uint32_t row)
{
	return plus_one(ky_track_thread(data->trace, row));
}

static uint64_t tracks_process(struct ky_html_data *data, uint32_t row)
{
	return plus_one(ky_track_process(data->trace, row));
}

COLUMN_TIME(slices)
COLUMN_DURATION(slices)
COLUMN(slices, track)
COLUMN(slices, name)
COLUMN(slices, depth)
COLUMN(slices, kind)

static uint64_t slices_args(struct ky_html_data *data, uint32_t row)
{
	const uint32_t set = data->trace->slices.args[row];
	return set < data->trace->arg_sets.rows.count ? data->arg_sets[set] : 0;
}

/* 0: the category of the last slice of this name; else its number plus one. */
static uint64_t slices_category(struct ky_html_data *data, uint32_t row)
{
	const uint32_t category = data->trace->slices.category[row];
	uint32_t *const before = &data->category_of[data->trace->slices.name[row]];
	const bool same = *before == category;
	*before = category;
	return same ? 0 : (uint64_t)data->strings[category] + 1;
}

/* The distance between row and depth. */
static uint64_t slices_row(struct ky_html_data *data, uint32_t row)
{
	struct ky_view_place place;
	if (!ky_view_place(data->view, KY_VIEW_SLICES, row, &place))
		return 0;
	const int32_t away = (int32_t)place.row - data->trace->slices.depth[row];
	return zigzag((uint64_t)away) & UINT16_MAX;
}

/* Return the last slice of the track, or its nearest ancestor, that is one level up. */
static uint32_t foretold_parent(const struct ky_html_data *data, uint32_t row)
{
	const struct ky_slices *const slices = &data->trace->slices;
	uint32_t slice = data->last[slices->track[row]];
	while (slice != KY_NONE && slices->depth[slice] >= slices->depth[row]) {
		const uint32_t up = slices->parent[slice];
		slice = up < slice && ky_html_rows_find(&data->rows[KY_HTML_SLICES], up) != KY_NONE
				? up
				: KY_NONE;
	}
	return slice;
}

/* 0: as predicted; 1: none; else the distance back plus one. */
static uint64_t slices_parent(struct ky_html_data *data, uint32_t row)
{
	const struct ky_html_rows *const rows = &data->rows[KY_HTML_SLICES];
	const uint32_t foretold = foretold_parent(data, row);
	const uint32_t up = data->trace->slices.parent[row];
	const uint32_t number = up < row ? ky_html_rows_find(rows, up) : KY_NONE;
	data->last[data->trace->slices.track[row]] = row;
	if (number == KY_NONE)
		return foretold == KY_NONE ? 0 : 1;
	return up == foretold ? 0 : (uint64_t)ky_html_rows_find(rows, row) - number + 1;
}

COLUMN_TIME(counters)
COLUMN(counters, track)

static uint64_t counters_value(struct ky_html_data *data, uint32_t row)
{
	uint64_t bits;
	memcpy(&bits, &data->trace->counters.value[row], sizeof(bits));
	return bits;
}

COLUMN_TIME(sched)
COLUMN_DURATION(sched)
COLUMN(sched, cpu)
COLUMN_PLUS_ONE(sched, thread)
COLUMN(sched, end_state)
COLUMN(sched, priority)
COLUMN_PLACE(sched, KY_VIEW_SCHED)

COLUMN_TIME(thread_states)
COLUMN_DURATION(thread_states)
COLUMN_PLUS_ONE(thread_states, thread)
COLUMN(thread_states, state)
COLUMN_PLUS_ONE(thread_states, cpu)
COLUMN_PLUS_ONE(thread_states, waker)
COLUMN(thread_states, io_wait)
COLUMN(thread_states, blocked_function)
COLUMN_PLACE(thread_states, KY_VIEW_STATE)

static uint64_t sample_span_ts(struct ky_html_data *data, uint32_t row)
{
	return time_of(data, data->view->sample_spans.ts[row]);
}

static uint64_t sample_span_dur(struct ky_html_data *data, uint32_t row)
{
	return (uint64_t)data->view->sample_spans.dur[row] + 1;
}

static uint64_t sample_span_frame(struct ky_html_data *data, uint32_t row)
{
	return reference(data, KY_HTML_FRAMES, data->view->sample_spans.frame[row]);
}

static uint64_t sample_span_callsite(struct ky_html_data *data, uint32_t row)
{
	return reference(data, KY_HTML_CALLSITES, data->view->sample_spans.callsite[row]);
}

static uint64_t sample_span_thread(struct ky_html_data *data, uint32_t row)
{
	return plus_one(data->view->sample_spans.thread[row]);
}

static uint64_t sample_span_samples(struct ky_html_data *data, uint32_t row)
{
	return data->view->sample_spans.samples[row];
}

static uint64_t sample_span_view(struct ky_html_data *data, uint32_t row)
{
	struct ky_view_place place;
	return ky_view_place(data->view, KY_VIEW_SAMPLES, row, &place) ? (uint64_t)place.track + 1
								       : 0;
}

static uint64_t sample_span_row(struct ky_html_data *data, uint32_t row)
{
	struct ky_view_place place;
	return ky_view_place(data->view, KY_VIEW_SAMPLES, row, &place) ? place.row : 0;
}

COLUMN_TIME(samples)
COLUMN_PLUS_ONE(samples, thread)
COLUMN_REFERENCE(samples, callsite, KY_HTML_CALLSITES)

static uint64_t samples_weight(struct ky_html_data *data, uint32_t row)
{
	uint64_t bits;
	memcpy(&bits, &data->trace->samples.weight[row], sizeof(bits));
	return bits;
}

/* A flame graph has only the samples of the main event: weights of others have other units. */
static uint64_t samples_main(struct ky_html_data *data, uint32_t row)
{
	return !data->main_event || data->trace->samples.event[row] == data->main_event;
}

COLUMN_TIME(losses)
COLUMN(losses, events)
COLUMN_PLUS_ONE(losses, thread)
COLUMN_PLUS_ONE(losses, cpu)
COLUMN(losses, what)
COLUMN_PLACE(losses, KY_VIEW_LOSS)

COLUMN_REFERENCE(flows, out, KY_HTML_SLICES)
COLUMN_REFERENCE(flows, in, KY_HTML_SLICES)

/* The text for display. */
static uint64_t flows_name(struct ky_html_data *data, uint32_t row)
{
	const struct ky_flows *const flows = &data->trace->flows;
	return flows->name[row] ? flows->name[row] : flows->category[row];
}

static uint64_t arg_sets_size(struct ky_html_data *data, uint32_t row)
{
	return ky_arg_set_end(data->trace, row) - ky_arg_set_first(data->trace, row);
}

COLUMN(args, key)

/* The difference from the type of the last argument of this key. */
static uint64_t args_type(struct ky_html_data *data, uint32_t row)
{
	uint8_t *const before = &data->type_of[data->trace->args.key[row]];
	const uint8_t type = data->trace->args.type[row];
	const uint8_t differs = type ^ *before;
	*before = type;
	return differs;
}

/* Encode each type so that small values, of either sign, and round numbers are short. */
static uint64_t args_value(struct ky_html_data *data, uint32_t row)
{
	const uint64_t value = data->trace->args.value[row];
	if (arg_is_text(data, row))
		return data->strings[value < data->trace->strings.count ? value : 0];
	if (data->trace->args.type[row] == KY_ARG_INT)
		return zigzag(value);
	return data->trace->args.type[row] == KY_ARG_REAL ? __builtin_bswap64(value) : value;
}

COLUMN_REFERENCE(callsites, parent, KY_HTML_CALLSITES)
COLUMN_REFERENCE(callsites, frame, KY_HTML_FRAMES)
COLUMN(frames, name)
COLUMN(frames, file)
COLUMN(frames, line)
COLUMN(frames, rel_pc)
COLUMN_REFERENCE(frames, mapping, KY_HTML_MAPPINGS)
COLUMN(mappings, name)

/*
 * Packings: t a time, as the difference from the previous one; d a number near the previous one; i a signed number; u, w, l,
 * x unsigned ones of 32, 16, 53 and 64 bits; s a string; b a byte; f a double.
 */
static const struct column columns[] = {
	{"processes.pid", KY_HTML_PROCESSES, 'i', processes_pid},
	{"processes.name", KY_HTML_PROCESSES, 's', processes_name},
	{"threads.tid", KY_HTML_THREADS, 'i', threads_tid},
	{"threads.name", KY_HTML_THREADS, 's', threads_name},
	{"threads.process", KY_HTML_THREADS, 'u', threads_process},
	{"tracks.view", KY_HTML_TRACKS, 'u', tracks_view},
	{"tracks.thread", KY_HTML_TRACKS, 'u', tracks_thread},
	{"tracks.process", KY_HTML_TRACKS, 'u', tracks_process},
	{"tracks.name", KY_HTML_TRACKS, 's', tracks_name},
	{"tracks.unit", KY_HTML_TRACKS, 's', tracks_unit},
	{"slices.ts", KY_HTML_SLICES, 't', slices_ts},
	{"slices.dur", KY_HTML_SLICES, 'l', slices_dur},
	{"slices.track", KY_HTML_SLICES, 'u', slices_track},
	{"slices.depth", KY_HTML_SLICES, 'w', slices_depth},
	{"slices.parent", KY_HTML_SLICES, 'u', slices_parent},
	{"slices.kind", KY_HTML_SLICES, 'b', slices_kind},
	{"slices.name", KY_HTML_SLICES, 's', slices_name},
	{"slices.category", KY_HTML_SLICES, 'u', slices_category},
	{"slices.args", KY_HTML_SLICES, 'd', slices_args},
	{"slices.row", KY_HTML_SLICES, 'w', slices_row},
	{"counters.ts", KY_HTML_COUNTERS, 't', counters_ts},
	{"counters.track", KY_HTML_COUNTERS, 'u', counters_track},
	{"counters.value", KY_HTML_COUNTERS, 'f', counters_value},
	{"sched.ts", KY_HTML_SCHED, 't', sched_ts},
	{"sched.dur", KY_HTML_SCHED, 'l', sched_dur},
	{"sched.cpu", KY_HTML_SCHED, 'u', sched_cpu},
	{"sched.thread", KY_HTML_SCHED, 'u', sched_thread},
	{"sched.end_state", KY_HTML_SCHED, 's', sched_end_state},
	{"sched.priority", KY_HTML_SCHED, 'i', sched_priority},
	{"sched.view", KY_HTML_SCHED, 'u', sched_view},
	{"states.ts", KY_HTML_STATES, 't', thread_states_ts},
	{"states.dur", KY_HTML_STATES, 'l', thread_states_dur},
	{"states.thread", KY_HTML_STATES, 'u', thread_states_thread},
	{"states.state", KY_HTML_STATES, 's', thread_states_state},
	{"states.cpu", KY_HTML_STATES, 'u', thread_states_cpu},
	{"states.waker", KY_HTML_STATES, 'u', thread_states_waker},
	{"states.io_wait", KY_HTML_STATES, 'i', thread_states_io_wait},
	{"states.blocked_function", KY_HTML_STATES, 's', thread_states_blocked_function},
	{"states.view", KY_HTML_STATES, 'u', thread_states_view},
	{"sample_spans.ts", KY_HTML_SAMPLE_SPANS, 't', sample_span_ts},
	{"sample_spans.dur", KY_HTML_SAMPLE_SPANS, 'l', sample_span_dur},
	{"sample_spans.frame", KY_HTML_SAMPLE_SPANS, 'u', sample_span_frame},
	{"sample_spans.callsite", KY_HTML_SAMPLE_SPANS, 'd', sample_span_callsite},
	{"sample_spans.thread", KY_HTML_SAMPLE_SPANS, 'u', sample_span_thread},
	{"sample_spans.samples", KY_HTML_SAMPLE_SPANS, 'u', sample_span_samples},
	{"sample_spans.view", KY_HTML_SAMPLE_SPANS, 'u', sample_span_view},
	{"sample_spans.row", KY_HTML_SAMPLE_SPANS, 'w', sample_span_row},
	{"samples.ts", KY_HTML_SAMPLES, 't', samples_ts},
	{"samples.thread", KY_HTML_SAMPLES, 'u', samples_thread},
	{"samples.callsite", KY_HTML_SAMPLES, 'd', samples_callsite},
	{"samples.weight", KY_HTML_SAMPLES, 'f', samples_weight},
	{"samples.main", KY_HTML_SAMPLES, 'b', samples_main},
	{"losses.ts", KY_HTML_LOSSES, 't', losses_ts},
	{"losses.events", KY_HTML_LOSSES, 'l', losses_events},
	{"losses.thread", KY_HTML_LOSSES, 'u', losses_thread},
	{"losses.cpu", KY_HTML_LOSSES, 'u', losses_cpu},
	{"losses.what", KY_HTML_LOSSES, 's', losses_what},
	{"losses.view", KY_HTML_LOSSES, 'u', losses_view},
	{"flows.out", KY_HTML_FLOWS, 'd', flows_out},
	{"flows.in", KY_HTML_FLOWS, 'd', flows_in},
	{"flows.name", KY_HTML_FLOWS, 's', flows_name},
	{"arg_sets.size", KY_HTML_ARG_SETS, 'u', arg_sets_size},
	{"args.key", KY_HTML_ARGS, 's', args_key},
	{"args.type", KY_HTML_ARGS, 'b', args_type},
	{"args.value", KY_HTML_ARGS, 'x', args_value},
	{"callsites.parent", KY_HTML_CALLSITES, 'd', callsites_parent},
	{"callsites.frame", KY_HTML_CALLSITES, 'u', callsites_frame},
	{"frames.name", KY_HTML_FRAMES, 's', frames_name},
	{"frames.file", KY_HTML_FRAMES, 's', frames_file},
	{"frames.line", KY_HTML_FRAMES, 'u', frames_line},
	{"frames.rel_pc", KY_HTML_FRAMES, 'x', frames_rel_pc},
	{"frames.mapping", KY_HTML_FRAMES, 'u', frames_mapping},
	{"mappings.name", KY_HTML_MAPPINGS, 's', mappings_name},
};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* ---- packing ---- */

#define PIECE_BYTES 16384u
#define NUMBER_BYTES_MAX 10u

struct packer {
	struct ky_html_out *out;
	uint64_t before; /* value of the previous row */
	uint32_t used;
	uint8_t bytes[PIECE_BYTES];
};

static void mark_texts(struct ky_html_data *data, enum ky_html_table table, get_fn *get)
{
	const struct ky_html_rows *const rows = &data->rows[table];
	const uint32_t count = ky_html_rows_count(rows);
	for (uint32_t i = 0; i < count; i++) {
		const uint64_t string = get(data, ky_html_rows_at(rows, i));
		if (string < data->trace->strings.count)
			data->strings[string] = 1;
	}
}

static void mark_arg_texts(struct ky_html_data *data)
{
	const struct ky_html_rows *const rows = &data->rows[KY_HTML_ARGS];
	const uint32_t count = ky_html_rows_count(rows);
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t row = ky_html_rows_at(rows, i);
		const uint64_t string = arg_is_text(data, row) ? data->trace->args.value[row] : 0;
		if (string < data->trace->strings.count)
			data->strings[string] = 1;
	}
}

static uint64_t category_of(struct ky_html_data *data, uint32_t row)
{
	return data->trace->slices.category[row];
}

/* Numbers ascend as in the trace, so that sorting by them gives the same order. */
int ky_html_columns_strings(struct ky_html_data *data)
{
	const uint32_t count = data->trace->strings.count;
	data->strings = calloc((size_t)count + 1, sizeof(*data->strings));
	if (!data->strings)
		return -ENOMEM;
	for (uint32_t i = 0; i < COLUMNS; i++) {
		if (columns[i].packing == 's')
			mark_texts(data, columns[i].table, columns[i].get);
	}
	mark_texts(data, KY_HTML_SLICES, category_of);
	mark_arg_texts(data);
	data->strings[0] = 0;
	data->strings_count = 1;
	for (uint32_t i = 1; i < count; i++) {
		if (data->strings[i])
			data->strings[i] = data->strings_count++;
	}
	return 0;
}

static void list_column(struct ky_json_out *json, const char *name, char packing, uint64_t count)
{
	ky_json_out_begin(json, NULL, '[');
	ky_json_out_text(json, NULL, name);
	ky_json_out_string(json, NULL, &packing, 1);
	ky_json_out_uint(json, NULL, count);
	ky_json_out_end(json, ']');
}

static uint64_t strings_bytes(const struct ky_html_data *data)
{
	uint64_t bytes = 0;
	for (uint32_t i = 1; i < data->trace->strings.count; i++)
		bytes += data->strings[i] ? ky_strings_bytes(&data->trace->strings, i) : 0;
	return bytes;
}

void ky_html_columns_list(const struct ky_html_data *data, struct ky_json_out *json)
{
	ky_json_out_begin(json, "columns", '[');
	for (uint32_t i = 0; i < COLUMNS; i++) {
		list_column(json, columns[i].name, columns[i].packing,
			    ky_html_rows_count(&data->rows[columns[i].table]));
	}
	list_column(json, "slices.listed", 'd', data->rows[KY_HTML_SLICES].listed_count);
	list_column(json, "strings.bytes", 'u', data->strings_count);
	list_column(json, "strings.text", 'b', strings_bytes(data));
	ky_json_out_end(json, ']');
}

static void flush(struct packer *packer)
{
	ky_html_out_data(packer->out, packer->bytes, packer->used);
	packer->used = 0;
}

static void put_number(struct packer *packer, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		packer->bytes[packer->used++] = (uint8_t)(value | 0x80);
	packer->bytes[packer->used++] = (uint8_t)value;
}

static void put_double(struct packer *packer, uint64_t bits)
{
	for (int i = 0; i < 8; i++)
		packer->bytes[packer->used++] = (uint8_t)(bits >> 8 * i);
}

/* 0 stays 0, so that a missing value does not make the next difference large. */
static void put_near(struct packer *packer, uint64_t value)
{
	put_number(packer, value ? zigzag(value - packer->before) + 1 : 0);
	packer->before = value ? value : packer->before;
}

static void put(struct packer *packer, const struct ky_html_data *data, char packing,
		uint64_t value)
{
	if (PIECE_BYTES - packer->used < NUMBER_BYTES_MAX)
		flush(packer);
	if (packing == 't') {
		put_number(packer, zigzag(value - packer->before));
		packer->before = value;
	} else if (packing == 'd') {
		put_near(packer, value);
	} else if (packing == 'f') {
		put_double(packer, value);
	} else if (packing == 'b') {
		packer->bytes[packer->used++] = (uint8_t)value;
	} else if (packing == 's') {
		put_number(packer, value < data->trace->strings.count ? data->strings[value] : 0);
	} else {
		put_number(packer, packing == 'i' ? zigzag(value) : value);
	}
}

static void write_column(struct ky_html_data *data, struct packer *packer,
			 const struct column *column)
{
	const struct ky_html_rows *const rows = &data->rows[column->table];
	const uint32_t count = ky_html_rows_count(rows);
	packer->before = 0;
	for (uint32_t i = 0; i < count && !ky_html_out_error(packer->out); i++)
		put(packer, data, column->packing, column->get(data, ky_html_rows_at(rows, i)));
}

/* Write the listed rows, plus one; 0 means no row, as in all such columns. */
static void write_listed(struct ky_html_data *data, struct packer *packer)
{
	const struct ky_html_rows *const rows = &data->rows[KY_HTML_SLICES];
	packer->before = 0;
	for (uint32_t i = 0; i < rows->listed_count; i++)
		put(packer, data, 'd', (uint64_t)rows->listed[i] + 1);
}

static void write_strings(struct ky_html_data *data, struct packer *packer)
{
	const struct ky_strings *const strings = &data->trace->strings;
	put(packer, data, 'u', 0);
	for (uint32_t i = 1; i < strings->count; i++) {
		if (data->strings[i])
			put(packer, data, 'u', ky_strings_bytes(strings, i));
	}
	flush(packer);
	for (uint32_t i = 1; i < strings->count; i++) {
		if (data->strings[i])
			ky_html_out_data(packer->out, ky_strings_text(strings, i),
					 ky_strings_bytes(strings, i));
	}
}

void ky_html_columns_write(struct ky_html_data *data, struct ky_html_out *out)
{
	struct packer packer = {.out = out};
	for (uint32_t i = 0; i < data->trace->tracks.rows.count; i++)
		data->last[i] = KY_NONE;
	for (uint32_t i = 0; i < COLUMNS; i++) {
		write_column(data, &packer, &columns[i]);
	}
	write_listed(data, &packer);
	write_strings(data, &packer);
}
