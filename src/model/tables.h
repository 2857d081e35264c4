/* SPDX-License-Identifier: MIT */
/*
 * tables.h: the tables of a trace as data: names, columns, and what their cells stand for; and the check that a trace
 * needs whose columns came from outside.
 *
 *   tables ─▶ columns: offset, size, name, holds ──▶ ky_trace_check(): every number stands for something that is there
 *                                              └──▶ files that keep the columns (formats/kymo)
 */
#ifndef KY_MODEL_TABLES_H
#define KY_MODEL_TABLES_H

#include "model/trace.h"

/* What a column's cells are. Those that stand for a row, a text or a set must be of one that exists. */
enum ky_holds {
	KY_HOLDS_NUMBER,
	KY_HOLDS_MINUS, /* a number, -1: unknown; KY_NONE in columns without a sign */
	KY_HOLDS_REAL,
	KY_HOLDS_CPU,      /* a number below KY_CPUS_MAX: code keeps a row for each */
	KY_HOLDS_CPU_OR,   /* the same, or KY_NONE */
	KY_HOLDS_CHOICE,   /* of an enum: below the column's limit */
	KY_HOLDS_TIME,     /* or KY_TIME_NONE */
	KY_HOLDS_ORDER,    /* times in their order */
	KY_HOLDS_DURATION, /* -1 or more */
	KY_HOLDS_STRING,   /* 0: none */
	KY_HOLDS_SET,      /* of arguments, 0: none */
	KY_HOLDS_FIRST,    /* a set's first argument: not before that of the set before */
	KY_HOLDS_VALUE,    /* an argument's: its type says what it is */
	KY_HOLDS_OWNER,    /* a track's: its kind says of what table */
	KY_HOLDS_BEFORE,   /* an earlier row of the same table, or KY_NONE */
	KY_HOLDS_ABOVE,    /* any row of the same table, never in a circle, or KY_NONE */
	KY_HOLDS_ROW,      /* a row of the column's target */
	KY_HOLDS_ROW_OR    /* the same, or KY_NONE */
};

struct ky_table_spec {
	const char *name;
	uint32_t offset; /* of the table in struct ky_trace */
	uint32_t columns_count;
	const struct ky_column *columns;
	bool events; /* its rows are what was recorded, and not what describes it */
};

/* All tables; one whose rows others stand for comes before them. */
extern const struct ky_table_spec ky_tables[];
extern const uint32_t ky_tables_count;

static inline void *ky_table_of(const struct ky_trace *trace, const struct ky_table_spec *spec)
{
	return (char *)trace + spec->offset;
}

/* Return the description of one of the trace's tables. */
static inline const struct ky_table_spec *ky_tables_find(const struct ky_trace *trace,
							 const void *table)
{
	const struct ky_table_spec *spec = ky_tables;
	while (ky_table_of(trace, spec) != table)
		spec++;
	return spec;
}

/* Return where the column's array is, as the table has it. */
static inline void **ky_column_of(void *table, const struct ky_column *column)
{
	return (void **)((char *)table + column->offset);
}

/* Make room for that many rows in all. False without memory. */
bool ky_rows_reserve(void *table, const struct ky_column *columns, uint32_t columns_count,
		     uint32_t rows);

/*
 * Make a trace safe whose columns were filled with any bytes: cells that stand for nothing become "none", and a table
 * ends before its first row that cannot be mended so. Return how many cells and rows were wrong; -ENOMEM.
 */
int64_t ky_trace_check(struct ky_trace *trace);

#endif
