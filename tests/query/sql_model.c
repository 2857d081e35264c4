/* SPDX-License-Identifier: MIT */
/* sql_model.c: see sql_model.h. */
#include "sql_model.h"

#include <assert.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t text(struct ky_trace *trace, const char *string)
{
	return ky_string_z(trace, string);
}

static void put_slices(struct ky_trace *trace, uint32_t track)
{
	const uint32_t category = text(trace, "cat"), key = text(trace, "debug.a[1].b");

	ky_args_begin(trace);
	ky_arg_int(trace, text(trace, "debug.n"), -7);
	ky_arg_uint(trace, text(trace, "debug.u"), UINT64_MAX);
	ky_arg_real(trace, text(trace, "debug.r"), 1.5);
	ky_arg_bool(trace, text(trace, "debug.t"), true);
	ky_arg_pointer(trace, text(trace, "debug.p"), 0xbeef);
	ky_arg_string(trace, key, text(trace, "it's \"quoted\", too\n"));
	const uint32_t args = ky_args_end(trace);
	ky_put_complete(trace, 1000, 900, track, category, text(trace, "outer"), args);
	ky_put_complete(trace, 1100, 500, track, category, text(trace, "middle"), 0);
	ky_put_complete(trace, 1200, 100, track, 0, text(trace, "inner"), 0);
	ky_put_complete(trace, 1400, 100, track, 0, text(trace, "inner"), 0);
	ky_put_instant(trace, 1700, track, category, text(trace, "ping"), 0);
	ky_put_begin(trace, 1900, track, category, text(trace, "open"), 0);
}

static void put_flows(struct ky_trace *trace, uint32_t from, uint32_t to)
{
	ky_put_complete(trace, 1500, 300, to, 0, text(trace, "receive"), 0);
	ky_put_flow(trace, 1250, from, KY_FLOW_BEGIN, KY_BIND_ENCLOSING, 77);
	ky_put_flow(trace, 1550, to, KY_FLOW_END, KY_BIND_ENCLOSING, 77);
}

static void put_kernel(struct ky_trace *trace)
{
	struct ky_switch event = {.cpu = 2,
				  .prev_tid = 0,
				  .prev_state = text(trace, "R"),
				  .next_tid = 11,
				  .next_comm = text(trace, "main"),
				  .next_priority = 120};

	ky_put_switch(trace, 1010, &event);
	event = (struct ky_switch){.cpu = 2,
				   .prev_tid = 11,
				   .prev_comm = text(trace, "main"),
				   .prev_state = text(trace, "S"),
				   .prev_priority = 120,
				   .next_tid = 0};
	ky_put_switch(trace, 1060, &event);
	ky_put_waking(trace, 1080, 11, text(trace, "main"), -1);
	ky_args_begin(trace);
	ky_arg_string(trace, text(trace, "next_comm"), text(trace, "main"));
	ky_put_raw(trace, 1010, 2, 11, text(trace, "sched_switch"), ky_args_end(trace));
	ky_put_cpu_counter(trace, 1020, 2, text(trace, "cpufreq"), 1800000);
}

static void put_samples(struct ky_trace *trace, uint32_t thread)
{
	const struct ky_mapping_spec spec = {.build_id = text(trace, "abcd"),
					     .name = text(trace, "/bin/x"),
					     .start = 4096,
					     .end = 8192};
	const uint32_t mapping = ky_mapping(trace, &spec);
	const uint32_t outer = ky_callsite(trace, KY_NONE,
					   ky_frame(trace, mapping, 16, text(trace, "main"), 0, 0));
	const uint32_t inner = ky_callsite(
		trace, outer,
		ky_frame(trace, mapping, 32, text(trace, "work"), text(trace, "work.c"), 12));

	ky_put_sample(trace, 1300, thread, inner, 2, KY_CPU_MODE_USER, 1, text(trace, "cycles"));
	ky_put_sample(trace, 1310, thread, outer, KY_NONE, KY_CPU_MODE_UNKNOWN, 1, 0);
}

static void put_rest(struct ky_trace *trace, uint32_t thread)
{
	const struct ky_clock_reading readings[] = {{KY_CLOCK_BOOTTIME, 1000},
						    {KY_CLOCK_REALTIME, 1700000000000001000}};

	ky_put_clocks(trace, 1000, readings, 2);
	ky_put_log(trace, 1500, thread, 4, text(trace, "tag"), text(trace, "a message"));
	ky_put_metadata(trace, "host", text(trace, "box"));
	ky_put_metadata_number(trace, "cpus", 8);
	ky_put_lost(trace, 1600, thread, KY_NONE, 5, KY_LOSS_RING);
	ky_problem(trace, "misplaced_end_event", KY_ERROR, 42, "nothing to end");
}

struct ky_trace *model_of_all(void)
{
	struct ky_trace *trace;

