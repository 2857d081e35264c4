/* SPDX-License-Identifier: MIT */
/*
 * sql_table.h: what the parts of SQL share: a table as data, a plan, the rows a cursor walks.
 *
 *   sql_tables.c    the tables: which column is which array          (struct ky_sql_table)
 *   sql_plan.c      xBestIndex: how to get the rows of a query       (struct ky_sql_plan)
 *   sql_cursor.c    xFilter, xNext, xColumn: the rows, one by one    (struct ky_sql_cursor)
 *   sql_filter.c    conditions, tested on the arrays                 (struct ky_sql_filter)
 *   sql_group.c     rows by equal keys: sorted, distinct, or summed  (struct ky_sql_groups)
 *   sql_cells.c     cells and rows that are computed
 *   sql_batch.c     detects statements that only sum up; aggregates over groups
 *
 * A table's row number is its id and its rowid. All numbers that a condition can be about fit in int64_t, so
 * that every comparison with a number is a range of them.
 */
#ifndef KY_QUERY_SQL_TABLE_H
#define KY_QUERY_SQL_TABLE_H

#include "base/map.h"
#include "model/index.h"
#include "model/trace.h"

#include <sqlite3.h>

/* How a cell is read from its array, and its value for NULL. */
enum ky_sql_kind {
	KY_SQL_ROW, /* the row's number, no array */
	KY_SQL_I64,
	KY_SQL_TIME, /* int64_t, KY_TIME_NONE is NULL */
	KY_SQL_U64,
	KY_SQL_U32,
	KY_SQL_REF, /* uint32_t, KY_NONE is NULL */
	KY_SQL_SET, /* uint32_t, 0 is NULL */
	KY_SQL_I32,
	KY_SQL_I32_OR, /* int32_t, -1 is NULL */
	KY_SQL_U16,
	KY_SQL_U8,
	KY_SQL_I8_OR,  /* int8_t, -1 is NULL */
	KY_SQL_STRING, /* uint32_t, a string's number */
	KY_SQL_REAL,   /* double: no conditions on it here, SQLite does them */
	KY_SQL_NULL,   /* in Perfetto only */
	KY_SQL_MADE,   /* made by a function */
	KY_SQL_ARG     /* the argument of a table function: hidden */
};

struct ky_sql_context;
typedef void ky_sql_cell_fn(const struct ky_trace *trace, uint32_t row, sqlite3_context *to);

/* Few different values: worth grouping by. */
#define KY_SQL_FEW 1u
/* Hidden from SELECT *. */
#define KY_SQL_HIDDEN 2u
/* KY_SQL_MADE: it makes texts. */
#define KY_SQL_TEXT 4u

struct ky_sql_column {
	const char *name;
	uint8_t kind;
	uint8_t flags;
	int8_t index;    /* enum ky_index_of, KY_SQL_INDEX_ARGS, or KY_SQL_NO_INDEX */
	uint16_t offset; /* of the array's pointer in struct ky_trace */
	ky_sql_cell_fn *make;
};

#define KY_SQL_NO_INDEX (-1)
#define KY_SQL_INDEX_ARGS (-2) /* rows of an argument set: they are neighbours */
#define KY_SQL_COLUMNS_MAX 32u
#define KY_SQL_ROWID 255u /* as a condition's column: the row's number */

struct ky_sql_rows {
	uint32_t *rows;
	uint32_t count, room;
};
void ky_sql_rows_free(struct ky_sql_rows *rows);

/* Collect the rows of a table function for its argument, ascending. False without memory. */
typedef bool ky_sql_rows_fn(struct ky_trace *trace, int64_t argument, struct ky_sql_rows *rows);

struct ky_sql_table {
	const char *name;
	uint16_t rows; /* offset of the struct ky_rows in struct ky_trace */
	bool by_time;  /* the column ts is ordered */
	bool (*holds)(const struct ky_trace *trace, uint32_t row); /* NULL: all rows */
	ky_sql_rows_fn *function;                                  /* NULL: not a table function */
	const struct ky_sql_column *columns;
	uint8_t columns_count;
};

