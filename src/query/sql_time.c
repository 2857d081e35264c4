/* SPDX-License-Identifier: MIT */
/* sql_time.c: functions of times: bounds of the trace, other clocks, texts for people, units. */
#include "model/quantity.h"
#include "query/sql_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

/* Define a function without arguments that returns a number of the trace. */
#define OF_TRACE(name, value)                                                                      \
	static void name(sqlite3_context *context, int argc, sqlite3_value **argv)                 \
	{                                                                                          \
		const struct ky_sql_context *sql = sqlite3_user_data(context);                     \
		const struct ky_trace *trace = sql->trace;                                         \
		(void)argc, (void)argv;                                                            \
		sqlite3_result_int64(context, (sqlite3_int64)(value));                             \
	}
OF_TRACE(trace_start, trace->begin_ns)
OF_TRACE(trace_end, trace->end_ns)
OF_TRACE(trace_dur, (uint64_t)trace->end_ns - (uint64_t)trace->begin_ns)

/* ---- clocks ---- */

static bool convert(sqlite3_context *context, sqlite3_value *value, uint64_t to, int64_t *ns)
{
	const struct ky_sql_context *sql = sqlite3_user_data(context);
	const struct ky_trace *trace = sql->trace;

	if (sqlite3_value_numeric_type(value) != SQLITE_INTEGER || !trace->clocks)
		return false;
	return ky_clocks_convert(trace->clocks, trace->clock, to, sqlite3_value_int64(value), ns);
}

static void to_realtime(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	int64_t ns;

	(void)argc;
	if (convert(context, argv[0], KY_CLOCK_REALTIME, &ns))
		sqlite3_result_int64(context, ns);
}

static void to_monotonic(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	int64_t ns;

	(void)argc;
	if (convert(context, argv[0], KY_CLOCK_MONOTONIC, &ns))
		sqlite3_result_int64(context, ns);
}

static void abs_time_str(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	char text[KY_QUANTITY_DATE_BYTES];
	int64_t ns;

	(void)argc;
	if (!convert(context, argv[0], KY_CLOCK_REALTIME, &ns))
		return;
	ky_quantity_date(text, ns);
	sqlite3_result_text(context, text, (int)strlen(text) - 1,
			    SQLITE_TRANSIENT); /* without the Z */
}

/* ---- texts ---- */

/* "00:02:03 456 789 012" */
static void to_timecode(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	char text[64];

	(void)argc;
	if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
		return;
	const int64_t ns = sqlite3_value_int64(argv[0]);
	const uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	const uint64_t seconds = size / 1000000000;
	snprintf(text, sizeof(text),
		 "%s%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 " %03" PRIu64 " %03" PRIu64
		 " %03" PRIu64,
		 ns < 0 ? "-" : "", seconds / 3600, seconds / 60 % 60, seconds % 60,
		 size / 1000000 % 1000, size / 1000 % 1000, size % 1000);
	sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

/* "1.25 ms": three digits and a unit. */
static void format_duration(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	static const struct {
		double ns;
		const char *unit;
	} units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
	char text[64];
	size_t unit = 0;

	(void)argc;
	if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
		return;
	const double ns = sqlite3_value_double(argv[0]);
	const double size = ns < 0 ? -ns : ns;
	while (unit < 3 && size < units[unit].ns * 0.9995)
		unit++;
	const double value = size / units[unit].ns;
	const int digits = unit == 3 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
	snprintf(text, sizeof(text), "%s%.*f %s", ns < 0 ? "-" : "", digits, value,
		 units[unit].unit);
	sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

/* ---- units ---- */

struct unit {
	const char *to, *from;
	int64_t ns;
};

static const struct unit units[] = {
	{"TIME_TO_NS", "TIME_FROM_NS", 1},
	{"TIME_TO_US", "TIME_FROM_US", 1000},
	{"TIME_TO_MS", "TIME_FROM_MS", 1000000},
	{"TIME_TO_S", "TIME_FROM_S", 1000000000},
	{"TIME_TO_MIN", "TIME_FROM_MIN", INT64_C(60) * 1000000000},
	{"TIME_TO_HOURS", "TIME_FROM_HOURS", INT64_C(3600) * 1000000000},
	{"TIME_TO_DAYS", "TIME_FROM_DAYS", INT64_C(86400) * 1000000000},
};

static void time_to(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const struct unit *unit = sqlite3_user_data(context);

	(void)argc;
	if (sqlite3_value_type(argv[0]) != SQLITE_NULL)
		sqlite3_result_int64(context, sqlite3_value_int64(argv[0]) / unit->ns);
}

static void time_from(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const struct unit *unit = sqlite3_user_data(context);
	int64_t ns;

	(void)argc;
	if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
		return;
	if (__builtin_mul_overflow(sqlite3_value_int64(argv[0]), unit->ns, &ns))
		sqlite3_result_error(context, "integer overflow", -1);
	else
		sqlite3_result_int64(context, ns);
}

#define FLAGS (SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS)

static int add_units(sqlite3 *db)
{
	int error = SQLITE_OK;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && !error; i++) {
		/* SQLite passes the pointer through, and the functions only read it. */
		void *unit = (void *)(uintptr_t)&units[i];
		error = sqlite3_create_function(db, units[i].to, 1, FLAGS, unit, time_to, NULL,
						NULL);
		if (!error)
			error = sqlite3_create_function(db, units[i].from, 1, FLAGS, unit,
							time_from, NULL, NULL);
	}
	return error;
}

int ky_sql_add_time(struct ky_sql_context *context)
{
	static const struct {
		const char *name;
		int argc;
		void (*call)(sqlite3_context *, int, sqlite3_value **);
	} functions[] = {
		{"TRACE_START", 0, trace_start},     {"TRACE_END", 0, trace_end},
		{"TRACE_DUR", 0, trace_dur},         {"TO_REALTIME", 1, to_realtime},
		{"TO_MONOTONIC", 1, to_monotonic},   {"ABS_TIME_STR", 1, abs_time_str},
		{"TO_TIMECODE", 1, to_timecode},     {"FORMAT_DURATION", 1, format_duration},
		{"TIME_FORMAT", 1, format_duration},
	};
	int error = add_units(context->db);

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]) && !error; i++)
		error = sqlite3_create_function(context->db, functions[i].name, functions[i].argc,
						FLAGS, context, functions[i].call, NULL, NULL);
	return error;
}