	assert(ky_trace_open(&trace) == 0);
	const uint32_t thread = ky_thread(trace, 11, 11), other = ky_thread(trace, 11, 12);
	ky_process_name(trace, ky_process(trace, 11), text(trace, "program"), KY_NAME_TRACE);
	ky_thread_name(trace, thread, text(trace, "main"), KY_NAME_TRACE);
	const uint32_t track = ky_track_of_thread(trace, thread);
	put_slices(trace, track);
	put_flows(trace, track, ky_track_of_thread(trace, other));
	const uint32_t process = ky_process(trace, 11);
	ky_put_complete(trace, 1000, 10, ky_track_of_process(trace, process), 0,
			text(trace, "start"), 0);
	const uint32_t counter =
		ky_track_counter(trace, KY_TRACK_PROCESS_COUNTER, process, text(trace, "heap"));
	ky_put_counter(trace, 1100, counter, 10);
	ky_put_counter(trace, 1200, counter, 20.5);
	ky_put_counter(
		trace, 1300,
		ky_track_counter(trace, KY_TRACK_THREAD_COUNTER, thread, text(trace, "depth")), 3);
	ky_put_instant(trace, 1450, ky_track_global(trace, text(trace, "vsync")), 0,
		       text(trace, "tick"), 0);
	put_kernel(trace);
	put_samples(trace, thread);
	put_rest(trace, thread);
	assert(ky_trace_finish(trace, NULL, NULL) == 0);
	return trace;
}

struct ky_trace *model_random(unsigned seed, unsigned slices)
{
	struct ky_trace *trace;
	uint32_t names[20], categories[4], tracks[6], counters[3];
	int64_t ts = 1000;
	char name[32];

	srand(seed);
	assert(ky_trace_open(&trace) == 0);
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), i % 3 ? "name %d" : "Job#%d", i);
		names[i] = i == 19 ? 0 : text(trace, name);
	}
	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		categories[i] = i == 3 ? 0 : text(trace, name);
	}
	for (int i = 0; i < 6; i++)
		tracks[i] = ky_track_of_thread(trace, ky_thread(trace, 100 + i / 3, 100 + i));
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "counter %d", i);
		counters[i] = ky_track_counter(trace, KY_TRACK_PROCESS_COUNTER,
					       ky_process(trace, 100), text(trace, name));
	}
	for (unsigned i = 0; i < slices; i++) {
		const uint32_t track = tracks[rand() % 6];
		ts += rand() % 4 * 5;
		ky_args_begin(trace);
		if (rand() % 3 == 0)
			ky_arg_int(trace, text(trace, "debug.i"), rand() % 9);
		const uint32_t args = ky_args_end(trace);
		ky_put_complete(trace, ts, rand() % 7 * 10, track, categories[rand() % 4],
				names[rand() % 20], args);
		if (rand() % 4 == 0)
			ky_put_counter(trace, ts, counters[rand() % 3], rand() % 50 / 4.0);
		if (rand() % 5 == 0)
			ky_put_flow(trace, ts, track, KY_FLOW_ANY, KY_BIND_LAST,
				    (uint64_t)rand() % 9);
	}
	assert(ky_trace_finish(trace, NULL, NULL) == 0);
	return trace;
}

/* ---- results ---- */

static void add_row(FILE *to, sqlite3_stmt *stmt)
{
	for (int i = 0; i < sqlite3_column_count(stmt); i++) {
		const char *cell = (const char *)sqlite3_column_text(stmt, i);
		fprintf(to, "%s%s", i ? "|" : "", cell ? cell : "NULL");
	}
	fputc('\n', to);
}

static bool run(FILE *to, sqlite3_stmt *stmt)
{
	int step;

	while ((step = sqlite3_step(stmt)) == SQLITE_ROW)
		add_row(to, stmt);
	if (step != SQLITE_DONE)
		fprintf(to, "error: %s\n", sqlite3_errmsg(sqlite3_db_handle(stmt)));
	sqlite3_finalize(stmt);
	return step == SQLITE_DONE;
}

char *query(struct ky_sql *sql, const char *format, ...)
{
	char *result = NULL, message[KY_MESSAGE_BYTES];
	size_t bytes;
	FILE *to = open_memstream(&result, &bytes);
	va_list values;

	assert(to);
	va_start(values, format);
	char *all = sqlite3_vmprintf(format, values);
	va_end(values);
	const char *at = all;
	bool whole = true;
	while (*at && whole) {
		sqlite3_stmt *stmt;
		if (ky_sql_prepare(sql, all, &at, &stmt, message)) {
			fprintf(to, "error: %s\n", message);
			break;
		}
		whole = !stmt || run(to, stmt);
	}
	sqlite3_free(all);
	fclose(to);
	return result;
}

char *query_plain(struct ky_sql *sql, const char *string)
{
	char *result = NULL;
	size_t bytes;
	FILE *to = open_memstream(&result, &bytes);
	sqlite3_stmt *stmt;

	assert(to);
	if (sqlite3_prepare_v2(ky_sql_db(sql), string, -1, &stmt, NULL) == SQLITE_OK)
		run(to, stmt);
	else
		fprintf(to, "error: %s\n", sqlite3_errmsg(ky_sql_db(sql)));
	fclose(to);
	return result;
}

char *plan(struct ky_sql *sql, const char *string)
{
	char *explain = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", string);
	char *result = query_plain(sql, explain);

	sqlite3_free(explain);
	return result;
}

bool is_batch(struct ky_sql *sql, const char *string)
{
	char message[KY_MESSAGE_BYTES];
	sqlite3_stmt *stmt;
	const char *at = string;

	assert(ky_sql_prepare(sql, string, &at, &stmt, message) == 0);
	const bool batch = sqlite3_db_handle(stmt) != ky_sql_db(sql);
	sqlite3_finalize(stmt);
	return batch;
}
