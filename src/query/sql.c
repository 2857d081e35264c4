/* SPDX-License-Identifier: MIT */
/*
 * sql.c: the connections, and statements. See sql.h.
 *
 * There are two connections on one trace: the first for all there is, the second for statements that do
 * nothing but sum up (sql_batch.c). The second knows nothing that was created in the first, so it is no
 * longer asked once a statement creates something.
 */
#include "query/sql.h"

#include "base/chars.h"
#include "query/sql_table.h"

#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- statements out of a text, with Perfetto's words made SQLite's ---- */

/* One statement. INCLUDE PERFETTO MODULE is nothing to run, CREATE PERFETTO TABLE and VIEW are SQLite's. */
struct statement {
	const char *begin; /* its first word in the text */
	const char *end;   /* behind it and its semicolon */
	const char *text;  /* what SQLite is given */
	size_t bytes;      /* 0: nothing to run */
	char *replaces;    /* statement to run first: "DROP TABLE IF EXISTS x", or NULL */
	char *own;
};

struct token {
	const char *at;
	size_t bytes; /* 0 at the end */
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static bool is_word(char c)
{
	return ky_chars_is_word(c) || (unsigned char)c >= 0x80;
}

static const char *skip_comment(const char *at)
{
	if (at[0] == '-') {
		at += strcspn(at, "\n");
		return at;
	}
	const char *end = strstr(at + 2, "*/");
	return end ? end + 2 : at + strlen(at);
}

static const char *skip_blank(const char *at)
{
	for (;;) {
		if (is_space(*at))
			at++;
		else if ((at[0] == '-' && at[1] == '-') || (at[0] == '/' && at[1] == '*'))
			at = skip_comment(at);
		else
			return at;
	}
}

/* Doubled quotes inside of quotes read as two adjacent texts, which is fine here. */
static size_t quoted_bytes(const char *at)
{
	const char *end = strchr(at + 1, *at == '[' ? ']' : *at);

	return end ? (size_t)(end - at) + 1 : strlen(at);
}

static struct token next_token(const char *at)
{
	size_t bytes = 0;

	at = skip_blank(at);
	if (*at == '\'' || *at == '"' || *at == '`' || *at == '[')
		return (struct token){at, quoted_bytes(at)};
	while (is_word(at[bytes]))
		bytes++;
	return (struct token){at, bytes ? bytes : *at != '\0'};
}

static struct token token_after(struct token token)
{
	return next_token(token.at + token.bytes);
}

static bool is(struct token token, const char *word)
{
	return token.bytes == strlen(word) &&
	       sqlite3_strnicmp(token.at, word, (int)token.bytes) == 0;
}

static const char *statement_end(const char *text)
{
	struct token token = next_token(text);

	while (token.bytes && !is(token, ";"))
		token = token_after(token);
	return token.at + token.bytes;
}

/* Skip Perfetto's schema behind a name, "(a INT, b LONG)", which SQLite does not know. */
static struct token skip_schema(struct token token)
{
	unsigned depth = 0;

