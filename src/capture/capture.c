/* SPDX-License-Identifier: MIT */
/*
 * capture.c: a capture from its begin to its end; see capture.h.
 *
 *   open ─▶ start ─▶ ┌ poll ─ signals ─ round of all sources ─ snapshots ┐ ─▶ close ─▶ wait
 *                    └──────────────── until it stops ◀──────────────────┘
 *
 * It stops when the program or all processes have ended, when it was told to, when its time or its
 * file is full, when it has all snapshots that were asked for, or when nothing can be written any
 * more. A program that still runs then goes on by itself, and kymo ends with it.
 */
#include "capture/capture_parts.h"

#include "capture/fail.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PROGRESS_EVERY_NS UINT64_C(100000000)
#define FLUSH_EVERY_NS UINT64_C(500000000)

uint64_t ky_capture_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void ky_capture_note(struct ky_capture *capture, const char *format, ...)
{
	char line[KY_CAPTURE_MESSAGE_BYTES + 128];
	va_list list;
	va_start(list, format);
	vsnprintf(line, sizeof(line), format, list);
	va_end(list);
	if (capture->options->note)
		capture->options->note(capture->options->context, line);
	if (capture->bundle)
		ky_bundle_note(capture->bundle, line);
}

/* ---- when it is over ---- */

static bool has_ended(struct ky_capture *capture)
{
	const struct ky_capture_options *const o = capture->options;
	if (o->command)
		return ky_child_reap(&capture->child);
	return o->pids_count && ky_processes_count(capture->processes) == 0;
}

static void check_file(struct ky_capture *capture)
{
	const int error = capture->error ? capture->error : ky_bundle_error(capture->bundle);
	if (error || ky_bundle_is_full(capture->bundle))
		capture->stop = true;
}

static void tell_progress(struct ky_capture *capture, uint64_t now)
{
	if (now < capture->progress_ns)
		return;
	capture->progress_ns = now + PROGRESS_EVERY_NS;
	ky_capture_gather(capture);
	if (capture->options->progress &&
	    capture->options->progress(capture->options->context, capture->facts))
		capture->stop = true;
}

static void flush(struct ky_capture *capture, uint64_t now)
{
	if (now < capture->flush_ns)
		return;
	capture->flush_ns = now + FLUSH_EVERY_NS;
	ky_bundle_flush(capture->bundle);
}

static bool is_over(struct ky_capture *capture, uint64_t now)
{
	const uint64_t duration = capture->options->duration_ns;
	check_file(capture);
	return capture->stop || has_ended(capture) ||
	       (duration && now >= capture->begin_ns + duration);
}

/* ---- the loop ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* How long to sleep at most: rest_ns, or until something is due. */
static uint64_t time_to_sleep(const struct ky_capture *capture, uint64_t rest_ns)
{
	const uint64_t now = ky_capture_now();
	uint64_t until = earlier(now + rest_ns, capture->progress_ns);
	if (capture->options->duration_ns)
		until = earlier(until, capture->begin_ns + capture->options->duration_ns);
	if (capture->flight)
		until = earlier(until, ky_flight_due_ns(capture->flight));
	if (capture->probes)
		until = earlier(until, capture->probes_ns);
	return until > now ? until - now : 0;
}

static void sleep_until_news(struct ky_capture *capture, uint64_t rest_ns)
{
	struct pollfd fds[6];
	nfds_t count = 0;
	const uint64_t sleep_ns = time_to_sleep(capture, rest_ns);
	const struct timespec timeout = {.tv_sec = (time_t)(sleep_ns / 1000000000),
					 .tv_nsec = (long)(sleep_ns % 1000000000)};
	fds[count++].fd = capture->signals.fd;
	fds[count++].fd = ky_processes_fd(capture->processes);
	fds[count++].fd = capture->kernel ? ky_kernel_trace_fd(capture->kernel) : -1;
	fds[count++].fd = capture->samples ? ky_stack_samples_fd(capture->samples) : -1;
	fds[count++].fd = capture->probes ? ky_probes_fd(capture->probes) : -1;
	fds[count++].fd = capture->crash ? ky_crash_watch_fd(capture->crash) : -1;
	for (nfds_t i = 0; i < count; i++) {
		fds[i].events = POLLIN;
		fds[i].revents = 0;
	}
	if (ppoll(fds, count, &timeout, NULL) > 0 && (fds[2].revents || fds[3].revents))
		capture->kernel_ns = 0;
}

/*
 * A process that has no trace points, or none that ran, may still get some: but the user should
 * know.
 */
static void tell_of_silence(struct ky_capture *capture)
{
	const struct ky_capture_options *const o = capture->options;
	if (!o->pids_count || !o->drums || capture->facts->drums)
		return;
	ky_capture_note(capture, "%s no drum so far: no kymo in it, or no trace point ran yet; %s",
			o->pids_count == 1 ? "the process has" : "the processes have",
			capture->kernel || capture->samples || capture->probes || capture->crash
				? "the rest is recorded"
				: "waiting for one");
}

static void loop(struct ky_capture *capture)
{
	capture->begin_ns = capture->looked_ns = ky_capture_now();
	uint64_t rest_ns = ky_capture_round(capture, false);
	tell_of_silence(capture);
	while (!is_over(capture, ky_capture_now())) {
		sleep_until_news(capture, rest_ns);
		ky_capture_signals(capture);
		rest_ns = ky_capture_round(capture, false);
		const uint64_t now = ky_capture_now();
		ky_capture_probe(capture, now);
		ky_capture_snapshots(capture, now);
		flush(capture, now);
		tell_progress(capture, now);
	}
}

/* The capture is over, and the program is not: it goes on, and gets its signals. */
static void wait_for_program(struct ky_capture *capture)
{
	if (capture->child.running)
		ky_capture_note(capture, "%s; the program goes on",
				capture->error ? capture->message : "the capture is finished");
	while (!ky_child_reap(&capture->child)) {
		struct pollfd fd = {.fd = capture->signals.fd, .events = POLLIN};
		poll(&fd, 1, -1);
		ky_capture_signals(capture);
	}
}

int ky_capture(const struct ky_capture_options *options, struct ky_capture_facts *facts,
	       char message[KY_CAPTURE_MESSAGE_BYTES])
{
	struct ky_capture capture = {.options = options, .facts = facts, .message = message};
	*facts = (struct ky_capture_facts){.status = -1};
	message[0] = '\0';
	capture.error = ky_capture_open(&capture);
	if (!capture.error)
		capture.error = ky_capture_start(&capture);
	if (!capture.error)
		loop(&capture);
	/* Before another Ctrl-C may end kymo. */
	ky_capture_take_out_functions(&capture);
	if (capture.signals.fd >= 0 && !capture.child.running)
		ky_signals_let_interrupt(&capture.signals);
	ky_capture_close(&capture);
	if (facts->started) {
		wait_for_program(&capture);
		facts->status = capture.child.status;
	}
	ky_child_close(&capture.child);
	ky_signals_close(&capture.signals);
	if (capture.error && !message[0])
		ky_capture_fail(message, capture.error, "the capture failed: %s",
				strerror(-capture.error));
	return capture.error;
}
