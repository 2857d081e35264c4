/* SPDX-License-Identifier: MIT */
/*
 * query_prompt.c: the prompt of query_output.h.
 * A statement continues over lines until SQLite finds it complete; in the history it is one line. Ctrl-C at the
 * prompt cancels what was typed; while a query runs, it sets the flag that ends the query.
 */
#include "cli/query_output.h"

#include "query/sql.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <readline/history.h>
#include <readline/readline.h>

#define HISTORY_MAX 1000
#define NAMES_MAX 4096
#define SIGNAL_MS 200

static struct {
	char history[4096];
	char *names[NAMES_MAX];
	unsigned names_count;
	char *line; /* the line that take_line() got, when taken */
	bool taken;
	volatile sig_atomic_t interrupted;
	struct sigaction before;
} prompt;

static const char *const keywords[] = {
	"SELECT",    "FROM",   "WHERE",   "GROUP BY", "ORDER BY", "LIMIT",        "JOIN",
	"LEFT JOIN", "USING",  "ON",      "AND",      "OR",       "NOT",          "NULL",
	"DISTINCT",  "HAVING", "BETWEEN", "LIKE",     "GLOB",     "REGEXP",       "IN",
	"AS",        "CASE",   "WHEN",    "THEN",     "ELSE",     "END",          "WITH",
	"UNION",     "EXISTS", "DESC",    "ASC",      "OVER",     "PARTITION BY",
};

/* ---- names ---- */

static void learn(const char *name)
{
	for (unsigned i = 0; i < prompt.names_count; i++)
		if (strcmp(prompt.names[i], name) == 0)
			return;
	if (prompt.names_count < NAMES_MAX) {
		prompt.names[prompt.names_count] = strdup(name);
		prompt.names_count += prompt.names[prompt.names_count] != NULL;
	}
}

static void learn_columns(sqlite3 *db, const char *table)
{
	sqlite3_stmt *stmt = NULL;

	if (sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_xinfo(?)", -1, &stmt, NULL) ==
	    SQLITE_OK) {
		sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
		while (sqlite3_step(stmt) == SQLITE_ROW)
			learn((const char *)sqlite3_column_text(stmt, 0));
	}
	sqlite3_finalize(stmt);
}

static void learn_all(sqlite3 *db)
{
	const char *name;

	for (unsigned i = 0; (name = ky_sql_table_name(i)); i++) {
		learn(name);
		learn_columns(db, name);
	}
	for (unsigned i = 0; (name = ky_sql_function_name(i)); i++)
		learn(name);
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		learn(keywords[i]);
}

/* readline calls it with 0 first and frees what it returns. */
static char *next_name(const char *text, int again)
{
	static unsigned at;
	const size_t bytes = strlen(text);

	if (!again)
		at = 0;
	while (at < prompt.names_count) {
		const char *name = prompt.names[at++];
		if (sqlite3_strnicmp(name, text, (int)bytes) == 0)
			return strdup(name);
	}
	return NULL;
}

static char **complete(const char *text, int begin, int end)
{
	(void)begin, (void)end;
	rl_attempted_completion_over = 1; /* never names of files */
	return rl_completion_matches(text, next_name);
}

/* ---- the history ---- */

static bool make_folder(char *path)
{
	for (char *at = path + 1; *at; at++)
		if (*at == '/') {
			*at = '\0';
			const int error = mkdir(path, 0700) ? errno : 0;
			*at = '/';
			if (error && error != EEXIST)
				return false;
		}
	return true;
}

static void open_history(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	const size_t room = sizeof(prompt.history);
	int bytes = 0;

	if (state && state[0] == '/')
		bytes = snprintf(prompt.history, room, "%s/kymo/query_history", state);
	else if (home && home[0] == '/')
		bytes = snprintf(prompt.history, room, "%s/.local/state/kymo/query_history", home);
	if (bytes <= 0 || bytes >= (int)room || !make_folder(prompt.history)) {
		prompt.history[0] = '\0';
		return;
	}
	read_history(prompt.history);
	stifle_history(HISTORY_MAX);
}

/* ---- lines ---- */

static void on_interrupt(int number)
{
	(void)number;
	prompt.interrupted = 1;
}

/* readline calls it with a whole line, or NULL at the end of the input. */
static void take_line(char *line)
{
	rl_callback_handler_remove();
	prompt.line = line;
	prompt.taken = true;
}

/*
 * readline() itself waits for a key after a signal and loses the signal: so this function waits, and readline only
 * sees what was typed. Its handlers stay while it waits, because they restore the terminal when the program is
 * stopped or ended; a signal that comes just before the wait is seen when the wait times out.
 */
static char *read_line(const char *before)
{
	prompt.taken = false;
	prompt.line = NULL;
	rl_callback_handler_install(before, take_line);
	while (!prompt.taken) {
		struct pollfd input = {.fd = fileno(rl_instream ? rl_instream : stdin),
				       .events = POLLIN};
		const int ready = poll(&input, 1, SIGNAL_MS);
		const bool failed = ready < 0 && errno != EINTR;
		rl_check_signals();
		if (prompt.interrupted || failed) {
			rl_callback_handler_remove();
			return NULL;
		}
		if (ready > 0)
			rl_callback_read_char();
	}
	return prompt.line;
}

void ky_query_prompt_open(struct sqlite3 *db)
{
	const struct sigaction action = {.sa_handler = on_interrupt};

	sigaction(SIGINT, &action, &prompt.before);
	rl_readline_name = "kymo";
	rl_variable_bind("completion-ignore-case", "on");
	rl_attempted_completion_function = complete;
	rl_persistent_signal_handlers = 1;
	/* A name ends at characters that cannot be in it. */
	rl_completer_word_break_characters = (char *)(uintptr_t) " \t\n\"'`(),;=<>+-*/|&!.";
	using_history();
	open_history();
	learn_all(db);
}

bool ky_query_prompt_interrupted(void)
{
	const bool interrupted = prompt.interrupted != 0;

	prompt.interrupted = 0;
	return interrupted;
}

static bool append(char **text, const char *line)
{
	char *joined = NULL;
	const int bytes =
		*text ? asprintf(&joined, "%s\n%s", *text, line) : asprintf(&joined, "%s", line);
	if (bytes < 0)
		return false;
	free(*text);
	*text = joined;
	return true;
}

static void remember(const char *text)
{
	char *line = strdup(text);

	for (char *at = line; at && *at; at++)
		if (*at == '\n')
			*at = ' ';
	if (line)
		add_history(line);
	free(line);
}

char *ky_query_prompt_next(bool *end)
{
	char *text = NULL;

	*end = false;
	do {
		char *line = read_line(text ? " ...> " : "kymo> ");
		const bool interrupted = ky_query_prompt_interrupted();
		if (interrupted || !line || !append(&text, line)) {
			*end = !line && !interrupted;
			putchar('\n');
			free(line);
			free(text);
			return NULL;
		}
		free(line);
	} while (text[0] && text[0] != '.' && !sqlite3_complete(text));
	if (text[0])
		remember(text);
	return text;
}

void ky_query_prompt_close(void)
{
	if (prompt.history[0])
		write_history(prompt.history);
	for (unsigned i = 0; i < prompt.names_count; i++)
		free(prompt.names[i]);
	prompt.names_count = 0;
	sigaction(SIGINT, &prompt.before, NULL);
}