	if (!is(token, "("))
		return token;
	do {
		depth += is(token, "(");
		depth -= is(token, ")");
		token = token_after(token);
	} while (depth && token.bytes);
	return token;
}

/* CREATE [OR REPLACE] PERFETTO TABLE|VIEW name [(schema)] AS ... */
static int rewrite_create(struct statement *statement)
{
	struct token token = token_after(next_token(statement->begin));
	bool replace = false;

	if (is(token, "OR")) {
		replace = true;
		token = token_after(token_after(token));
	}
	if (!is(token, "PERFETTO"))
		return 0;
	const struct token kind = token_after(token);
	if (is(kind, "INDEX")) { /* indexes are ours to choose */
		statement->bytes = 0;
		return 0;
	}
	if (!is(kind, "TABLE") && !is(kind, "VIEW"))
		return 0;
	const struct token name = token_after(kind);
	const struct token rest = skip_schema(token_after(name));
	statement->own =
		sqlite3_mprintf("CREATE %.*s %.*s %.*s", (int)kind.bytes, kind.at, (int)name.bytes,
				name.at, (int)(statement->end - rest.at), rest.at);
	if (replace)
		statement->replaces = sqlite3_mprintf("DROP %.*s IF EXISTS %.*s", (int)kind.bytes,
						      kind.at, (int)name.bytes, name.at);
	if (!statement->own || (replace && !statement->replaces))
		return -ENOMEM;
	statement->text = statement->own;
	statement->bytes = strlen(statement->own);
	return 0;
}

static void free_statement(struct statement *statement)
{
	sqlite3_free(statement->own);
	sqlite3_free(statement->replaces);
	statement->own = statement->replaces = NULL;
}

/* Read the next statement. 0, -ENOMEM, or -E2BIG if it is too long for SQLite. */
static int next_statement(struct statement *statement, const char *text)
{
	const char *begin = skip_blank(text);

	*statement = (struct statement){.begin = begin, .text = begin};
	statement->end = statement_end(begin);
	statement->bytes = (size_t)(statement->end - begin);
	if (statement->bytes > INT_MAX / 2)
		return -E2BIG;
	const struct token first = next_token(begin);
	if (!first.bytes || is(first, ";") ||
	    (is(first, "INCLUDE") && is(token_after(first), "PERFETTO")))
		statement->bytes = 0;
	else if (is(first, "CREATE")) {
		const int error = rewrite_create(statement);
		if (error)
			free_statement(statement);
		return error;
	}
	return 0;
}

/* ---- the connections ---- */

struct ky_sql {
	struct ky_sql_context rows;
	struct ky_sql_context batch;
	bool changed; /* the first connection's schema has changed */
	int stop;     /* atomic */
};

/* The views of Perfetto's prelude and slices.with_context. */
static const char views[] =
	"BEGIN;"
	"CREATE VIEW trace_bounds AS SELECT TRACE_START() AS start_ts, TRACE_END() AS end_ts;"
	"CREATE VIEW counters AS SELECT v.*, t.name, t.unit FROM counter AS v"
	"  JOIN counter_track AS t ON v.track_id = t.id ORDER BY ts;"
	"CREATE VIEW cpu AS SELECT cpu AS id, cpu AS ucpu, cpu, NULL AS cluster_id,"
	"  NULL AS processor, 0 AS machine_id, NULL AS capacity, NULL AS arg_set_id"
	"  FROM (SELECT DISTINCT cpu FROM sched UNION SELECT DISTINCT cpu FROM ftrace_event"
	"  UNION SELECT DISTINCT cpu FROM perf_sample UNION SELECT DISTINCT cpu FROM cpu_track"
	"  UNION SELECT DISTINCT cpu FROM cpu_counter_track) WHERE cpu IS NOT NULL;"
	"CREATE VIEW machine AS SELECT machine_id AS id, NULL AS raw_id, NULL AS sysname,"
	"  NULL AS release, NULL AS version, NULL AS arch, NULL AS num_cpus"
	"  FROM (SELECT 0 AS machine_id UNION SELECT DISTINCT machine_id FROM process"
	"  UNION SELECT DISTINCT machine_id FROM thread);"
	"CREATE VIEW thread_slice AS SELECT slice.id, slice.ts, slice.dur, slice.category, "
	"slice.name,"
	"  slice.track_id, thread_track.name AS track_name, thread.name AS thread_name, "
	"thread.utid,"
	"  thread.tid, thread.is_main_thread, process.name AS process_name, process.upid,"
	"  process.pid, slice.depth, slice.parent_id, slice.arg_set_id, slice.thread_ts,"
	"  slice.thread_dur FROM slice JOIN thread_track ON slice.track_id = thread_track.id"
	"  JOIN thread USING (utid) LEFT JOIN process USING (upid);"
	"CREATE VIEW process_slice AS SELECT slice.id, slice.ts, slice.dur, slice.category,"
	"  slice.name, slice.track_id, process_track.name AS track_name,"
	"  process.name AS process_name, process.upid, process.pid, slice.depth,"
	"  slice.parent_id, slice.arg_set_id, slice.thread_ts, slice.thread_dur FROM slice"
	"  JOIN process_track ON slice.track_id = process_track.id JOIN process USING (upid);"
	"CREATE VIEW thread_or_process_slice AS SELECT slice.id, slice.ts, slice.dur, "
	"slice.category,"
	"  slice.name, slice.track_id, track.name AS track_name, thread.name AS thread_name,"
	"  thread.utid, thread.tid, process.name AS process_name, process.upid, process.pid,"
	"  slice.depth, slice.parent_id, slice.arg_set_id FROM slice"
	"  JOIN track ON slice.track_id = track.id"
	"  LEFT JOIN thread_track ON slice.track_id = thread_track.id"
	"  LEFT JOIN process_track ON slice.track_id = process_track.id"
	"  LEFT JOIN thread ON thread.utid = thread_track.utid"
	"  JOIN process ON process.upid = COALESCE(thread.upid, process_track.upid);"
	"COMMIT";

static const char *const view_names[] = {
	"trace_bounds",
	"counters",
	"cpu",
	"machine",
	"thread_slice",
	"process_slice",
	"thread_or_process_slice",
};

/* Deny everything outside of memory, and all changes of settings. */
static int authorize(void *context, int action, const char *a, const char *b, const char *database,
		     const char *trigger)
{
	static const char *const pragmas[] = {"table_info",    "table_xinfo",    "table_list",
					      "function_list", "module_list",    "compile_options",
					      "index_list",    "collation_list", "pragma_list"};

	(void)context, (void)database, (void)trigger;
	if (action == SQLITE_ATTACH || action == SQLITE_DETACH)
		return SQLITE_DENY;
	if (action == SQLITE_FUNCTION && b &&
	    (sqlite3_stricmp(b, "load_extension") == 0 || sqlite3_stricmp(b, "writefile") == 0 ||
	     sqlite3_stricmp(b, "readfile") == 0 || sqlite3_stricmp(b, "fts3_tokenizer") == 0))
		return SQLITE_DENY;
	if (action != SQLITE_PRAGMA)
		return SQLITE_OK;
	for (size_t i = 0; i < sizeof(pragmas) / sizeof(pragmas[0]); i++)
		if (sqlite3_stricmp(a, pragmas[i]) == 0)
			return SQLITE_OK;
	return SQLITE_DENY;
}

static int add_all(struct ky_sql_context *context)
{
	int error = SQLITE_OK;

	for (unsigned i = 0; i < ky_sql_tables_count && !error; i++)
		error = ky_sql_add_table(context, &ky_sql_tables[i]);
	if (!error)
		error = ky_sql_add_functions(context);
	if (!error)
		error = ky_sql_add_time(context);
	/* A view joins tables: it cannot be summed up at once. */
	if (!error && context->batch)
		error = ky_sql_add_batch_aggregates(context);
	else if (!error)
		error = sqlite3_exec(context->db, views, NULL, NULL, NULL);
	return error;
}

static int open_one(struct ky_sql_context *context)
{
	int error = sqlite3_open_v2(":memory:", &context->db,
				    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
					    SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX,
				    NULL);

	if (error)
		return error;
	sqlite3_db_config(context->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	/* Large sorts must not leave files behind. */
	sqlite3_exec(context->db, "PRAGMA temp_store = MEMORY", NULL, NULL, NULL);
	error = add_all(context);
	if (!error)
		error = sqlite3_set_authorizer(context->db, authorize, NULL);
	return error;
}

void ky_sql_memory(uint64_t bytes)
{
	const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);

	if (bytes == 0 && pages > 0 && page_bytes > 0)
		bytes = (uint64_t)pages / 4 * 3 * (uint64_t)page_bytes;
	sqlite3_hard_heap_limit64(bytes < INT64_MAX ? (sqlite3_int64)bytes : INT64_MAX);
}

int ky_sql_open(struct ky_sql **out, struct ky_trace *trace)
{
	struct ky_sql *sql = calloc(1, sizeof(*sql));

	*out = NULL;
	if (!sql)
		return -ENOMEM;
	sql->rows = (struct ky_sql_context){.trace = trace, .stop = &sql->stop};
	sql->batch = (struct ky_sql_context){.trace = trace, .stop = &sql->stop, .batch = true};
	if (open_one(&sql->rows) || open_one(&sql->batch)) {
		ky_sql_close(&sql);
		return -ENOMEM;
	}
	if (sqlite3_hard_heap_limit64(-1) == 0)
		ky_sql_memory(0);
	*out = sql;
	return 0;
}

void ky_sql_close(struct ky_sql **sql)
{
	if (!*sql)
		return;
	sqlite3_close_v2((*sql)->rows.db);
	sqlite3_close_v2((*sql)->batch.db);
	free(*sql);
	*sql = NULL;
}

struct sqlite3 *ky_sql_db(struct ky_sql *sql)
{
	return sql->rows.db;
}

void ky_sql_interrupt(struct ky_sql *sql)
{
	__atomic_store_n(&sql->stop, 1, __ATOMIC_RELAXED);
	sqlite3_interrupt(sql->rows.db);
	sqlite3_interrupt(sql->batch.db);
}

void ky_sql_progress(struct ky_sql *sql, int (*progress)(void *context), void *context)
{
	sqlite3_progress_handler(sql->rows.db, 20000, progress, context);
	sqlite3_progress_handler(sql->batch.db, 20000, progress, context);
}

/* ---- statements ---- */

/* Append line and column of the given text to an error: "near "x": syntax error". */
static void add_place(char message[KY_MESSAGE_BYTES], sqlite3 *db, const char *text,
		      const char *from)
{
	const int offset = sqlite3_error_offset(db);
	unsigned line = 1, column = 1;

	if (offset < 0) {
		snprintf(message, KY_MESSAGE_BYTES, "%s", sqlite3_errmsg(db));
		return;
	}
	for (const char *at = text; at < from + offset && *at; at++) {
		column = *at == '\n' ? 1 : column + 1;
		line += *at == '\n';
	}
	snprintf(message, KY_MESSAGE_BYTES, "line %u, column %u: %s", line, column,
		 sqlite3_errmsg(db));
}

static int prepare(struct ky_sql *sql, const char *text, const struct statement *statement,
		   struct sqlite3_stmt **stmt, char message[KY_MESSAGE_BYTES])
{
	const int bytes = (int)statement->bytes;

