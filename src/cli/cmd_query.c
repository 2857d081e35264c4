/* SPDX-License-Identifier: MIT */
/*
 * cmd_query.c: kymo query: runs SQL over a trace. Statements come from the command line, files, standard input or the
 * prompt (query_prompt.c); query_output.c prints the rows.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/nearest.h"
#include "cli/cli.h"
#include "cli/info.h"
#include "cli/query_output.h"
#include "query/sql.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX (64u << 20)

static const char no_memory[] = "out of memory: --memory says how much queries may take";

struct query {
	struct ky_sql *sql;
	enum ky_query_form form;
	bool terminal;       /* rows go to a terminal */
	bool interactive;    /* a person types, and sees how long it took */
	unsigned results;    /* statements that could return rows */
	unsigned documented; /* results in the document so far */
	bool document; /* the results are members of one object of JSON, with the input's faults */
};

/* ---- one statement ---- */

static int on_progress(void *context)
{
	const struct query *query = context;

	if (query->interactive && ky_query_prompt_interrupted())
		return 1;
	return ky_cli_progress("querying", 0, 0) != 0;
}

static void print_time(const struct query *query, int64_t began, bool has_rows, uint64_t rows)
{
	char took[KY_QUANTITY_BYTES];

	if (!query->interactive)
		return;
	ky_quantity_duration(took, ky_clock_monotonic() - began);
	if (has_rows)
		fprintf(stderr, "%" PRIu64 " %s, %s\n", rows, rows == 1 ? "row" : "rows", took);
	else
		fprintf(stderr, "%s\n", took);
}

static int step_all(struct query *query, sqlite3_stmt *stmt, struct ky_query_output *output)
{
	int step;

	while ((step = sqlite3_step(stmt)) == SQLITE_ROW) {
		if (query->terminal)
			ky_cli_progress_end();
		if (output && !ky_query_output_row(output))
			return SQLITE_NOMEM;
		if (ferror(stdout))
			return SQLITE_DONE; /* reported when the verb ends */
	}
	return step;
}

static int run_statement(struct query *query, sqlite3_stmt *stmt)
{
	const int64_t began = ky_clock_monotonic();
	struct ky_query_output *output = NULL;
	uint64_t rows = 0;
	const bool has_rows = sqlite3_column_count(stmt) > 0;

	if (has_rows) {
		if (query->results++ && query->form <= KY_QUERY_CSV)
			putchar('\n');
		output = ky_query_output_new(query->form, stmt, stdout);
		if (!output)
			return ky_cli_error("%s", no_memory);
		if (query->document && query->documented++)
			putchar(',');
	}
	const int step = step_all(query, stmt, output);
	ky_cli_progress_end();
	if (output)
		rows = ky_query_output_end(&output, step == SQLITE_DONE || query->document);
	fflush(stdout);
	if (step == SQLITE_DONE) {
		print_time(query, began, has_rows, rows);
		return KY_EXIT_DONE;
	}
	if (step == SQLITE_INTERRUPT && (query->interactive || ky_cli_interrupted()))
		fputs(query->interactive ? "interrupted\n" : "", stderr);
	else
		ky_cli_error("%s", step == SQLITE_NOMEM ? no_memory
							: sqlite3_errmsg(sqlite3_db_handle(stmt)));
	return KY_EXIT_FAILED;
}

/* Run the statement of a text at *at and move that behind it. from names the text in messages; NULL: the command line. */
static int run_next(struct query *query, const char *text, const char **at, const char *from)
{
	char message[KY_MESSAGE_BYTES];
	sqlite3_stmt *stmt;
	const int error = ky_sql_prepare(query->sql, text, at, &stmt, message);
	if (error)
		return ky_cli_error("%s%s%s", from ? from : "", from ? ": " : "",
				    error == -ENOMEM ? no_memory : message);
	const int code = stmt ? run_statement(query, stmt) : KY_EXIT_DONE;
	sqlite3_finalize(stmt);
	return code;
}

