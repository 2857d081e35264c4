/* SPDX-License-Identifier: MIT */
/*
 * cli_progress.c: the progress line, and Ctrl-C while there is work.
 * The line is on standard error if that is a terminal. It appears after a second, is written at most ten times a
 * second and disappears when the work ends. The first Ctrl-C asks the work to stop at its next ky_cli_progress(); a
 * second one ends kymo at once, in case the work is stuck.
 */
#include "base/clock.h"
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

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

static unsigned error_columns(void)
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
	const unsigned columns = error_columns();
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
