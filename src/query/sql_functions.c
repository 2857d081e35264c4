/* SPDX-License-Identifier: MIT */
/*
 * sql_functions.c: functions, named and behaving as Perfetto's where it has the same. sql_time.c has those of times.
 */
#include "query/sql.h"

#include "base/array.h"
#include "core/utf8_scan.h"
#include "model/regexp_size.h"
#include "query/sql_table.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- regular expressions: POSIX extended ones of the C library ---- */

/*
 * The C library tries a match at each byte of a text, each time up to its end if it must: a time that grows with the square
 * of the length, without an interruption. The same pattern behind "^.*" is tried once: it tells whether there is a match
 * in long texts. Where the match begins, only the other one can tell.
 */
struct ky_sql_regexp {
	regex_t compiled;
	regex_t anywhere;
	size_t parts;
	bool repeats; /* a match may reach over any length */
};

/* Patterns that would take too much memory or time are refused. */
#define PATTERN_MAX 1000u
#define PARTS_MAX 4000u
/* So are texts for a pattern: parts times bytes, which may make as many states of memory; times bytes once more. */
#define WORK_MAX (UINT64_C(1) << 22)
#define SQUARE_MAX (UINT64_C(1) << 28)
/* Shorter texts take no time at all. */
#define LONG_BYTES 256u

static bool is_harmless(const char *pattern)
{
	return strlen(pattern) <= PATTERN_MAX && ky_regexp_size(pattern) <= PARTS_MAX;
}

/* Compile both. Return 0 or an error. */
static int compile(struct ky_sql_regexp *regexp, const char *pattern)
{
	char anywhere[PATTERN_MAX + 8];
	int error = regcomp(&regexp->compiled, pattern, REG_EXTENDED);
	if (error)
		return error;
	snprintf(anywhere, sizeof(anywhere), "^.*(%s)", pattern);
	error = regcomp(&regexp->anywhere, anywhere, REG_EXTENDED | REG_NOSUB);
	if (error)
		regfree(&regexp->compiled);
	regexp->parts = ky_regexp_size(pattern) + 1;
	regexp->repeats = strpbrk(pattern, "*+{") != NULL;
	return error;
}

struct ky_sql_regexp *ky_sql_regexp_new(const char *pattern)
{
	struct ky_sql_regexp *regexp = is_harmless(pattern) ? malloc(sizeof(*regexp)) : NULL;

	if (regexp && compile(regexp, pattern) != 0) {
		free(regexp);
		return NULL;
	}
	return regexp;
}

/* Report whether finding the place of a match takes too long. */
static bool is_costly(const struct ky_sql_regexp *regexp, uint64_t bytes)
{
	return bytes > WORK_MAX / regexp->parts ||
	       (regexp->repeats && bytes * bytes > SQUARE_MAX / regexp->parts);
}

/* A dot matches no byte that is not UTF-8. */
static bool is_utf8(const char *text, size_t bytes)
{
	const uint8_t *at = (const uint8_t *)text;
	const uint8_t *const end = at + bytes;
	size_t length = 1;
	for (; at < end && length; at += length)
		length = *at < 0x80 ? 1 : ky_utf8_sequence(at, end);
	return length != 0;
}

/* Return 1 for a match, 0 for none, -1 when the text is too long for the pattern. */
static int try_match(const struct ky_sql_regexp *regexp, const char *text)
{
	const size_t bytes = strlen(text);
	if (bytes > WORK_MAX / regexp->parts)
		return -1;
	if (bytes >= LONG_BYTES && is_utf8(text, bytes))
		return regexec(&regexp->anywhere, text, 0, NULL, 0) == 0;
	return is_costly(regexp, bytes) ? -1 : regexec(&regexp->compiled, text, 0, NULL, 0) == 0;
}

static void report_too_long(sqlite3_context *context)
{
	sqlite3_result_error(context,
			     "the text is too long for this regular expression: use LIKE, GLOB or "
			     "substr()",
			     -1);
}

bool ky_sql_regexp_match(const struct ky_sql_regexp *regexp, const char *text)
{
	/* When the text is too long, SQLite calls the function, which reports that. */
	return try_match(regexp, text) != 0;
}

void ky_sql_regexp_free(struct ky_sql_regexp *regexp)
{
	if (!regexp)
		return;
	regfree(&regexp->compiled);
	regfree(&regexp->anywhere);
	free(regexp);
}

static void free_pattern(void *regexp)
{
	ky_sql_regexp_free(regexp);
}

/* Return the compiled pattern, once for a statement if it is constant. *keep: SQLite owns it now. */
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

static void regexp_match(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const char *text = (const char *)sqlite3_value_text(argv[1]);
	const struct ky_sql_regexp *regexp = pattern_of(context, 0, argv[0]);

	(void)argc;
	const int found = regexp && text ? try_match(regexp, text) : -1;
	if (found >= 0)
		sqlite3_result_int(context, found);
	else if (regexp && text)
		report_too_long(context);
}

