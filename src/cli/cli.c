/* SPDX-License-Identifier: MIT */
/* cli.c: messages, progress, loading a trace, the last flush of standard output. */
#include "cli/cli.h"

#include "base/clock.h"
#include "capture/signals.h"
#include "formats/load.h"
#include "process/proc.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- the progress line, and Ctrl-C while there is work ---- */

/*
 * The line is on standard error if that is a terminal. It appears after a second, is written at most ten times a second and
 * disappears when the work ends. The first Ctrl-C asks the work to stop at its next ky_cli_progress(); a second one ends kymo
 * at once, in case the work is stuck.
 */

#define SHOW_AFTER_NS 1000000000
#define SHOW_EVERY_NS 100000000
#define ERASE "\r\033[K"

static volatile sig_atomic_t asked_to_stop;

static struct {
	bool working;
	bool shown;
	bool stopped; /* the work must stop */
	bool terminal;
	int64_t begin_ns;
	int64_t stage_ns; /* when this stage began */
	int64_t next_ns;
	const char *stage;
	struct sigaction before;
} progress;

static void on_interrupt(int signal_number)
{
	(void)signal_number;
	asked_to_stop = 1;
}

static void begin_work(int64_t now)
{
	/* Without SA_RESTART: a read that waits for input returns. */
	struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
	progress.working = true;
	progress.terminal = isatty(STDERR_FILENO) == 1;
	progress.begin_ns = progress.stage_ns = now;
	progress.next_ns = now + SHOW_AFTER_NS;
	progress.stage = NULL;
	sigaction(SIGINT, NULL, &progress.before);
	/* Respect SIGINT that was ignored when kymo started (nohup, a background job). */
	if (progress.before.sa_handler != SIG_IGN)
		sigaction(SIGINT, &action, NULL);
}

unsigned ky_cli_error_width(void)
{
	struct winsize size;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
		return size.ws_col;
	return 80;
}

#define BAR 20

static void draw(const char *stage, uint64_t done, uint64_t all, int64_t now)
{
	char line[160], time[KY_QUANTITY_BYTES];
	const double part = all ? (double)(done < all ? done : all) / (double)all : 0;
	if (all) {
		char bar[BAR + 1];
		const unsigned full = (unsigned)(part * BAR);
		memset(bar, '.', BAR);
		memset(bar, '#', full);
		bar[BAR] = 0;
		snprintf(line, sizeof(line), "%s [%s] %3.0f %%", stage, bar, part * 100);
	} else {
		snprintf(line, sizeof(line), "%s %s", stage,
			 ky_quantity_duration(time, now - progress.begin_ns));
	}
	const int64_t spent = now - progress.stage_ns;
	const double left = part > 0 ? (double)spent * (1 - part) / part / 1e9 : 0;
	if (part > 0.05 && left >= 1 && spent > SHOW_AFTER_NS) {
		const size_t used = strlen(line);
		snprintf(line + used, sizeof(line) - used, ", %.0f s left", left);
	}
	const unsigned columns = ky_cli_error_width();
	fprintf(stderr, ERASE "%.*s", (int)(columns > 1 ? columns - 1 : 1), line);
	fflush(stderr);
	progress.shown = true;
}

int ky_cli_progress(const char *stage, uint64_t done, uint64_t all)
{
	const int64_t now = ky_clock_monotonic();
	if (!progress.working)
		begin_work(now);
	if (asked_to_stop) {
		progress.stopped = true;
		return -EINTR;
	}
	if (!progress.stage || strcmp(stage, progress.stage) != 0) {
		progress.stage = stage;
		progress.stage_ns = now;
	}
	if (progress.terminal && now >= progress.next_ns) {
		draw(stage, done, all, now);
		progress.next_ns = now + SHOW_EVERY_NS;
	}
	return 0;
}

void ky_cli_progress_end(void)
{
	if (progress.shown) {
		fputs(ERASE, stderr);
		fflush(stderr);
	}
	progress.shown = false;
	if (!progress.working)
		return;
	progress.working = false;
	sigaction(SIGINT, &progress.before, NULL);
	if (asked_to_stop && !progress.stopped) {
		asked_to_stop = 0;
		raise(SIGINT);
	}
}

bool ky_cli_interrupted(void)
{
	if (!progress.stopped)
		return false;
	progress.stopped = false;
	asked_to_stop = 0;
	ky_cli_error("interrupted, nothing written");
	return true;
}

/* ---- kymo as another process ---- */

