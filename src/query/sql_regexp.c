/* SPDX-License-Identifier: MIT */
/*
 * sql_regexp.c: REGEXP and related functions: POSIX extended regular expressions of the C library.
 * Patterns that would take too much memory or time are refused.
 */

#include "model/regexp_size.h"
#include "query/sql_table.h"

#include <regex.h>
#include <stdlib.h>

struct ky_sql_regexp {
	regex_t compiled;
};

#define PATTERN_MAX 1000u
#define PARTS_MAX 4000u

static bool is_harmless(const char *pattern)
{
	return strlen(pattern) <= PATTERN_MAX && ky_regexp_size(pattern) <= PARTS_MAX;
}

struct ky_sql_regexp *ky_sql_regexp_new(const char *pattern)
{
	struct ky_sql_regexp *regexp = is_harmless(pattern) ? malloc(sizeof(*regexp)) : NULL;

	if (regexp && regcomp(&regexp->compiled, pattern, REG_EXTENDED) != 0) {
		free(regexp);
		return NULL;
	}
	return regexp;
}

bool ky_sql_regexp_match(const struct ky_sql_regexp *regexp, const char *text)
{
	return regexec(&regexp->compiled, text, 0, NULL, 0) == 0;
}

void ky_sql_regexp_free(struct ky_sql_regexp *regexp)
{
	if (!regexp)
		return;
	regfree(&regexp->compiled);
	free(regexp);
}

static void free_pattern(void *regexp)
{
	ky_sql_regexp_free(regexp);
}

/*
 * Return the compiled pattern, once for a statement if it is constant. *keep: SQLite owns it now.
 */
static struct ky_sql_regexp *pattern_of(sqlite3_context *context, int at, sqlite3_value *value)
{
	struct ky_sql_regexp *regexp = sqlite3_get_auxdata(context, at);
	const char *text = (const char *)sqlite3_value_text(value);

	if (regexp || !text)
		return regexp;
	regexp = ky_sql_regexp_new(text);
	if (!regexp) {
		sqlite3_result_error(context, "no regular expression, or one that is too expensive",
				     -1);
		return NULL;
	}
	sqlite3_set_auxdata(context, at, regexp, free_pattern);
	return sqlite3_get_auxdata(context, at);
}

void ky_sql_regexp_function(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const char *text = (const char *)sqlite3_value_text(argv[1]);
	const struct ky_sql_regexp *regexp = pattern_of(context, 0, argv[0]);

	(void)argc;
	if (regexp && text)
		sqlite3_result_int(context, ky_sql_regexp_match(regexp, text));
}

/* REGEXP_EXTRACT(text, pattern): the first group when there is one, else all that matched. */
void ky_sql_regexp_extract(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const char *text = (const char *)sqlite3_value_text(argv[0]);
	const struct ky_sql_regexp *regexp = pattern_of(context, 1, argv[1]);
	regmatch_t found[2];

	(void)argc;
	if (!regexp || !text || regexec(&regexp->compiled, text, 2, found, 0) != 0)
		return;
	const regmatch_t *match = &found[regexp->compiled.re_nsub > 0];
	if (match->rm_so >= 0)
		sqlite3_result_text(context, text + match->rm_so, match->rm_eo - match->rm_so,
				    SQLITE_TRANSIENT);
}