extern const struct ky_sql_table ky_sql_tables[];
extern const unsigned ky_sql_tables_count;

/* A connection: there are two, and batch is the one that sums up (sql_batch.c). */
struct ky_sql_context {
	struct ky_trace *trace;
	sqlite3 *db;
	bool batch;
	uint64_t batch_rows;                 /* the number of rows behind a batch's current row */
	const struct ky_sql_sum *batch_sums; /* and their sums */
	const int *stop;                     /* atomic; not 0 to stop the running statement */
};

struct ky_sql_vtab {
	sqlite3_vtab base;
	struct ky_sql_context *context;
	const struct ky_sql_table *table;
	uint32_t count;    /* rows of the model's table */
	const int64_t *ts; /* NULL unless by_time */
	const void *arrays[KY_SQL_COLUMNS_MAX];
};

/* ---- cells ---- */

/* Cells and rows that are computed (sql_cells.c). */
ky_sql_cell_fn ky_sql_cell_main_thread, ky_sql_cell_track_machine, ky_sql_cell_track_description,
	ky_sql_cell_arg_set, ky_sql_cell_arg_flat_key, ky_sql_cell_arg_int, ky_sql_cell_arg_string,
	ky_sql_cell_arg_real, ky_sql_cell_arg_type, ky_sql_cell_arg_display, ky_sql_cell_sched_end,
	ky_sql_cell_cpu_mode, ky_sql_cell_symbol_set, ky_sql_cell_clock_name,
	ky_sql_cell_metadata_type, ky_sql_cell_metadata_int, ky_sql_cell_severity,
	ky_sql_cell_source, ky_sql_cell_first_at, ky_sql_cell_lost_events;
ky_sql_rows_fn ky_sql_ancestors, ky_sql_descendants, ky_sql_following, ky_sql_preceding,
	ky_sql_connected;

/* Read a number or a string's number; false if it is NULL. */
static inline bool ky_sql_get(uint8_t kind, const void *array, uint32_t row, int64_t *value)
{
	switch (kind) {
	case KY_SQL_ROW:
		*value = row;
		return true;
	case KY_SQL_I64:
	case KY_SQL_U64:
		*value = ((const int64_t *)array)[row];
		return true;
	case KY_SQL_TIME:
		*value = ((const int64_t *)array)[row];
		return *value != KY_TIME_NONE;
	case KY_SQL_U32:
		*value = ((const uint32_t *)array)[row];
		return true;
	case KY_SQL_REF:
		*value = ((const uint32_t *)array)[row];
		return *value != KY_NONE;
	case KY_SQL_SET:
	case KY_SQL_STRING:
		*value = ((const uint32_t *)array)[row];
		return *value != 0;
	case KY_SQL_I32:
		*value = ((const int32_t *)array)[row];
		return true;
	case KY_SQL_I32_OR:
		*value = ((const int32_t *)array)[row];
		return *value != -1;
	case KY_SQL_U16:
		*value = ((const uint16_t *)array)[row];
		return true;
	case KY_SQL_U8:
		*value = ((const uint8_t *)array)[row];
		return true;
	case KY_SQL_I8_OR:
		*value = ((const int8_t *)array)[row];
		return *value != -1;
	default:
		*value = 0;
		return false;
	}
}

/* Report whether ky_sql_get() reads the kind. */
static inline bool ky_sql_is_plain(uint8_t kind)
{
	return kind <= KY_SQL_STRING;
}

static inline bool ky_sql_is_number(uint8_t kind)
{
	return kind < KY_SQL_STRING;
}

/* ---- plans ---- */

enum ky_sql_access { KY_SQL_SCAN, KY_SQL_BY_ID, KY_SQL_BY_INDEX, KY_SQL_BY_FUNCTION };

/* The use of a condition. */
enum ky_sql_role {
	KY_SQL_TEST, /* row by row */
	KY_SQL_FIND, /* the key of the access */
	KY_SQL_BOUND /* a bound of ts or id in what the access finds */
};

