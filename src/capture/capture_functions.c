/* SPDX-License-Identifier: MIT */
/*
 * capture_functions.c: calls of functions (functrace.h) as a source of a capture.
 *
 *   start     before anything else is set on a process: a probe or the crash watch comes to the patched program
 *   rounds    the crash watch lets go of a process while its threads are stopped, for a thread has one tracer
 *   take out  before drums are read for the last time, and before a second Ctrl-C may end kymo: programs are as they were then
 *
 * A child that the program forks brings its jumps along, and writes into its parent's drum.
 *
 * What is known at the end is told in notes, which are in the file as well, and in the facts.
 */
#include "capture/capture_parts.h"

#include "capture/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void take_note(void *context, const char *line)
{
	ky_capture_note(context, "%s", line);
}

void ky_capture_round_functions(struct ky_capture *capture, bool all)
{
	if (!capture->functions)
		return;
	ky_functrace_round(capture->functions);
	if (all)
		ky_functrace_settle(capture->functions);
}

/* ---- other tracers ---- */

static void on_stops(void *context, pid_t pid, bool begins)
{
	struct ky_capture *const capture = context;
	char message[KY_CAPTURE_MESSAGE_BYTES] = "";
	if (!capture->crash)
		return;
	if (begins)
		capture->crash_left = ky_crash_watch_leave(capture->crash, pid) ? pid : 0;
	else if (capture->crash_left == pid)
		(void)ky_crash_watch_add(capture->crash, pid, message);
	if (!begins)
		capture->crash_left = 0;
}

int ky_capture_open_functions(struct ky_capture *capture)
{
	const struct ky_capture_options *const o = capture->options;
	if (!o->functions)
		return 0;
	struct ky_functrace_options options = *o->functions;
	options.samples_per_second = o->samples_per_second;
	options.ring_bytes = o->ring_bytes ? o->ring_bytes : KY_CAPTURE_RING_BYTES;
	options.total_bytes = KY_CAPTURE_TOTAL_BYTES;
	options.drum = ky_capture_made_drum;
	options.ended = ky_capture_child_ended;
	options.stops = on_stops;
	options.note = take_note;
	options.context = capture;
	return ky_functrace_open(&capture->functions, &options, capture->message);
}

static void tell_engine(struct ky_capture *capture)
{
	struct ky_functrace_facts facts;
	char line[KY_CAPTURE_MESSAGE_BYTES + 16];
	ky_functrace_facts(capture->functions, &facts);
	snprintf(line, sizeof(line), "functions: %s", facts.why);
	if (!capture->options->quiet)
		ky_capture_note(capture, "%s", line);
	else if (capture->bundle)
		ky_bundle_note(capture->bundle, line);
}

int ky_capture_add_functions(struct ky_capture *capture, pid_t pid,
			     char message[KY_CAPTURE_MESSAGE_BYTES])
{
	if (!capture->functions)
		return 0;
	const bool first = !capture->facts->functions_on;
	const int error = ky_functrace_add(capture->functions, pid, message);
	capture->facts->functions_on |= !error;
	if (!error && first)
		tell_engine(capture);
	if (error == -ENOTSUP)
		capture->facts->functions_impossible = true;
	return error;
}

/* ---- the end ---- */

static void gather_hot(struct ky_capture *capture)
{
	struct ky_capture_facts *const facts = capture->facts;
	const char *name;
	uint64_t calls;
	facts->hot_count = 0;
	for (uint32_t i = 0; facts->hot_count < KY_CAPTURE_HOT_MAX &&
			     ky_functrace_hot(capture->functions, i, &name, &calls);
	     i++) {
		struct ky_capture_hot *const hot = &facts->hot[facts->hot_count++];
		snprintf(hot->name, sizeof(hot->name), "%s", name);
		hot->calls = calls;
	}
}

void ky_capture_gather_functions(struct ky_capture *capture)
{
	if (!capture->functions)
		return;
	ky_functrace_facts(capture->functions, &capture->facts->functions);
	gather_hot(capture);
}

/* "3 shorter than a jump, 1 ..." */
void ky_capture_left_out(const struct ky_patch_facts *facts, char *text, size_t room)
{
	size_t used = 0;
	text[0] = '\0';
	for (int why = KY_WHY_NONE + 1; why < KY_WHY_COUNT && used < room; why++) {
		if (!facts->left_out[why])
			continue;
		const int added = snprintf(text + used, room - used, "%s%u %s", used ? ", " : "",
					   facts->left_out[why],
					   ky_function_why_text((enum ky_function_why)why));
		used += added > 0 ? (size_t)added : 0;
	}
}

static void note_left_out(struct ky_capture *capture, const struct ky_patch_facts *facts)
{
	char text[KY_CAPTURE_MESSAGE_BYTES];
	ky_capture_left_out(facts, text, sizeof(text));
	if (text[0] && capture->bundle) {
		char line[KY_CAPTURE_MESSAGE_BYTES + 32];
		snprintf(line, sizeof(line), "functions left out: %s", text);
		ky_bundle_note(capture->bundle, line);
	}
}

/* In the file alone: on the terminal the summary has it. */
static void note_facts(struct ky_capture *capture)
{
	const struct ky_capture_facts *const facts = capture->facts;
	const struct ky_patch_facts *const patch = &facts->functions.patch;
	char line[KY_CAPTURE_MESSAGE_BYTES];
	if (!capture->bundle || !facts->functions_on)
		return;
	note_left_out(capture, patch);
	if (patch->functions) {
		snprintf(line, sizeof(line),
			 "functions: the program was stopped for %.1f ms to set the jumps and for "
			 "%.1f ms to take them out",
			 (double)patch->stopped_ns / 1e6, (double)patch->unstopped_ns / 1e6);
		ky_bundle_note(capture->bundle, line);
	}
	if (patch->calls) {
		snprintf(line, sizeof(line), "functions: %" PRIu64 " calls were counted",
			 patch->calls);
		ky_bundle_note(capture->bundle, line);
	}
	for (uint32_t i = 0; i < facts->hot_count; i++) {
		snprintf(line, sizeof(line),
			 "functions: %.200s was called too often (%" PRIu64
			 " times by then): left alone since",
			 facts->hot[i].name, facts->hot[i].calls);
		ky_bundle_note(capture->bundle, line);
	}
}

void ky_capture_take_out_functions(struct ky_capture *capture)
{
	if (!capture->functions)
		return;
	/* It traces forked children, too, which must be stopped to be put back: a thread has one tracer. */
	ky_crash_watch_close(&capture->crash);
	/* The program has ended, and its end was not told yet. */
	if (capture->child.pid && !capture->child.running)
		ky_functrace_ended(capture->functions, capture->child.pid);
	ky_functrace_settle(capture->functions);
	gather_hot(capture);
	ky_functrace_close(&capture->functions, &capture->facts->functions);
	note_facts(capture);
}
