/* SPDX-License-Identifier: MIT */
/*
 * sql_group.c: rows by equal keys. One pass over the remaining rows assigns each a group; a group's keys are those of
 * its first row, so that none are stored. If the key is one string, its number finds the group; otherwise its hash.
 *
 * Uses: sorted (rows in the order of their groups), distinct (the first row of each group), or batch (columns are
 * summed up in the same pass).
 */
#include "base/array.h"
#include "query/sql_table.h"

#include <math.h>
#include <stdlib.h>

/* With more groups an order that was not requested costs more than it is worth. */
#define ORDERED_MAX (1u << 20)
#define CHECK_EVERY (1u << 16)

struct grouping {
	struct ky_sql_cursor *cursor;
	const struct ky_sql_vtab *vtab;
	const struct ky_sql_plan *plan;
	struct ky_sql_groups *groups;
	bool direct; /* the key is one string */
};

static bool key_of(const struct grouping *g, unsigned key, uint32_t row, int64_t *value)
{
	const uint8_t column = g->plan->keys[key];

	return ky_sql_get(g->vtab->table->columns[column].kind, g->vtab->arrays[column], row,
			  value);
}

static uint64_t hash_of(const struct grouping *g, uint32_t row)
{
	uint64_t hash = 1;

	for (unsigned i = 0; i < g->plan->keys_count; i++) {
		int64_t value;
		const bool there = key_of(g, i, row, &value);
		hash = ky_hash_pair(hash, there ? (uint64_t)value : 0x5bd1e995a5a5a5a5u);
	}
	return hash;
}

static bool same_keys(const struct grouping *g, uint32_t a, uint32_t b)
{
	for (unsigned i = 0; i < g->plan->keys_count; i++) {
		int64_t x, y;
		const bool there = key_of(g, i, a, &x);
		if (there != key_of(g, i, b, &y) || (there && x != y))
			return false;
	}
	return true;
}

/* Add a group for a row and return its number; KY_NONE without memory. */
static uint32_t add_group(struct ky_sql_groups *groups, uint32_t row)
{
	const size_t sums = (size_t)groups->count * groups->sums_count;

	if (!KY_ARRAY_GROW_ZERO(groups->sums, groups->sums_room, sums + groups->sums_count) ||
	    !KY_ARRAY_ADD(groups->groups, groups->count, groups->room,
			  (struct ky_sql_group){.first = row}))
		return KY_NONE;
	return groups->count - 1;
}

static uint32_t group_by_string(struct grouping *g, uint32_t row)
{
	int64_t string;
	uint32_t *group = &g->groups->by_string[key_of(g, 0, row, &string) ? string : 0];

	if (!*group)
		*group = add_group(g->groups, row) + 1; /* KY_NONE + 1 is 0 */
	return *group - 1;
}

/* Return the row's group, made when there is none; KY_NONE without memory. */
static uint32_t group_of(struct grouping *g, uint32_t row)
{
	struct ky_sql_groups *groups = g->groups;

	if (g->direct)
		return group_by_string(g, row);
	const uint64_t hash = hash_of(g, row);
	struct ky_hash_probe probe = ky_hash_index_probe(&groups->index, hash);
	for (uint32_t i; ky_hash_index_next(&probe, &i);)
		if (same_keys(g, groups->groups[i].first, row))
			return i;
	const uint32_t group = add_group(groups, row);
	return group != KY_NONE && ky_hash_index_add(&groups->index, hash, group) ? group : KY_NONE;
}

/* ---- sums ---- */

static void add_integer(struct ky_sql_sum *sum, int64_t value)
{
	if (sum->count == 0 || value < sum->low)
		sum->low = value;
	if (sum->count == 0 || value > sum->high)
		sum->high = value;
	sum->count++;
	sum->real_total += (double)value;
	if (__builtin_add_overflow(sum->total, value, &sum->total))
		sum->overflow = true;
}

static void add_real(struct ky_sql_sum *sum, double value)
{
	if (isnan(value)) /* which is NULL in SQLite */
		return;
	if (sum->count == 0 || value < sum->real_low)
		sum->real_low = value;
	if (sum->count == 0 || value > sum->real_high)
		sum->real_high = value;
	sum->count++;
	sum->real = true;
	sum->real_total += value;
}

static void add_sums(const struct grouping *g, uint32_t group, uint32_t row)
{
	struct ky_sql_groups *groups = g->groups;
	struct ky_sql_sum *sums = &groups->sums[(size_t)group * groups->sums_count];

	for (unsigned i = 0; i < groups->sums_count; i++) {
		const uint8_t column = groups->sums_columns[i];
		const uint8_t kind = g->vtab->table->columns[column].kind;
		int64_t value;
		if (kind == KY_SQL_REAL)
			add_real(&sums[i], ((const double *)g->vtab->arrays[column])[row]);
		else if (ky_sql_get(kind, g->vtab->arrays[column], row, &value))
			add_integer(&sums[i], value);
	}
}

static void choose_sums(struct grouping *g)
{
	struct ky_sql_groups *groups = g->groups;
	uint64_t used = g->plan->shape == KY_SQL_BATCH ? g->plan->used : 0;

	memset(groups->sums_of, -1, sizeof(groups->sums_of));
	for (unsigned i = 0; i < g->plan->keys_count; i++)
		used &= ~(UINT64_C(1) << g->plan->keys[i]);
	for (uint8_t i = 0; i < g->vtab->table->columns_count; i++)
		if (used & UINT64_C(1) << i) {
			groups->sums_of[i] = (int8_t)groups->sums_count;
			groups->sums_columns[groups->sums_count++] = i;
		}
}

/* ---- the pass ---- */

