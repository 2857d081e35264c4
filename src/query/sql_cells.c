/* SPDX-License-Identifier: MIT */
/*
 * sql_cells.c: what is computed when it is read, instead of read from an array of the model: cells, and the rows of table
 * functions. A cell without a result is NULL.
 */
#include "base/array.h"
#include "base/map.h"
#include "query/sql_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- cells ---- */

void ky_sql_result_string(const struct ky_trace *trace, uint32_t string, sqlite3_context *to)
{
	if (string)
		sqlite3_result_text(to, ky_strings_text(&trace->strings, string),
				    (int)ky_strings_bytes(&trace->strings, string), SQLITE_STATIC);
}

static double arg_real(const struct ky_trace *trace, uint32_t arg)
{
	double real;

	memcpy(&real, &trace->args.value[arg], sizeof(real));
	return real;
}

static bool arg_is_text(uint8_t type)
{
	return type == KY_ARG_STRING || type == KY_ARG_JSON;
}

static bool arg_is_integer(uint8_t type)
{
	return type == KY_ARG_INT || type == KY_ARG_UINT || type == KY_ARG_BOOL ||
	       type == KY_ARG_POINTER;
}

void ky_sql_result_arg(const struct ky_trace *trace, uint32_t arg, sqlite3_context *to)
{
	const uint8_t type = trace->args.type[arg];

	if (arg_is_text(type))
		ky_sql_result_string(trace, (uint32_t)trace->args.value[arg], to);
	else if (type == KY_ARG_REAL)
		sqlite3_result_double(to, arg_real(trace, arg));
	else if (arg_is_integer(type))
		sqlite3_result_int64(to, (sqlite3_int64)trace->args.value[arg]);
}

/* ---- threads and tracks ---- */

void ky_sql_cell_main_thread(const struct ky_trace *trace, uint32_t row, sqlite3_context *to)
{
	if (trace->threads.process[row] != KY_NONE)
		sqlite3_result_int(to, trace->threads.is_main[row]);
}

void ky_sql_cell_track_machine(const struct ky_trace *trace, uint32_t row, sqlite3_context *to)
{
	const uint32_t owner = trace->tracks.owner[row];
	const uint8_t kind = trace->tracks.kind[row];
	uint32_t machine = 0;

	if ((kind == KY_TRACK_PROCESS || kind == KY_TRACK_PROCESS_COUNTER) &&
	    owner < trace->processes.rows.count)
		machine = trace->processes.machine[owner];
	else if ((kind == KY_TRACK_THREAD || kind == KY_TRACK_THREAD_COUNTER) &&
		 owner < trace->threads.rows.count)
		machine = trace->threads.machine[owner];
	sqlite3_result_int64(to, machine);
}

void ky_sql_cell_track_description(const struct ky_trace *trace, uint32_t row, sqlite3_context *to)
{
	const uint32_t set = trace->tracks.args[row];
	const uint32_t key =
		set ? ky_strings_find(&trace->strings, "description", strlen("description")) : 0;

	if (!key)
		return;
	for (uint32_t arg = ky_arg_set_first(trace, set); arg < ky_arg_set_end(trace, set); arg++)
		if (trace->args.key[arg] == key) {
			ky_sql_result_arg(trace, arg, to);
			return;
		}
}

/* ---- arguments ---- */

void ky_sql_cell_arg_set(const struct ky_trace *trace, uint32_t row, sqlite3_context *to)
{
	const uint32_t low = KY_ARRAY_SEARCH(2, trace->arg_sets.rows.count, at,
					     trace->arg_sets.first[at] <= row) -
			     1;
	sqlite3_result_int64(to, low);
}