/* Run all statements of a text until one fails. */
static int run_text(struct query *query, const char *text)
{
	const char *at = text;
	int code = KY_EXIT_DONE;

	while (*at && code == KY_EXIT_DONE)
		code = run_next(query, text, &at, NULL);
	return code;
}

/* ---- commands ---- */

#define BLANKS " \t\r\n"

static const char prompt_help[] =
	"Statements end with ; and may be of several lines.\n"
	"  .tables          the tables\n"
	"  .schema [TABLE]  the columns of a table, or of all\n"
	"  .mode FORM       how rows are shown: table, csv, json or lines\n"
	"  .help            this\n"
	"  .quit            ends, as Ctrl-D does\n"
	"Tab completes names. Ctrl-C gives up a line, or a query that runs.\n";

/* Return SQLITE_ROW when there is such a table, SQLITE_DONE when there is none, or an error. */
static int find_table(struct query *query, const char *name)
{
	sqlite3_stmt *stmt = NULL;
	int result = sqlite3_prepare_v2(ky_sql_db(query->sql),
					"SELECT 1 FROM pragma_table_xinfo(?)", -1, &stmt, NULL);
	if (result == SQLITE_OK)
		result = sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
	if (result == SQLITE_OK)
		result = sqlite3_step(stmt);
	sqlite3_finalize(stmt);
	return result;
}

/* Report a table that does not exist, with names like it. */
static int no_table(const char *table)
{
	struct ky_nearest nearest = {0};
	char hint[KY_NEAREST_TEXT_BYTES + 16];
	const char *name;

	for (unsigned i = 0; (name = ky_sql_table_name(i)); i++)
		ky_nearest_note(&nearest, table, name);
	ky_nearest_hint(&nearest, "; .tables lists them", hint, sizeof(hint));
	ky_cli_error("there is no table '%s'%s", table, hint);
	return KY_EXIT_NOTHING;
}

static int run_made(struct query *query, char *sql)
{
	const int code = sql ? run_text(query, sql) : ky_cli_error("out of memory");
	sqlite3_free(sql);
	return code;
}

/* Return "('slice'),('thread')", to be freed with sqlite3_free(); NULL without memory. */
static char *table_values(void)
{
	sqlite3_str *const text = sqlite3_str_new(NULL);
	const char *name;

	for (unsigned i = 0; (name = ky_sql_table_name(i)); i++)
		sqlite3_str_appendf(text, "%s(%Q)", i ? "," : "", name);
	return sqlite3_str_finish(text);
}

/* Print the columns of a table, or of all. */
static int print_schema(struct query *query, const char *table)
{
	static const char one[] =
		"SELECT name AS \"column\", type, iif(hidden, 'hidden', '') AS note"
		" FROM pragma_table_xinfo(%Q)";
	static const char all[] =
		"SELECT t.column1 AS \"table\", c.name AS \"column\", c.type, iif(c.hidden, 'hidden', '') AS note"
		" FROM (VALUES %s) AS t, pragma_table_xinfo(t.column1) AS c";

	const int found = table ? find_table(query, table) : SQLITE_DONE;
	if (table && found == SQLITE_DONE)
		return no_table(table);
	if (table && found == SQLITE_ROW)
		return run_made(query, sqlite3_mprintf(one, table));
	if (table)
		return ky_cli_error("%s",
				    found == SQLITE_NOMEM ? no_memory : sqlite3_errstr(found));
	char *const values = table_values();
	const int code = run_made(query, values ? sqlite3_mprintf(all, values) : NULL);
	sqlite3_free(values);
	return code;
}

static int print_tables(struct query *query)
{
	const char *name;
	unsigned column = 0;

	if (query->form != KY_QUERY_TABLE) {
		char *const values = table_values();
		const int code =
			run_made(query, values ? sqlite3_mprintf("SELECT column1 AS name FROM "
								 "(VALUES %s)",
								 values)
					       : NULL);
		sqlite3_free(values);
		return code;
	}
	for (unsigned i = 0; (name = ky_sql_table_name(i)); i++) {
		const bool last = ++column % 3 == 0 || !ky_sql_table_name(i + 1);
		printf(last ? "%s\n" : "%-26s", name);
	}
	return KY_EXIT_DONE;
}