static bool is_same_program(pid_t pid)
{
	char path[64];
	struct stat own, other;
	snprintf(path, sizeof(path), "/proc/%ld/exe", (long)pid);
	return stat("/proc/self/exe", &own) == 0 && stat(path, &other) == 0 &&
	       own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

static bool blocks_snapshot(pid_t pid)
{
	struct ky_proc_status status;
	return ky_proc_status(pid, 0, &status) == 0 &&
	       (status.blocked >> (KY_SIGNAL_SNAPSHOT - 1) & 1);
}

bool ky_cli_captures(pid_t pid)
{
	return is_same_program(pid) && blocks_snapshot(pid);
}

/* ---- messages and loading ---- */

static const struct ky_verb *current;

void ky_cli_begin(const struct ky_verb *verb)
{
	current = verb;
}

const struct ky_verb *ky_cli_verb(void)
{
	return current;
}

static void print_message(const char *format, va_list args)
{
	char text[1024];
	vsnprintf(text, sizeof(text), format, args);
	ky_cli_progress_end();
	fputs("kymo", stderr);
	if (current)
		fprintf(stderr, " %s", current->name);
	fputs(": ", stderr);
	ky_cli_text(stderr, text, strlen(text));
	fputc('\n', stderr);
}

int ky_cli_error(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	print_message(format, args);
	va_end(args);
	return KY_EXIT_FAILED;
}

int ky_cli_usage(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	print_message(format, args);
	va_end(args);
	if (current)
		fprintf(stderr, "'kymo %s --help' shows the usage\n", current->name);
	else
		fputs("'kymo --help' shows the usage\n", stderr);
	return KY_EXIT_USAGE;
}

int ky_cli_end(int code)
{
	errno = 0;
	const bool failed = ferror(stdout) != 0;
	if (fflush(stdout) == 0 && !failed)
		return code;
	int cause = errno;
	/* The write that failed was an earlier one; some files report the cause again. */
	if (!cause && write(STDOUT_FILENO, "", 0) < 0)
		cause = errno;
	struct pollfd reader = {.fd = STDOUT_FILENO, .events = POLLOUT};
	if (!cause && poll(&reader, 1, 0) == 1 && reader.revents & POLLERR)
		cause = EPIPE; /* a pipe without a reader */
	if (cause == EPIPE)
		return code;
	ky_cli_error("cannot write to standard output: %s",
		     cause ? strerror(cause) : "a write failed; is the disk full?");
	if (current && current->judges)
		return KY_EXIT_TROUBLE;
	return code == KY_EXIT_DONE ? KY_EXIT_FAILED : code;
}

int ky_cli_on_progress(void *context, const char *stage, uint64_t done, uint64_t all)
{
	(void)context;
	return ky_cli_progress(stage, done, all);
}

int ky_cli_on_stage(void *stage, uint64_t done, uint64_t all)
{
	return ky_cli_progress(stage, done, all);
}

/* Report in one line what is wrong with the input. */
static void report_problems(const struct ky_trace *trace, const char *path)
{
	const struct ky_problems *const problems = &trace->problems;
	uint64_t number = 0;
	uint32_t first = KY_NONE;
	for (uint32_t i = 0; i < problems->rows.count; i++) {
		if (problems->severity[i] == KY_INFO)
			continue;
		number += problems->number[i];
		if (first == KY_NONE || problems->first_at[i] < problems->first_at[first])
			first = i;
	}
	if (first == KY_NONE)
		return;
	char place[48] = "", count[KY_QUANTITY_BYTES];
	if (problems->first_at[first] != KY_NO_PLACE)
		snprintf(place, sizeof(place), " at byte %" PRIu64, problems->first_at[first]);
	const char *const name = ky_text_of(trace, problems->name[first]);
	const char *const text = ky_text_of(trace, problems->first[first]);
	ky_cli_error("%s: %s %s with the input, the first%s: %s; 'kymo validate' lists them", path,
		     ky_quantity_count(count, number), number == 1 ? "problem" : "problems", place,
		     text   ? text
		     : name ? name
			    : "not known");
}

static void report_losses(const struct ky_trace *trace, const char *path)
{
	char count[KY_QUANTITY_BYTES];
	if (trace->lost)
		ky_cli_error("%s: %s events were lost before they reached the file", path,
			     ky_quantity_count(count, trace->lost));
}

struct ky_trace *ky_cli_load_with(const char *path, const struct ky_cli_load *how)
{
	const struct ky_load_options options = {.size = sizeof(options),
						.format = how->format,
						.progress = how->progress ? how->progress
									  : ky_cli_on_progress,
						.context = how->context};
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_trace *trace = NULL;
	ky_cli_progress("opening", 0, 0);
	const int error = ky_load(&trace, path, &options, message);
	/* A read that a signal interrupted: no progress call has seen it yet. */
	if (error == -EINTR)
		ky_cli_progress("opening", 0, 0);
	ky_cli_progress_end();
	if (error) {
		ky_trace_close(&trace);
		if (!how->mute && error != -ECANCELED && !ky_cli_interrupted())
			ky_cli_error("%s", message[0] ? message : strerror(-error));
		return NULL;
	}
	if (!how->quiet) {
		report_losses(trace, path);
		report_problems(trace, path);
	}
	return trace;
}

struct ky_trace *ky_cli_load(const char *path, const char *format, bool quiet)
{
	return ky_cli_load_with(path, &(struct ky_cli_load){.format = format, .quiet = quiet});
}
