/* SPDX-License-Identifier: MIT */
/*
 * sql_filter.c: conditions, tested on the arrays.
 *
 * A comparison of integers with any number is a range of integers: x > 5.5 is x from 6 on. A text is looked up once,
 * and then numbers of strings are compared. A pattern is tried once on each string, and the result kept.
 *
 * The rules are SQLite's for a column of integers: texts that look like numbers are numbers, other texts and
 * blobs are greater than all of them, and nothing equals NULL.
 */
#include "query/sql_table.h"

#include <math.h>
#include <stdlib.h>

struct ky_sql_match {
	const struct ky_strings *strings;
	char *pattern;
	size_t bytes;
	struct ky_sql_regexp *regexp;
	uint8_t op;
	bool nocase;
	uint8_t *known; /* by string: 0 not tried, 1 no, 2 yes */
};

static void set_range(struct ky_sql_filter *filter, int64_t low, int64_t high)
{
	filter->test = low <= high ? KY_SQL_TEST_RANGE : KY_SQL_TEST_NEVER;
	filter->low = low;
	filter->high = high;
}

static void never(struct ky_sql_filter *filter)
{
	filter->test = KY_SQL_TEST_NEVER;
}

static void compare_integer(struct ky_sql_filter *filter, uint8_t op, int64_t with)
{
	switch (op) {
	case SQLITE_INDEX_CONSTRAINT_GT:
		if (with == INT64_MAX)
			never(filter);
		else
			set_range(filter, with + 1, INT64_MAX);
		break;
	case SQLITE_INDEX_CONSTRAINT_GE:
		set_range(filter, with, INT64_MAX);
		break;
	case SQLITE_INDEX_CONSTRAINT_LT:
		if (with == INT64_MIN)
			never(filter);
		else
			set_range(filter, INT64_MIN, with - 1);
		break;
	case SQLITE_INDEX_CONSTRAINT_LE:
		set_range(filter, INT64_MIN, with);
		break;
	case SQLITE_INDEX_CONSTRAINT_NE:
		filter->test = KY_SQL_TEST_OTHER;
		filter->low = with;
		break;
	default:
		set_range(filter, with, with);
	}
}

/* above: the other side is greater than every integer, otherwise less. */
static void compare_outside(struct ky_sql_filter *filter, uint8_t op, bool above)
{
	const bool less = op == SQLITE_INDEX_CONSTRAINT_LT || op == SQLITE_INDEX_CONSTRAINT_LE;
	const bool greater = op == SQLITE_INDEX_CONSTRAINT_GT || op == SQLITE_INDEX_CONSTRAINT_GE;

	filter->test = op == SQLITE_INDEX_CONSTRAINT_NE || (above ? less : greater)
			       ? KY_SQL_TEST_NOT_NULL
			       : KY_SQL_TEST_NEVER;
}

static void compare_real(struct ky_sql_filter *filter, uint8_t op, double with)
{
	if (!(with < 0x1p63)) {
		compare_outside(filter, op, true);
	} else if (!(with >= -0x1p63)) {
		compare_outside(filter, op, false);
	} else if (with == floor(with)) {
		compare_integer(filter, op, (int64_t)with);
	} else if (op == SQLITE_INDEX_CONSTRAINT_GT || op == SQLITE_INDEX_CONSTRAINT_GE) {
		compare_integer(filter, SQLITE_INDEX_CONSTRAINT_GT, (int64_t)floor(with));
	} else if (op == SQLITE_INDEX_CONSTRAINT_LT || op == SQLITE_INDEX_CONSTRAINT_LE) {
		compare_integer(filter, SQLITE_INDEX_CONSTRAINT_LE, (int64_t)floor(with));
	} else {
		filter->test =
			op == SQLITE_INDEX_CONSTRAINT_NE ? KY_SQL_TEST_NOT_NULL : KY_SQL_TEST_NEVER;
	}
}

static void compare_number(struct ky_sql_filter *filter, uint8_t op, sqlite3_value *value)
{
	switch (sqlite3_value_numeric_type(value)) {
	case SQLITE_INTEGER:
		compare_integer(filter, op, sqlite3_value_int64(value));
		break;
	case SQLITE_FLOAT:
		compare_real(filter, op, sqlite3_value_double(value));
		break;
	default:
		compare_outside(filter, op, true);
	}
}

/* Other types than texts are left to SQLite, which knows the other side's affinity. */
static void compare_text(struct ky_sql_filter *filter, const struct ky_strings *strings, uint8_t op,
			 sqlite3_value *value)
{
	if (sqlite3_value_type(value) != SQLITE_TEXT) {
		filter->test = KY_SQL_TEST_ALWAYS;
		return;
	}
	const char *text = (const char *)sqlite3_value_text(value);
	const int bytes = sqlite3_value_bytes(value);
	const uint32_t number = text ? ky_strings_find(strings, text, (size_t)bytes) : 0;
	if (op == SQLITE_INDEX_CONSTRAINT_NE)
		filter->test = number ? KY_SQL_TEST_OTHER : KY_SQL_TEST_NOT_NULL;
	else
		filter->test = number ? KY_SQL_TEST_RANGE : KY_SQL_TEST_NEVER;
	filter->low = filter->high = number;
}