static int set_form(struct query *query, const char *name)
{
	static const char *const names[] = {"table", "csv", "json", "lines"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0) {
			query->form = (enum ky_query_form)i;
			return KY_EXIT_DONE;
		}
	ky_cli_error("%s is not a form of rows: use table, csv, json or lines", name);
	return KY_EXIT_USAGE;
}

/* Run a command, such as ".tables"; line is changed. Set *end to end. Return an enum ky_exit. */
static int run_command(struct query *query, char *line, bool *end)
{
	const char *command = strtok(line, " \t\r\n;");
	const char *argument = strtok(NULL, " \t\r\n;");

	*end = command && (strcmp(command, ".quit") == 0 || strcmp(command, ".exit") == 0);
	if (!command || *end)
		return KY_EXIT_DONE;
	if (strcmp(command, ".tables") == 0)
		return print_tables(query);
	if (strcmp(command, ".schema") == 0)
		return print_schema(query, argument);
	if (strcmp(command, ".mode") == 0 && argument && !query->document)
		return set_form(query, argument);
	if (strcmp(command, ".help") == 0)
		return fputs(prompt_help, stdout) < 0 ? KY_EXIT_FAILED : KY_EXIT_DONE;
	if (strcmp(command, ".mode") == 0 && query->document)
		ky_cli_error("--faults makes one object of JSON: leave out .mode or --faults");
	else if (strcmp(command, ".mode") == 0)
		ky_cli_error(".mode needs a form: use table, csv, json or lines");
	else
		ky_cli_error("there is no command %s; .help lists them", command);
	return KY_EXIT_USAGE;
}

/* Run the commands at the beginning of a text, each in a line of its own. Return what is behind them. */
static const char *run_commands(struct query *query, const char *text, int *code, bool *end)
{
	for (text += strspn(text, BLANKS); *text == '.' && *code == KY_EXIT_DONE && !*end;
	     text += strspn(text, BLANKS)) {
		const size_t bytes = strcspn(text, "\n");
		char *const line = strndup(text, bytes);
		*code = line ? run_command(query, line, end) : KY_EXIT_FAILED;
		free(line);
		text += bytes;
	}
	return text;
}

/* Run a text of statements, and of commands in lines of their own between them. */
static int run_input(struct query *query, const char *text, const char *from)
{
	int code = KY_EXIT_DONE;
	bool end = false;
	const char *at = run_commands(query, text, &code, &end);

	while (*at && code == KY_EXIT_DONE && !end) {
		code = run_next(query, text, &at, from);
		if (code == KY_EXIT_DONE)
			at = run_commands(query, at, &code, &end);
	}
	return code;
}

/* ---- files ---- */

static int run_file(struct query *query, const char *path)
{
	const bool standard = strcmp(path, "-") == 0;
	const int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	size_t bytes;
	char *text = fd < 0 ? NULL : ky_file_read_fd(fd, TEXT_MAX, &bytes);
	int code = KY_EXIT_FAILED;

	if (text)
		code = run_input(query, text, standard ? NULL : path);
	else
		ky_cli_error("cannot read %s: %s", standard ? "standard input" : path,
			     strerror(errno ? errno : EIO));
	free(text);
	if (fd >= 0 && !standard)
		close(fd);
	return code;
}

/* ---- the prompt ---- */

static int run_prompt(struct query *query)
{
	bool end = false;

	query->interactive = true;
	ky_query_prompt_open(ky_sql_db(query->sql));
	fputs("SQL over the trace; .help says what else there is\n", stderr);
	while (!end) {
		char *text = ky_query_prompt_next(&end);
		query->results = 0;
		if (text && text[0] == '.')
			(void)run_command(query, text, &end);
		else if (text)
			run_text(query, text);
		free(text);
	}
	ky_query_prompt_close();
	return KY_EXIT_DONE;
}

