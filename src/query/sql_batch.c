/* SPDX-License-Identifier: MIT */
/*
 * sql_batch.c: statements that do nothing with a table but sum it up, without a step of SQLite for each row.
 *
 * SQLite reads a virtual table row by row, and needs 100 ns and more for each row. So there is a second connection to the
 * same trace, whose tables may answer with one row for each group: columns of GROUP BY as they are, other columns as the place of their sums, and whose aggregates
 * (count, sum, total, avg, min, max) take such places. A statement is prepared there first. EXPLAIN shows whether
 * it has the same meaning: the loop over the table must contain nothing but these aggregates on plain columns, and
 * the test for a new group. Anything else (a condition that the table did not take, an expression, DISTINCT, a
 * second table) makes it run on the first connection, row by row.
 *
 *   VFilter ─▶ VColumn key ─▶ Compare, Jump ─▶ VColumn dur ─▶ AggStep sum ─▶ ... ─▶ VNext ─┐
 *              ▲──────────────────────────────────────────────────────────────────────────┘
 */
#include "query/sql_table.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the aggregates ---- */

struct total {
	struct ky_sql_sum sum;
};

static struct total *total_of(sqlite3_context *context)
{
	return sqlite3_aggregate_context(context, sizeof(struct total));
}

/* Return the sums that a value stands for; NULL if it is an ordinary value. */
static const struct ky_sql_sum *sum_of(sqlite3_context *context, sqlite3_value *value)
{
	const struct ky_sql_context *sql = sqlite3_user_data(context);

	if (sqlite3_value_type(value) != SQLITE_INTEGER ||
	    sqlite3_value_subtype(value) != KY_SQL_SUM_SUBTYPE)
		return NULL;
	return &sql->batch_sums[sqlite3_value_int(value)];
}

static void step_count(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const struct ky_sql_context *sql = sqlite3_user_data(context);
	struct total *total = total_of(context);

	if (!total)
		return;
	const struct ky_sql_sum *sum = argc ? sum_of(context, argv[0]) : NULL;
	if (sum)
		total->sum.count += sum->count;
	else if (!argc || sqlite3_value_type(argv[0]) != SQLITE_NULL)
		total->sum.count += sql->batch_rows;
}

static void step_sum(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	struct total *total = total_of(context);
	const struct ky_sql_sum *sum = sum_of(context, argv[0]);

	(void)argc;
	if (!total || !sum)
		return;
	struct ky_sql_sum *all = &total->sum;
	if (!all->count || sum->low < all->low)
		all->low = sum->low;
	if (!all->count || sum->high > all->high)
		all->high = sum->high;
	if (!all->count || sum->real_low < all->real_low)
		all->real_low = sum->real_low;
	if (!all->count || sum->real_high > all->real_high)
		all->real_high = sum->real_high;
	all->count += sum->count;
	all->real |= sum->real;
	all->real_total += sum->real_total;
	all->overflow |=
		sum->overflow || __builtin_add_overflow(all->total, sum->total, &all->total);
}

static const struct ky_sql_sum *result_of(sqlite3_context *context)
{
	const struct total *total = sqlite3_aggregate_context(context, 0);

	return total && total->sum.count ? &total->sum : NULL;
}

static void final_count(sqlite3_context *context)
{
	const struct ky_sql_sum *sum = result_of(context);

	sqlite3_result_int64(context, sum ? (sqlite3_int64)sum->count : 0);
}

static void final_sum(sqlite3_context *context)
{
	const struct ky_sql_sum *sum = result_of(context);

	if (!sum)
		sqlite3_result_null(context);
	else if (sum->real)
		sqlite3_result_double(context, sum->real_total);
	else if (sum->overflow)
		sqlite3_result_error(context, "integer overflow", -1);
	else
		sqlite3_result_int64(context, sum->total);
}

static void final_total(sqlite3_context *context)
{
	const struct ky_sql_sum *sum = result_of(context);

	sqlite3_result_double(context, sum ? sum->real_total : 0.0);
}

static void final_avg(sqlite3_context *context)
{
	const struct ky_sql_sum *sum = result_of(context);

	if (sum)
		sqlite3_result_double(context, sum->real_total / (double)sum->count);
}

static void final_min(sqlite3_context *context)
{
	const struct ky_sql_sum *sum = result_of(context);

	if (sum && sum->real)
		sqlite3_result_double(context, sum->real_low);
	else if (sum)
		sqlite3_result_int64(context, sum->low);
}

static void final_max(sqlite3_context *context)
{
	const struct ky_sql_sum *sum = result_of(context);

	if (sum && sum->real)
		sqlite3_result_double(context, sum->real_high);
	else if (sum)
		sqlite3_result_int64(context, sum->high);
}

int ky_sql_add_batch_aggregates(struct ky_sql_context *context)
{
	static const struct {
		const char *name;
		int argc;
		void (*step)(sqlite3_context *, int, sqlite3_value **);
		void (*final)(sqlite3_context *);
	} aggregates[] = {
		{"count", 0, step_count, final_count}, {"count", 1, step_count, final_count},
		{"sum", 1, step_sum, final_sum},       {"total", 1, step_sum, final_total},
		{"avg", 1, step_sum, final_avg},       {"min", 1, step_sum, final_min},
		{"max", 1, step_sum, final_max},
	};
	int error = SQLITE_OK;

	for (size_t i = 0; i < sizeof(aggregates) / sizeof(aggregates[0]) && !error; i++)
		error = sqlite3_create_function(context->db, aggregates[i].name, aggregates[i].argc,
						SQLITE_UTF8, context, NULL, aggregates[i].step,
						aggregates[i].final);
	return error;
}