	if (!sql->changed && ky_sql_batch_fits(sql->batch.db, statement->text, bytes) &&
	    sqlite3_prepare_v2(sql->batch.db, statement->text, bytes, stmt, NULL) == SQLITE_OK)
		return 0;
	if (statement->replaces)
		sqlite3_exec(sql->rows.db, statement->replaces, NULL, NULL, NULL);
	const int error = sqlite3_prepare_v2(sql->rows.db, statement->text, bytes, stmt, NULL);
	if (error == SQLITE_NOMEM)
		return -ENOMEM;
	if (error) {
		add_place(message, sql->rows.db, text, statement->begin);
		return -EINVAL;
	}
	if (*stmt && !sqlite3_stmt_readonly(*stmt))
		sql->changed = true;
	return 0;
}

int ky_sql_prepare(struct ky_sql *sql, const char *text, const char **at,
		   struct sqlite3_stmt **stmt, char message[KY_MESSAGE_BYTES])
{
	struct statement statement;

	*stmt = NULL;
	message[0] = '\0';
	__atomic_store_n(&sql->stop, 0, __ATOMIC_RELAXED);
	int error = next_statement(&statement, *at);
	if (error == -E2BIG)
		return ky_fail(message, -EINVAL, "the statement is too long");
	if (error)
		return error;
	*at = statement.end;
	if (statement.bytes)
		error = prepare(sql, text, &statement, stmt, message);
	free_statement(&statement);
	return error;
}

const char *ky_sql_table_name(unsigned at)
{
	const unsigned views_count = sizeof(view_names) / sizeof(view_names[0]);

	if (at < ky_sql_tables_count)
		return ky_sql_tables[at].name;
	return at - ky_sql_tables_count < views_count ? view_names[at - ky_sql_tables_count] : NULL;
}
