/* SPDX-License-Identifier: MIT */
/*
 * sql_plan.c: how to get the rows of a query (xBestIndex).
 *
 * One condition finds rows: by id, by an index, or as a table function's argument. Conditions on ts and id bound
 * them, since rows are in the order of time. The others are tested on the arrays. Rows come in the order of
 * ids, and so of ts, either way; or grouped by columns of few values, which makes GROUP BY and window
 * functions work without a sorter of SQLite's.
 *
 * SQLite skips its own test (omit) only where the test here is exactly the same: numbers always, texts when the other
 * side is known to be a text.
 */
#include "query/sql_table.h"

#include <stdarg.h>
#include <stdio.h>

struct planner {
	const struct ky_sql_vtab *vtab;
	const struct ky_sql_table *table;
	sqlite3_index_info *info;
	struct ky_sql_plan *plan;
	int find;    /* the condition that finds rows, or -1 */
	double rows; /* estimate of the rows found */
	double seen; /* rows tested */
	size_t label;
};

static uint8_t kind_of(const struct planner *p, int column)
{
	return column < 0 ? KY_SQL_ROW : p->table->columns[column].kind;
}

static bool is_time(const struct planner *p, int column)
{
	return p->table->by_time && column >= 0 &&
	       strcmp(p->table->columns[column].name, "ts") == 0;
}

static bool is_null_test(uint8_t op)
{
	return op == SQLITE_INDEX_CONSTRAINT_ISNULL || op == SQLITE_INDEX_CONSTRAINT_ISNOTNULL;
}

static bool is_equality(uint8_t op)
{
	return op == SQLITE_INDEX_CONSTRAINT_EQ || op == SQLITE_INDEX_CONSTRAINT_NE ||
	       op == SQLITE_INDEX_CONSTRAINT_IS;
}

static bool is_in(const struct planner *p, int at)
{
	return sqlite3_vtab_in(p->info, at, -1) != 0;
}

/* Report whether the condition can be tested here. */
static bool can_test(const struct planner *p, int at)
{
	const struct sqlite3_index_constraint *constraint = &p->info->aConstraint[at];
	const uint8_t kind = kind_of(p, constraint->iColumn), op = constraint->op;

	if (!constraint->usable || !ky_sql_is_plain(kind) || is_in(p, at))
		return false;
	if (is_null_test(op))
		return true;
	if (kind != KY_SQL_STRING)
		return is_equality(op) || ky_sql_is_range(op);
	if (ky_sql_is_pattern(op))
		return true;
	const char *collation = sqlite3_vtab_collation(p->info, at);
	if (strcmp(collation, "BINARY") == 0)
		return is_equality(op) || ky_sql_is_range(op);
	return ky_sql_is_range(op) && strcmp(collation, "NOCASE") == 0;
}

/* Report whether SQLite need not test it again. */
static bool is_exact(const struct planner *p, int at)
{
	const struct sqlite3_index_constraint *constraint = &p->info->aConstraint[at];
	sqlite3_value *value = NULL;

	if (kind_of(p, constraint->iColumn) != KY_SQL_STRING || is_null_test(constraint->op))
		return true;
	if (constraint->op == SQLITE_INDEX_CONSTRAINT_REGEXP) /* it may be no pattern at all */
		return false;
	return sqlite3_vtab_rhs_value(p->info, at, &value) == SQLITE_OK && value &&
	       sqlite3_value_type(value) == SQLITE_TEXT;
}

/* Return the average number of rows of an index's key. */
static double index_rows(const struct planner *p, const struct ky_sql_column *column)
{
	const struct ky_trace *trace = p->vtab->context->trace;
	const double all = p->vtab->count;
	double keys;

	switch (column->index) {
	case KY_SQL_INDEX_ARGS:
		keys = trace->arg_sets.rows.count;
		break;
	case KY_INDEX_SLICE_TRACK:
	case KY_INDEX_COUNTER_TRACK:
		keys = trace->tracks.rows.count;
		break;
	case KY_INDEX_SLICE_NAME:
		keys = 200;
		break;
	case KY_INDEX_SLICE_PARENT:
	case KY_INDEX_FLOW_IN:
	case KY_INDEX_FLOW_OUT:
		keys = all / 3;
		break;
	case KY_INDEX_SCHED_CPU:
		keys = 8;
		break;
	default:
		keys = trace->threads.rows.count;
	}
	return keys > 1 ? 1 + all / keys : 1 + all;
}