static void match_free(struct ky_sql_match *match)
{
	if (!match)
		return;
	ky_sql_regexp_free(match->regexp);
	free(match->known);
	free(match->pattern);
	free(match);
}

static int match_make(struct ky_sql_filter *filter, const struct ky_strings *strings,
		      const struct ky_sql_term *term, sqlite3_value *value)
{
	const char *text = sqlite3_value_type(value) == SQLITE_TEXT
				   ? (const char *)sqlite3_value_text(value)
				   : NULL;

	filter->test = KY_SQL_TEST_ALWAYS;
	if (!text)
		return SQLITE_OK;
	struct ky_sql_match *match = calloc(1, sizeof(*match));
	if (!match)
		return SQLITE_NOMEM;
	match->strings = strings;
	match->op = term->op;
	match->nocase = term->nocase;
	match->bytes = (size_t)sqlite3_value_bytes(value);
	match->pattern = strdup(text);
	match->known = calloc(strings->count + 1u, 1);
	if (!match->pattern || !match->known) {
		match_free(match);
		return SQLITE_NOMEM;
	}
	if (term->op == SQLITE_INDEX_CONSTRAINT_REGEXP) {
		match->regexp = ky_sql_regexp_new(text);
		if (!match->regexp) { /* SQLite calls the function, which reports the error. */
			match_free(match);
			return SQLITE_OK;
		}
	}
	filter->match = match;
	filter->test = KY_SQL_TEST_MATCH;
	return SQLITE_OK;
}

/* Compare like the collations BINARY and NOCASE. */
static int compare_with(const struct ky_sql_match *match, const char *text, size_t bytes)
{
	const size_t both = bytes < match->bytes ? bytes : match->bytes;
	const int order = match->nocase ? sqlite3_strnicmp(text, match->pattern, (int)both)
					: memcmp(text, match->pattern, both);

	return order ? order : (bytes > match->bytes) - (bytes < match->bytes);
}

static bool match_try(const struct ky_sql_match *match, const char *text, size_t bytes)
{
	switch (match->op) {
	case SQLITE_INDEX_CONSTRAINT_GLOB:
		return sqlite3_strglob(match->pattern, text) == 0;
	case SQLITE_INDEX_CONSTRAINT_LIKE:
		return sqlite3_strlike(match->pattern, text, 0) == 0;
	case SQLITE_INDEX_CONSTRAINT_GT:
		return compare_with(match, text, bytes) > 0;
	case SQLITE_INDEX_CONSTRAINT_GE:
		return compare_with(match, text, bytes) >= 0;
	case SQLITE_INDEX_CONSTRAINT_LT:
		return compare_with(match, text, bytes) < 0;
	case SQLITE_INDEX_CONSTRAINT_LE:
		return compare_with(match, text, bytes) <= 0;
	default:
		return ky_sql_regexp_match(match->regexp, text);
	}
}

bool ky_sql_match_string(struct ky_sql_match *match, uint32_t string)
{
	if (!match->known[string])
		match->known[string] = match_try(match, ky_strings_text(match->strings, string),
						 ky_strings_bytes(match->strings, string))
					       ? 2
					       : 1;
	return match->known[string] == 2;
}

int ky_sql_filter_make(struct ky_sql_filter *filter, const struct ky_sql_vtab *vtab,
		       const struct ky_sql_term *term, sqlite3_value *value)
{
	const struct ky_strings *strings = &vtab->context->trace->strings;

	*filter = (struct ky_sql_filter){.kind = KY_SQL_ROW};
	if (term->column != KY_SQL_ROWID) {
		filter->kind = vtab->table->columns[term->column].kind;
		filter->array = vtab->arrays[term->column];
	}
	if (ky_sql_is_pattern(term->op) ||
	    (filter->kind == KY_SQL_STRING && ky_sql_is_range(term->op) &&
	     sqlite3_value_type(value) != SQLITE_NULL))
		return match_make(filter, strings, term, value);
	if (term->op == SQLITE_INDEX_CONSTRAINT_ISNOTNULL)
		filter->test = KY_SQL_TEST_NOT_NULL;
	else if (term->op == SQLITE_INDEX_CONSTRAINT_ISNULL)
		filter->test = KY_SQL_TEST_NULL;
	else if (sqlite3_value_type(value) == SQLITE_NULL)
		filter->test = term->op == SQLITE_INDEX_CONSTRAINT_IS ? KY_SQL_TEST_NULL
								      : KY_SQL_TEST_NEVER;
	else if (filter->kind == KY_SQL_STRING)
		compare_text(filter, strings, term->op, value);
	else
		compare_number(filter, term->op, value);
	return SQLITE_OK;
}

void ky_sql_filter_free(struct ky_sql_filter *filter)
{
	match_free(filter->match);
	filter->match = NULL;
}