/* Return the key without array indices: "a[1].b" is "a.b". */
void ky_sql_cell_arg_flat_key(const struct ky_trace *trace, uint32_t row, sqlite3_context *to)
{
	const uint32_t key = trace->args.key[row];
	const uint32_t bytes = ky_strings_bytes(&trace->strings, key);
	const char *text = ky_strings_text(&trace->strings, key);

	if (!text || !memchr(text, '[', bytes)) {
		ky_sql_result_string(trace, key, to);
		return;
	}
	char *flat = sqlite3_malloc64(bytes + 1u);
	uint32_t used = 0;
	if (!flat) {
		sqlite3_result_error_nomem(to);
		return;
	}
	for (uint32_t i = 0; i < bytes; i++) {
		uint32_t close = i + 1;
		while (text[i] == '[' && close < bytes && text[close] >= '0' && text[close] <= '9')
			close++;
		if (text[i] == '[' && close > i + 1 && close < bytes && text[close] == ']')
			i = close;
		else
			flat[used++] = text[i];
	}
	sqlite3_result_text(to, flat, (int)used, sqlite3_free);
}

void ky_sql_cell_arg_int(const struct ky_trace *trace, uint32_t row, sqlite3_context *to)
{
	if (arg_is_integer(trace->args.type[row]))
		ky_sql_result_arg(trace, row, to);
}

void ky_sql_cell_arg_string(const struct ky_trace *trace, uint32_t row, sqlite3_context *to)
{
	if (arg_is_text(trace->args.type[row]))
		ky_sql_result_arg(trace, row, to);
}

void ky_sql_cell_arg_real(const struct ky_trace *trace, uint32_t row, sqlite3_context *to)
{
	if (trace->args.type[row] == KY_ARG_REAL)
		ky_sql_result_arg(trace, row, to);
}

static void result_name(sqlite3_context *to, const char *const *names, size_t count, uint8_t at)
{
	if (at < count)
		sqlite3_result_text(to, names[at], -1, SQLITE_STATIC);
}

void ky_sql_cell_arg_type(const struct ky_trace *trace, uint32_t row, sqlite3_context *to)
{
	static const char *const names[] = {"null", "int",     "uint",   "real",
					    "bool", "pointer", "string", "json"};

	result_name(to, names, sizeof(names) / sizeof(names[0]), trace->args.type[row]);
}

void ky_sql_cell_arg_display(const struct ky_trace *trace, uint32_t row, sqlite3_context *to)
{
	const uint64_t value = trace->args.value[row];
	char text[40];

	switch (trace->args.type[row]) {
	case KY_ARG_INT:
		snprintf(text, sizeof(text), "%" PRId64, (int64_t)value);
		break;
	case KY_ARG_UINT:
		snprintf(text, sizeof(text), "%" PRIu64, value);
		break;
	case KY_ARG_POINTER:
		snprintf(text, sizeof(text), "0x%" PRIx64, value);
		break;
	case KY_ARG_BOOL:
		sqlite3_result_text(to, value ? "true" : "false", -1, SQLITE_STATIC);
		return;
	case KY_ARG_REAL:
		sqlite3_snprintf(sizeof(text), text, "%!.15g", arg_real(trace, row));
		break;
	default:
		ky_sql_result_arg(trace, row, to);
		return;
	}
	sqlite3_result_text(to, text, -1, SQLITE_TRANSIENT);
}

/* ---- the kernel, samples ---- */

void ky_sql_cell_sched_end(const struct ky_trace *trace, uint32_t row, sqlite3_context *to)
{
	const uint64_t end = (uint64_t)trace->sched.ts[row] + (uint64_t)trace->sched.dur[row];
	sqlite3_result_int64(to, (sqlite3_int64)end);
}

void ky_sql_cell_cpu_mode(const struct ky_trace *trace, uint32_t row, sqlite3_context *to)
{
	static const char *const names[] = {"unknown",    "kernel",       "user",
					    "hypervisor", "guest_kernel", "guest_user"};

	result_name(to, names, sizeof(names) / sizeof(names[0]), trace->samples.mode[row]);
}

void ky_sql_cell_symbol_set(const struct ky_trace *trace, uint32_t row, sqlite3_context *to)
{
	if (trace->frames.file[row])
		sqlite3_result_int64(to, row);
}

