/* SPDX-License-Identifier: MIT */
/*
 * api_sql.c: api/sql, api/cancel, api/tables. One connection, opened when it is first needed, and one statement at
 * a time: the lock is held while it runs, and who cancels, or stops all, needs no lock.
 */
#include "server/api_parts.h"

#include "query/sql.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROWS_USUAL 1000
#define ROWS_MAX 100000
#define BYTES_MAX (64u << 20)
#define CELL_BYTES_MAX 65536
#define VALUE_BYTES_MAX (64 << 20)
/* What nobody waits for any more, because its page was closed, must end some time. */
#define SECONDS_MAX 600
/* What a double holds exactly. */
#define EXACT_MAX (INT64_C(1) << 53)

static int64_t now_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static bool is_cancelled(const struct ky_api *api)
{
	return ky_api_stopping(api) || __atomic_load_n(&api->sql.cancel, __ATOMIC_RELAXED) != 0;
}

/* SQLite asks now and then: not 0 ends what runs. */
static int on_progress(void *context)
{
	const struct ky_api *const api = context;
	return is_cancelled(api) || now_ns() > api->sql.deadline_ns;
}

/* A query that asks for too much fails; the machine that it runs on does not. */
static void bound_memory(struct ky_sql *sql)
{
	const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
	sqlite3_limit(ky_sql_db(sql), SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX);
	if (pages > 0 && page_bytes > 0)
		sqlite3_hard_heap_limit64((sqlite3_int64)pages / 4 * 3 * page_bytes);
}

/* The connection; the lock is held. NULL without memory. */
static struct ky_sql *open_sql(struct ky_api *api)
{
	struct ky_sql *sql = api->sql.sql;
	if (sql || ky_sql_open(&sql, api->view->trace) != 0)
		return sql;
	ky_sql_progress(sql, on_progress, api);
	bound_memory(sql);
	/* Release: pairs with the acquire of ky_api_sql_interrupt(), which has no lock. */
	__atomic_store_n(&api->sql.sql, sql, __ATOMIC_RELEASE);
	return sql;
}

void ky_api_sql_close(struct ky_api *api)
{
	ky_sql_close(&api->sql.sql);
}

void ky_api_sql_interrupt(struct ky_api *api)
{
	struct ky_sql *const sql = __atomic_load_n(&api->sql.sql, __ATOMIC_ACQUIRE);
	__atomic_store_n(&api->sql.cancel, 1, __ATOMIC_RELAXED);
	if (sql)
		ky_sql_interrupt(sql);
}

/* ---- rows ---- */

