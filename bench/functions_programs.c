/* SPDX-License-Identifier: MIT */
/*
 * functions_programs.c: whole programs with traced functions: a call beside uftrace on the same program, how long redis (4,000
 * functions) and node (75,000) are stopped for the jumps, and how much slower sqlite3 and redis become.
 *
 * Untraced and traced runs take turns; the shortest time counts. Traced is `kymo run --functions --trigger exit`: the rings
 * overwrite, and the last ten milliseconds are kept.
 *
 * A note names the programs that are not installed; they are not measured.
 */
#include "bench.h"
#include "child.h"
#include "repeat.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURNS 5
#define UFTRACE_TIMES 5.0 /* slower than kymo, at least */
#define STOPS 3
#define REQUESTS "200000"
#define REQUESTS_QUICK "100"

extern char **environ;

struct here {
	const struct settings *settings;
	struct report *report;
	char folder[PATH_MAX]; /* of this program */
	char kymo[PATH_MAX + 16];
	char file[PATH_MAX + 16];
	char socket[PATH_MAX + 16];
	char record[PATH_MAX + 16]; /* uftrace's directory */
};

static int turns(const struct here *here)
{
	return here->settings->quick ? 1 : TURNS;
}

static bool installed(const char *program)
{
	char command[128];
	snprintf(command, sizeof(command), "command -v %s", program);
	return child_run((const char *const[]){"sh", "-c", command, NULL}, NULL, 0);
}

/* Return the number of "key": in JSON, or NAN. */
static double json_number(const char *json, const char *key)
{
	char quoted[64];
	snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	const char *const found = strstr(json, quoted);
	return found ? strtod(found + strlen(quoted), NULL) : NAN;
}

/* ---- a call, beside uftrace ---- */

static const struct report_column call_columns[] = {
	{"alone_ns", "alone, ns", 1},
	{"kymo_ns", "kymo, ns", 1},
	{"uftrace_ns", "uftrace, ns", 1},
	{"times", "added, uftrace / kymo", 1},
	{NULL, NULL, 0},
};

/* Run the target with this command; keep the shortest time that it prints. */
static void run_calls(const struct here *here, const char *const *before, const char *target,
		      double *shortest_ns)
{
	const char *argv[24];
	char output[64] = "";
	size_t count = 0;
	double ns;
	while (before && before[count]) {
		argv[count] = before[count];
		count++;
	}
	argv[count++] = target;
	argv[count++] = here->settings->quick ? "2" : "300";
	argv[count++] = here->settings->quick ? "100" : "10000";
	argv[count] = NULL;
	if (child_run(argv, output, sizeof(output)) && sscanf(output, "%lf", &ns) == 1)
		*shortest_ns = fmin(ns, *shortest_ns);
}

static void measure_calls(const struct here *here, const char *label, const char *program)
{
	char target[PATH_MAX + 64];
	double alone = NAN, kymo = NAN, uftrace = NAN;
	const char *const by_kymo[] = {here->kymo, "run",      "--quiet",   "--functions",
				       "--hot",    "0",        "--trigger", "exit",
				       "-o",       here->file, "--",        NULL};
	const char *const by_uftrace[] = {"uftrace",      "record", "-P",         ".",
					  "--no-libcall", "-d",     here->record, NULL};
	const char *const clean[] = {"rm", "-rf", here->record, NULL};
	snprintf(target, sizeof(target), "%s/%s", here->folder, program);
	for (int turn = 0; turn < turns(here); turn++) {
		run_calls(here, NULL, target, &alone);
		run_calls(here, by_kymo, target, &kymo);
		run_calls(here, by_uftrace, target, &uftrace);
		child_run(clean, NULL, 0);
	}
	unlink(here->file);
	/* A tracer that cannot patch the function runs it untraced. */
	if (uftrace < alone + 20)
		uftrace = NAN;
	const double times = (uftrace - alone) / (kymo - alone);
	report_row(here->report, label, (double[]){alone, kymo, uftrace, times});
	if (!isfinite(kymo))
		report_note(here->report, "%s: kymo could not trace it here", program);
	if (!isfinite(uftrace))
		report_note(here->report, "%s: not patched by uftrace, or it is not installed",
			    program);
	else
		report_target(here->report, 1 / times, 1 / UFTRACE_TIMES, "x",
			      "what tracing adds to a call, as a share of uftrace's");
}

static void measure_beside_uftrace(const struct here *here)
{
	report_begin(here->report, "functions_calls", "a call of a traced function, beside uftrace",
		     call_columns);
	measure_calls(here, "compiled as any program", "functions_target");
	measure_calls(here, "-fpatchable-function-entry=5", "functions_target_nops");
	report_note(here->report, "kymo run --functions --trigger exit; uftrace record -P . "
				  "--no-libcall; shortest of many short loops");
	report_end(here->report);
}

/* ---- stops ---- */