/* Return how many rows the condition finds, or -1 if it cannot find rows. */
static double find_rows(const struct planner *p, int at)
{
	const struct sqlite3_index_constraint *constraint = &p->info->aConstraint[at];
	const uint8_t kind = kind_of(p, constraint->iColumn);

	if (!constraint->usable || constraint->op != SQLITE_INDEX_CONSTRAINT_EQ)
		return -1;
	if (kind == KY_SQL_ROW)
		return 1;
	if (p->table->function || p->table->columns[constraint->iColumn].index == KY_SQL_NO_INDEX)
		return -1;
	if (kind == KY_SQL_STRING && strcmp(sqlite3_vtab_collation(p->info, at), "BINARY") != 0)
		return -1;
	return index_rows(p, &p->table->columns[constraint->iColumn]);
}

static void choose_access(struct planner *p)
{
	double best = -1;

	for (int i = 0; i < p->info->nConstraint; i++) {
		const double rows = find_rows(p, i);
		if (rows >= 0 && (best < 0 || rows < best)) {
			best = rows;
			p->find = i;
		}
	}
	if (p->find < 0)
		return;
	p->seen = best;
	p->plan->access = kind_of(p, p->info->aConstraint[p->find].iColumn) == KY_SQL_ROW
				  ? KY_SQL_BY_ID
				  : KY_SQL_BY_INDEX;
}

/* A table function needs its argument. */
static bool choose_function(struct planner *p)
{
	for (int i = 0; i < p->info->nConstraint; i++) {
		const struct sqlite3_index_constraint *constraint = &p->info->aConstraint[i];
		if (kind_of(p, constraint->iColumn) == KY_SQL_ARG && constraint->usable &&
		    constraint->op == SQLITE_INDEX_CONSTRAINT_EQ) {
			p->find = i;
			p->seen = 10;
			p->plan->access = KY_SQL_BY_FUNCTION;
			return true;
		}
	}
	return false;
}

