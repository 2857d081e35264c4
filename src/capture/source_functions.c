/* SPDX-License-Identifier: MIT */
/*
 * source_functions.c: calls of functions (functrace.h) as a source of a capture.
 *
 *   add      before anything else is set on a process, so that probes and the crash watch see the patched program
 *   rounds   the crash watch lets go of a process while its threads are stopped, because a thread has one tracer
 *   close    before drums are read for the last time, and before a second Ctrl-C may end kymo: it restores the programs
 *
 * A forked child inherits the jumps, and writes into its parent's drum.
 */
#include "base/fail.h"
#include "base/nearest.h"
#include "capture/source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A program may wait for a library that it has loaded to be patched. */
#define REST_NS UINT64_C(5000000)

static void take_note(void *context, const char *line)
{
	ky_source_note(context, "%s", line);
}

static void on_stops(void *context, pid_t pid, bool begins)
{
	ky_source_crash_pause(context, pid, begins);
}

static int open_functions(struct ky_source *source)
{
	struct ky_capture *const capture = source->capture;
	const struct ky_capture_options *const o = capture->options;
	struct ky_functrace *functions = NULL;
	if (!o->functions)
		return 0;
	struct ky_functrace_options options = *o->functions;
	options.samples_per_second = o->samples_per_second;
	options.ring_bytes = o->ring_bytes ? o->ring_bytes : KY_CAPTURE_RING_BYTES;
	options.total_bytes = KY_CAPTURE_TOTAL_BYTES;
	options.drum = ky_source_drums_made;
	options.ended = ky_source_drums_child_ended;
	options.stops = on_stops;
	options.note = take_note;
	options.context = capture;
	const int error = ky_functrace_open(&functions, &options, capture->message);
	source->state = functions;
	return error;
}

static void note_engine(const struct ky_source *source)
{
	struct ky_capture *const capture = source->capture;
	struct ky_functrace_facts facts;
	ky_functrace_facts(source->state, &facts);
	if (!capture->options->quiet)
		ky_source_note(capture, "functions: %s", facts.why);
	else if (capture->bundle)
		ky_bundle_note(capture->bundle, "functions: %s", facts.why);
}

/* ---- names that no function has ---- */

/* The names nearest to a list of globs, of which each is compared without its prefix. */
struct alike {
	char wanted[64];
	bool module;                /* compare names of modules */
	const char *last, *program; /* names of modules; the program's is the first */
	struct ky_nearest names;
};

static void compare(void *context, const char *module, const char *function)
{
	struct alike *const alike = context;
	if (!alike->module)
		ky_nearest_note(&alike->names, alike->wanted, function);
	else if (module != alike->last)
		ky_nearest_note(&alike->names, alike->wanted, module);
	if (!alike->last)
		alike->program = module;
	alike->last = module;
}

/* Write names like the first that is asked for. */
static void find_alike(const struct ky_source *source, char *text, size_t room)
{
	const char *list = source->capture->options->functions->functions;
	struct alike alike = {.module = strncmp(list, "module:", 7) == 0};
	list += alike.module ? 7 : 0;
	snprintf(alike.wanted, sizeof(alike.wanted), "%.*s", (int)strcspn(list, ",*"), list);
	ky_functrace_names(source->state, compare, &alike);
	(void)ky_nearest_text(&alike.names, text, room);
	/* The program's file may have another name than what was run: a link. */
	if (!text[0] && alike.module && alike.program)
		snprintf(text, room, "%s", alike.program);
}

static bool has_no_match(const struct ky_source *source)
{
	const struct ky_functrace_options *const o = source->capture->options->functions;
	struct ky_functrace_facts facts;
	ky_functrace_facts(source->state, &facts);
	return o->functions && o->functions[0] && facts.engine == KY_FUNCTRACE_PATCH &&
	       !facts.patch.functions;
}

/* A library that is loaded later may have the functions: it is too early for an error. */
static void note_no_match(const struct ky_source *source)
{
	struct ky_capture *const capture = source->capture;
	char *const alike = capture->facts->functions_alike;
	find_alike(source, alike, sizeof(capture->facts->functions_alike));
	ky_source_note(capture, "no function matches --functions=%s so far%s%s",
		       capture->options->functions->functions, alike[0] ? "; similar: " : "",
		       alike);
}

static void note_unmatched(struct ky_capture *capture)
{
	const char *const alike = capture->facts->functions_alike;
	char line[KY_MESSAGE_BYTES];
	snprintf(line, sizeof(line), "no function matched --functions=%s: none was traced%s%s",
		 capture->options->functions->functions, alike[0] ? "; similar: " : "", alike);
	ky_source_unmatched(capture, line);
}

static int add(struct ky_source *source, pid_t pid, enum ky_source_process how,
	       char message[KY_MESSAGE_BYTES])
{
	struct ky_capture_facts *const facts = source->capture->facts;
	if (how == KY_SOURCE_NEW)
		return 0;
	const bool first = !facts->functions_on;
	const int error = ky_functrace_add(source->state, pid, message);
	facts->functions_on |= !error;
	if (!error && first)
		note_engine(source);
	if (!error && first && has_no_match(source))
		note_no_match(source);
	if (error == -ENOTSUP)
		facts->functions_impossible = true;
	if (how != KY_SOURCE_EXISTING)
		return error;
	if (error && error != -ESRCH)
		ky_source_note(source->capture, "%s", message);
	return 0;
}

