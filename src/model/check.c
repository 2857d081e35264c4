/* SPDX-License-Identifier: MIT */
/*
 * check.c: makes a trace safe whose columns came from a file: see tables.h.
 *
 *   column ─▶ a cell that cannot be mended: the table ends before it
 *          └▶ others: "none" instead of what is not there
 */
#include "model/kernel_state.h"
#include "model/tables.h"

#include <errno.h>
#include <stdlib.h>

/* More slices in each other than any trace has. */
#define DEPTH_MAX 32768u

struct check {
	struct ky_trace *trace;
	const struct ky_table_spec *spec;
	struct ky_rows *rows;
	uint64_t wrong;
};

/* Mend what is not below the limit, nor none where that is allowed. */
static void mend(struct check *check, uint32_t *items, uint64_t limit, bool or_none, uint32_t none)
{
	for (uint32_t i = 0; i < check->rows->count; i++) {
		if (items[i] < limit || (or_none && items[i] == KY_NONE))
			continue;
		items[i] = none;
		check->wrong++;
	}
}

static void end_table(struct check *check, uint32_t row)
{
	check->wrong += check->rows->count - row;
	check->rows->count = row;
}

static void need_rows(struct check *check, const uint32_t *items, uint32_t limit)
{
	for (uint32_t i = 0; i < check->rows->count; i++)
		if (items[i] >= limit)
			end_table(check, i);
}

static void need_order(struct check *check, const int64_t *ts)
{
	for (uint32_t i = 1; i < check->rows->count; i++)
		if (ts[i] < ts[i - 1])
			end_table(check, i);
}

static void mend_durations(struct check *check, int64_t *dur)
{
	for (uint32_t i = 0; i < check->rows->count; i++) {
		if (dur[i] >= -1)
			continue;
		dur[i] = -1;
		check->wrong++;
	}
}

static void mend_choices(struct check *check, uint8_t *items, uint8_t limit)
{
	for (uint32_t i = 0; i < check->rows->count; i++) {
		if (items[i] < limit)
			continue;
		items[i] = 0;
		check->wrong++;
	}
}

static void mend_before(struct check *check, uint32_t *items)
{
	for (uint32_t i = 0; i < check->rows->count; i++) {
		if (items[i] < i || items[i] == KY_NONE)
			continue;
		items[i] = KY_NONE;
		check->wrong++;
	}
}

/* Walk up from each row to one that was seen before: on the way of an earlier row, it ends; on this way, it is a circle. */
static bool mend_circles(struct check *check, uint32_t *above)
{
	const uint32_t count = check->rows->count;
	uint32_t *way = calloc((size_t)count + 1, sizeof(*way));
	if (!way)
		return false;
	mend(check, above, count, true, KY_NONE);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = i, last = i;
		for (; at != KY_NONE && !way[at]; at = above[at]) {
			way[at] = i + 1;
			last = at;
		}
		if (at != KY_NONE && way[at] == i + 1) {
			above[last] = KY_NONE;
			check->wrong++;
		}
	}
	free(way);
	return true;
}

static void mend_owners(struct check *check)
{
	struct ky_tracks *tracks = &check->trace->tracks;
	for (uint32_t i = 0; i < check->rows->count; i++) {
		const uint8_t kind = tracks->kind[i] % KY_TRACK_COUNTER;
		const uint32_t limit = kind == KY_TRACK_THREAD ? check->trace->threads.rows.count
				       : kind == KY_TRACK_PROCESS
					       ? check->trace->processes.rows.count
				       : kind == KY_TRACK_CPU ? KY_CPUS_MAX
							      : KY_NONE;
		if (limit == KY_NONE || tracks->owner[i] < limit)
			continue;
		/* A track of nothing. */
		tracks->kind[i] =
			ky_track_is_counter(tracks->kind[i]) ? KY_TRACK_COUNTER : KY_TRACK_GLOBAL;
		tracks->owner[i] = KY_NONE;
		check->wrong++;
	}
}

static void mend_values(struct check *check)
{
	struct ky_args *args = &check->trace->args;
	for (uint32_t i = 0; i < check->rows->count; i++) {
		if (args->type[i] < KY_ARG_STRING || args->value[i] < check->trace->strings.count)
			continue;
		args->type[i] = KY_ARG_NULL;
		args->value[i] = 0;
		check->wrong++;
	}
}

