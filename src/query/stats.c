/* SPDX-License-Identifier: MIT */
/*
 * stats.c: sums and percentiles of slices by what they have in common.
 *
 *   pass 1   count, sums, extremes and self time of each group; a child's time is taken from its
 *            parent's group, so that no slice needs a self time of its own
 *   pass 2   the durations, each group's together: 8 bytes a slice, the only memory that grows
 *            with them
 *   then     deviation and percentiles of each group
 *
 * Percentiles are exact: the smallest duration that at least that part of all does not exceed.
 */
#include "query/stats.h"

#include "base/array.h"
#include "base/map.h"
#include "query/filter.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the value of a rank ---- */

#define BITS 11
#define FEW 32

/* Map values to unsigned numbers of the same order. */
static uint64_t ordered(int64_t value)
{
	return (uint64_t)value ^ (UINT64_C(1) << 63);
}

static int64_t select_few(int64_t *values, uint64_t count, uint64_t rank)
{
	for (uint64_t i = 1; i < count; i++) {
		const int64_t value = values[i];
		uint64_t at = i;
		for (; at && values[at - 1] > value; at--)
			values[at] = values[at - 1];
		values[at] = value;
	}
	return values[rank];
}

static void range(const int64_t *values, uint64_t count, int64_t *min, int64_t *max)
{
	*min = *max = values[0];
	for (uint64_t i = 1; i < count; i++) {
		*min = values[i] < *min ? values[i] : *min;
		*max = values[i] > *max ? values[i] : *max;
	}
}

/* Move the values of one bucket to the front and return their number. */
static uint64_t keep_bucket(int64_t *values, uint64_t count, uint64_t base, unsigned shift,
			    uint64_t bucket)
{
	uint64_t kept = 0;
	for (uint64_t i = 0; i < count; i++) {
		const int64_t value = values[i];
		if ((ordered(value) - base) >> shift != bucket)
			continue;
		values[i] = values[kept];
		values[kept++] = value;
	}
	return kept;
}

int64_t ky_stats_select(int64_t *values, uint64_t count, uint64_t rank)
{
	uint64_t counts[1u << BITS];
	while (count > FEW) {
		int64_t min, max;
		range(values, count, &min, &max);
		if (min == max)
			return min;
		const uint64_t base = ordered(min);
		const unsigned width = 64 - (unsigned)__builtin_clzll(ordered(max) - base);
		const unsigned shift = width > BITS ? width - BITS : 0;
		memset(counts, 0, sizeof(counts));
		for (uint64_t i = 0; i < count; i++)
			counts[(ordered(values[i]) - base) >> shift]++;
		uint64_t bucket = 0;
		while (rank >= counts[bucket])
			rank -= counts[bucket++];
		if (!shift)
			return (int64_t)(ordered(min) + bucket - (UINT64_C(1) << 63));
		count = keep_bucket(values, count, base, shift, bucket);
	}
	return select_few(values, count, rank);
}

/* ---- sums ---- */

/* State while the rows are made. A slice's row is groups[keys[slice]]. */
struct making {
	const struct ky_trace *trace;
	struct ky_filter filter;
	const uint32_t *keys; /* column of the slices */
	uint32_t *groups;     /* by key: row, or KY_NONE when it has none yet */
	bool pairs;           /* by name and category: groups has the last row of a name */
	struct ky_pair_map rows_of_pair;
	uint32_t
		formats[3]; /* by name: keys of the argument that has a message's format; 0: none */
	struct ky_stats_row *rows;
	uint32_t count, room;
	bool by_name;
};

static uint32_t add_row(struct making *making, uint32_t key)
{
	struct ky_stats_row *const row = KY_ARRAY_NEW(making->rows, making->count, making->room);
	if (!row)
		return KY_NONE;
	row->key = key;
	row->min_ns = INT64_MAX;
	return making->count - 1;
}

/* Return the name by which a slice is grouped: of a message it is the format. */
static uint32_t name_of(const struct making *making, uint32_t slice)
{
	const struct ky_trace *const trace = making->trace;
	const uint32_t set = trace->slices.args[slice];
	if (trace->slices.kind[slice] != KY_SLICE_INSTANT || !set ||
	    !(making->formats[0] | making->formats[1] | making->formats[2]))
		return making->keys[slice];
	for (uint32_t i = ky_arg_set_first(trace, set); i < ky_arg_set_end(trace, set); i++)
		for (uint32_t n = 0; n < 3; n++)
			if (making->formats[n] && trace->args.key[i] == making->formats[n] &&
			    trace->args.type[i] == KY_ARG_STRING)
				return (uint32_t)trace->args.value[i];
	return making->keys[slice];
}