struct ky_sql_term {
	uint8_t column;
	uint8_t op; /* SQLITE_INDEX_CONSTRAINT_ */
	uint8_t role;
	bool nocase; /* texts are compared with NOCASE */
};

enum ky_sql_shape {
	KY_SQL_ROWS,     /* rows as they come */
	KY_SQL_SORTED,   /* by the keys, then in their own order */
	KY_SQL_DISTINCT, /* one row for equal keys */
	KY_SQL_BATCH     /* one row for equal keys, other columns as sums */
};

#define KY_SQL_TERMS_MAX 24u
#define KY_SQL_KEYS_MAX 6u
#define KY_SQL_LABEL_BYTES 96u

/* SQLite carries it as idxStr: it begins with a text, which EXPLAIN shows. */
struct ky_sql_plan {
	char label[KY_SQL_LABEL_BYTES];
	uint64_t used; /* columns, as colUsed */
	uint8_t access;
	uint8_t shape;
	bool reverse;
	bool ordered; /* the order of the groups matters */
	uint8_t keys_count;
	uint8_t keys[KY_SQL_KEYS_MAX];
	bool keys_down[KY_SQL_KEYS_MAX];
	uint8_t terms_count;
	struct ky_sql_term terms[KY_SQL_TERMS_MAX];
};

int ky_sql_plan(sqlite3_vtab *vtab, sqlite3_index_info *info);

/* What the operator of a constraint is. */
static inline bool ky_sql_is_range(uint8_t op)
{
	return op == SQLITE_INDEX_CONSTRAINT_GT || op == SQLITE_INDEX_CONSTRAINT_GE ||
	       op == SQLITE_INDEX_CONSTRAINT_LT || op == SQLITE_INDEX_CONSTRAINT_LE;
}

static inline bool ky_sql_is_pattern(uint8_t op)
{
	return op == SQLITE_INDEX_CONSTRAINT_GLOB || op == SQLITE_INDEX_CONSTRAINT_LIKE ||
	       op == SQLITE_INDEX_CONSTRAINT_REGEXP;
}

/* ---- conditions ---- */

enum ky_sql_test {
	KY_SQL_TEST_RANGE, /* low to high */
	KY_SQL_TEST_OTHER, /* not low, and not NULL */
	KY_SQL_TEST_NULL,
	KY_SQL_TEST_NOT_NULL,
	KY_SQL_TEST_MATCH, /* a pattern or an order of texts, once for each string */
	KY_SQL_TEST_NEVER,
	KY_SQL_TEST_ALWAYS
};

struct ky_sql_match; /* a pattern or a bound, and its results by string */

struct ky_sql_filter {
	uint8_t test;
	uint8_t kind;
	const void *array;
	int64_t low, high;
	struct ky_sql_match *match;
};

/* Make the test of a condition. 0 or an SQLite error. */
int ky_sql_filter_make(struct ky_sql_filter *filter, const struct ky_sql_vtab *vtab,
		       const struct ky_sql_term *term, sqlite3_value *value);
void ky_sql_filter_free(struct ky_sql_filter *filter);
bool ky_sql_match_string(struct ky_sql_match *match, uint32_t string);

static inline bool ky_sql_filter_pass(const struct ky_sql_filter *filter, uint32_t row)
{
	int64_t value;
	const bool there = ky_sql_get(filter->kind, filter->array, row, &value);

	switch (filter->test) {
	case KY_SQL_TEST_RANGE:
		return there && value >= filter->low && value <= filter->high;
	case KY_SQL_TEST_OTHER:
		return there && value != filter->low;
	case KY_SQL_TEST_NULL:
		return !there;
	case KY_SQL_TEST_NOT_NULL:
		return there;
	case KY_SQL_TEST_MATCH:
		return there && ky_sql_match_string(filter->match, (uint32_t)value);
	case KY_SQL_TEST_NEVER:
		return false;
	default:
		return true;
	}
}

/* ---- groups ---- */