static int group_rows(struct grouping *g)
{
	struct ky_sql_cursor *cursor = g->cursor;
	const bool sorted = g->plan->shape == KY_SQL_SORTED;
	uint32_t kept = 0;

	for (uint32_t at = cursor->at; at < cursor->end; at++) {
		const uint32_t row = cursor->rows ? cursor->rows[at] : at;
		if (at % CHECK_EVERY == 0 &&
		    __atomic_load_n(g->vtab->context->stop, __ATOMIC_RELAXED))
			return SQLITE_INTERRUPT;
		if (!ky_sql_cursor_pass(cursor, row))
			continue;
		const uint32_t group = group_of(g, row);
		if (group == KY_NONE)
			return SQLITE_NOMEM;
		g->groups->groups[group].count++;
		if (g->groups->sums_count)
			add_sums(g, group, row);
		if (sorted) {
			g->groups->of[kept] = group;
			cursor->own.rows[kept++] = row;
		}
	}
	cursor->own.count = kept;
	return SQLITE_OK;
}

static int compare_texts(const struct ky_strings *strings, int64_t a, int64_t b)
{
	const uint32_t a_bytes = ky_strings_bytes(strings, (uint32_t)a);
	const uint32_t b_bytes = ky_strings_bytes(strings, (uint32_t)b);
	const int order =
		memcmp(ky_strings_text(strings, (uint32_t)a), ky_strings_text(strings, (uint32_t)b),
		       a_bytes < b_bytes ? a_bytes : b_bytes);

	return order ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

static int compare_key(const struct grouping *g, unsigned key, uint32_t a, uint32_t b)
{
	int64_t x, y;
	const bool x_there = key_of(g, key, a, &x), y_there = key_of(g, key, b, &y);

	if (!x_there || !y_there)
		return x_there - y_there;
	if (g->vtab->table->columns[g->plan->keys[key]].kind == KY_SQL_STRING && x != y)
		return compare_texts(&g->vtab->context->trace->strings, x, y);
	return (x > y) - (x < y);
}

static int compare_groups(const void *a, const void *b, void *context)
{
	const struct grouping *g = context;
	const struct ky_sql_group *groups = g->groups->groups;

	for (unsigned i = 0; i < g->plan->keys_count; i++) {
		const int order = compare_key(g, i, groups[*(const uint32_t *)a].first,
					      groups[*(const uint32_t *)b].first);
		if (order)
			return g->plan->keys_down[i] ? -order : order;
	}
	return 0;
}

static int order_groups(struct grouping *g)
{
	struct ky_sql_groups *groups = g->groups;

	groups->order = malloc((groups->count + (size_t)1) * sizeof(*groups->order));
	if (!groups->order)
		return SQLITE_NOMEM;
	for (uint32_t i = 0; i < groups->count; i++)
		groups->order[i] = i;
	if (g->plan->ordered || groups->count <= ORDERED_MAX)
		qsort_r(groups->order, groups->count, sizeof(*groups->order), compare_groups, g);
	return SQLITE_OK;
}

int ky_sql_groups_make(struct ky_sql_cursor *cursor)
{
	struct grouping g = {
		.cursor = cursor,
		.vtab = (const struct ky_sql_vtab *)cursor->base.pVtab,
		.plan = cursor->plan,
		.groups = &cursor->groups,
	};
	const size_t rows = cursor->end - cursor->at;

	choose_sums(&g);
	g.direct = g.plan->keys_count == 1 &&
		   g.vtab->table->columns[g.plan->keys[0]].kind == KY_SQL_STRING;
	if (g.direct) {
		g.groups->by_string =
			calloc((size_t)g.vtab->context->trace->strings.count + 1, sizeof(uint32_t));
		if (!g.groups->by_string)
			return SQLITE_NOMEM;
	}
	if (g.plan->shape == KY_SQL_SORTED) {
		g.groups->of = malloc((rows + 1) * sizeof(uint32_t));
		if (!g.groups->of || !KY_ARRAY_GROW(cursor->own.rows, cursor->own.room, rows + 1))
			return SQLITE_NOMEM;
	}
	const int error = group_rows(&g);
	return error ? error : order_groups(&g);
}

int ky_sql_groups_rows(struct ky_sql_cursor *cursor)
{
	struct ky_sql_groups *groups = &cursor->groups;
	struct ky_sql_rows sorted = {.count = cursor->own.count};
	uint32_t place = 0;

	if (!KY_ARRAY_GROW(sorted.rows, sorted.room, sorted.count + (uint64_t)1))
		return SQLITE_NOMEM;
	for (uint32_t i = 0; i < groups->count; i++) {
		struct ky_sql_group *group = &groups->groups[groups->order[i]];
		group->next = place;
		place += group->count;
	}
	for (uint32_t i = 0; i < cursor->own.count; i++)
		sorted.rows[groups->groups[groups->of[i]].next++] = cursor->own.rows[i];
	ky_sql_rows_free(&cursor->own);
	cursor->own = sorted;
	cursor->rows = sorted.rows;
	cursor->at = 0;
	cursor->end = cursor->own.count;
	while (cursor->filters_count > 0) /* all of them pass */
		ky_sql_filter_free(&cursor->filters[--cursor->filters_count]);
	ky_sql_groups_free(groups);
	return SQLITE_OK;
}

void ky_sql_groups_free(struct ky_sql_groups *groups)
{
	KY_ARRAY_FREE(groups->groups, groups->room);
	ky_hash_index_free(&groups->index);
	free(groups->by_string);
	free(groups->order);
	free(groups->of);
	KY_ARRAY_FREE(groups->sums, groups->sums_room);
	memset(groups, 0, sizeof(*groups));
}