static void add_blob(struct ky_buffer *buffer, sqlite3_stmt *stmt, int at)
{
	static const char digits[] = "0123456789abcdef";
	char text[2 * 1024];
	const unsigned char *const bytes = sqlite3_column_blob(stmt, at);
	const int all = sqlite3_column_bytes(stmt, at);
	const int count = all < (int)sizeof(text) / 2 ? all : (int)sizeof(text) / 2;
	for (int i = 0; i < count; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	ky_json_string(buffer, text, (size_t)count * 2);
}

static void add_cell(struct ky_buffer *buffer, sqlite3_stmt *stmt, int at)
{
	switch (sqlite3_column_type(stmt, at)) {
	case SQLITE_INTEGER: {
		const int64_t value = sqlite3_column_int64(stmt, at);
		if (value > EXACT_MAX || value < -EXACT_MAX)
			ky_json_digits(buffer, value);
		else
			ky_json_int(buffer, value);
		return;
	}
	case SQLITE_FLOAT:
		ky_json_real(buffer, sqlite3_column_double(stmt, at));
		return;
	case SQLITE_BLOB:
		add_blob(buffer, stmt, at);
		return;
	case SQLITE_TEXT: {
		const char *const text = (const char *)sqlite3_column_text(stmt, at);
		const int bytes = sqlite3_column_bytes(stmt, at);
		ky_json_string(buffer, text ? text : "",
			       (size_t)(bytes < CELL_BYTES_MAX ? bytes : CELL_BYTES_MAX));
		return;
	}
	default:
		ky_json_null(buffer);
	}
}

/* The rows of one statement, as far as they are kept. */
struct result {
	struct ky_buffer columns, rows; /* arrays */
	int64_t limit, count;
	bool more;
	char message[KY_SQL_MESSAGE_BYTES]; /* of what went wrong */
};

static void begin_result(struct result *result, sqlite3_stmt *stmt)
{
	ky_buffer_free(&result->columns);
	ky_buffer_free(&result->rows);
	result->count = 0;
	result->more = false;
	ky_json_begin(&result->columns, '[');
	for (int i = 0; i < sqlite3_column_count(stmt); i++) {
		const char *const name = sqlite3_column_name(stmt, i);
		ky_json_text(&result->columns, name ? name : "?");
	}
	ky_json_end(&result->columns, ']');
	ky_json_begin(&result->rows, '[');
}

static void add_row(struct result *result, sqlite3_stmt *stmt)
{
	ky_json_begin(&result->rows, '[');
	for (int i = 0; i < sqlite3_column_count(stmt); i++)
		add_cell(&result->rows, stmt, i);
	ky_json_end(&result->rows, ']');
	result->count++;
}

static int step_all(struct result *result, sqlite3_stmt *stmt)
{
	int step;
	while ((step = sqlite3_step(stmt)) == SQLITE_ROW) {
		if (result->count == result->limit || result->rows.bytes > BYTES_MAX) {
			result->more = true;
			return SQLITE_DONE;
		}
		add_row(result, stmt);
	}
	return step;
}

/* ---- statements ---- */

static void say_why(struct result *result, const struct ky_api *api, const char *text)
{
	if (ky_api_stopping(api))
		text = "ended, because the trace is being closed";
	else if (is_cancelled(api))
		text = "cancelled";
	else if (now_ns() > api->sql.deadline_ns)
		text = "took longer than ten minutes, and was ended: request for less at a time";
	snprintf(result->message, sizeof(result->message), "%s", text);
}

static bool run_statement(struct result *result, const struct ky_api *api, sqlite3_stmt *stmt)
{
	/* The last statement that has rows is what is shown. */
	const bool has_rows = sqlite3_column_count(stmt) > 0;
	if (has_rows)
		begin_result(result, stmt);
	const int step = step_all(result, stmt);
	if (has_rows)
		ky_json_end(&result->rows, ']');
	if (step != SQLITE_DONE)
		say_why(result, api, sqlite3_errmsg(sqlite3_db_handle(stmt)));
	return step == SQLITE_DONE;
}

/* All statements, until one fails; false with a message. */
static bool run_text(struct result *result, struct ky_api *api, const char *text)
{
	const char *at = text;
	bool fine = true;
	while (fine && *at) {
		sqlite3_stmt *stmt = NULL;
		const int error = ky_sql_prepare(api->sql.sql, text, &at, &stmt, result->message);
		if (error == -ENOMEM)
			snprintf(result->message, sizeof(result->message), "out of memory");
		fine = !error;
		/* Preparing forgets that it was interrupted, or fails by it. */
		if (is_cancelled(api)) {
			say_why(result, api, "");
			fine = false;
		}
		if (fine && stmt)
			fine = run_statement(result, api, stmt);
		sqlite3_finalize(stmt);
	}
	return fine;
}

static void add_array(struct ky_buffer *buffer, const char *key, const struct ky_buffer *array)
{
	ky_json_key(buffer, key);
	if (array->bytes)
		ky_buffer_add(buffer, array->data, array->bytes);
	else
		ky_buffer_text(buffer, "[]");
	buffer->failed |= array->failed;
}

static void add_result(struct ky_buffer *buffer, const struct result *result, bool fine, double ms)
{
	static const struct ky_buffer nothing = {0};
	ky_json_begin(buffer, '{');
	add_array(buffer, "columns", fine ? &result->columns : &nothing);
	add_array(buffer, "rows", fine ? &result->rows : &nothing);
	ky_json_key(buffer, "more");
	ky_json_bool(buffer, fine && result->more);
	ky_json_key(buffer, "ms");
	ky_json_real(buffer, floor(ms * 1000) / 1000);
	if (!fine) {
		ky_json_key(buffer, "error");
		ky_json_text(buffer, result->message);
	}
	ky_json_end(buffer, '}');
}

void ky_api_sql_run(struct ky_api *api, const struct ky_api_request *request,
		    struct ky_api_response *response)
{
	struct result result = {.limit = ROWS_USUAL};
	if (!ky_api_parameter_bounded(request, "limit", 1, ROWS_MAX, &result.limit, response))
		return;
	if (memchr(request->body, '\0', request->body_bytes)) {
		ky_api_fail(response, 400, "the SQL has a zero byte in it: send text");
		return;
	}
	pthread_mutex_lock(&api->sql.lock);
	const int64_t began = now_ns();
	api->sql.deadline_ns = began + (int64_t)SECONDS_MAX * 1000000000;
	__atomic_store_n(&api->sql.cancel, 0, __ATOMIC_RELAXED);
	if (open_sql(api)) {
		const bool fine = run_text(&result, api, request->body);
		add_result(&response->body, &result, fine, (double)(now_ns() - began) / 1e6);
	} else {
		response->body.failed = true;
	}
	pthread_mutex_unlock(&api->sql.lock);
	ky_buffer_free(&result.columns);
	ky_buffer_free(&result.rows);
}

void ky_api_sql_cancel(struct ky_api *api, const struct ky_api_request *request,
		       struct ky_api_response *response)
{
	(void)request;
	ky_api_sql_interrupt(api);
	ky_json_begin(&response->body, '{');
	ky_json_end(&response->body, '}');
}

/* ---- api/tables ---- */

static bool add_columns(struct ky_buffer *buffer, sqlite3 *db, const char *table)
{
	sqlite3_stmt *stmt = NULL;
	if (sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", -1,
			       &stmt, NULL) != SQLITE_OK)
		return false;
	sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
	ky_json_begin(buffer, '[');
	int step;
	while ((step = sqlite3_step(stmt)) == SQLITE_ROW)
		ky_json_text(buffer, (const char *)sqlite3_column_text(stmt, 0));
	ky_json_end(buffer, ']');
	sqlite3_finalize(stmt);
	return step == SQLITE_DONE;
}

