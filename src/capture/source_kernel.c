/* SPDX-License-Identifier: MIT */
/* source_kernel.c: the kernel's events (kernel_trace.h) as a source of a capture. Children are followed by ftrace. */
#include "capture/kernel_trace.h"
#include "capture/source.h"

#include <string.h>

#define PERIOD_NS UINT64_C(100000000)

static void open_kernel(struct ky_source *source, pid_t program)
{
	struct ky_capture *const capture = source->capture;
	const struct ky_capture_options *const o = capture->options;
	char message[KY_CAPTURE_MESSAGE_BYTES] = "";
	struct ky_kernel_trace *kernel = NULL;
	if (!o->kernel_count)
		return;
	const bool all = o->scope == KY_PROCESSES_ALL;
	const struct ky_kernel_trace_options options = {
		.bundle = capture->bundle,
		.events = o->kernel,
		.events_count = o->kernel_count,
		.buffer_bytes = o->buffer_bytes,
		.flight = capture->flight != NULL,
		.before_ns = ky_source_reach_ns(o),
		.pids = all       ? NULL
			: program ? &program
				  : o->pids,
		.pids_count = all       ? 0
			      : program ? 1
					: o->pids_count,
	};
	const int error = ky_kernel_trace_open(&kernel, &options, message);
	source->state = kernel;
	if (error)
		ky_source_note(capture, "no kernel events: %s",
			       message[0] ? message : strerror(-error));
	else if (message[0])
		ky_source_note(capture, "%s", message);
}

static int add(struct ky_source *source, pid_t pid, enum ky_source_process how,
	       char message[KY_CAPTURE_MESSAGE_BYTES])
{
	(void)message;
	if (how == KY_SOURCE_EXISTING)
		ky_kernel_trace_add(source->state, pid);
	return 0;
}

static int fd(const struct ky_source *source)
{
	return ky_kernel_trace_fd(source->state);
}

static uint64_t read_new(struct ky_source *source, bool all)
{
	if (ky_source_is_due(source, PERIOD_NS) || all)
		ky_kernel_trace_round(source->state, all);
	return KY_SOURCE_REST_NS;
}

static void window(struct ky_source *source, uint64_t from_ns, uint64_t to_ns)
{
	ky_kernel_trace_window(source->state, from_ns, to_ns);
}

static void facts(const struct ky_source *source, struct ky_capture_facts *facts)
{
	struct ky_kernel_trace_facts kernel;
	ky_kernel_trace_facts(source->state, &kernel);
	facts->kernel_on = true;
	facts->kernel_pages = kernel.pages;
	facts->kernel_lost = kernel.lost;
}

static void close_kernel(struct ky_source *source)
{
	struct ky_kernel_trace *kernel = source->state;
	ky_kernel_trace_close(&kernel);
}

const struct ky_source_ops ky_source_kernel = {
	.forked = open_kernel,
	.add = add,
	.fd = fd,
	.round = read_new,
	.window = window,
	.facts = facts,
	.close = close_kernel,
};