/* ---- whether a statement only sums up ---- */

#define PROGRAM_MAX 512

struct op {
	char name[16];
	int p1, p2, p3, p5;
	char p4[64];
};

struct program {
	struct op ops[PROGRAM_MAX];
	int count;
};

static void copy_text(char *to, size_t room, const unsigned char *text)
{
	snprintf(to, room, "%s", text ? (const char *)text : "");
}

/* Read EXPLAIN's rows; false if there are too many or it cannot be prepared. */
static bool list_program(sqlite3 *db, const char *text, int bytes, struct program *program)
{
	char *explain = sqlite3_mprintf("EXPLAIN %.*s", bytes, text);
	sqlite3_stmt *stmt = NULL;
	int step = SQLITE_DONE;

	if (explain && sqlite3_prepare_v2(db, explain, -1, &stmt, NULL) == SQLITE_OK && stmt)
		while ((step = sqlite3_step(stmt)) == SQLITE_ROW && program->count < PROGRAM_MAX) {
			struct op *op = &program->ops[program->count++];
			copy_text(op->name, sizeof(op->name), sqlite3_column_text(stmt, 1));
			op->p1 = sqlite3_column_int(stmt, 2);
			op->p2 = sqlite3_column_int(stmt, 3);
			op->p3 = sqlite3_column_int(stmt, 4);
			copy_text(op->p4, sizeof(op->p4), sqlite3_column_text(stmt, 5));
			op->p5 = sqlite3_column_int(stmt, 6);
		}
	sqlite3_finalize(stmt);
	sqlite3_free(explain);
	return step == SQLITE_DONE && program->count > 0;
}

static bool is(const struct op *op, const char *name)
{
	return strcmp(op->name, name) == 0;
}

/* Return the only operation of that name, or -1. */
static int only(const struct program *program, const char *name)
{
	int found = -1;

	for (int i = 0; i < program->count; i++)
		if (is(&program->ops[i], name)) {
			if (found >= 0)
				return -1;
			found = i;
		}
	return found;
}

static bool is_aggregate(const char *function, bool of_text)
{
	static const char *const names[] = {"count(1)", "sum(1)", "total(1)",
					    "avg(1)",   "min(1)", "max(1)"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(function, names[i]) == 0)
			return !of_text || i == 0;
	return false;
}

/* Read a mask of columns from the plan's label. */
struct masks {
	unsigned long long keys, texts, not_null;
};

/* Report whether a column is a key, which is an ordinary value, or goes into one aggregate and nowhere else. */
static bool column_fits(const struct op *op, const struct op *then, const struct masks *masks)
{
	const uint64_t bit = op->p2 >= 0 && op->p2 < 64 ? UINT64_C(1) << op->p2 : 0;
	const bool summed = is(then, "AggStep") && then->p5 == 1 && then->p2 == op->p3;

	if (!bit)
		return false;
	if (masks->keys & bit)
		return !summed || strcmp(then->p4, "count(1)") == 0;
	if (is(then, "IsNull") && then->p1 == op->p3)
		return masks->not_null & bit;
	return summed && is_aggregate(then->p4, masks->texts & bit);
}

static bool op_fits(const struct op *op, const struct op *before)
{
	static const char *const plain[] = {"Compare", "Jump", "Move",    "Gosub",
					    "IfPos",   "If",   "Integer", "IsNull"};

	if (is(op, "AggStep"))
		return (op->p5 == 0 && strcmp(op->p4, "count(0)") == 0) || is(before, "VColumn");
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (is(op, plain[i]))
			return true;
	return false;
}

static bool program_fits(const struct program *program)
{
	const int open = only(program, "VOpen"), filter = only(program, "VFilter");
	const int next = only(program, "VNext");
	struct masks masks;
	bool sums = false;

	if (open < 0 || filter < 0 || next < filter ||
	    sscanf(program->ops[filter].p4, "batch %llx %llx %llx", &masks.keys, &masks.texts,
		   &masks.not_null) != 3)
		return false;
	for (int i = filter + 1; i < next; i++) {
		const struct op *op = &program->ops[i];
		if (!is(op, "VColumn") ? !op_fits(op, op - 1) : !column_fits(op, op + 1, &masks))
			return false;
		sums |= is(op, "AggStep");
	}
	/* Outside of the loop there is no row; a column that is read there would be a sum. */
	for (int i = 0; i < program->count; i++)
		if ((i < filter || i > next) && is(&program->ops[i], "VColumn"))
			return false;
	return sums;
}

bool ky_sql_batch_fits(sqlite3 *db, const char *text, int bytes)
{
	struct program *program = calloc(1, sizeof(*program));
	const bool fits =
		program && list_program(db, text, bytes, program) && program_fits(program);

	free(program);
	return fits;
}