static bool add_table(struct ky_buffer *buffer, sqlite3 *db, const char *table)
{
	ky_json_begin(buffer, '{');
	ky_json_key(buffer, "name");
	ky_json_text(buffer, table);
	ky_json_key(buffer, "columns");
	const bool fine = add_columns(buffer, db, table);
	ky_json_end(buffer, '}');
	return fine;
}

static bool is_known(const char *table)
{
	const char *name;
	for (unsigned i = 0; (name = ky_sql_table_name(i)); i++) {
		if (sqlite3_stricmp(name, table) == 0)
			return true;
	}
	return false;
}

/* Those that were created by SQL come after the trace's own. */
static bool add_created(struct ky_buffer *buffer, sqlite3 *db)
{
	static const char created[] =
		"SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')"
		" AND name NOT LIKE 'sqlite_%'";
	sqlite3_stmt *stmt = NULL;
	bool fine = sqlite3_prepare_v2(db, created, -1, &stmt, NULL) == SQLITE_OK;
	while (fine && sqlite3_step(stmt) == SQLITE_ROW) {
		const char *const name = (const char *)sqlite3_column_text(stmt, 0);
		if (name && !is_known(name))
			fine = add_table(buffer, db, name);
	}
	sqlite3_finalize(stmt);
	return fine;
}

void ky_api_sql_tables(struct ky_api *api, const struct ky_api_request *request,
		       struct ky_api_response *response)
{
	(void)request;
	const char *name;
	pthread_mutex_lock(&api->sql.lock);
	api->sql.deadline_ns = now_ns() + (int64_t)SECONDS_MAX * 1000000000;
	__atomic_store_n(&api->sql.cancel, 0, __ATOMIC_RELAXED);
	struct ky_sql *const sql = open_sql(api);
	bool fine = sql != NULL;
	ky_json_begin(&response->body, '{');
	ky_json_key(&response->body, "tables");
	ky_json_begin(&response->body, '[');
	for (unsigned i = 0; fine && (name = ky_sql_table_name(i)); i++)
		fine = add_table(&response->body, ky_sql_db(sql), name);
	fine = fine && add_created(&response->body, ky_sql_db(sql));
	ky_json_end(&response->body, ']');
	ky_json_end(&response->body, '}');
	pthread_mutex_unlock(&api->sql.lock);
	if (!fine)
		ky_api_fail(response, 503, "the tables could not be listed: try again");
}
