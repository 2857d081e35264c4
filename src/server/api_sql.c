/* SPDX-License-Identifier: MIT */
/*
 * api_sql.c: api/sql, api/cancel, api/tables. There is one connection, opened on first use, and one statement at a time: the
 * lock is held while it runs. Cancelling and stopping need no lock.
 */
#include "server/api.h"

#include "base/clock.h"
#include "query/sql.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#define ROWS_DEFAULT 1000
#define ROWS_MAX 100000
#define BYTES_MAX (64u << 20)
#define CELL_BYTES_MAX 65536
#define VALUE_BYTES_MAX (64 << 20)
/* Ends queries whose page was closed. */
#define SECONDS_MAX 600
/* The largest integer up to which a double is exact. */
#define EXACT_MAX (INT64_C(1) << 53)

static bool is_cancelled(const struct ky_api *api)
{
	return ky_api_stopping(api) || __atomic_load_n(&api->sql.cancel, __ATOMIC_RELAXED) != 0;
}

/* SQLite calls this now and then; not 0 ends the statement. */
static int on_progress(void *context)
{
	const struct ky_api *const api = context;
	return is_cancelled(api) || ky_clock_monotonic() > api->sql.deadline_ns;
}

/* Return the connection, with the lock held; NULL without memory. */
static struct ky_sql *open_sql(struct ky_api *api)
{
	struct ky_sql *sql = api->sql.sql;
	if (sql || ky_sql_open(&sql, api->view->trace) != 0)
		return sql;
	ky_sql_progress(sql, on_progress, api);
	sqlite3_limit(ky_sql_db(sql), SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX);
	/* Release: pairs with the acquire of ky_api_sql_interrupt(), which takes no lock. */
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

static void add_blob(struct ky_json_out *json, sqlite3_stmt *stmt, int at)
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
	ky_json_out_string(json, NULL, text, (size_t)count * 2);
}

static void add_cell(struct ky_json_out *json, sqlite3_stmt *stmt, int at)
{
	switch (sqlite3_column_type(stmt, at)) {
	case SQLITE_INTEGER: {
		const int64_t value = sqlite3_column_int64(stmt, at);
		if (value > EXACT_MAX || value < -EXACT_MAX)
			ky_json_out_digits(json, NULL, value);
		else
			ky_json_out_int(json, NULL, value);
		return;
	}
	case SQLITE_FLOAT:
		ky_json_out_real(json, NULL, sqlite3_column_double(stmt, at));
		return;
	case SQLITE_BLOB:
		add_blob(json, stmt, at);
		return;
	case SQLITE_TEXT: {
		const char *const text = (const char *)sqlite3_column_text(stmt, at);
		const int bytes = sqlite3_column_bytes(stmt, at);
		ky_json_out_string(json, NULL, text ? text : "",
				   (size_t)(bytes < CELL_BYTES_MAX ? bytes : CELL_BYTES_MAX));
		return;
	}
	default:
		ky_json_out_null(json, NULL);
	}
}

/* The kept rows of one statement. */
struct result {
	struct ky_buffer columns, rows; /* JSON arrays */
	struct ky_json_out out;         /* writes rows */
	int64_t limit, count;
	bool more;
	char message[KY_MESSAGE_BYTES]; /* of an error */
};

static void begin_result(struct result *result, sqlite3_stmt *stmt)
{
	ky_buffer_free(&result->columns);
	ky_buffer_free(&result->rows);
	result->count = 0;
	result->more = false;
	struct ky_json_out columns = {.buffer = &result->columns};
	result->out = (struct ky_json_out){.buffer = &result->rows};
	ky_json_out_begin(&columns, NULL, '[');
	for (int i = 0; i < sqlite3_column_count(stmt); i++) {
		const char *const name = sqlite3_column_name(stmt, i);
		ky_json_out_text(&columns, NULL, name ? name : "?");
	}
	ky_json_out_end(&columns, ']');
	ky_json_out_begin(&result->out, NULL, '[');
}

static void add_row(struct result *result, sqlite3_stmt *stmt)
{
	ky_json_out_begin(&result->out, NULL, '[');
	for (int i = 0; i < sqlite3_column_count(stmt); i++)
		add_cell(&result->out, stmt, i);
	ky_json_out_end(&result->out, ']');
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

static void report_why(struct result *result, const struct ky_api *api, const char *text)
{
	if (ky_api_stopping(api))
		text = "interrupted: the trace is being closed";
	else if (is_cancelled(api))
		text = "cancelled";
	else if (ky_clock_monotonic() > api->sql.deadline_ns)
		text = "interrupted after ten minutes: query less at a time";
	snprintf(result->message, sizeof(result->message), "%s", text);
}

static bool run_statement(struct result *result, const struct ky_api *api, sqlite3_stmt *stmt)
{
	/* The page shows the rows of the last statement that has any. */
	const bool has_rows = sqlite3_column_count(stmt) > 0;
	if (has_rows)
		begin_result(result, stmt);
	const int step = step_all(result, stmt);
	if (has_rows)
		ky_json_out_end(&result->out, ']');
	if (step != SQLITE_DONE)
		report_why(result, api, sqlite3_errmsg(sqlite3_db_handle(stmt)));
	return step == SQLITE_DONE;
}

/* Run all statements until one fails. Return false with a message on failure. */
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
		/* Preparing forgets an interrupt, or fails because of it. */
		if (is_cancelled(api)) {
			report_why(result, api, "");
			fine = false;
		}
		if (fine && stmt)
			fine = run_statement(result, api, stmt);
		sqlite3_finalize(stmt);
	}
	return fine;
}

