/* SPDX-License-Identifier: MIT */
/*
 * sql_percentile.c: PERCENTILE(x, p) with p from 0 to 100, PERCENTILE_CONT and PERCENTILE_DISC with a fraction
 * from 0 to 1, MEDIAN(x): as SQLite's percentile extension, which Perfetto has. The first three go between
 * the two nearest values, DISC takes one that is there.
 */
#include "base/array.h"
#include "base/compare.h"
#include "query/sql_table.h"

#include <stdlib.h>

struct kind {
	const char *name;
	double scale; /* of the fraction; 0: it is one half */
	int argc;
	bool discrete;
};

static const struct kind kinds[] = {
	{"PERCENTILE", 100, 2, false},
	{"PERCENTILE_CONT", 1, 2, false},
	{"PERCENTILE_DISC", 1, 2, true},
	{"MEDIAN", 0, 1, false},
};

struct values {
	double *items;
	size_t count, room;
	double fraction;
	bool wrong;
};

static bool take_fraction(sqlite3_context *context, struct values *values, const struct kind *kind,
			  sqlite3_value **argv)
{
	double fraction = 0.5;

	if (kind->scale > 0) {
		const int type = sqlite3_value_numeric_type(argv[1]);
		fraction = sqlite3_value_double(argv[1]) / kind->scale;
		if ((type != SQLITE_INTEGER && type != SQLITE_FLOAT) || !(fraction >= 0) ||
		    !(fraction <= 1)) {
			char *text = sqlite3_mprintf("the fraction of %s() is not between 0 and %g",
						     kind->name, kind->scale);
			sqlite3_result_error(context, text ? text : "out of memory", -1);
			sqlite3_free(text);
			return false;
		}
	}
	values->fraction = fraction;
	return true;
}

static void step(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	struct values *values = sqlite3_aggregate_context(context, sizeof(*values));
	const int type = sqlite3_value_numeric_type(argv[0]);

	(void)argc;
	if (!values || values->wrong)
		return;
	if (values->count == 0 &&
	    !take_fraction(context, values, sqlite3_user_data(context), argv)) {
		values->wrong = true;
		return;
	}
	if (type != SQLITE_INTEGER && type != SQLITE_FLOAT)
		return;
	if (!KY_ARRAY_ADD(values->items, values->count, values->room,
			  sqlite3_value_double(argv[0])))
		sqlite3_result_error_nomem(context);
}

static void final(sqlite3_context *context)
{
	const struct kind *kind = sqlite3_user_data(context);
	struct values *values = sqlite3_aggregate_context(context, 0);

	if (!values)
		return;
	if (values->count && !values->wrong) {
		qsort(values->items, values->count, sizeof(values->items[0]), ky_compare_double);
		const double place = values->fraction * (double)(values->count - 1);
		const size_t below = (size_t)place;
		const size_t above = below + 1 < values->count ? below + 1 : below;
		const double low = values->items[below], high = values->items[above];
		sqlite3_result_double(
			context,
			kind->discrete ? low : low + (high - low) * (place - (double)below));
	}
	KY_ARRAY_FREE(values->items, values->room);
}

int ky_sql_add_percentiles(struct ky_sql_context *context)
{
	int error = SQLITE_OK;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !error; i++)
		error = sqlite3_create_function(context->db, kinds[i].name, kinds[i].argc,
						SQLITE_UTF8 | SQLITE_INNOCUOUS,
						(void *)(uintptr_t)&kinds[i], NULL, step, final);
	return error;
}
