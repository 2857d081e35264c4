/* SPDX-License-Identifier: MIT */
/*
 * sql_group.c: rows by equal keys. One pass over the rows that are left gives each its group; a group's keys are
 * those of its first row, so that none are stored. When the key is one string, its number is the slot;
 * otherwise slots are found by hash.
 *
 * What for: sorted (rows are then put behind each other, group after group), distinct (the first row of each
 * stands for all), or batch (columns are summed up in the same pass).
 */
#include "query/sql_table.h"

#include <math.h>
#include <stdlib.h>

/* Beyond that many groups an order that nobody asked for costs more than it pleases. */
#define ORDERED_MAX (1u << 20)
#define CHECK_EVERY (1u << 16)

struct grouping {
	struct ky_sql_cursor *cursor;
	const struct ky_sql_vtab *vtab;
	const struct ky_sql_plan *plan;
	struct ky_sql_groups *groups;
	bool direct; /* the key is one string */
};

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 32;
}

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
		hash = mix(hash, there ? (uint64_t)value : 0x5bd1e995a5a5a5a5u);
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

static uint32_t *slot_of(const struct grouping *g, uint64_t hash, uint32_t row)
{
	const struct ky_sql_groups *groups = g->groups;
	const uint32_t mask = groups->slots_room - 1;
	uint32_t at = (uint32_t)hash & mask;

	while (groups->slots[at]) {
		const struct ky_sql_group *group = &groups->groups[groups->slots[at] - 1];
		if (group->hash == hash && same_keys(g, group->first, row))
			break;
		at = (at + 1) & mask;
	}
	return &groups->slots[at];
}

static bool grow_slots(struct grouping *g)
{
	struct ky_sql_groups *groups = g->groups;
	const uint32_t room = groups->slots_room ? groups->slots_room * 2 : 256;
	uint32_t *slots = room > groups->slots_room ? calloc(room, sizeof(*slots)) : NULL;

	if (!slots)
		return false;
	for (uint32_t i = 0; i < groups->count; i++) {
		uint32_t at = (uint32_t)groups->groups[i].hash & (room - 1);
		while (slots[at])
			at = (at + 1) & (room - 1);
		slots[at] = i + 1;
	}
	free(groups->slots);
	groups->slots = slots;
	groups->slots_room = room;
	return true;
}

static bool grow_groups(struct ky_sql_groups *groups)
{
	const uint32_t room = groups->room ? groups->room * 2 : 64;
	struct ky_sql_group *grown =
		room > groups->room ? realloc(groups->groups, room * sizeof(*grown)) : NULL;

	if (!grown)
		return false;
	groups->groups = grown;
	if (groups->sums_count) {
		struct ky_sql_sum *sums =
			realloc(groups->sums, (size_t)room * groups->sums_count * sizeof(*sums));
		if (!sums)
			return false;
		groups->sums = sums;
	}
	groups->room = room;
	return true;
}

static bool add_group(struct ky_sql_groups *groups, uint64_t hash, uint32_t row)
{
	if (groups->count == groups->room && !grow_groups(groups))
		return false;
	if (groups->sums_count)
		memset(&groups->sums[(size_t)groups->count * groups->sums_count], 0,
		       groups->sums_count * sizeof(groups->sums[0]));
	groups->groups[groups->count++] = (struct ky_sql_group){.hash = hash, .first = row};
	return true;
}

/* The row's group, made when there is none; KY_NONE without memory. */
static uint32_t group_of(struct grouping *g, uint32_t row)
{
	struct ky_sql_groups *groups = g->groups;
	uint64_t hash = 0;
	uint32_t *slot;

	if (g->direct) {
		int64_t string;
		slot = &groups->slots[key_of(g, 0, row, &string) ? string : 0];
	} else {
		if (groups->count * 2 >= groups->slots_room && !grow_slots(g))
			return KY_NONE;
		hash = hash_of(g, row);
		slot = slot_of(g, hash, row);
	}
	if (!*slot) {
		if (!add_group(groups, hash, row))
			return KY_NONE;
		*slot = groups->count;
	}
	return *slot - 1;
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
		g.groups->slots_room = g.vtab->context->trace->strings.count + 1;
		g.groups->slots = calloc(g.groups->slots_room, sizeof(uint32_t));
		if (!g.groups->slots)
			return SQLITE_NOMEM;
	}
	if (g.plan->shape == KY_SQL_SORTED) {
		g.groups->of = malloc((rows + 1) * sizeof(uint32_t));
		cursor->own.rows = malloc((rows + 1) * sizeof(uint32_t));
		if (!g.groups->of || !cursor->own.rows)
			return SQLITE_NOMEM;
	}
	const int error = group_rows(&g);
	return error ? error : order_groups(&g);
}

int ky_sql_groups_rows(struct ky_sql_cursor *cursor)
{
	struct ky_sql_groups *groups = &cursor->groups;
	uint32_t *sorted = malloc((cursor->own.count + (size_t)1) * sizeof(*sorted));
	uint32_t place = 0;

	if (!sorted)
		return SQLITE_NOMEM;
	for (uint32_t i = 0; i < groups->count; i++) {
		struct ky_sql_group *group = &groups->groups[groups->order[i]];
		group->next = place;
		place += group->count;
	}
	for (uint32_t i = 0; i < cursor->own.count; i++)
		sorted[groups->groups[groups->of[i]].next++] = cursor->own.rows[i];
	free(cursor->own.rows);
	cursor->own.rows = sorted;
	cursor->rows = sorted;
	cursor->at = 0;
	cursor->end = cursor->own.count;
	while (cursor->filters_count > 0) /* all of them pass */
		ky_sql_filter_free(&cursor->filters[--cursor->filters_count]);
	ky_sql_groups_free(groups);
	return SQLITE_OK;
}

void ky_sql_groups_free(struct ky_sql_groups *groups)
{
	free(groups->groups);
	free(groups->slots);
	free(groups->order);
	free(groups->of);
	free(groups->sums);
	memset(groups, 0, sizeof(*groups));
}