static void label(struct planner *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void label(struct planner *p, const char *format, ...)
{
	const size_t room = KY_SQL_LABEL_BYTES - p->label;
	va_list values;

	va_start(values, format);
	const int bytes = vsnprintf(p->plan->label + p->label, room, format, values);
	va_end(values);
	p->label += bytes < 0 ? 0 : (size_t)bytes < room ? (size_t)bytes : room - 1;
}

static const char *op_name(uint8_t op)
{
	switch (op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		return "=";
	case SQLITE_INDEX_CONSTRAINT_GT:
		return ">";
	case SQLITE_INDEX_CONSTRAINT_GE:
		return ">=";
	case SQLITE_INDEX_CONSTRAINT_LT:
		return "<";
	case SQLITE_INDEX_CONSTRAINT_LE:
		return "<=";
	case SQLITE_INDEX_CONSTRAINT_NE:
		return "!=";
	default:
		return "~";
	}
}

static void use_term(struct planner *p, int at, enum ky_sql_role role)
{
	struct ky_sql_plan *plan = p->plan;
	const struct sqlite3_index_constraint *constraint = &p->info->aConstraint[at];
	const int column = constraint->iColumn;

	plan->terms[plan->terms_count++] = (struct ky_sql_term){
		.column = column < 0 ? KY_SQL_ROWID : (uint8_t)column,
		.op = constraint->op,
		.role = (uint8_t)role,
		.nocase = kind_of(p, column) == KY_SQL_STRING &&
			  strcmp(sqlite3_vtab_collation(p->info, at), "NOCASE") == 0,
	};
	p->info->aConstraintUsage[at].argvIndex = plan->terms_count;
	p->info->aConstraintUsage[at].omit = is_exact(p, at);
	label(p, " %s%s", column < 0 ? "rowid" : p->table->columns[column].name,
	      op_name(constraint->op));
}

static double selectivity(uint8_t op)
{
	if (op == SQLITE_INDEX_CONSTRAINT_EQ || op == SQLITE_INDEX_CONSTRAINT_IS)
		return 0.1;
	return ky_sql_is_range(op) || ky_sql_is_pattern(op) ? 0.3 : 0.8;
}

static void use_terms(struct planner *p)
{
	static const char *const names[] = {"scan", "id", "index", "function"};

	label(p, "%s", names[p->plan->access]);
	if (p->find >= 0)
		use_term(p, p->find, KY_SQL_FIND);
	p->rows = p->seen;
	for (int i = 0; i < p->info->nConstraint; i++) {
		const struct sqlite3_index_constraint *constraint = &p->info->aConstraint[i];
		if (i == p->find || constraint->op >= SQLITE_INDEX_CONSTRAINT_LIMIT ||
		    p->plan->terms_count == KY_SQL_TERMS_MAX || !can_test(p, i))
			continue;
		const bool orders = kind_of(p, constraint->iColumn) == KY_SQL_ROW ||
				    is_time(p, constraint->iColumn);
		const bool bound = orders && (ky_sql_is_range(constraint->op) ||
					      constraint->op == SQLITE_INDEX_CONSTRAINT_EQ);
		use_term(p, i, bound ? KY_SQL_BOUND : KY_SQL_TEST);
		p->rows *= selectivity(constraint->op);
		if (bound)
			p->seen *= selectivity(constraint->op);
	}
}

/* ---- order ---- */

/* Report whether ORDER BY from that term on is the rows' own order, and in which direction. */
static bool is_natural(const struct planner *p, int from, bool *reverse)
{
	bool by_time = false;

	*reverse = from < p->info->nOrderBy && p->info->aOrderBy[from].desc;
	for (int i = from; i < p->info->nOrderBy; i++) {
		if ((p->info->aOrderBy[i].desc != 0) != *reverse)
			return false;
		if (kind_of(p, p->info->aOrderBy[i].iColumn) == KY_SQL_ROW)
			return true; /* what follows decides nothing */
		if (by_time || !is_time(p, p->info->aOrderBy[i].iColumn))
			return false;
		by_time = true;
	}
	return true;
}

static uint64_t keys_mask(const struct ky_sql_plan *plan)
{
	uint64_t mask = 0;

	for (unsigned i = 0; i < plan->keys_count; i++)
		mask |= UINT64_C(1) << plan->keys[i];
	return mask;
}

/* Take the first terms of ORDER BY as keys to group by. */
static bool take_keys(struct planner *p, int count, uint8_t flags)
{
	if (count > (int)KY_SQL_KEYS_MAX)
		return false;
	p->plan->keys_count = 0;
	for (int i = 0; i < count; i++) {
		const int column = p->info->aOrderBy[i].iColumn;
		if (column < 0 || !ky_sql_is_plain(kind_of(p, column)) ||
		    (p->table->columns[column].flags & flags) != flags)
			return false;
		p->plan->keys[i] = (uint8_t)column;
		p->plan->keys_down[i] = p->info->aOrderBy[i].desc != 0;
	}
	p->plan->keys_count = (uint8_t)count;
	return true;
}

static bool plan_sorted(struct planner *p)
{
	bool reverse = false;
	int keys = 0;

	while (keys < p->info->nOrderBy && (!is_natural(p, keys, &reverse) || reverse))
		keys++;
	if (!take_keys(p, keys, KY_SQL_FEW))
		return false;
	p->plan->shape = KY_SQL_SORTED;
	p->plan->ordered = sqlite3_vtab_distinct(p->info) == 0;
	return true;
}

static bool plan_distinct(struct planner *p)
{
	if (sqlite3_vtab_distinct(p->info) < 2 || !take_keys(p, p->info->nOrderBy, 0) ||
	    (p->plan->used & ~keys_mask(p->plan)))
		return false;
	p->plan->shape = KY_SQL_DISTINCT;
	p->plan->ordered = sqlite3_vtab_distinct(p->info) == 3;
	return true;
}

static void plan_order(struct planner *p)
{
	bool reverse;

	if (p->info->nOrderBy == 0)
		return;
	if (plan_distinct(p)) {
		label(p, " distinct");
	} else if (p->plan->access == KY_SQL_BY_ID || is_natural(p, 0, &reverse)) {
		p->plan->reverse = p->plan->access != KY_SQL_BY_ID && reverse;
		p->plan->keys_count = 0;
		label(p, p->plan->reverse ? " descending" : " ascending");
	} else if (p->plan->access == KY_SQL_SCAN && plan_sorted(p)) {
		label(p, " sorted");
	} else {
		p->plan->keys_count = 0;
		return;
	}
	p->info->orderByConsumed = 1;
}

/* Return the columns that are never NULL in the result; SQLite may test these again. */
static uint64_t not_null_mask(const struct planner *p)
{
	uint64_t mask = 0;

	for (int i = 0; i < p->info->nConstraint; i++)
		if (p->info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_ISNOTNULL &&
		    p->info->aConstraint[i].iColumn >= 0 && can_test(p, i))
			mask |= UINT64_C(1) << p->info->aConstraint[i].iColumn;
	return p->info->nConstraint <= (int)KY_SQL_TERMS_MAX ? mask : 0;
}

/*
 * Plan one row for each group, with other columns as sums. sql_batch.c reads the masks in the label
 * and checks that the statement does nothing else with them.
 */
static bool plan_batch(struct planner *p)
{
	uint64_t texts = 0;

	if (p->table->function || !take_keys(p, p->info->nOrderBy, 0))
		return false;
	const uint64_t keys = keys_mask(p->plan);
	for (unsigned i = 0; i < p->table->columns_count; i++) {
		const uint8_t kind = p->table->columns[i].kind;
		if (!(p->plan->used & ~keys & UINT64_C(1) << i))
			continue;
		if (kind == KY_SQL_STRING)
			texts |= UINT64_C(1) << i;
		else if (!ky_sql_is_number(kind) && kind != KY_SQL_REAL && kind != KY_SQL_NULL)
			return false;
	}
	p->plan->shape = KY_SQL_BATCH;
	p->plan->ordered = true;
	p->info->orderByConsumed = p->info->nOrderBy > 0;
	label(p, "batch %llx %llx %llx ", (unsigned long long)keys, (unsigned long long)texts,
	      (unsigned long long)not_null_mask(p));
	return true;
}

static void set_cost(struct planner *p)
{
	/* A row that goes through SQLite costs as much as several that are only tested here. */
	double cost = 2 + p->seen * 0.1 + p->rows;

	if (p->plan->access == KY_SQL_BY_INDEX)
		cost += 5;
	if (p->plan->shape != KY_SQL_ROWS)
		cost += p->seen * 0.1;
	p->info->estimatedCost = cost;
	p->info->estimatedRows = p->rows < 1 ? 1 : (sqlite3_int64)p->rows;
	if (p->plan->access == KY_SQL_BY_ID)
		p->info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
	p->info->idxNum = p->plan->access | p->plan->shape << 4;
}

int ky_sql_plan(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
	struct planner p = {
		.vtab = (const struct ky_sql_vtab *)vtab,
		.info = info,
		.plan = sqlite3_malloc(sizeof(struct ky_sql_plan)),
		.find = -1,
	};

	if (!p.plan)
		return SQLITE_NOMEM;
	memset(p.plan, 0, sizeof(*p.plan));
	p.table = p.vtab->table;
	p.seen = p.vtab->count;
	p.plan->used = info->colUsed;
	if (!p.table->function) {
		choose_access(&p);
	} else if (!choose_function(&p)) {
		sqlite3_free(p.plan);
		return SQLITE_CONSTRAINT;
	}
	const bool batch = p.vtab->context->batch && plan_batch(&p);
	use_terms(&p);
	if (!batch)
		plan_order(&p);
	set_cost(&p);
	info->idxStr = (char *)p.plan;
	info->needToFreeIdxStr = 1;
	return SQLITE_OK;
}