/* Find the format's key as readers spell it. */
static void find_formats(struct making *making)
{
	static const char *const keys[] = {KY_PRINT_FORMAT_KEY, "args." KY_PRINT_FORMAT_KEY,
					   "debug." KY_PRINT_FORMAT_KEY};
	for (uint32_t n = 0; n < 3; n++)
		making->formats[n] =
			ky_strings_find(&making->trace->strings, keys[n], strlen(keys[n]));
}

/* Return the row of a name and a category, which is added if it is new; KY_NONE without memory. */
static uint32_t row_of_pair(struct making *making, uint32_t name, uint32_t category)
{
	const uint32_t last = making->groups[name];
	bool made;
	if (last != KY_NONE && making->rows[last].category == category)
		return last;
	uint64_t *const number = ky_pair_map_add(&making->rows_of_pair, name, category, &made);
	if (!number)
		return KY_NONE;
	if (made) {
		const uint32_t row = add_row(making, name);
		if (row == KY_NONE)
			return KY_NONE;
		making->rows[row].category = category;
		*number = row;
	}
	making->groups[name] = (uint32_t)*number;
	return (uint32_t)*number;
}

/* Return the row of a slice, which is added if it is new; KY_NONE without memory. */
static uint32_t row_of_slice(struct making *making, uint32_t slice)
{
	const uint32_t key = making->keys == making->trace->slices.name ? name_of(making, slice)
									: making->keys[slice];
	if (making->pairs)
		return row_of_pair(making, key, making->trace->slices.category[slice]);
	if (making->groups[key] == KY_NONE)
		making->groups[key] = add_row(making, key);
	return making->groups[key];
}

/* Add a row for each thread or process, and one for tracks without an owner. */
static int group_tracks(struct making *making, enum ky_stats_by by)
{
	const struct ky_trace *const trace = making->trace;
	const uint32_t owners =
		by == KY_BY_THREAD ? trace->threads.rows.count : trace->processes.rows.count;
	for (uint32_t i = 0; i <= owners; i++) {
		if (add_row(making, i < owners ? i : KY_NONE) == KY_NONE)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < trace->tracks.rows.count; i++) {
		const uint32_t owner =
			by == KY_BY_THREAD ? ky_track_thread(trace, i) : ky_track_process(trace, i);
		making->groups[i] = owner < owners ? owner : owners;
	}
	return 0;
}

static int open_making(struct making *making, const struct ky_trace *trace, enum ky_stats_by by,
		       const struct ky_stats_filter *filter)
{
	const bool by_name = by == KY_BY_NAME || by == KY_BY_NAME_CATEGORY;
	const bool by_string = by_name || by == KY_BY_CATEGORY;
	*making = (struct making){.trace = trace, .by_name = by_name};
	const int error = ky_filter_open(&making->filter, trace, filter);
	if (error)
		return error;
	making->pairs = by == KY_BY_NAME_CATEGORY;
	if (making->pairs)
		find_formats(making);
	making->keys = by_name                ? trace->slices.name
		       : by == KY_BY_CATEGORY ? trace->slices.category
					      : trace->slices.track;
	const size_t keys =
		(size_t)(by_string ? trace->strings.count : trace->tracks.rows.count) + 1;
	making->groups = malloc(keys * sizeof(*making->groups));
	if (!making->groups)
		return -ENOMEM;
	for (size_t i = 0; i < keys; i++)
		making->groups[i] = KY_NONE;
	return by_string ? 0 : group_tracks(making, by);
}

static void close_making(struct making *making)
{
	ky_filter_close(&making->filter);
	ky_pair_map_free(&making->rows_of_pair);
	free(making->groups);
	ky_array_release(making->rows);
}

/* Subtract the part of a child within its parent from the parent's group. */
static void take_from_parent(struct making *making, uint32_t parent, struct ky_interval child)
{
	if (!ky_filter_slice(&making->filter, parent))
		return;
	const struct ky_interval span = ky_filter_interval(&making->filter, parent);
	const int64_t end = child.end < span.end ? child.end : span.end;
	const uint32_t number = row_of_slice(making, parent);
	struct ky_stats_row *const row = number == KY_NONE ? NULL : &making->rows[number];
	if (row && end > child.begin)
		row->self_ns = ky_sub_clamped(row->self_ns, ky_sub_clamped(end, child.begin));
}