/* The sums of one column over one group. */
struct ky_sql_sum {
	uint64_t count; /* of those that are not NULL */
	int64_t total;
	int64_t low, high;
	double real_total;
	double real_low, real_high;
	bool overflow;
	bool real;
};

struct ky_sql_group {
	uint32_t first; /* row */
	uint32_t count;
	uint32_t next; /* its place among the rows when they are sorted */
};

struct ky_sql_groups {
	struct ky_sql_group *groups;
	uint32_t count, room;
	struct ky_hash_index index; /* groups by their keys */
	uint32_t *by_string;        /* instead, when the key is a string: group + 1 by its number */
	uint32_t *order;            /* groups in the order of their keys */
	uint32_t *of; /* the group of each row that is left, when they are to be sorted */
	struct ky_sql_sum *sums; /* sums_count for each group */
	size_t sums_room;
	uint8_t sums_count; /* a group */
	uint8_t sums_columns[KY_SQL_COLUMNS_MAX];
	int8_t sums_of[KY_SQL_COLUMNS_MAX]; /* column to place, -1: not summed */
};

/* ---- cursors ---- */

/* The subtype of a value that stands for a sum: it is the place in batch_sums, or NULL when all are NULL. */
#define KY_SQL_SUM_SUBTYPE 0x6bu

struct ky_sql_cursor {
	sqlite3_vtab_cursor base;
	const struct ky_sql_plan *plan;
	const uint32_t *rows; /* NULL: the rows from at to end themselves */
	uint32_t at, end;     /* the remaining ones */
	uint32_t row;
	bool done;
	uint8_t filters_count;
	struct ky_sql_filter filters[KY_SQL_TERMS_MAX];
	struct ky_sql_rows own; /* of a table function, or sorted */
	struct ky_sql_groups groups;
	uint32_t group; /* place in the order */
	int64_t argument;
};

/* Report whether the row belongs to this table and passes. */
static inline bool ky_sql_cursor_pass(const struct ky_sql_cursor *cursor, uint32_t row)
{
	const struct ky_sql_vtab *vtab = (const struct ky_sql_vtab *)cursor->base.pVtab;

	if (vtab->table->holds && !vtab->table->holds(vtab->context->trace, row))
		return false;
	for (unsigned i = 0; i < cursor->filters_count; i++)
		if (!ky_sql_filter_pass(&cursor->filters[i], row))
			return false;
	return true;
}

/* Group the cursor's remaining rows. 0 or an SQLite error. */
int ky_sql_groups_make(struct ky_sql_cursor *cursor);
/* Order the rows to walk by group (KY_SQL_SORTED). */
int ky_sql_groups_rows(struct ky_sql_cursor *cursor);
void ky_sql_groups_free(struct ky_sql_groups *groups);

/* Add the table to the connection. 0 or an SQLite error. */
int ky_sql_add_table(struct ky_sql_context *context, const struct ky_sql_table *table);

/* ---- functions, registered on each connection: 0 or an SQLite error ---- */

int ky_sql_add_functions(struct ky_sql_context *context);
int ky_sql_add_time(struct ky_sql_context *context);
/* Replace SQLite's aggregates on the connection that sums up. */
int ky_sql_add_batch_aggregates(struct ky_sql_context *context);

/* Report whether a statement has the same meaning on the connection that sums up. */
bool ky_sql_batch_fits(sqlite3 *db, const char *text, int bytes);

/* Return a compiled pattern of REGEXP; NULL without memory or when it is not valid. */
struct ky_sql_regexp;
struct ky_sql_regexp *ky_sql_regexp_new(const char *pattern);
bool ky_sql_regexp_match(const struct ky_sql_regexp *regexp, const char *text);
void ky_sql_regexp_free(struct ky_sql_regexp *regexp);

/* Set the result to an argument's value. */
void ky_sql_result_arg(const struct ky_trace *trace, uint32_t arg, sqlite3_context *to);
void ky_sql_result_string(const struct ky_trace *trace, uint32_t string, sqlite3_context *to);

#endif