static uint64_t read_new(struct ky_source *source, bool all)
{
	ky_functrace_round(source->state);
	if (all)
		ky_functrace_flush(source->state);
	return REST_NS;
}

int ky_source_functions_unheld(struct ky_capture *capture, int error)
{
	struct ky_functrace *const functions = ky_source_state(capture, KY_SOURCE_FUNCTIONS);
	const int refused = functions ? ky_functrace_unheld(functions, error, capture->message) : 0;
	capture->facts->functions_impossible |= refused == -ENOTSUP;
	return refused;
}

void ky_source_functions_ended(struct ky_capture *capture, pid_t pid)
{
	struct ky_functrace *const functions = ky_source_state(capture, KY_SOURCE_FUNCTIONS);
	if (functions)
		ky_functrace_ended(functions, pid);
}

static void ended(struct ky_source *source, pid_t pid, int status)
{
	(void)status;
	ky_functrace_ended(source->state, pid);
}

/* ---- the end ---- */

/* Keep the functions of which most was left out, in this order. */
static void keep_hot(struct ky_capture_facts *facts, const struct ky_patch_hot *one)
{
	uint32_t at = facts->hot_count;
	while (at && facts->hot[at - 1].missed < one->missed)
		at--;
	if (at == KY_CAPTURE_HOT_MAX)
		return;
	facts->hot_count += facts->hot_count < KY_CAPTURE_HOT_MAX;
	memmove(&facts->hot[at + 1], &facts->hot[at],
		(facts->hot_count - 1 - at) * sizeof(facts->hot[0]));
	struct ky_capture_hot *const hot = &facts->hot[at];
	snprintf(hot->name, sizeof(hot->name), "%s", one->name);
	hot->calls = one->calls;
	hot->missed = one->missed;
	hot->limited = one->limited;
}

static void gather_hot(const struct ky_source *source, struct ky_capture_facts *facts)
{
	struct ky_patch_hot one;
	facts->hot_count = 0;
	facts->hot_all = 0;
	for (; ky_functrace_hot(source->state, facts->hot_all, &one); facts->hot_all++)
		keep_hot(facts, &one);
}

static void facts(const struct ky_source *source, struct ky_capture_facts *facts)
{
	ky_functrace_facts(source->state, &facts->functions);
	gather_hot(source, facts);
}

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
	char text[KY_MESSAGE_BYTES];
	ky_capture_left_out(facts, text, sizeof(text));
	if (text[0] && capture->bundle)
		ky_bundle_note(capture->bundle, "functions left out: %s", text);
}

/* Write notes to the file alone: on the terminal the summary has them. */
static void note_facts(struct ky_capture *capture)
{
	const struct ky_capture_facts *const facts = capture->facts;
	const struct ky_patch_facts *const patch = &facts->functions.patch;
	if (!capture->bundle || !facts->functions_on)
		return;
	note_left_out(capture, patch);
	if (patch->functions)
		ky_bundle_note(
			capture->bundle,
			"functions: the program was stopped for %.1f ms to set the jumps and for %.1f ms to remove them",
			(double)patch->stopped_ns / 1e6, (double)patch->unstopped_ns / 1e6);
	if (patch->calls)
		ky_bundle_note(capture->bundle, "functions: %" PRIu64 " calls were counted",
			       patch->calls);
	for (uint32_t i = 0; i < facts->hot_count; i++) {
		const struct ky_capture_hot *const hot = &facts->hot[i];
		if (hot->limited)
			ky_bundle_note(capture->bundle,
				       "functions: %.200s was called too often (%" PRIu64
				       " times by then): not traced since",
				       hot->name, hot->calls);
		else
			ky_bundle_note(capture->bundle,
				       "functions: %.200s: %" PRIu64
				       " calls were traced, about %" PRIu64
				       " left out (--overhead)",
				       hot->name, hot->calls, hot->missed);
	}
}

static void close_functions(struct ky_source *source)
{
	struct ky_capture *const capture = source->capture;
	struct ky_functrace *functions = source->state;
	/* It also traces forked children, which must be stopped to be restored: a thread has one tracer. */
	ky_source_close(capture, KY_SOURCE_CRASH);
	/* The program may have ended without a report of it so far. */
	if (capture->child.pid && !capture->child.running)
		ky_functrace_ended(functions, capture->child.pid);
	ky_functrace_flush(functions);
	gather_hot(source, capture->facts);
	if (capture->began && !capture->error && capture->facts->functions_on &&
	    has_no_match(source))
		note_unmatched(capture);
	ky_functrace_close(&functions, &capture->facts->functions);
	note_facts(capture);
}

void ky_source_functions_restore(struct ky_capture *capture)
{
	ky_functrace_restore_children(&capture->facts->functions, take_note, capture);
}

const struct ky_source_ops ky_source_functions = {
	.open = open_functions,
	.add = add,
	.round = read_new,
	.ended = ended,
	.facts = facts,
	.close = close_functions,
	.holds = true,
};