/*
 * Report whether a slice is in one of the same name, which has its time already: recursion. Most are not, because no
 * slice of that name has reached so far in time.
 */
static bool recurs(const struct making *making, const struct ky_stats_row *row, uint32_t slice,
		   int64_t begin)
{
	const struct ky_slices *const slices = &making->trace->slices;
	if (!making->by_name || !row->count || begin >= row->until_ns)
		return false;
	uint32_t inner = slice;
	for (uint32_t at = slices->parent[slice]; at < inner; at = slices->parent[at]) {
		if (slices->name[at] == slices->name[slice] &&
		    (!making->pairs || slices->category[at] == slices->category[slice]) &&
		    slices->kind[at] != KY_SLICE_INSTANT && ky_filter_slice(&making->filter, at))
			return true;
		inner = at;
	}
	return false;
}

static int add_slice(struct making *making, uint32_t slice)
{
	const struct ky_slices *const slices = &making->trace->slices;
	const uint32_t group = row_of_slice(making, slice);
	if (group == KY_NONE)
		return -ENOMEM;
	struct ky_stats_row *const row = &making->rows[group];
	if (slices->kind[slice] == KY_SLICE_INSTANT) {
		row->instants++;
		return 0;
	}
	const struct ky_interval span = ky_filter_interval(&making->filter, slice);
	const int64_t ns = ky_sub_clamped(span.end, span.begin);
	if (!recurs(making, row, slice, span.begin))
		row->total_ns = ky_add_clamped(row->total_ns, ns);
	if (!row->count || span.end > row->until_ns)
		row->until_ns = span.end;
	row->count++;
	row->unfinished += slices->dur[slice] < 0;
	row->self_ns = ky_add_clamped(row->self_ns, ns);
	row->min_ns = ns < row->min_ns ? ns : row->min_ns;
	row->max_ns = ns > row->max_ns ? ns : row->max_ns;
	if (slices->parent[slice] < slice)
		take_from_parent(making, slices->parent[slice], span);
	return 0;
}

static int sum_up(struct making *making)
{
	for (uint32_t i = ky_filter_next(&making->filter, 0); i < making->filter.end;
	     i = ky_filter_next(&making->filter, i + 1)) {
		if (ky_filter_slice(&making->filter, i) && add_slice(making, i) != 0)
			return -ENOMEM;
	}
	return ky_filter_stopped(&making->filter) ? -EINTR : 0;
}

/* Collect the durations by group; ends[g] is the end of group g's. */
static void gather(struct making *making, int64_t *durations, uint64_t *ends)
{
	const struct ky_slices *const slices = &making->trace->slices;
	uint64_t begin = 0;
	for (uint32_t i = 0; i < making->count; i++) {
		ends[i] = begin;
		begin += making->rows[i].count;
	}
	for (uint32_t i = ky_filter_next(&making->filter, 0); i < making->filter.end;
	     i = ky_filter_next(&making->filter, i + 1)) {
		if (slices->kind[i] == KY_SLICE_INSTANT || !ky_filter_slice(&making->filter, i))
			continue;
		const struct ky_interval span = ky_filter_interval(&making->filter, i);
		const uint32_t row = row_of_slice(making, i);
		if (row != KY_NONE)
			durations[ends[row]++] = ky_sub_clamped(span.end, span.begin);
	}
}

static void distribute(struct ky_stats_row *row, int64_t *durations)
{
	const uint64_t count = row->count;
	double squares = 0, sum = 0;
	if (!count) {
		row->min_ns = 0;
		return;
	}
	for (uint64_t i = 0; i < count; i++)
		sum += (double)durations[i];
	row->mean_ns = sum / (double)count;
	for (uint64_t i = 0; i < count; i++) {
		const double off = (double)durations[i] - row->mean_ns;
		squares += off * off;
	}
	row->stddev_ns = count > 1 ? sqrt(squares / (double)(count - 1)) : 0;
	row->p50_ns = ky_stats_select(durations, count, ky_stats_rank(count, 0.50));
	row->p95_ns = ky_stats_select(durations, count, ky_stats_rank(count, 0.95));
	row->p99_ns = ky_stats_select(durations, count, ky_stats_rank(count, 0.99));
}

