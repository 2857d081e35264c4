/* SPDX-License-Identifier: MIT */
/*
 * sql_cursor.c: the module of all tables: opens them, and walks the rows of a plan.
 *
 * What a plan finds is a run of rows or a list of them, ascending either way; conditions on ts and id cut it at
 * its ends by binary search, and the others are tested row by row.
 */
#include "query/sql_table.h"

#include "base/array.h"

/* The limit of the index of CPUs; larger numbers occur only in damaged files. */
#define CPUS_INDEXED 65536

/* The argument of xConnect. */
struct source {
	struct ky_sql_context *context;
	const struct ky_sql_table *table;
};

static const char *declared_type(const struct ky_sql_column *column)
{
	switch (column->kind) {
	case KY_SQL_STRING:
		return "TEXT";
	case KY_SQL_REAL:
		return "DOUBLE";
	case KY_SQL_MADE:
		return column->flags & KY_SQL_TEXT ? "TEXT" : "INTEGER";
	default:
		return "INTEGER";
	}
}

static int declare(sqlite3 *db, const struct ky_sql_table *table)
{
	sqlite3_str *text = sqlite3_str_new(db);

	sqlite3_str_appendall(text, "CREATE TABLE x(");
	for (unsigned i = 0; i < table->columns_count; i++)
		sqlite3_str_appendf(text, "%s\"%w\" %s%s", i ? ", " : "", table->columns[i].name,
				    declared_type(&table->columns[i]),
				    table->columns[i].flags & KY_SQL_HIDDEN ? " HIDDEN" : "");
	sqlite3_str_appendall(text, ")");
	char *sql = sqlite3_str_finish(text);
	const int error = sql ? sqlite3_declare_vtab(db, sql) : SQLITE_NOMEM;
	sqlite3_free(sql);
	return error;
}

static int connect_table(sqlite3 *db, void *aux, int argc, const char *const *argv,
			 sqlite3_vtab **out, char **message)
{
	const struct source *source = aux;
	const char *trace = (const char *)source->context->trace;
	const struct ky_sql_table *table = source->table;
	struct ky_sql_vtab *vtab;

	(void)argc, (void)argv, (void)message;
	int error = declare(db, table);
	if (error)
		return error;
	sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
	vtab = sqlite3_malloc(sizeof(*vtab));
	if (!vtab)
		return SQLITE_NOMEM;
	memset(vtab, 0, sizeof(*vtab));
	vtab->context = source->context;
	vtab->table = table;
	vtab->count = ((const struct ky_rows *)(const void *)(trace + table->rows))->count;
	for (unsigned i = 0; i < table->columns_count; i++) {
		if (table->columns[i].offset)
			memcpy(&vtab->arrays[i], trace + table->columns[i].offset,
			       sizeof(vtab->arrays[i]));
		if (table->by_time && strcmp(table->columns[i].name, "ts") == 0)
			vtab->ts = vtab->arrays[i];
	}
	*out = &vtab->base;
	return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *vtab)
{
	sqlite3_free(vtab);
	return SQLITE_OK;
}

/* ---- cursors ---- */

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out)
{
	struct ky_sql_cursor *cursor = sqlite3_malloc(sizeof(*cursor));

	(void)vtab;
	if (!cursor)
		return SQLITE_NOMEM;
	memset(cursor, 0, sizeof(*cursor));
	*out = &cursor->base;
	return SQLITE_OK;
}

static void reset(struct ky_sql_cursor *cursor)
{
	for (unsigned i = 0; i < cursor->filters_count; i++)
		ky_sql_filter_free(&cursor->filters[i]);
	cursor->filters_count = 0;
	ky_sql_rows_free(&cursor->own);
	if (cursor->groups.groups || cursor->groups.by_string || cursor->groups.of ||
	    cursor->groups.order)
		ky_sql_groups_free(&cursor->groups);
	cursor->rows = NULL;
	cursor->done = false;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	reset((struct ky_sql_cursor *)base);
	sqlite3_free(base);
	return SQLITE_OK;
}

