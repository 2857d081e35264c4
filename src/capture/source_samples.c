/* SPDX-License-Identifier: MIT */
/* source_samples.c: call stacks (stack_samples.h) as a source of a capture. Children inherit the events. */
#include "capture/source.h"
#include "capture/stack_samples.h"

#include <errno.h>
#include <string.h>

#define PERIOD_NS UINT64_C(100000000)

static void open_samples(struct ky_source *source, pid_t program)
{
	struct ky_capture *const capture = source->capture;
	const struct ky_capture_options *const o = capture->options;
	char message[KY_CAPTURE_MESSAGE_BYTES] = "";
	struct ky_stack_samples *samples = NULL;
	if (!o->samples_per_second)
		return;
	const struct ky_stack_samples_options options = {
		.bundle = capture->bundle,
		.per_second = o->samples_per_second,
		.all = o->scope == KY_PROCESSES_ALL,
		.flight = capture->flight != NULL,
		.before_ns = ky_source_reach_ns(o),
	};
	int error = ky_stack_samples_open(&samples, &options, message);
	if (!error && program) {
		error = ky_stack_samples_add(samples, program, true, message);
		if (error)
			ky_stack_samples_close(&samples);
	}
	source->state = samples;
	if (error)
		ky_source_note(capture, "no samples: %s", message[0] ? message : strerror(-error));
}

static int add(struct ky_source *source, pid_t pid, enum ky_source_process how,
	       char message[KY_CAPTURE_MESSAGE_BYTES])
{
	if (how != KY_SOURCE_EXISTING)
		return 0;
	const int error = ky_stack_samples_add(source->state, pid, false, message);
	if (error && error != -ESRCH)
		ky_source_note(source->capture, "%s", message);
	return 0;
}

static int fd(const struct ky_source *source)
{
	return ky_stack_samples_fd(source->state);
}

static uint64_t read_new(struct ky_source *source, bool all)
{
	if (ky_source_is_due(source, PERIOD_NS) || all)
		ky_stack_samples_round(source->state, all);
	return KY_SOURCE_REST_NS;
}

static void window(struct ky_source *source, uint64_t from_ns, uint64_t to_ns)
{
	ky_stack_samples_window(source->state, from_ns, to_ns);
}

static void facts(const struct ky_source *source, struct ky_capture_facts *facts)
{
	struct ky_stack_samples_facts samples;
	ky_stack_samples_facts(source->state, &samples);
	facts->samples_on = true;
	facts->samples = samples.samples;
	facts->samples_lost = samples.lost;
}

static void close_samples(struct ky_source *source)
{
	struct ky_stack_samples *samples = source->state;
	ky_stack_samples_close(&samples);
}

const struct ky_source_ops ky_source_samples = {
	.forked = open_samples,
	.add = add,
	.fd = fd,
	.round = read_new,
	.window = window,
	.facts = facts,
	.close = close_samples,
};