static const struct report_column stop_columns[] = {
	{"functions", "functions", 0},         {"patched", "patched", 0},
	{"analysed_ms", "analysed, ms", 1},    {"stopped_ms", "stopped to patch, ms", 2},
	{"unstopped_ms", "to unpatch, ms", 2}, {NULL, NULL, 0},
};

/* Start it in the background, without output; return -1 on failure. */
static pid_t begin(const char *const *argv)
{
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	if (posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(const void *)argv,
			 environ) != 0)
		pid = -1;
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

static void end(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Attach several times for a moment; the shortest stops count. */
static void measure_stops(const struct here *here, const char *label, pid_t pid,
			  const char *functions, double at_most_ms)
{
	char number[16], output[16384] = "";
	double stopped = NAN, unstopped = NAN, analysed = NAN;
	const char *facts = NULL;
	const char *const argv[] = {here->kymo,   "attach",  "--json", "-p",
				    number,       functions, "-o",     here->file,
				    "--duration", "300ms",   NULL};
	snprintf(number, sizeof(number), "%d", (int)pid);
	for (int i = 0; pid > 0 && i < (here->settings->quick ? 1 : STOPS); i++) {
		facts = child_run(argv, output, sizeof(output)) ? strstr(output, "\"modules\"")
								: NULL;
		if (!facts)
			break;
		analysed = fmin(json_number(facts, "analysed_ns") / 1e6, analysed);
		stopped = fmin(json_number(facts, "stopped_ns") / 1e6, stopped);
		unstopped = fmin(json_number(facts, "unstopped_ns") / 1e6, unstopped);
	}
	unlink(here->file);
	if (!facts) {
		report_note(here->report, "%s: not installed, or not to be attached to here",
			    label);
		return;
	}
	report_row(here->report, label,
		   (double[]){json_number(facts, "functions"), json_number(facts, "patched"),
			      analysed, stopped, unstopped});
	if (at_most_ms > 0)
		report_target(here->report, fmax(stopped, unstopped), at_most_ms, "ms",
			      "%s is stopped", label);
}

/* Put the command that traces the rest; return its number of words. */
static size_t add_kymo_words(const struct here *here, const char **argv)
{
	const char *const words[] = {here->kymo, "run", "--quiet",  "--functions", "--trigger",
				     "exit",     "-o",  here->file, "--"};
	memcpy(argv, words, sizeof(words));
	return sizeof(words) / sizeof(words[0]);
}

static pid_t begin_redis(const struct here *here, bool is_traced)
{
	const char *argv[24];
	const char *const words[] = {"redis-server",        "--port", "0", "--unixsocket",
				     here->socket,          "--save", "",  "--dir",
				     here->settings->files, NULL};
	const char *const ping[] = {"redis-cli", "-s", here->socket, "ping", NULL};
	memcpy(argv + (is_traced ? add_kymo_words(here, argv) : 0), words, sizeof(words));
	const pid_t pid = installed("redis-server") && installed("redis-cli") ? begin(argv) : -1;
	for (int i = 0; pid > 0 && i < 1000 && !child_run(ping, NULL, 0); i++)
		usleep(5000);
	return pid;
}

/* Node has started when its script has made this file. */
static pid_t begin_node(const struct here *here)
{
	char script[2 * PATH_MAX], sign[PATH_MAX + 16];
	const char *const argv[] = {"node", "-e", script, NULL};
	snprintf(sign, sizeof(sign), "%s/node", here->settings->files);
	snprintf(script, sizeof(script),
		 "require('fs').writeFileSync('%s', ''); setInterval(() => {}, 100)", sign);
	const pid_t pid = installed("node") ? begin(argv) : -1;
	for (int i = 0; pid > 0 && i < 1000 && access(sign, F_OK) != 0; i++)
		usleep(5000);
	return pid;
}

static void measure_all_stops(const struct here *here)
{
	report_begin(here->report, "functions_stops", "how long programs stand still for the jumps",
		     stop_columns);
	pid_t pid = begin_redis(here, false);
	/* Debian's redis-server is a link to a program of another name. */
	measure_stops(here, "redis-server", pid, "--functions=module:redis-*", 5);
	measure_stops(here, "with its libraries", pid, "--functions", 0);
	end(pid);
	/* Reading node's functions for the first time takes seconds. */
	if (!here->settings->quick) {
		pid = begin_node(here);
		measure_stops(here, "node", pid, "--functions=module:node", 50);
		end(pid);
	}
	report_note(here->report, "kymo attach --functions; shortest of %d", STOPS);
	report_end(here->report);
}

/* ---- whole programs ---- */

static const struct report_column whole_columns[] = {
	{"alone", "alone", 2},
	{"traced", "traced", 2},
	{"times", "times slower", 2},
	{NULL, NULL, 0},
};

/* Prints the time before and after: finding the functions is not part of it. */
#define SAY_TIME "select 't', (julianday('now') - 2440587.5) * 86400;"
static const char questions[] =
	SAY_TIME "create table t(a integer primary key, b text, c real);"
		 "with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000) "
		 "insert into t select i, printf('%06d', i * 7919 % 100003), i / 7.0 from n;"
		 "create index t_b on t(b);"
		 "select count(*), sum(c) from t where b like '%7%';"
		 "select substr(b, 1, 2), count(*), avg(c) from t group by 1 order by 3 desc;"
		 "select count(*) from t x join t y on y.b = printf('%06d', x.a) where x.a % 10 = "
		 "3;" SAY_TIME;

/* Return the time between the first and the last time that it prints. */
static double seconds_of(const char *const *argv)
{
	char output[16384] = "";
	if (!child_run(argv, output, sizeof(output)))
		return NAN;
	const char *const first = strstr(output, "t|");
	const char *last = first;
	for (const char *next = first; next; next = strstr(next + 1, "\nt|"))
		last = next;
	return first && last != first ? strtod(last + 3, NULL) - strtod(first + 2, NULL) : NAN;
}

static void measure_sqlite(const struct here *here)
{
	double alone = NAN, traced = NAN;
	const char *argv[16];
	if (!installed("sqlite3")) {
		report_note(here->report, "sqlite3 is not installed: not measured");
		return;
	}
	for (int turn = 0; turn < turns(here); turn++) {
		const char *const words[] = {
			"sqlite3",
			":memory:", here->settings->quick ? SAY_TIME SAY_TIME : questions, NULL};
		alone = fmin(seconds_of(words), alone);
		const size_t count = add_kymo_words(here, argv);
		memcpy(argv + count, words, sizeof(words));
		traced = fmin(seconds_of(argv), traced);
	}
	unlink(here->file);
	report_row(here->report, "sqlite3, seconds", (double[]){alone, traced, traced / alone});
}

/* Thousands of requests per second, set and get. */
static double requests(const struct here *here)
{
	char output[1024] = "";
	const char *const argv[] = {"redis-benchmark",
				    "-s",
				    here->socket,
				    "-n",
				    here->settings->quick ? REQUESTS_QUICK : REQUESTS,
				    "-c",
				    "10",
				    "-P",
				    "8",
				    "--csv",
				    "-t",
				    "get",
				    NULL};
	if (!child_run(argv, output, sizeof(output)))
		return NAN;
	const char *const row = strstr(output, "\"GET\",\"");
	return row ? strtod(row + strlen("\"GET\",\""), NULL) / 1e3 : NAN;
}

/* Each run has its own server, untraced or traced from its first function. */
static double requests_served(const struct here *here, bool is_traced)
{
	const char *const stop[] = {"redis-cli", "-s", here->socket, "shutdown", "nosave", NULL};
	const pid_t pid = begin_redis(here, is_traced);
	const double served = requests(here);
	child_run(stop, NULL, 0);
	if (is_traced)
		while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	else
		end(pid);
	unlink(here->file);
	return served;
}

static void measure_redis(const struct here *here)
{
	double alone = NAN, traced = NAN;
	if (!installed("redis-server") || !installed("redis-benchmark")) {
		report_note(here->report, "redis is not installed: not measured");
		return;
	}
	for (int turn = 0; turn < turns(here); turn++) {
		alone = fmax(requests_served(here, false), alone);
		traced = fmax(requests_served(here, true), traced);
	}
	report_row(here->report, "redis, 1000 requests/s",
		   (double[]){alone, traced, alone / traced});
}

static void measure_whole(const struct here *here)
{
	report_begin(here->report, "functions_whole", "whole programs, every function traced",
		     whole_columns);
	measure_sqlite(here);
	measure_redis(here);
	report_note(here->report,
		    "kymo run --functions --trigger exit; redis-benchmark -c 10 -P 8 -t get; best "
		    "of %d",
		    TURNS);
	report_end(here->report);
}

void functions_programs_run(const struct settings *settings, struct report *report)
{
	struct here here = {.settings = settings, .report = report};
	snprintf(here.folder, sizeof(here.folder), "%s", settings->self);
	char *const slash = strrchr(here.folder, '/');
	if (slash)
		*slash = '\0';
	snprintf(here.kymo, sizeof(here.kymo), "%s/../src/kymo", here.folder);
	snprintf(here.file, sizeof(here.file), "%s/functions.kymo", settings->files);
	snprintf(here.socket, sizeof(here.socket), "%s/redis", settings->files);
	snprintf(here.record, sizeof(here.record), "%s/uftrace", settings->files);
	if (access(here.kymo, X_OK) != 0) {
		report_begin(report, "functions_programs", "programs whose functions are traced",
			     call_columns);
		report_note(report, "not measured: the tool is not built");
		report_end(report);
		return;
	}
	measure_beside_uftrace(&here);
	measure_all_stops(&here);
	measure_whole(&here);
}