/* The bounds that conditions set, inclusive. */
struct bounds {
	int64_t row_low, row_high;
	int64_t ts_low, ts_high;
};

static void bound(struct bounds *bounds, const struct ky_sql_filter *filter)
{
	int64_t *low = filter->kind == KY_SQL_ROW ? &bounds->row_low : &bounds->ts_low;
	int64_t *high = filter->kind == KY_SQL_ROW ? &bounds->row_high : &bounds->ts_high;

	if (filter->low > *low)
		*low = filter->low;
	if (filter->high < *high)
		*high = filter->high;
}

/* Return the first place in the list whose row is not below a row. */
static uint32_t place_of(const struct ky_sql_cursor *cursor, int64_t row)
{
	return KY_ARRAY_SEARCH(cursor->at, cursor->end, at, cursor->rows[at] < row);
}

static void cut(struct ky_sql_cursor *cursor, struct bounds *bounds)
{
	const struct ky_sql_vtab *vtab = (const struct ky_sql_vtab *)cursor->base.pVtab;
	int64_t low = bounds->row_low,
		high = bounds->row_high < INT64_MAX ? bounds->row_high + 1 : INT64_MAX;

	if (vtab->ts && bounds->ts_low > INT64_MIN) {
		const uint32_t first = ky_index_time(vtab->ts, vtab->count, bounds->ts_low);
		low = first > low ? first : low;
	}
	if (vtab->ts && bounds->ts_high < INT64_MAX) {
		const uint32_t end = ky_index_time(vtab->ts, vtab->count, bounds->ts_high + 1);
		high = end < high ? end : high;
	}
	low = low < 0 ? 0 : low > vtab->count ? vtab->count : low;
	high = high < low ? low : high > vtab->count ? vtab->count : high;
	if (!cursor->rows) {
		cursor->at = cursor->at > low ? cursor->at : (uint32_t)low;
		cursor->end = cursor->end < high ? cursor->end : (uint32_t)high;
	} else if (low > 0 || high < vtab->count) {
		const uint32_t at = place_of(cursor, low);
		cursor->end = place_of(cursor, high);
		cursor->at = at;
	}
	if (cursor->end < cursor->at)
		cursor->end = cursor->at;
}

static void find_set(struct ky_sql_cursor *cursor, const struct ky_trace *trace, int64_t set)
{
	cursor->at = cursor->end = 0;
	if (set > 0 && set < trace->arg_sets.rows.count) {
		cursor->at = ky_arg_set_first(trace, (uint32_t)set);
		cursor->end = ky_arg_set_end(trace, (uint32_t)set);
	}
}

static int find_key(struct ky_sql_cursor *cursor, int8_t index, int64_t key)
{
	const struct ky_sql_vtab *vtab = (const struct ky_sql_vtab *)cursor->base.pVtab;
	struct ky_trace *trace = vtab->context->trace;

	if (index == KY_SQL_INDEX_ARGS) {
		find_set(cursor, trace, key);
		return SQLITE_OK;
	}
	cursor->at = cursor->end = 0;
	if (key < 0 || key >= KY_NONE)
		return SQLITE_OK;
	const struct ky_index_rows found =
		ky_index_get(trace, (enum ky_index_of)index, (uint32_t)key);
	cursor->rows = found.rows;
	cursor->end = found.rows ? found.count : 0;
	return found.failed ? SQLITE_NOMEM : SQLITE_OK;
}

