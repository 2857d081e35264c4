/* SPDX-License-Identifier: MIT */
/* capture_progress.c: the line while a capture runs; see capture_progress.h. */
#include "cli/capture_progress.h"

#include "cli/cli.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SHOW_AFTER_NS UINT64_C(1000000000)
#define SHOW_EVERY_NS UINT64_C(250000000)
#define ERASE "\r\033[K"

static unsigned columns(void)
{
	struct winsize size;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
		return size.ws_col;
	return 80;
}

/* Since the last line, so that a burst is seen. */
static void measure(struct ky_capture_progress *progress, const struct ky_capture_facts *facts)
{
	const uint64_t spent = facts->elapsed_ns - progress->last_ns;
	if (facts->events >= progress->last_events && spent)
		progress->rate =
			(double)(facts->events - progress->last_events) / ((double)spent / 1e9);
	const uint64_t calls = facts->functions.patch.calls;
	if (calls >= progress->last_calls && spent)
		progress->calls = (double)(calls - progress->last_calls) / ((double)spent / 1e9);
	progress->last_calls = calls;
	progress->last_ns = facts->elapsed_ns;
	progress->last_events = facts->events;
}

static void draw(const struct ky_capture_progress *progress, const struct ky_capture_facts *facts)
{
	char line[256], time[KY_QUANTITY_BYTES], rate[KY_QUANTITY_BYTES], size[KY_QUANTITY_BYTES],
		lost[KY_QUANTITY_BYTES], events[64], shots[64], calls[64] = "";
	const uint64_t losses = facts->events_lost + facts->kernel_lost + facts->samples_lost;
	snprintf(events, sizeof(events), "%s events/s  ",
		 ky_quantity_count(rate, (uint64_t)progress->rate));
	if (facts->functions_on && facts->functions.patch.functions)
		snprintf(calls, sizeof(calls), "%s calls/s  ",
			 ky_quantity_count(rate, (uint64_t)progress->calls));
	snprintf(shots, sizeof(shots), "%u snapshot%s  ", facts->snapshots,
		 facts->snapshots == 1 ? "" : "s");
	snprintf(line, sizeof(line), "%s %s  %u process%s  %s%s%s  %s%s  Ctrl-C ends it",
		 progress->flight ? "waiting" : "recording",
		 ky_quantity_duration(time, (int64_t)facts->elapsed_ns), facts->processes,
		 facts->processes == 1 ? "" : "es", progress->flight ? shots : "",
		 calls[0]           ? calls
		 : progress->flight ? ""
				    : events,
		 ky_quantity_bytes(size, facts->bytes),
		 losses ? ky_quantity_count(lost, losses) : "nothing", " lost");
	const unsigned room = columns();
	fprintf(stderr, ERASE "%.*s",
		(int)ky_cli_text_fit(line, strlen(line), room > 1 ? room - 1 : 1), line);
	fflush(stderr);
}

int ky_capture_progress_show(void *context, const struct ky_capture_facts *facts)
{
	struct ky_capture_progress *const progress = context;
	if (!progress->wanted || facts->elapsed_ns < SHOW_AFTER_NS ||
	    facts->elapsed_ns < progress->next_ns)
		return 0;
	progress->next_ns = facts->elapsed_ns + SHOW_EVERY_NS;
	measure(progress, facts);
	draw(progress, facts);
	progress->shown = true;
	return 0;
}

void ky_capture_progress_clear(struct ky_capture_progress *progress)
{
	if (!progress->shown)
		return;
	progress->shown = false;
	fputs(ERASE, stderr);
	fflush(stderr);
}

void ky_capture_progress_note(void *context, const char *line)
{
	struct ky_capture_progress *const progress = context;
	ky_capture_progress_clear(progress);
	ky_cli_error("%s", line);
}
