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

static uint64_t bits_of(double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Return the view's track of an event. */
static uint64_t track_of(const struct ky_html_data *data, enum ky_view_kind kind, uint32_t row)
{
	struct ky_view_place place;
	return ky_view_place(data->view, kind, row, &place) ? (uint64_t)place.track + 1 : 0;
}

static uint64_t slice_args(struct ky_html_data *data, uint32_t row)
{
	const uint32_t set = data->trace->slices.args[row];
	return set < data->trace->arg_sets.rows.count ? data->arg_sets[set] : 0;
}

/* 0: the category of the last slice of this name; else its number plus one. */
static uint64_t slice_category(struct ky_html_data *data, uint32_t row)
{
	const uint32_t category = data->trace->slices.category[row];
	uint32_t *const before = &data->category_of[data->trace->slices.name[row]];
	const bool same = *before == category;
	*before = category;
	return same ? 0 : (uint64_t)data->strings[category] + 1;
}

/* The distance between row and depth. */
static uint64_t slice_row(struct ky_html_data *data, uint32_t row)
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
static uint64_t slice_parent(struct ky_html_data *data, uint32_t row)
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

static uint64_t sample_span_row(struct ky_html_data *data, uint32_t row)
{
	struct ky_view_place place;
	return ky_view_place(data->view, KY_VIEW_SAMPLES, row, &place) ? place.row : 0;
}

/* A flame graph has only the samples of the main event: weights of others have other units. */
static uint64_t is_of_main_event(struct ky_html_data *data, uint32_t row)
{
	return !data->main_event || data->trace->samples.event[row] == data->main_event;
}

/* The text for display. */
static uint64_t flow_name(struct ky_html_data *data, uint32_t row)
{
	const struct ky_flows *const flows = &data->trace->flows;
	return flows->name[row] ? flows->name[row] : flows->category[row];
}

static uint64_t arg_set_size(struct ky_html_data *data, uint32_t row)
{
	return ky_arg_set_end(data->trace, row) - ky_arg_set_first(data->trace, row);
}

/* The difference from the type of the last argument of this key. */
static uint64_t arg_type(struct ky_html_data *data, uint32_t row)
{
	uint8_t *const before = &data->type_of[data->trace->args.key[row]];
	const uint8_t type = data->trace->args.type[row];
	const uint8_t differs = type ^ *before;
	*before = type;
	return differs;
}

/* Encode each type so that small values, of either sign, and round numbers are short. */
static uint64_t arg_value(struct ky_html_data *data, uint32_t row)
{
	const uint64_t value = data->trace->args.value[row];
	if (arg_is_text(data, row))
		return data->strings[value < data->trace->strings.count ? value : 0];
	if (data->trace->args.type[row] == KY_ARG_INT)
		return zigzag(value);
	return data->trace->args.type[row] == KY_ARG_REAL ? __builtin_bswap64(value) : value;
}

/* What becomes of an array's item. */
#define VALUE(array) (uint64_t) data->array[row]
#define TIME(array) time_of(data, data->array[row])
#define DURATION(array) (uint64_t) data->array[row] + 1 /* -1 becomes 0 */
#define PLUS_ONE(array) plus_one(data->array[row])
#define REFERENCE(to, array) reference(data, KY_HTML_##to, data->array[row])
#define REAL(array) bits_of(data->array[row])

/*
 * All columns: the table's and the column's name in the file, the table, the packing, a row's value. Packings: t a time, as the
 * difference from the previous one; d a number near the previous one; i a signed number; u, w, l, x unsigned ones of 32, 16,
 * 53 and 64 bits; s a string; b a byte; f a double.
 */
#define ALL_COLUMNS(X)                                                                             \
	X(processes, pid, PROCESSES, 'i', VALUE(trace->processes.pid))                             \
	X(processes, name, PROCESSES, 's', VALUE(trace->processes.name))                           \
	X(threads, tid, THREADS, 'i', VALUE(trace->threads.tid))                                   \
	X(threads, name, THREADS, 's', VALUE(trace->threads.name))                                 \
	X(threads, process, THREADS, 'u', PLUS_ONE(trace->threads.process))                        \
	X(tracks, view, TRACKS, 'u', PLUS_ONE(view->track_of))                                     \
	X(tracks, thread, TRACKS, 'u', plus_one(ky_track_thread(data->trace, row)))                \
	X(tracks, process, TRACKS, 'u', plus_one(ky_track_process(data->trace, row)))              \
	X(tracks, name, TRACKS, 's', VALUE(trace->tracks.name))                                    \
	X(tracks, unit, TRACKS, 's', VALUE(trace->tracks.unit))                                    \
	X(slices, ts, SLICES, 't', TIME(trace->slices.ts))                                         \
	X(slices, dur, SLICES, 'l', DURATION(trace->slices.dur))                                   \
	X(slices, track, SLICES, 'u', VALUE(trace->slices.track))                                  \
	X(slices, depth, SLICES, 'w', VALUE(trace->slices.depth))                                  \
	X(slices, parent, SLICES, 'u', slice_parent(data, row))                                    \
	X(slices, kind, SLICES, 'b', VALUE(trace->slices.kind))                                    \
	X(slices, name, SLICES, 's', VALUE(trace->slices.name))                                    \
	X(slices, category, SLICES, 'u', slice_category(data, row))                                \
	X(slices, args, SLICES, 'd', slice_args(data, row))                                        \
	X(slices, row, SLICES, 'w', slice_row(data, row))                                          \
	X(counters, ts, COUNTERS, 't', TIME(trace->counters.ts))                                   \
	X(counters, track, COUNTERS, 'u', VALUE(trace->counters.track))                            \
	X(counters, value, COUNTERS, 'f', REAL(trace->counters.value))                             \
	X(sched, ts, SCHED, 't', TIME(trace->sched.ts))                                            \
	X(sched, dur, SCHED, 'l', DURATION(trace->sched.dur))                                      \
	X(sched, cpu, SCHED, 'u', VALUE(trace->sched.cpu))                                         \
	X(sched, thread, SCHED, 'u', PLUS_ONE(trace->sched.thread))                                \
	X(sched, end_state, SCHED, 's', VALUE(trace->sched.end_state))                             \
	X(sched, priority, SCHED, 'i', VALUE(trace->sched.priority))                               \
	X(sched, view, SCHED, 'u', track_of(data, KY_VIEW_SCHED, row))                             \
	X(states, ts, STATES, 't', TIME(trace->thread_states.ts))                                  \
	X(states, dur, STATES, 'l', DURATION(trace->thread_states.dur))                            \
	X(states, thread, STATES, 'u', PLUS_ONE(trace->thread_states.thread))                      \
	X(states, state, STATES, 's', VALUE(trace->thread_states.state))                           \
	X(states, cpu, STATES, 'u', PLUS_ONE(trace->thread_states.cpu))                            \
	X(states, waker, STATES, 'u', PLUS_ONE(trace->thread_states.waker))                        \
	X(states, io_wait, STATES, 'i', VALUE(trace->thread_states.io_wait))                       \
	X(states, blocked_function, STATES, 's', VALUE(trace->thread_states.blocked_function))     \
	X(states, view, STATES, 'u', track_of(data, KY_VIEW_STATE, row))                           \
	X(sample_spans, ts, SAMPLE_SPANS, 't', TIME(view->sample_spans.ts))                        \
	X(sample_spans, dur, SAMPLE_SPANS, 'l', DURATION(view->sample_spans.dur))                  \
	X(sample_spans, frame, SAMPLE_SPANS, 'u', REFERENCE(FRAMES, view->sample_spans.frame))     \
	X(sample_spans, callsite, SAMPLE_SPANS, 'd',                                               \
	  REFERENCE(CALLSITES, view->sample_spans.callsite))                                       \
	X(sample_spans, thread, SAMPLE_SPANS, 'u', PLUS_ONE(view->sample_spans.thread))            \
	X(sample_spans, samples, SAMPLE_SPANS, 'u', VALUE(view->sample_spans.samples))             \
	X(sample_spans, view, SAMPLE_SPANS, 'u', track_of(data, KY_VIEW_SAMPLES, row))             \
	X(sample_spans, row, SAMPLE_SPANS, 'w', sample_span_row(data, row))                        \
	X(samples, ts, SAMPLES, 't', TIME(trace->samples.ts))                                      \
	X(samples, thread, SAMPLES, 'u', PLUS_ONE(trace->samples.thread))                          \
	X(samples, callsite, SAMPLES, 'd', REFERENCE(CALLSITES, trace->samples.callsite))          \
	X(samples, weight, SAMPLES, 'f', REAL(trace->samples.weight))                              \
	X(samples, main, SAMPLES, 'b', is_of_main_event(data, row))                                \
	X(losses, ts, LOSSES, 't', TIME(trace->losses.ts))                                         \
	X(losses, events, LOSSES, 'l', VALUE(trace->losses.events))                                \
	X(losses, thread, LOSSES, 'u', PLUS_ONE(trace->losses.thread))                             \
	X(losses, cpu, LOSSES, 'u', PLUS_ONE(trace->losses.cpu))                                   \
	X(losses, what, LOSSES, 's', VALUE(trace->losses.what))                                    \
	X(losses, view, LOSSES, 'u', track_of(data, KY_VIEW_LOSS, row))                            \
	X(flows, out, FLOWS, 'd', REFERENCE(SLICES, trace->flows.out))                             \
	X(flows, in, FLOWS, 'd', REFERENCE(SLICES, trace->flows.in))                               \
	X(flows, name, FLOWS, 's', flow_name(data, row))                                           \
	X(arg_sets, size, ARG_SETS, 'u', arg_set_size(data, row))                                  \
	X(args, key, ARGS, 's', VALUE(trace->args.key))                                            \
	X(args, type, ARGS, 'b', arg_type(data, row))                                              \
	X(args, value, ARGS, 'x', arg_value(data, row))                                            \
	X(callsites, parent, CALLSITES, 'd', REFERENCE(CALLSITES, trace->callsites.parent))        \
	X(callsites, frame, CALLSITES, 'u', REFERENCE(FRAMES, trace->callsites.frame))             \
	X(frames, name, FRAMES, 's', VALUE(trace->frames.name))                                    \
	X(frames, file, FRAMES, 's', VALUE(trace->frames.file))                                    \
	X(frames, line, FRAMES, 'u', VALUE(trace->frames.line))                                    \
	X(frames, rel_pc, FRAMES, 'x', VALUE(trace->frames.rel_pc))                                \
	X(frames, mapping, FRAMES, 'u', REFERENCE(MAPPINGS, trace->frames.mapping))                \
	X(mappings, name, MAPPINGS, 's', VALUE(trace->mappings.name))

#define X(table, field, of, packing, value)                                                        \
	static uint64_t table##_##field(struct ky_html_data *data, uint32_t row)                   \
	{                                                                                          \
		return value;                                                                      \
	}
ALL_COLUMNS(X)
#undef X

static const struct column columns[] = {
#define X(table, field, of, packing, value)                                                        \
	{#table "." #field, KY_HTML_##of, packing, table##_##field},
	ALL_COLUMNS(X)
#undef X
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