static int distribute_all(struct making *making)
{
	uint64_t all = 0;
	for (uint32_t i = 0; i < making->count; i++)
		all += making->rows[i].count;
	int64_t *const durations = malloc((all + 1) * sizeof(*durations));
	uint64_t *const ends = calloc((size_t)making->count + 1, sizeof(*ends));
	int result = durations && ends ? 0 : -ENOMEM;
	if (!result) {
		gather(making, durations, ends);
		result = ky_filter_stopped(&making->filter) ? -EINTR : 0;
		for (uint32_t i = 0; i < making->count && !result; i++)
			distribute(&making->rows[i], durations + ends[i] - making->rows[i].count);
	}
	free(durations);
	free(ends);
	return result;
}

KY_ORDER(by_total, struct ky_stats_row,
	 KY_COMPARE_THEN(b->total_ns, a->total_ns,
			 KY_COMPARE_THEN(b->count + b->instants, a->count + a->instants,
					 KY_COMPARE_THEN(a->key, b->key,
							 KY_COMPARE(a->category, b->category)))))

/* Drop empty groups. */
static void hand_over(struct making *making, struct ky_stats *stats)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < making->count; i++) {
		if (making->rows[i].count || making->rows[i].instants)
			making->rows[kept++] = making->rows[i];
	}
	if (kept)
		qsort(making->rows, kept, sizeof(*making->rows), by_total);
	stats->rows = making->rows;
	stats->count = kept;
	making->rows = NULL;
}

int ky_stats_make(struct ky_stats *stats, struct ky_trace *trace, enum ky_stats_by by,
		  const struct ky_stats_filter *filter)
{
	struct making making;
	*stats = (struct ky_stats){0};
	int result = open_making(&making, trace, by, filter);
	if (result == 0)
		result = sum_up(&making);
	if (result == 0)
		result = distribute_all(&making);
	if (result == 0)
		hand_over(&making, stats);
	close_making(&making);
	return result;
}

void ky_stats_free(struct ky_stats *stats)
{
	ky_array_release(stats->rows);
	*stats = (struct ky_stats){0};
}

static uint64_t copy_durations(const struct ky_filter *filter, int64_t *to)
{
	const struct ky_slices *const slices = &filter->trace->slices;
	uint64_t count = 0;
	for (uint32_t i = ky_filter_next(filter, 0); i < filter->end;
	     i = ky_filter_next(filter, i + 1)) {
		if (slices->kind[i] == KY_SLICE_INSTANT || !ky_filter_slice(filter, i))
			continue;
		if (to) {
			const struct ky_interval span = ky_filter_interval(filter, i);
			to[count] = ky_sub_clamped(span.end, span.begin);
		}
		count++;
	}
	return count;
}

int ky_stats_durations(struct ky_trace *trace, const struct ky_stats_filter *filter,
		       int64_t **durations, uint64_t *count)
{
	struct ky_filter open;
	*durations = NULL;
	*count = 0;
	const int error = ky_filter_open(&open, trace, filter);
	if (error)
		return error;
	const uint64_t all = copy_durations(&open, NULL);
	*durations = malloc((all + 1) * sizeof(**durations));
	if (*durations)
		*count = copy_durations(&open, *durations);
	ky_filter_close(&open);
	return *durations ? 0 : -ENOMEM;
}

/* ---- labels ---- */

static const char *label(char *buf, const char *name, const char *kind, int64_t id)
{
	if (name && *name)
		snprintf(buf, KY_STATS_LABEL_BYTES, "%.128s %" PRId64, name, id);
	else
		snprintf(buf, KY_STATS_LABEL_BYTES, "%s %" PRId64, kind, id);
	return buf;
}

const char *ky_stats_label_thread(char *buf, const struct ky_trace *trace, uint32_t thread)
{
	if (thread >= trace->threads.rows.count)
		return "";
	return label(buf, ky_text_of(trace, trace->threads.name[thread]), "thread",
		     trace->threads.tid[thread]);
}

const char *ky_stats_label_process(char *buf, const struct ky_trace *trace, uint32_t process)
{
	if (process >= trace->processes.rows.count)
		return "";
	return label(buf, ky_text_of(trace, trace->processes.name[process]), "process",
		     trace->processes.pid[process]);
}