/* REGEXP_EXTRACT(text, pattern): the first group when there is one, else all that matched. */
static void regexp_extract(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const char *text = (const char *)sqlite3_value_text(argv[0]);
	const struct ky_sql_regexp *regexp = pattern_of(context, 1, argv[1]);
	regmatch_t found[2];

	(void)argc;
	if (!regexp || !text || try_match(regexp, text) == 0)
		return;
	if (is_costly(regexp, strlen(text))) {
		report_too_long(context);
		return;
	}
	if (regexec(&regexp->compiled, text, 2, found, 0) != 0)
		return;
	const regmatch_t *match = &found[regexp->compiled.re_nsub > 0];
	if (match->rm_so >= 0)
		sqlite3_result_text(context, text + match->rm_so, match->rm_eo - match->rm_so,
				    SQLITE_TRANSIENT);
}

/* ---- percentiles ---- */

/*
 * PERCENTILE(x, p) with p from 0 to 100, PERCENTILE_CONT and PERCENTILE_DISC with a fraction from 0 to 1, MEDIAN(x): as
 * SQLite's percentile extension, which Perfetto has. The first three go between the two nearest values, DISC takes one that
 * is there.
 */
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

static int add_percentiles(struct ky_sql_context *context)
{
	int error = SQLITE_OK;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !error; i++)
		error = sqlite3_create_function(context->db, kinds[i].name, kinds[i].argc,
						SQLITE_UTF8 | SQLITE_INNOCUOUS,
						(void *)(uintptr_t)&kinds[i], NULL, step, final);
	return error;
}

/* ---- functions of one value ---- */

/* Return the number of a key, looked up once if it is constant. */
static uint32_t key_of(sqlite3_context *context, int at, sqlite3_value *value)
{
	const struct ky_sql_context *sql = sqlite3_user_data(context);
	uint32_t *known = sqlite3_get_auxdata(context, at);
	const char *text = (const char *)sqlite3_value_text(value);

	if (known)
		return *known;
	if (!text)
		return 0;
	const uint32_t key =
		ky_strings_find(&sql->trace->strings, text, (size_t)sqlite3_value_bytes(value));
	known = sqlite3_malloc(sizeof(*known));
	if (known) {
		*known = key;
		sqlite3_set_auxdata(context, at, known, sqlite3_free);
	}
	return key;
}

/* EXTRACT_ARG(arg_set_id, key) */
static void extract_arg(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const struct ky_sql_context *sql = sqlite3_user_data(context);
	const struct ky_trace *trace = sql->trace;
	const sqlite3_int64 set = sqlite3_value_int64(argv[0]);
	const uint32_t key = key_of(context, 1, argv[1]);

	(void)argc;
	if (!key || set <= 0 || set >= trace->arg_sets.rows.count)
		return;
	const uint32_t end = ky_arg_set_end(trace, (uint32_t)set);
	for (uint32_t arg = ky_arg_set_first(trace, (uint32_t)set); arg < end; arg++)
		if (trace->args.key[arg] == key) {
			ky_sql_result_arg(trace, arg, context);
			return;
		}
}

static void extract_metadata(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const struct ky_sql_context *sql = sqlite3_user_data(context);
	const struct ky_metadata *metadata = &sql->trace->metadata;
	const uint32_t key = key_of(context, 0, argv[0]);

	(void)argc;
	for (uint32_t row = 0; key && row < metadata->rows.count; row++)
		if (metadata->key[row] == key) {
			if (metadata->text[row])
				ky_sql_result_string(sql->trace, metadata->text[row], context);
			else
				sqlite3_result_int64(context, metadata->number[row]);
			return;
		}
}

/* HASH(...): FNV-1a over the values as texts, each with its end. */
static void hash(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	uint64_t sum = 0xcbf29ce484222325u;

	for (int i = 0; i < argc; i++) {
		const unsigned char *text = sqlite3_value_text(argv[i]);
		const int bytes = sqlite3_value_bytes(argv[i]);
		for (int at = 0; text && at < bytes; at++)
			sum = (sum ^ text[at]) * 0x100000001b3u;
		sum = (sum ^ 0xffu) * 0x100000001b3u;
	}
	sqlite3_result_int64(context, (sqlite3_int64)sum);
}

/* STR_SPLIT(text, separator, number): the part of that number, or NULL. */
static void str_split(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const char *text = (const char *)sqlite3_value_text(argv[0]);
	const char *between = (const char *)sqlite3_value_text(argv[1]);
	sqlite3_int64 which = sqlite3_value_int64(argv[2]);

	(void)argc;
	if (!text || !between || which < 0)
		return;
	if (!*between) {
		sqlite3_result_error(context, "STR_SPLIT: what is between must not be empty", -1);
		return;
	}
	const char *end = strstr(text, between);
	for (; which > 0 && end; which--) {
		text = end + strlen(between);
		end = strstr(text, between);
	}
	if (which == 0)
		sqlite3_result_text(context, text, end ? (int)(end - text) : -1, SQLITE_TRANSIENT);
}

