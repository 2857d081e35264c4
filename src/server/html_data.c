/* SPDX-License-Identifier: MIT */
/*
 * html_data.c: selects what goes into the file: the events that reach into the range, and of the rest (flows, arguments,
 * call stacks) what they refer to. Processes, threads and tracks are few, and all go in.
 */
#include "server/html_export.h"

#include "base/array.h"
#include "model/index.h"
#include "query/filter.h"

#include <errno.h>
#include <stdlib.h>

/* ---- rows ---- */

/*
 * In a table in time order, those that begin within the range are one run of rows, and only those that began before and still
 * last are listed, so that the list stays short.
 */

uint32_t ky_html_rows_find(const struct ky_html_rows *rows, uint32_t row)
{
	if (row >= rows->first && row < rows->end)
		return rows->listed_count + (row - rows->first);
	const uint32_t low = KY_ARRAY_SEARCH(0, rows->listed_count, at, rows->listed[at] < row);
	return low < rows->listed_count && rows->listed[low] == row ? low : KY_NONE;
}

/* Select the rows whose byte is not 0. Return 0 or -ENOMEM. */
static int rows_marked(struct ky_html_rows *rows, const uint8_t *marks, uint32_t count)
{
	uint32_t marked = 0, at = 0;
	for (uint32_t i = 0; i < count; i++)
		marked += marks[i] != 0;
	*rows = (struct ky_html_rows){0};
	if (marked == count) {
		rows->end = count;
		return 0;
	}
	rows->listed = malloc(((size_t)marked + 1) * sizeof(*rows->listed));
	if (!rows->listed)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		if (marks[i])
			rows->listed[at++] = i;
	}
	rows->listed_count = marked;
	/* The list comes first; the run after it is empty. */
	rows->first = rows->end = count;
	return 0;
}

static bool reaches_in(const struct ky_html_times *times, uint32_t row, int64_t from_ns,
		       int64_t to_ns)
{
	const int64_t ts = times->ts[row], dur = times->dur ? times->dur[row] : 0;
	if (ts >= from_ns)
		return ts < to_ns;
	return (dur < 0 ? times->open_ends_ns : ky_add_clamped(ts, dur)) > from_ns;
}

/* List the rows before `before` that reach in; if list is NULL, only count them. */
static uint32_t list(const struct ky_html_times *times, uint32_t before, int64_t from_ns,
		     int64_t to_ns, uint32_t *listed)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < before; i++) {
		if (!reaches_in(times, i, from_ns, to_ns))
			continue;
		if (listed)
			listed[count] = i;
		count++;
	}
	return count;
}

int ky_html_rows_in(struct ky_html_rows *rows, const struct ky_html_times *times, bool ordered,
		    int64_t from_ns, int64_t to_ns)
{
	*rows = (struct ky_html_rows){.end = times->count};
	if (from_ns == INT64_MIN && to_ns == INT64_MAX)
		return 0;
	if (ordered) {
		rows->first = ky_index_time(times->ts, times->count, from_ns);
		rows->end = ky_index_time(times->ts, times->count, to_ns);
		rows->end = rows->end > rows->first ? rows->end : rows->first;
	} else {
		rows->first = rows->end = times->count;
	}
	rows->listed_count = list(times, rows->first, from_ns, to_ns, NULL);
	rows->listed = malloc(((size_t)rows->listed_count + 1) * sizeof(*rows->listed));
	if (!rows->listed)
		return -ENOMEM;
	list(times, rows->first, from_ns, to_ns, rows->listed);
	return 0;
}

/* ---- data ---- */

/* Also select the last value of each counter before the range: it holds until the next one. */
static int list_values_before(struct ky_html_rows *rows, const struct ky_counters *counters,
			      uint32_t tracks_count)
{
	uint8_t *const seen = calloc((size_t)tracks_count + 1, 1);
	uint8_t *const marks = calloc((size_t)rows->first + 1, 1);
	struct ky_html_rows before = {0};
	int result = seen && marks ? 0 : -ENOMEM;
	for (uint32_t i = rows->first; result == 0 && i-- > 0;) {
		marks[i] = !seen[counters->track[i]];
		seen[counters->track[i]] = 1;
	}
	if (result == 0)
		result = rows_marked(&before, marks, rows->first);
	free(seen);
	free(marks);
	if (result)
		return result;
	free(rows->listed);
	rows->listed = before.listed;
	rows->listed_count = before.listed_count;
	/* All before were selected: they and the run are one. */
	if (!before.listed)
		rows->first = 0;
	return 0;
}