/* ---- the verb ---- */

#define FILES_MAX 64

struct wanted {
	enum ky_query_form form;
	const char *format;
	bool quiet;
	bool faults; /* of the input, before the rows of JSON */
	const char *files[FILES_MAX];
	unsigned files_count;
	uint64_t memory; /* of all queries; 0: the default */
};

static int run_all(struct query *query, const struct wanted *wanted, int argc, char **argv,
		   bool trace_is_input)
{
	int code = KY_EXIT_DONE;

	for (unsigned i = 0; i < wanted->files_count && code == KY_EXIT_DONE; i++)
		code = run_file(query, wanted->files[i]);
	for (int i = 0; i < argc && code == KY_EXIT_DONE; i++)
		code = run_input(query, argv[i], NULL);
	if (argc || wanted->files_count)
		return code;
	if (trace_is_input)
		return ky_cli_usage("the trace is standard input, so the SQL must be given");
	if (isatty(STDIN_FILENO) == 1)
		return run_prompt(query);
	return run_file(query, "-");
}

/*
 * Print what is wrong with the input. With --lines it is a line; with --json it opens the one object in which the results are,
 * which its caller closes.
 */
static void begin_document(const struct query *query, const struct ky_trace *trace)
{
	struct ky_json_out json = {.file = stdout, .lines = query->document ? 2 : 0};
	ky_json_out_begin(&json, NULL, '{');
	ky_info_json_faults(&json, trace);
	if (query->document)
		ky_json_out_raw(&json, "results", "[\n", 2);
	else
		ky_json_out_end(&json, '}');
}

static int query_trace(const char *path, const struct wanted *wanted, int argc, char **argv)
{
	struct query query = {.form = wanted->form,
			      .terminal = isatty(STDOUT_FILENO) == 1,
			      .document = wanted->faults && wanted->form == KY_QUERY_JSON};
	struct ky_trace *trace = ky_cli_load(path, wanted->format, wanted->quiet || wanted->faults);

	if (!trace)
		return KY_EXIT_FAILED;
	int code = KY_EXIT_FAILED;
	if (wanted->faults)
		begin_document(&query, trace);
	if (wanted->memory)
		ky_sql_memory(wanted->memory);
	if (ky_sql_open(&query.sql, trace)) {
		ky_cli_error("out of memory");
	} else {
		ky_sql_progress(query.sql, on_progress, &query);
		code = run_all(&query, wanted, argc, argv, strcmp(path, "-") == 0);
	}
	if (query.document)
		fputs("]}\n", stdout);
	ky_sql_close(&query.sql);
	ky_trace_close(&trace);
	return code;
}

static int take_file(void *context, const char *path)
{
	struct wanted *const wanted = context;
	if (wanted->files_count == FILES_MAX)
		return ky_cli_usage("more than %d files of SQL", FILES_MAX);
	wanted->files[wanted->files_count++] = path;
	return KY_EXIT_DONE;
}

/* --json --lines is lines in any order. */
static int take_json(void *context, const char *value)
{
	struct wanted *const wanted = context;
	(void)value;
	if (wanted->form != KY_QUERY_LINES)
		wanted->form = KY_QUERY_JSON;
	return 0;
}

/* A statement may begin with a comment: "-- x" is no option. A comment is nothing but to the options' reader. */
static char *behind_comments(char *word)
{
	while (strncmp(word, "--", 2) == 0 && isspace((unsigned char)word[2])) {
		char *const line = strchr(word, '\n');
		word = line ? line + 1 : word + strlen(word);
	}
	return word;
}

static int run(int argc, char **argv)
{
	struct wanted wanted = {.form = KY_QUERY_TABLE};
	for (int i = 1; i < argc; i++)
		argv[i] = behind_comments(argv[i]);
	const int wrong = ky_options_read(&wanted, argc, argv);
	if (wrong)
		return wrong;
	if (optind == argc)
		return ky_cli_usage("the trace is missing");
	if (wanted.faults && wanted.form != KY_QUERY_JSON && wanted.form != KY_QUERY_LINES)
		return ky_cli_usage("--faults needs --json or --lines");
	return query_trace(argv[optind], &wanted, argc - optind - 1, argv + optind + 1);
}

