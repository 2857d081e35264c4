/* SPDX-License-Identifier: MIT */
/*
 * fuzz_sql.c: any text as SQL over a small trace. Whatever it says, it ends (a limit on steps stands for the
 * person who presses Ctrl-C), touches no file and leaves the trace as it is.
 */
#include "model/intake.h"
#include "query/sql.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define STEPS_MAX 10
#define ROWS_MAX 200
#define STATEMENTS_MAX 8

static void put_slice(struct ky_trace *trace, unsigned i, const uint32_t *tracks)
{
	char name[16];

	snprintf(name, sizeof(name), i % 3 ? "name %u" : "Job#%u", i % 11);
	ky_args_begin(trace);
	if (i % 4 == 0)
		ky_arg_int(trace, ky_string_z(trace, "debug.i"), i);
	const uint32_t args = ky_args_end(trace);
	ky_put_complete(trace, 1000 + i * 7, i % 5 * 10, tracks[i % 4],
			i % 2 ? ky_string_z(trace, "c1") : 0, ky_string_z(trace, name), args);
	if (i % 6 == 0)
		ky_put_flow(trace, 1000 + i * 7, tracks[i % 4], KY_FLOW_ANY, KY_BIND_LAST, i % 5);
	ky_put_counter(trace, 1000 + i * 7,
		       ky_track_counter(trace, KY_TRACK_PROCESS_COUNTER, ky_process(trace, 10),
					ky_string_z(trace, "heap")),
		       i / 4.0);
}

static struct ky_trace *make_trace(void)
{
	struct ky_trace *trace;
	uint32_t tracks[4];

	if (ky_trace_open(&trace))
		abort();
	for (unsigned i = 0; i < 4; i++)
		tracks[i] = ky_track_of_thread(trace, ky_thread(trace, 10, 10 + i));
	for (unsigned i = 0; i < 120; i++)
		put_slice(trace, i, tracks);
	ky_problem(trace, "truncated", KY_ERROR, 12, "the file ends here");
	if (ky_trace_finish(trace, NULL, NULL))
		abort();
	return trace;
}

static int count_steps(void *context)
{
	unsigned *steps = context;

	return ++*steps > STEPS_MAX;
}

/* Whether it left all as it was. */
static bool run(sqlite3_stmt *stmt)
{
	const bool readonly = !stmt || sqlite3_stmt_readonly(stmt);
	unsigned rows = 0;

	while (sqlite3_step(stmt) == SQLITE_ROW && rows++ < ROWS_MAX)
		for (int i = 0; i < sqlite3_column_count(stmt); i++)
			(void)sqlite3_column_text(stmt, i);
	sqlite3_finalize(stmt);
	return readonly;
}

static unsigned steps;

static struct ky_sql *open_sql(void)
{
	static struct ky_trace *trace;
	struct ky_sql *sql;

	if (!trace) {
		trace = make_trace();
		sqlite3_hard_heap_limit64(256 << 20);
	}
	if (ky_sql_open(&sql, trace))
		abort();
	sqlite3_limit(ky_sql_db(sql), SQLITE_LIMIT_LENGTH, 1 << 20);
	sqlite3_limit(ky_sql_db(sql), SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100);
	ky_sql_progress(sql, count_steps, &steps);
	return sql;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct ky_sql *sql;
	char message[KY_MESSAGE_BYTES];
	bool readonly = true;

	char *text = malloc(bytes + 1);
	if (!text)
		abort();
	if (bytes)
		memcpy(text, data, bytes);
	text[bytes] = '\0';
	if (!sql)
		sql = open_sql();
	steps = 0;
	const char *at = text;
	for (unsigned i = 0; *at && i < STATEMENTS_MAX; i++) {
		sqlite3_stmt *stmt;
		if (ky_sql_prepare(sql, text, &at, &stmt, message))
			break;
		readonly &= run(stmt);
	}
	if (!readonly) /* the next input finds nothing of this one */
		ky_sql_close(&sql);
	free(text);
	return 0;
}