static int choose_table(struct ky_html_data *data, enum ky_html_table table, const int64_t *ts,
			const int64_t *dur, uint32_t count, bool ordered)
{
	const struct ky_html_times times = {ts, dur, count, data->trace->end_ns};
	return ky_html_rows_in(&data->rows[table], &times, ordered, data->from_ns, data->to_ns);
}

static void choose_all(struct ky_html_rows *rows, uint32_t count)
{
	*rows = (struct ky_html_rows){.end = count};
}

static int choose_events(struct ky_html_data *data)
{
	const struct ky_trace *const trace = data->trace;
	const struct ky_sample_spans *const spans = &data->view->sample_spans;
	const struct ky_slices *const slices = &trace->slices;
	const struct ky_sched *const sched = &trace->sched;
	const struct ky_thread_states *const states = &trace->thread_states;
	int result = choose_table(data, KY_HTML_SLICES, slices->ts, slices->dur, slices->rows.count,
				  true);
	if (!result)
		result = choose_table(data, KY_HTML_COUNTERS, trace->counters.ts, NULL,
				      trace->counters.rows.count, true);
	if (!result)
		result = choose_table(data, KY_HTML_SCHED, sched->ts, sched->dur, sched->rows.count,
				      true);
	if (!result)
		result = choose_table(data, KY_HTML_STATES, states->ts, states->dur,
				      states->rows.count, false);
	if (!result)
		result = choose_table(data, KY_HTML_SAMPLE_SPANS, spans->ts, spans->dur,
				      spans->count, false);
	if (!result)
		result = choose_table(data, KY_HTML_SAMPLES, trace->samples.ts, NULL,
				      trace->samples.rows.count, true);
	if (!result)
		result = choose_table(data, KY_HTML_LOSSES, trace->losses.ts, NULL,
				      trace->losses.rows.count, false);
	if (!result && data->from_ns != INT64_MIN)
		result = list_values_before(&data->rows[KY_HTML_COUNTERS], &trace->counters,
					    trace->tracks.rows.count);
	return result;
}

/* ---- arguments: numbered in the order of slices, so that a set is nearly always the next one ---- */

/* List the sets in their new order, after set 0. Return how many arguments they have. */
static uint64_t list_arg_sets(struct ky_html_data *data)
{
	const struct ky_trace *const trace = data->trace;
	struct ky_html_rows *const sets = &data->rows[KY_HTML_ARG_SETS];
	const struct ky_html_rows *const slices = &data->rows[KY_HTML_SLICES];
	const uint32_t count = ky_html_rows_count(slices);
	uint64_t args = 0;
	sets->listed[sets->listed_count++] = 0;
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t set = trace->slices.args[ky_html_rows_at(slices, i)];
		if (!set || set >= trace->arg_sets.rows.count || data->arg_sets[set])
			continue;
		data->arg_sets[set] = sets->listed_count;
		sets->listed[sets->listed_count++] = set;
		args += ky_arg_set_end(trace, set) - ky_arg_set_first(trace, set);
	}
	return args;
}

static int choose_arg_sets(struct ky_html_data *data, uint64_t *args)
{
	struct ky_html_rows *const sets = &data->rows[KY_HTML_ARG_SETS];
	const uint32_t slices = ky_html_rows_count(&data->rows[KY_HTML_SLICES]);
	data->arg_sets =
		calloc((size_t)data->trace->arg_sets.rows.count + 1, sizeof(*data->arg_sets));
	sets->listed = malloc(((size_t)slices + 1) * sizeof(*sets->listed));
	if (!data->arg_sets || !sets->listed)
		return -ENOMEM;
	*args = list_arg_sets(data);
	return *args > UINT32_MAX ? -EFBIG : 0;
}

static int choose_args(struct ky_html_data *data)
{
	const struct ky_html_rows *const sets = &data->rows[KY_HTML_ARG_SETS];
	struct ky_html_rows *const args = &data->rows[KY_HTML_ARGS];
	uint64_t count = 0;
	const int error = choose_arg_sets(data, &count);
	if (error)
		return error;
	args->listed = malloc(((size_t)count + 1) * sizeof(*args->listed));
	if (!args->listed)
		return -ENOMEM;
	for (uint32_t i = 0; i < sets->listed_count; i++) {
		const uint32_t end = ky_arg_set_end(data->trace, sets->listed[i]);
		uint32_t arg = ky_arg_set_first(data->trace, sets->listed[i]);
		while (arg < end)
			args->listed[args->listed_count++] = arg++;
	}
	return 0;
}