/* Characters, not bytes, from back to front. */
static void reverse(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const char *text = (const char *)sqlite3_value_text(argv[0]);
	const int bytes = sqlite3_value_bytes(argv[0]);

	(void)argc;
	if (!text)
		return;
	char *turned = sqlite3_malloc64((sqlite3_uint64)bytes + 1);
	if (!turned) {
		sqlite3_result_error_nomem(context);
		return;
	}
	for (int at = 0, end = bytes; at < bytes;) {
		int length = 1;
		while (at + length < bytes && ((unsigned char)text[at + length] & 0xc0) == 0x80)
			length++;
		end -= length;
		memcpy(turned + end, text + at, (size_t)length);
		at += length;
	}
	sqlite3_result_text(context, turned, bytes, sqlite3_free);
}

static void null_if_empty(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	(void)argc;
	if (sqlite3_value_type(argv[0]) != SQLITE_TEXT || sqlite3_value_bytes(argv[0]) > 0)
		sqlite3_result_value(context, argv[0]);
}

/* SLICE_IS_ANCESTOR(ancestor, slice) */
static void slice_is_ancestor(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const struct ky_sql_context *sql = sqlite3_user_data(context);
	const struct ky_slices *slices = &sql->trace->slices;
	const sqlite3_int64 ancestor = sqlite3_value_int64(argv[0]);
	const sqlite3_int64 slice = sqlite3_value_int64(argv[1]);

	(void)argc;
	if (ancestor < 0 || slice < 0 || ancestor >= slices->rows.count ||
	    slice >= slices->rows.count)
		return;
	uint32_t at = slices->parent[slice];
	while (at != KY_NONE && at > (uint32_t)ancestor)
		at = slices->parent[at];
	sqlite3_result_int(context, at == (uint32_t)ancestor);
}

/* IMPORT('...'): all modules are already available. */
static void import(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	(void)argc, (void)argv;
	sqlite3_result_null(context);
}

/* Names for completion, including those of sql_time.c and frequent ones of SQLite. */
static const char *const names[] = {
	"ABS",
	"ABS_TIME_STR",
	"AVG",
	"COALESCE",
	"COUNT",
	"EXTRACT_ARG",
	"EXTRACT_METADATA",
	"FORMAT_DURATION",
	"GROUP_CONCAT",
	"HASH",
	"IFNULL",
	"IIF",
	"INSTR",
	"LAG",
	"LEAD",
	"LENGTH",
	"LOWER",
	"MAX",
	"MEDIAN",
	"MIN",
	"NULL_IF_EMPTY",
	"PERCENTILE",
	"PRINTF",
	"REGEXP_EXTRACT",
	"REPLACE",
	"REVERSE",
	"ROUND",
	"ROW_NUMBER",
	"SLICE_IS_ANCESTOR",
	"STR_SPLIT",
	"SUBSTR",
	"SUM",
	"TIME_FROM_MS",
	"TIME_FROM_NS",
	"TIME_FROM_S",
	"TIME_FROM_US",
	"TIME_TO_MS",
	"TIME_TO_NS",
	"TIME_TO_S",
	"TIME_TO_US",
	"TOTAL",
	"TO_MONOTONIC",
	"TO_REALTIME",
	"TO_TIMECODE",
	"TRACE_DUR",
	"TRACE_END",
	"TRACE_START",
	"UPPER",
};

const char *ky_sql_function_name(unsigned at)
{
	return at < sizeof(names) / sizeof(names[0]) ? names[at] : NULL;
}

int ky_sql_add_functions(struct ky_sql_context *context)
{
	static const struct {
		const char *name;
		int argc;
		void (*call)(sqlite3_context *, int, sqlite3_value **);
	} functions[] = {
		{"EXTRACT_ARG", 2, extract_arg},
		{"EXTRACT_METADATA", 1, extract_metadata},
		{"HASH", -1, hash},
		{"STR_SPLIT", 3, str_split},
		{"REVERSE", 1, reverse},
		{"NULL_IF_EMPTY", 1, null_if_empty},
		{"SLICE_IS_ANCESTOR", 2, slice_is_ancestor},
		{"REGEXP", 2, regexp_match},
		{"REGEXP_EXTRACT", 2, regexp_extract},
		{"IMPORT", 1, import},
	};
	int error = add_percentiles(context);

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]) && !error; i++)
		error = sqlite3_create_function(context->db, functions[i].name, functions[i].argc,
						SQLITE_UTF8 | SQLITE_DETERMINISTIC |
							SQLITE_INNOCUOUS,
						context, functions[i].call, NULL, NULL);
	return error;
}
