/* SPDX-License-Identifier: MIT */
/*
 * load_child.c: load one trace, run an aggregate over all its slices, and print: seconds to load, slices, events,
 * bytes of the columns, peak memory in KiB after loading, seconds of the query, and CPU seconds of loading, which do
 * not depend on other programs.
 */
#include "formats/load.h"
#include "query/sql.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

static double now_s(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double cpu_s(const struct rusage *usage)
{
	return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
	       (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

static bool run(struct ky_sql *sql, const char *text)
{
	char message[KY_MESSAGE_BYTES];
	struct sqlite3_stmt *stmt;
	int result;
	if (ky_sql_prepare(sql, text, &text, &stmt, message) != 0)
		return false;
	while ((result = sqlite3_step(stmt)) == SQLITE_ROW)
		;
	return sqlite3_finalize(stmt) == SQLITE_OK && result == SQLITE_DONE;
}

/* Seconds, or -1 when it did not work. */
static double query(struct ky_trace *trace)
{
	struct ky_sql *sql;
	const double begin_s = now_s();
	if (ky_sql_open(&sql, trace) != 0)
		return -1;
	const bool done =
		run(sql, "select name, count(*), sum(dur), max(dur) from slice group by name");
	const double took_s = now_s() - begin_s;
	ky_sql_close(&sql);
	return done ? took_s : -1;
}

int main(int argc, char **argv)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_trace *trace;
	struct rusage usage;
	if (argc != 2)
		return 2;
	const double begin_s = now_s();
	if (ky_load(&trace, argv[1], NULL, message) != 0) {
		fprintf(stderr, "bench: %s\n", message);
		return 1;
	}
	const double load_s = now_s() - begin_s;
	getrusage(RUSAGE_SELF, &usage);
	printf("%f %" PRIu32 " %" PRIu64 " %" PRIu64 " %ld %f %f\n", load_s,
	       trace->slices.rows.count, trace->events, ky_trace_memory(trace), usage.ru_maxrss,
	       query(trace), cpu_s(&usage));
	ky_trace_close(&trace);
	return 0;
}
