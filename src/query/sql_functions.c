/* SPDX-License-Identifier: MIT */
/*
 * sql_functions.c: functions of one value, named and behaving as Perfetto's where it has the same.
 */
#include "query/sql.h"

#include "query/sql_table.h"

#include <stdio.h>
#include <stdlib.h>

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

/*
 * Names for completion, including those of sql_time.c and sql_percentile.c and frequent ones of
 * SQLite.
 */
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
		{"REGEXP", 2, ky_sql_regexp_function},
		{"REGEXP_EXTRACT", 2, ky_sql_regexp_extract},
		{"IMPORT", 1, import},
	};
	int error = SQLITE_OK;

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]) && !error; i++)
		error = sqlite3_create_function(context->db, functions[i].name, functions[i].argc,
						SQLITE_UTF8 | SQLITE_DETERMINISTIC |
							SQLITE_INNOCUOUS,
						context, functions[i].call, NULL, NULL);
	return error;
}