/* ---- the rest ---- */

/* One byte per row of a table; the marked rows are selected. */
static int choose_marked(struct ky_html_data *data, enum ky_html_table table, uint32_t count,
			 void (*mark)(const struct ky_html_data *, uint8_t *))
{
	uint8_t *const marks = calloc((size_t)count + 1, 1);
	if (!marks)
		return -ENOMEM;
	mark(data, marks);
	const int result = rows_marked(&data->rows[table], marks, count);
	free(marks);
	return result;
}

static void mark_flows(const struct ky_html_data *data, uint8_t *marks)
{
	const struct ky_flows *const flows = &data->trace->flows;
	const struct ky_html_rows *const slices = &data->rows[KY_HTML_SLICES];
	for (uint32_t i = 0; i < flows->rows.count; i++)
		marks[i] = ky_html_rows_find(slices, flows->out[i]) != KY_NONE &&
			   ky_html_rows_find(slices, flows->in[i]) != KY_NONE;
}

/* Mark what a column of the selected rows refers to. */
static void mark_column(const struct ky_html_rows *rows, const uint32_t *column, uint32_t count,
			uint8_t *marks)
{
	const uint32_t chosen = ky_html_rows_count(rows);
	for (uint32_t i = 0; i < chosen; i++) {
		const uint32_t row = column[ky_html_rows_at(rows, i)];
		if (row < count)
			marks[row] = 1;
	}
}

/* Callers come before callees. */
static void mark_callsites(const struct ky_html_data *data, uint8_t *marks)
{
	const struct ky_callsites *const sites = &data->trace->callsites;
	const uint32_t count = sites->rows.count;
	mark_column(&data->rows[KY_HTML_SAMPLES], data->trace->samples.callsite, count, marks);
	mark_column(&data->rows[KY_HTML_SAMPLE_SPANS], data->view->sample_spans.callsite, count,
		    marks);
	for (uint32_t i = count; i-- > 0;) {
		if (marks[i] && sites->parent[i] < i)
			marks[sites->parent[i]] = 1;
	}
}

static void mark_frames(const struct ky_html_data *data, uint8_t *marks)
{
	const uint32_t count = data->trace->frames.rows.count;
	mark_column(&data->rows[KY_HTML_CALLSITES], data->trace->callsites.frame, count, marks);
	mark_column(&data->rows[KY_HTML_SAMPLE_SPANS], data->view->sample_spans.frame, count,
		    marks);
}

static void mark_mappings(const struct ky_html_data *data, uint8_t *marks)
{
	mark_column(&data->rows[KY_HTML_FRAMES], data->trace->frames.mapping,
		    data->trace->mappings.rows.count, marks);
}

static int refer(struct ky_html_data *data)
{
	const struct ky_trace *const trace = data->trace;
	int result = choose_marked(data, KY_HTML_FLOWS, trace->flows.rows.count, mark_flows);
	if (!result)
		result = choose_args(data);
	if (!result)
		result = choose_marked(data, KY_HTML_CALLSITES, trace->callsites.rows.count,
				       mark_callsites);
	if (!result)
		result = choose_marked(data, KY_HTML_FRAMES, trace->frames.rows.count, mark_frames);
	if (!result)
		result = choose_marked(data, KY_HTML_MAPPINGS, trace->mappings.rows.count,
				       mark_mappings);
	return result;
}

int ky_html_data_choose(struct ky_html_data *data)
{
	const struct ky_trace *const trace = data->trace;
	uint64_t events = 0;
	choose_all(&data->rows[KY_HTML_PROCESSES], trace->processes.rows.count);
	choose_all(&data->rows[KY_HTML_THREADS], trace->threads.rows.count);
	choose_all(&data->rows[KY_HTML_TRACKS], trace->tracks.rows.count);
	const int result = choose_events(data);
	if (result)
		return result;
	for (int i = KY_HTML_SLICES; i <= KY_HTML_LOSSES; i++)
		events += ky_html_rows_count(&data->rows[i]);
	return events > KY_HTML_EVENTS_MAX ? -EFBIG : refer(data);
}

void ky_html_data_free(struct ky_html_data *data)
{
	for (int i = 0; i < KY_HTML_TABLES; i++)
		free(data->rows[i].listed);
	free(data->arg_sets);
	free(data->strings);
	free(data->last);
	free(data->category_of);
	free(data->type_of);
	*data = (struct ky_html_data){0};
}