#define AT(type, field) KY_OPTION_AT(type, struct wanted, field)

static const struct ky_option options[] = {
	{"file", .kind = KY_OPTION_CALL, .take = take_file, .letter = 'f', .argument = "FILE",
	 .help = "run the statements of a file ('-' is standard input); may be given several times",
	 .more = "Files run before the statements of the command line."},
	{"csv", AT(SET, form), .least = KY_QUERY_CSV,
	 .help = "print rows as CSV with a header line",
	 .more = "NULL is nothing, the empty text is quoted. An empty line separates the results of several "
		 "statements."},
	{"json", .kind = KY_OPTION_CALL, .take = take_json,
	 .help = "print rows as a JSON array of objects",
	 .more = "An array for each statement that returns rows. A repeated column name gets a number behind it."},
	{"lines", AT(SET, form), .least = KY_QUERY_LINES,
	 .help = "print rows as JSON objects, one per line"},
	{"faults", AT(FLAG, faults),
	 .help = "with --json or --lines: print losses and problems of the input, too",
	 .more = "With `--json` the output is then one object: `lost`, `losses` and `problems` as in `kymo info --json`, and "
		 "`results`, an array of rows for each statement. With `--lines` an object with the first three is the first "
		 "line. Without this option the rows are all of the output, as other programs expect them; losses and problems "
		 "are then a line on standard error, and rows of the tables `loss` and `problem`."},
	{"memory", AT(SIZE, memory), .argument = "SIZE",
	 .help = "how much memory queries may take (default: three quarters of the machine's)",
	 .more = "A query that needs more fails: out of memory. The trace itself is not counted."},
	KY_CLI_INPUT_FORMAT(struct wanted, format),
	{"quiet", AT(FLAG, quiet), .letter = 'q', .help = "do not report problems of the input"},
	{0},
};

static const struct ky_section sections[] = {
	{"FILES",
	 "`$XDG_STATE_HOME/kymo/query_history`: the history of the prompt; by default in ~/.local/state."},
	{0},
};

const struct ky_verb ky_verb_query = {
	.name = "query",
	.summary = "run SQL over a trace",
	.usage = "[OPTIONS] TRACE [SQL...]",
	.about =
		"Run SQL over a trace, with tables and columns as Perfetto names them. Without SQL, kymo reads it from "
		"standard input; on a terminal it shows a prompt with history and completion.\n"
		"\n"
		"Tables: slice, thread, process, thread_track, process_track, counter, counter_track, args, flow, "
		"sched, thread_state, ftrace_event, perf_sample, stack_profile_frame, android_logs, stats, loss, "
		"problem and more: see docs/sql.md, or .tables. "
		"The commands .tables and .schema [TABLE] can be given instead of SQL.",
	.details =
		"At the prompt, Tab completes names, statements end with a semicolon, each query shows its time, and "
		"Ctrl-C cancels a line or a running query; `.help` lists the commands. docs/sql.md lists what "
		"differs from Perfetto.",
	.status =
		"0: all statements ran; 1: the trace could not be read, or a statement failed (those before it have "
		"printed their rows); 2: wrong usage; 3: `.schema` of a table that does not exist.",
	.examples =
		"kymo query app.json 'select name, count(*), sum(dur) from slice group by name'\n"
		"kymo query --csv app.pftrace 'select ts, dur, name from slice where dur > 1e6' > long.csv\n"
		"kymo query app.kymo .tables\n"
		"kymo query app.kymo '.schema slice'\n"
		"kymo query app.kymo -f report.sql\n"
		"kymo query app.kymo",
	.related = "report info",
	.options = (const struct ky_option_set[]){{options, 0}, {0}},
	.sections = sections,
	.run = run,
};