static void need_sets(struct check *check, const uint32_t *first)
{
	const uint32_t args = check->trace->args.rows.count;
	for (uint32_t i = 0; i < check->rows->count; i++)
		if (first[i] > args || (i && first[i] < first[i - 1]))
			end_table(check, i);
}

static bool check_column(struct check *check, const struct ky_column *column)
{
	struct ky_trace *trace = check->trace;
	void *items = *ky_column_of(check->rows, column);
	const struct ky_rows *target = (const void *)((const char *)trace + column->target);
	switch ((enum ky_holds)column->holds) {
	case KY_HOLDS_CHOICE:
		mend_choices(check, items, column->limit);
		break;
	case KY_HOLDS_CPU:
		need_rows(check, items, KY_CPUS_MAX);
		break;
	case KY_HOLDS_CPU_OR:
		mend(check, items, KY_CPUS_MAX, true, KY_NONE);
		break;
	case KY_HOLDS_ORDER:
		need_order(check, items);
		break;
	case KY_HOLDS_DURATION:
		mend_durations(check, items);
		break;
	case KY_HOLDS_STRING:
		mend(check, items, trace->strings.count, false, 0);
		break;
	case KY_HOLDS_SET:
		mend(check, items, trace->arg_sets.rows.count, false, 0);
		break;
	case KY_HOLDS_FIRST:
		need_sets(check, items);
		break;
	case KY_HOLDS_VALUE:
		mend_values(check);
		break;
	case KY_HOLDS_OWNER:
		mend_owners(check);
		break;
	case KY_HOLDS_BEFORE:
		mend_before(check, items);
		break;
	case KY_HOLDS_ABOVE:
		return mend_circles(check, items);
	case KY_HOLDS_ROW:
		need_rows(check, items, target->count);
		break;
	case KY_HOLDS_ROW_OR:
		mend(check, items, target->count, true, KY_NONE);
		break;
	case KY_HOLDS_NUMBER:
	case KY_HOLDS_MINUS:
	case KY_HOLDS_REAL:
	case KY_HOLDS_TIME:
		break;
	}
	return true;
}

/* A slice is one deeper than its parent; one that is too deep loses it. */
static void mend_slice_depths(struct ky_slices *slices, uint64_t *wrong)
{
	for (uint32_t i = 0; i < slices->rows.count; i++) {
		uint32_t *parent = &slices->parent[i];
		if (*parent != KY_NONE && slices->depth[*parent] + 1 >= (int)DEPTH_MAX)
			*parent = KY_NONE;
		const uint16_t depth =
			*parent == KY_NONE ? 0 : (uint16_t)(slices->depth[*parent] + 1);
		*wrong += slices->depth[i] != depth;
		slices->depth[i] = depth;
	}
}

static void mend_callsite_depths(struct ky_callsites *sites, uint64_t *wrong)
{
	for (uint32_t i = 0; i < sites->rows.count; i++) {
		const uint32_t parent = sites->parent[i];
		const uint32_t depth = parent == KY_NONE ? 0 : sites->depth[parent] + 1;
		*wrong += sites->depth[i] != depth;
		sites->depth[i] = depth;
	}
}

/* Set 0 is no set, and always there. */
static bool need_no_set(struct ky_trace *trace)
{
	struct ky_arg_sets *sets = &trace->arg_sets;
	const struct ky_table_spec *spec = ky_tables_find(trace, sets);
	if (!ky_rows_reserve(sets, spec->columns, spec->columns_count, 1))
		return false;
	sets->rows.count += !sets->rows.count;
	sets->first[0] = 0;
	return true;
}

int64_t ky_trace_check(struct ky_trace *trace)
{
	struct check check = {.trace = trace};
	if (!need_no_set(trace))
		return -ENOMEM;
	for (uint32_t i = 0; i < ky_tables_count; i++) {
		check.spec = &ky_tables[i];
		check.rows = ky_table_of(trace, check.spec);
		for (uint32_t k = 0; check.rows->count && k < check.spec->columns_count; k++)
			if (!check_column(&check, &check.spec->columns[k]))
				return -ENOMEM;
	}
	mend_slice_depths(&trace->slices, &check.wrong);
	mend_callsite_depths(&trace->callsites, &check.wrong);
	return check.wrong < INT64_MAX ? (int64_t)check.wrong : INT64_MAX;
}