/* ---- around the events ---- */

void ky_sql_cell_clock_name(const struct ky_trace *trace, uint32_t row, sqlite3_context *to)
{
	sqlite3_result_text(to, ky_clock_name(trace->clock_rows.clock[row]), -1, SQLITE_STATIC);
}

void ky_sql_cell_metadata_type(const struct ky_trace *trace, uint32_t row, sqlite3_context *to)
{
	(void)trace, (void)row;
	sqlite3_result_text(to, "single", -1, SQLITE_STATIC);
}

void ky_sql_cell_metadata_int(const struct ky_trace *trace, uint32_t row, sqlite3_context *to)
{
	if (!trace->metadata.text[row])
		sqlite3_result_int64(to, trace->metadata.number[row]);
}

void ky_sql_cell_severity(const struct ky_trace *trace, uint32_t row, sqlite3_context *to)
{
	static const char *const names[] = {"info", "data_loss", "error"};

	result_name(to, names, sizeof(names) / sizeof(names[0]), trace->problems.severity[row]);
}

void ky_sql_cell_source(const struct ky_trace *trace, uint32_t row, sqlite3_context *to)
{
	(void)trace, (void)row;
	sqlite3_result_text(to, "analysis", -1, SQLITE_STATIC);
}

void ky_sql_cell_first_at(const struct ky_trace *trace, uint32_t row, sqlite3_context *to)
{
	if (trace->problems.first_at[row] != KY_NO_PLACE)
		sqlite3_result_int64(to, (sqlite3_int64)trace->problems.first_at[row]);
}

void ky_sql_cell_lost_events(const struct ky_trace *trace, uint32_t row, sqlite3_context *to)
{
	if (trace->losses.events[row])
		sqlite3_result_int64(to, (sqlite3_int64)trace->losses.events[row]);
}

/* ---- table functions: slices around a slice, flows that lead to it or from it ---- */

/*
 * As in Perfetto: following flows are those that leave a slice or what it contains, and on from where they arrive; preceding
 * ones arrive at it or at what contains it, and on from where they left. Directly connected are flows alone, and none turns
 * back.
 */

/* Add a row; false without memory. */
static bool add_row(struct ky_sql_rows *rows, uint32_t row)
{
	return KY_ARRAY_ADD(rows->rows, rows->count, rows->room, row);
}

void ky_sql_rows_free(struct ky_sql_rows *rows)
{
	KY_ARRAY_FREE(rows->rows, rows->room);
	rows->count = 0;
}

static void sort_rows(struct ky_sql_rows *rows)
{
	if (rows->count > 1)
		qsort(rows->rows, rows->count, sizeof(rows->rows[0]), ky_compare_u32);
}

bool ky_sql_ancestors(struct ky_trace *trace, int64_t slice, struct ky_sql_rows *rows)
{
	if (slice < 0 || slice >= trace->slices.rows.count)
		return true;
	for (uint32_t at = trace->slices.parent[slice]; at != KY_NONE;
	     at = trace->slices.parent[at])
		if (!add_row(rows, at))
			return false;
	sort_rows(rows);
	return true;
}

static bool add_children(struct ky_trace *trace, uint32_t slice, struct ky_sql_rows *rows)
{
	const struct ky_index_rows children = ky_index_get(trace, KY_INDEX_SLICE_PARENT, slice);

	for (uint32_t i = 0; i < children.count; i++)
		if (!add_row(rows, children.rows[i]))
			return false;
	return !children.failed;
}

bool ky_sql_descendants(struct ky_trace *trace, int64_t slice, struct ky_sql_rows *rows)
{
	if (slice < 0 || slice >= trace->slices.rows.count)
		return true;
	if (!add_children(trace, (uint32_t)slice, rows))
		return false;
	for (uint32_t at = 0; at < rows->count; at++)
		if (!add_children(trace, rows->rows[at], rows))
			return false;
	sort_rows(rows);
	return true;
}