static void add_array(struct ky_json_out *json, const char *key, const struct ky_buffer *array)
{
	if (array->bytes)
		ky_json_out_raw(json, key, array->data, array->bytes);
	else
		ky_json_out_raw(json, key, "[]", 2);
	json->buffer->failed |= array->failed;
}

static void add_result(struct ky_json_out *json, const struct result *result, bool fine, double ms)
{
	static const struct ky_buffer nothing = {0};
	ky_json_out_begin(json, NULL, '{');
	add_array(json, "columns", fine ? &result->columns : &nothing);
	add_array(json, "rows", fine ? &result->rows : &nothing);
	ky_json_out_bool(json, "more", fine && result->more);
	ky_json_out_real(json, "ms", floor(ms * 1000) / 1000);
	if (!fine)
		ky_json_out_text(json, "error", result->message);
	ky_json_out_end(json, '}');
}

void ky_api_sql_run(struct ky_api *api, const struct ky_api_request *request,
		    struct ky_api_response *response)
{
	struct result result = {.limit = ROWS_DEFAULT};
	if (!ky_api_parameter_bounded(request, "limit", 1, ROWS_MAX, &result.limit, response))
		return;
	if (memchr(request->body, '\0', request->body_bytes)) {
		ky_api_fail(response, 400, "the SQL has a zero byte: send text");
		return;
	}
	pthread_mutex_lock(&api->sql.lock);
	const int64_t began = ky_clock_monotonic();
	api->sql.deadline_ns = began + SECONDS_MAX * KY_CLOCK_SECOND_NS;
	__atomic_store_n(&api->sql.cancel, 0, __ATOMIC_RELAXED);
	if (open_sql(api)) {
		const bool fine = run_text(&result, api, request->body);
		add_result(&response->json, &result, fine,
			   (double)(ky_clock_monotonic() - began) / 1e6);
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
	ky_json_out_begin(&response->json, NULL, '{');
	ky_json_out_end(&response->json, '}');
}

/* ---- api/tables ---- */

static bool add_columns(struct ky_json_out *json, sqlite3 *db, const char *table)
{
	sqlite3_stmt *stmt = NULL;
	if (sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", -1,
			       &stmt, NULL) != SQLITE_OK)
		return false;
	sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
	ky_json_out_begin(json, "columns", '[');
	int step;
	while ((step = sqlite3_step(stmt)) == SQLITE_ROW)
		ky_json_out_text(json, NULL, (const char *)sqlite3_column_text(stmt, 0));
	ky_json_out_end(json, ']');
	sqlite3_finalize(stmt);
	return step == SQLITE_DONE;
}

static bool add_table(struct ky_json_out *json, sqlite3 *db, const char *table)
{
	ky_json_out_begin(json, NULL, '{');
	ky_json_out_text(json, "name", table);
	const bool fine = add_columns(json, db, table);
	ky_json_out_end(json, '}');
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

/* Add the tables created by SQL, after the trace's own. */
static bool add_created(struct ky_json_out *json, sqlite3 *db)
{
	static const char created[] =
		"SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')"
		" AND name NOT LIKE 'sqlite_%'";
	sqlite3_stmt *stmt = NULL;
	bool fine = sqlite3_prepare_v2(db, created, -1, &stmt, NULL) == SQLITE_OK;
	while (fine && sqlite3_step(stmt) == SQLITE_ROW) {
		const char *const name = (const char *)sqlite3_column_text(stmt, 0);
		if (name && !is_known(name))
			fine = add_table(json, db, name);
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
	api->sql.deadline_ns = ky_clock_monotonic() + SECONDS_MAX * KY_CLOCK_SECOND_NS;
	__atomic_store_n(&api->sql.cancel, 0, __ATOMIC_RELAXED);
	struct ky_sql *const sql = open_sql(api);
	bool fine = sql != NULL;
	ky_json_out_begin(&response->json, NULL, '{');
	ky_json_out_begin(&response->json, "tables", '[');
	for (unsigned i = 0; fine && (name = ky_sql_table_name(i)); i++)
		fine = add_table(&response->json, ky_sql_db(sql), name);
	fine = fine && add_created(&response->json, ky_sql_db(sql));
	ky_json_out_end(&response->json, ']');
	ky_json_out_end(&response->json, '}');
	pthread_mutex_unlock(&api->sql.lock);
	if (!fine)
		ky_api_fail(response, 503, "cannot list the tables: try again");
}
