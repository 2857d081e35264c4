/* SPDX-License-Identifier: MIT */
/*
 * sql.h: SQL over a trace: SQLite with virtual tables on the columns, which are not copied.
 *
 * Statements are best prepared with ky_sql_prepare(): it takes Perfetto's dialect where that means something
 * here, and sums up whole tables without going through SQLite row by row. sqlite3_prepare_v2() on ky_sql_db()
 * gives the same results, slower.
 */
#ifndef KY_QUERY_SQL_H
#define KY_QUERY_SQL_H

#include "base/fail.h"
#include "model/trace.h"

struct sqlite3;
struct sqlite3_stmt;
struct ky_sql;

/*
 * Open the tables of a trace, which must outlive them. Statements can create tables and views in
 * memory, and nothing else: no file is accessible. 0 or -ENOMEM.
 */
int ky_sql_open(struct ky_sql **sql, struct ky_trace *trace);
/*
 * Let all queries of this program have that much memory together: one that needs more fails, not the machine. 0, the default,
 * is three quarters of the machine's.
 */
void ky_sql_memory(uint64_t bytes);
void ky_sql_close(struct ky_sql **sql);

struct sqlite3 *ky_sql_db(struct ky_sql *sql);

/*
 * Prepare the statement at *at and move *at to the next one. *stmt is NULL when there is nothing to run: a comment, or
 * an INCLUDE PERFETTO MODULE, which is ignored. Run it with sqlite3_step(); errors are those of
 * sqlite3_db_handle(*stmt). 0, -ENOMEM, or -EINVAL with a message of one line that includes the place in the text.
 */
int ky_sql_prepare(struct ky_sql *sql, const char *text, const char **at,
		   struct sqlite3_stmt **stmt, char message[KY_MESSAGE_BYTES]);

/* Stop the running statement soon. From any thread, or a signal handler. */
void ky_sql_interrupt(struct ky_sql *sql);
/* Called every few thousand steps of any statement; a result other than 0 stops it. */
void ky_sql_progress(struct ky_sql *sql, int (*progress)(void *context), void *context);

/* Return the names for completion: tables and views of the schema, and functions. NULL after the last. */
const char *ky_sql_table_name(unsigned at);
const char *ky_sql_function_name(unsigned at);

#endif
