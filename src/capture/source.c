/* SPDX-License-Identifier: MIT */
/* source.c: the table of sources, and each step of a capture over all of them; see source.h. */
#include "capture/source.h"

#include "os/os.h"

#include <stdarg.h>
#include <stdio.h>

/* Windows are written a little after they end. */
#define SLACK_NS UINT64_C(200000000)

static const struct ky_source_ops *const all_ops[KY_SOURCES_COUNT] = {
	[KY_SOURCE_SAMPLES] = &ky_source_samples,     [KY_SOURCE_KERNEL] = &ky_source_kernel,
	[KY_SOURCE_FUNCTIONS] = &ky_source_functions, [KY_SOURCE_PROCESSES] = &ky_source_processes,
	[KY_SOURCE_DRUMS] = &ky_source_drums,         [KY_SOURCE_PROBES] = &ky_source_probes,
	[KY_SOURCE_CRASH] = &ky_source_crash,
};

/* ---- one source ---- */

void *ky_source_state(const struct ky_capture *capture, enum ky_source_id id)
{
	return capture->sources[id].state;
}

void ky_source_close(struct ky_capture *capture, enum ky_source_id id)
{
	struct ky_source *const source = &capture->sources[id];
	if (source->state)
		source->ops->close(source);
	source->state = NULL;
}

bool ky_source_is_due(struct ky_source *source, uint64_t period_ns)
{
	const uint64_t now = ky_os_boottime();
	if (!source->ready && now < source->due_ns)
		return false;
	source->due_ns = now + period_ns;
	return true;
}

uint64_t ky_source_reach_ns(const struct ky_capture_options *options)
{
	return options->before_ns + options->after_ns + SLACK_NS;
}

void ky_source_note(struct ky_capture *capture, const char *format, ...)
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

/* ---- all sources ---- */

int ky_source_open_all(struct ky_capture *capture)
{
	int error = 0;
	for (uint32_t i = 0; i < KY_SOURCES_COUNT; i++)
		capture->sources[i] = (struct ky_source){.ops = all_ops[i], .capture = capture};
	for (uint32_t i = KY_SOURCES_COUNT; !error && i-- > 0;) {
		if (all_ops[i]->open)
			error = all_ops[i]->open(&capture->sources[i]);
	}
	return error;
}

void ky_source_forked_all(struct ky_capture *capture)
{
	for (uint32_t i = 0; i < KY_SOURCES_COUNT; i++) {
		if (all_ops[i]->forked)
			all_ops[i]->forked(&capture->sources[i], capture->child.pid);
	}
}

int ky_source_add_all(struct ky_capture *capture, pid_t pid, enum ky_source_process how,
		      char message[KY_CAPTURE_MESSAGE_BYTES])
{
	int error = 0;
	for (uint32_t i = 0; !error && i < KY_SOURCES_COUNT; i++) {
		struct ky_source *const source = &capture->sources[i];
		message[0] = '\0';
		if (source->state && source->ops->add)
			error = source->ops->add(source, pid, how, message);
	}
	return error;
}

uint64_t ky_source_round_all(struct ky_capture *capture, bool all)
{
	uint64_t next = KY_SOURCE_REST_NS;
	for (uint32_t i = 0; i < KY_SOURCES_COUNT; i++) {
		struct ky_source *const source = &capture->sources[i];
		if (!source->state)
			continue;
		const uint64_t due = source->ops->round(source, all);
		source->ready = false;
		next = due < next ? due : next;
	}
	return next;
}

void ky_source_window_all(struct ky_capture *capture, uint64_t from_ns, uint64_t to_ns)
{
	for (uint32_t i = 0; i < KY_SOURCES_COUNT; i++) {
		struct ky_source *const source = &capture->sources[i];
		if (source->state && source->ops->window)
			source->ops->window(source, from_ns, to_ns);
	}
}

void ky_source_ended_all(struct ky_capture *capture, pid_t pid, int status)
{
	for (uint32_t i = 0; i < KY_SOURCES_COUNT; i++) {
		struct ky_source *const source = &capture->sources[i];
		if (source->state && source->ops->ended)
			source->ops->ended(source, pid, status);
	}
}

void ky_source_facts_all(struct ky_capture *capture)
{
	for (uint32_t i = 0; i < KY_SOURCES_COUNT; i++) {
		const struct ky_source *const source = &capture->sources[i];
		if (source->state && source->ops->facts)
			source->ops->facts(source, capture->facts);
	}
}

void ky_source_close_all(struct ky_capture *capture)
{
	for (uint32_t i = KY_SOURCES_COUNT; i-- > 0;)
		ky_source_close(capture, (enum ky_source_id)i);
}

bool ky_source_any_holds(const struct ky_capture *capture)
{
	for (uint32_t i = 0; i < KY_SOURCES_COUNT; i++) {
		if (capture->sources[i].state && all_ops[i]->holds)
			return true;
	}
	return false;
}