/* ---- flows ---- */

enum via { VIA_START, VIA_IN, VIA_OUT, VIA_RELATIVE };

#define GO_IN 1u
#define GO_OUT 2u
#define GO_UP 4u
#define GO_DOWN 8u

/* A walk over slices: those to visit, and all seen so far. */
struct flow_walk {
	struct ky_trace *trace;
	struct ky_sql_rows slices; /* in the order in which they were seen */
	struct ky_sql_rows via;
	struct ky_u64_map seen;
	struct ky_sql_rows *flows;
	unsigned go;
};

static bool visit(struct flow_walk *walk, uint32_t slice, enum via via)
{
	if (slice >= walk->trace->slices.rows.count)
		return true;
	bool made;
	if (!ky_u64_map_add(&walk->seen, slice, &made))
		return false;
	if (!made)
		return true;
	return add_row(&walk->slices, slice) && add_row(&walk->via, (uint32_t)via);
}

static bool visit_relatives(struct flow_walk *walk, uint32_t slice)
{
	struct ky_sql_rows relatives = {NULL, 0, 0};
	bool done = true;

	if (walk->go & GO_UP)
		done = ky_sql_ancestors(walk->trace, slice, &relatives);
	if (walk->go & GO_DOWN)
		done = ky_sql_descendants(walk->trace, slice, &relatives);
	for (uint32_t i = 0; done && i < relatives.count; i++)
		done = visit(walk, relatives.rows[i], VIA_RELATIVE);
	ky_sql_rows_free(&relatives);
	return done;
}

static bool visit_flows(struct flow_walk *walk, uint32_t slice, bool out)
{
	const struct ky_flows *flows = &walk->trace->flows;
	const struct ky_index_rows found =
		ky_index_get(walk->trace, out ? KY_INDEX_FLOW_OUT : KY_INDEX_FLOW_IN, slice);

	for (uint32_t i = 0; i < found.count; i++) {
		const uint32_t flow = found.rows[i];
		if (!add_row(walk->flows, flow) ||
		    !visit(walk, out ? flows->in[flow] : flows->out[flow], out ? VIA_OUT : VIA_IN))
			return false;
	}
	return !found.failed;
}

static bool visit_all(struct flow_walk *walk)
{
	for (uint32_t at = 0; at < walk->slices.count; at++) {
		const uint32_t slice = walk->slices.rows[at];
		const uint32_t via = walk->via.rows[at];
		if (via != VIA_RELATIVE && !visit_relatives(walk, slice))
			return false;
		if ((walk->go & GO_IN) && via != VIA_OUT && !visit_flows(walk, slice, false))
			return false;
		if ((walk->go & GO_OUT) && via != VIA_IN && !visit_flows(walk, slice, true))
			return false;
	}
	return true;
}

static bool walk_flows(struct ky_trace *trace, int64_t slice, unsigned go,
		       struct ky_sql_rows *flows)
{
	struct flow_walk walk = {.trace = trace, .flows = flows, .go = go};

	if (slice < 0 || slice >= trace->slices.rows.count)
		return true;
	const bool done = visit(&walk, (uint32_t)slice, VIA_START) && visit_all(&walk);
	ky_sql_rows_free(&walk.slices);
	ky_sql_rows_free(&walk.via);
	ky_u64_map_free(&walk.seen);
	sort_rows(flows);
	return done;
}

bool ky_sql_following(struct ky_trace *trace, int64_t slice, struct ky_sql_rows *rows)
{
	return walk_flows(trace, slice, GO_OUT | GO_DOWN, rows);
}

bool ky_sql_preceding(struct ky_trace *trace, int64_t slice, struct ky_sql_rows *rows)
{
	return walk_flows(trace, slice, GO_IN | GO_UP, rows);
}

bool ky_sql_connected(struct ky_trace *trace, int64_t slice, struct ky_sql_rows *rows)
{
	return walk_flows(trace, slice, GO_IN | GO_OUT, rows);
}