static int call(struct ky_sql_cursor *cursor, sqlite3_value *value)
{
	const struct ky_sql_vtab *vtab = (const struct ky_sql_vtab *)cursor->base.pVtab;

	cursor->at = cursor->end = 0;
	if (sqlite3_value_numeric_type(value) != SQLITE_INTEGER)
		return SQLITE_OK;
	cursor->argument = sqlite3_value_int64(value);
	if (!vtab->table->function(vtab->context->trace, cursor->argument, &cursor->own))
		return SQLITE_NOMEM;
	cursor->rows = cursor->own.rows;
	cursor->end = cursor->own.count;
	return SQLITE_OK;
}

/* Apply the condition that finds rows; a value that gives no key for the index leaves all rows. */
static int find(struct ky_sql_cursor *cursor, const struct ky_sql_term *term, sqlite3_value *value)
{
	const struct ky_sql_vtab *vtab = (const struct ky_sql_vtab *)cursor->base.pVtab;
	struct ky_sql_filter key;

	if (cursor->plan->access == KY_SQL_BY_FUNCTION)
		return call(cursor, value);
	const int error = ky_sql_filter_make(&key, vtab, term, value);
	if (error)
		return error;
	if (key.test == KY_SQL_TEST_NEVER)
		cursor->end = cursor->at;
	else if (key.test != KY_SQL_TEST_RANGE)
		return SQLITE_OK;
	else if (cursor->plan->access == KY_SQL_BY_ID)
		cut(cursor, &(struct bounds){key.low, key.high, INT64_MIN, INT64_MAX});
	else if (vtab->table->columns[term->column].index == KY_INDEX_SCHED_CPU &&
		 key.low >= CPUS_INDEXED)
		cursor->filters[cursor->filters_count++] = key;
	else
		return find_key(cursor, vtab->table->columns[term->column].index, key.low);
	return SQLITE_OK;
}

static int use_terms(struct ky_sql_cursor *cursor, sqlite3_value **values, struct bounds *bounds)
{
	const struct ky_sql_vtab *vtab = (const struct ky_sql_vtab *)cursor->base.pVtab;
	const struct ky_sql_plan *plan = cursor->plan;
	int error = SQLITE_OK;

	for (unsigned i = 0; i < plan->terms_count && !error; i++) {
		const struct ky_sql_term *term = &plan->terms[i];
		struct ky_sql_filter *filter = &cursor->filters[cursor->filters_count];
		if (term->role == KY_SQL_FIND) {
			error = find(cursor, term, values[i]);
			continue;
		}
		error = ky_sql_filter_make(filter, vtab, term, values[i]);
		if (!error && filter->test == KY_SQL_TEST_NEVER)
			cursor->done = true;
		else if (!error && term->role == KY_SQL_BOUND && filter->test == KY_SQL_TEST_RANGE)
			bound(bounds, filter);
		else if (!error && filter->test != KY_SQL_TEST_ALWAYS)
			cursor->filters_count++;
	}
	return error;
}

static int next_row(struct ky_sql_cursor *cursor)
{
	const bool reverse = cursor->plan->reverse;

	while (cursor->at < cursor->end) {
		const uint32_t place = reverse ? --cursor->end : cursor->at++;
		cursor->row = cursor->rows ? cursor->rows[place] : place;
		if (ky_sql_cursor_pass(cursor, cursor->row))
			return SQLITE_OK;
	}
	cursor->done = true;
	return SQLITE_OK;
}

static int next_group(struct ky_sql_cursor *cursor, uint32_t at)
{
	const struct ky_sql_vtab *vtab = (const struct ky_sql_vtab *)cursor->base.pVtab;

	cursor->group = at;
	cursor->done = at >= cursor->groups.count;
	if (!cursor->done) {
		const struct ky_sql_group *group = &cursor->groups.groups[cursor->groups.order[at]];
		cursor->row = group->first;
		vtab->context->batch_rows = group->count;
		if (cursor->groups.sums_count)
			vtab->context->batch_sums =
				&cursor->groups.sums[(size_t)cursor->groups.order[at] *
						     cursor->groups.sums_count];
	}
	return SQLITE_OK;
}

static int first_row(struct ky_sql_cursor *cursor)
{
	if (cursor->plan->shape == KY_SQL_ROWS)
		return next_row(cursor);
	int error = ky_sql_groups_make(cursor);
	if (error)
		return error;
	if (cursor->plan->shape != KY_SQL_SORTED)
		return next_group(cursor, 0);
	error = ky_sql_groups_rows(cursor);
	return error ? error : next_row(cursor);
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc,
		  sqlite3_value **argv)
{
	struct ky_sql_cursor *cursor = (struct ky_sql_cursor *)base;
	const struct ky_sql_vtab *vtab = (const struct ky_sql_vtab *)base->pVtab;
	struct bounds bounds = {0, INT64_MAX, INT64_MIN, INT64_MAX};

	(void)number, (void)argc;
	reset(cursor);
	cursor->plan = (const struct ky_sql_plan *)(const void *)plan;
	cursor->at = 0;
	cursor->end = vtab->count;
	const int error = use_terms(cursor, argv, &bounds);
	if (error || cursor->done)
		return error;
	cut(cursor, &bounds);
	return first_row(cursor);
}

static int next(sqlite3_vtab_cursor *base)
{
	struct ky_sql_cursor *cursor = (struct ky_sql_cursor *)base;

	if (cursor->plan->shape <= KY_SQL_SORTED)
		return next_row(cursor);
	return next_group(cursor, cursor->group + 1);
}

static int eof(sqlite3_vtab_cursor *base)
{
	return ((const struct ky_sql_cursor *)base)->done;
}

static int column_cell(sqlite3_vtab_cursor *base, sqlite3_context *to, int at)
{
	const struct ky_sql_cursor *cursor = (const struct ky_sql_cursor *)base;
	const struct ky_sql_vtab *vtab = (const struct ky_sql_vtab *)base->pVtab;
	const struct ky_sql_column *column = &vtab->table->columns[at];
	int64_t value;

	if (cursor->plan->shape == KY_SQL_BATCH && cursor->groups.sums_of[at] >= 0) {
		const int place = cursor->groups.sums_of[at];
		if (vtab->context->batch_sums[place].count)
			sqlite3_result_int(to, place);
		sqlite3_result_subtype(to, KY_SQL_SUM_SUBTYPE);
		return SQLITE_OK;
	}
	if (column->kind == KY_SQL_REAL)
		sqlite3_result_double(to, ((const double *)vtab->arrays[at])[cursor->row]);
	else if (column->kind == KY_SQL_MADE)
		column->make(vtab->context->trace, cursor->row, to);
	else if (column->kind == KY_SQL_ARG)
		sqlite3_result_int64(to, cursor->argument);
	else if (!ky_sql_get(column->kind, vtab->arrays[at], cursor->row, &value))
		sqlite3_result_null(to);
	else if (column->kind == KY_SQL_STRING)
		ky_sql_result_string(vtab->context->trace, (uint32_t)value, to);
	else
		sqlite3_result_int64(to, value);
	return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *row)
{
	*row = ((const struct ky_sql_cursor *)base)->row;
	return SQLITE_OK;
}

/* Without xCreate the tables are eponymous, and without xUpdate read-only. */
static const sqlite3_module module = {
	.xConnect = connect_table,
	.xDisconnect = disconnect_table,
	.xBestIndex = ky_sql_plan,
	.xOpen = open_cursor,
	.xClose = close_cursor,
	.xFilter = filter,
	.xNext = next,
	.xEof = eof,
	.xColumn = column_cell,
	.xRowid = rowid,
};

int ky_sql_add_table(struct ky_sql_context *context, const struct ky_sql_table *table)
{
	struct source *source = sqlite3_malloc(sizeof(*source));

	if (!source)
		return SQLITE_NOMEM;
	*source = (struct source){context, table};
	return sqlite3_create_module_v2(context->db, table->name, &module, source, sqlite3_free);
}
