/* SPDX-License-Identifier: MIT */
/* capture_messages.c: the progress line of a capture and its summary; see capture_verb.h. */
#include "cli/capture_verb.h"

#include "base/array.h"
#include "base/json_out.h"
#include "cli/cli.h"
#include "cli/info.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOT_SHOWN 8u
#define SHOW_AFTER_NS UINT64_C(1000000000)
#define SHOW_EVERY_NS UINT64_C(250000000)
#define ERASE "\r\033[K"

/* Take the rate since the last line, so that a burst shows. */
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
	snprintf(line, sizeof(line), "%s %s  %u process%s  %s%s%s  %s%s",
		 progress->flight ? "waiting" : "recording",
		 ky_quantity_duration(time, (int64_t)facts->elapsed_ns), facts->processes,
		 facts->processes == 1 ? "" : "es", progress->flight ? shots : "",
		 calls[0]           ? calls
		 : progress->flight ? ""
				    : events,
		 ky_quantity_bytes(size, facts->bytes), ky_quantity_count(lost, losses), " lost");
	const unsigned room = ky_cli_error_width();
	static const char how_to_end[] = "  Ctrl-C ends it";
	const bool fits = strlen(line) + strlen(how_to_end) < room;
	fprintf(stderr, ERASE "%.*s%s",
		(int)ky_cli_text_fit(line, strlen(line), room > 1 ? room - 1 : 1), line,
		fits ? how_to_end : "");
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
	char *const copy = strdup(line);
	if (copy &&
	    !KY_ARRAY_ADD(progress->notes, progress->notes_count, progress->notes_room, copy))
		free(copy);
}

void ky_capture_progress_free(struct ky_capture_progress *progress)
{
	for (uint32_t i = 0; i < progress->notes_count; i++)
		free(progress->notes[i]);
	KY_ARRAY_FREE(progress->notes, progress->notes_room);
}

/* ---- the summary ---- */

static void line(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void line(const char *what, const char *format, ...)
{
	char text[4600];
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	fprintf(stderr, "  %-10s ", what);
	ky_cli_text(stderr, text, strlen(text));
	fputc('\n', stderr);
}

/* Report whether the capture holds anything. */
static bool is_empty(const struct ky_capture_facts *facts)
{
	return !facts->events && !facts->kernel_pages && !facts->samples;
}

static void print_events(const struct ky_capture_facts *facts)
{
	char time[KY_QUANTITY_BYTES], number[KY_QUANTITY_BYTES], samples[64], pages[64];
	const char *const spent = ky_quantity_duration(time, (int64_t)facts->elapsed_ns);
	if (facts->drums)
		line("events", "%s of %u process%s in %s", ky_quantity_count(number, facts->events),
		     facts->drums, facts->drums == 1 ? "" : "es", spent);
	if (facts->events_removed)
		line("kept", "%s of them: older files were removed",
		     ky_quantity_count(number, facts->events - facts->events_removed));
	snprintf(pages, sizeof(pages), "%s of events",
		 ky_quantity_bytes(number, facts->kernel_pages * 4096));
	snprintf(samples, sizeof(samples), "%s samples", ky_quantity_count(number, facts->samples));
	if (facts->kernel_on || facts->samples_on)
		line("kernel", "%s%s%s%s%s", facts->kernel_on ? pages : "",
		     facts->kernel_on && facts->samples_on ? ", " : "",
		     facts->samples_on ? samples : "", facts->drums ? "" : " in ",
		     facts->drums ? "" : spent);
}

/* Print the functions that were left out because they were called too often. */
static void print_hot(const struct ky_capture_facts *facts)
{
	char a[KY_QUANTITY_BYTES], b[KY_QUANTITY_BYTES];
	const uint32_t shown = facts->hot_count < HOT_SHOWN ? facts->hot_count : HOT_SHOWN;
	for (uint32_t i = 0; i < shown; i++) {
		const struct ky_capture_hot *const hot = &facts->hot[i];
		if (hot->limited)
			line(i ? "" : "hot", "%s: %s calls, then left alone (--hot)", hot->name,
			     ky_quantity_count(a, hot->calls));
		else
			line(i ? "" : "hot", "%s: %s calls, about %s left out (--overhead)",
			     hot->name, ky_quantity_count(a, hot->calls),
			     ky_quantity_count(b, hot->missed));
	}
	if (facts->hot_all > shown)
		line("", "and %u more", facts->hot_all - shown);
}

static void print_functions(const struct ky_capture_facts *facts)
{
	const struct ky_patch_facts *const patch = &facts->functions.patch;
	char a[KY_QUANTITY_BYTES], b[KY_QUANTITY_BYTES], c[KY_QUANTITY_BYTES], text[512];
	if (!facts->functions_on)
		return;
	ky_capture_left_out(patch, text, sizeof(text));
	line("functions", "%s", facts->functions.why);
	if (text[0])
		line("left out", "%s", text);
	/* A program that ended too soon took its counts with it. */
	if (patch->calls)
		line("calls", "%s", ky_quantity_count(a, patch->calls));
	if (patch->functions)
		line("stopped", "for %s to set the jumps, %s to take them out",
		     ky_quantity_duration(b, (int64_t)patch->stopped_ns),
		     ky_quantity_duration(c, (int64_t)patch->unstopped_ns));
	else if (facts->functions.samples)
		line("samples", "%s, %s lost", ky_quantity_count(a, facts->functions.samples),
		     ky_quantity_count(b, facts->functions.samples_lost));
	print_hot(facts);
}

static void print_losses(const struct ky_capture_facts *facts)
{
	char a[KY_QUANTITY_BYTES], b[KY_QUANTITY_BYTES], c[KY_QUANTITY_BYTES];
	if (facts->events_lost)
		line("lost", "%s events: a larger --buffer keeps more",
		     ky_quantity_count(a, facts->events_lost));
	if (facts->events_unwritten)
		line("left out", "%s events: the file could not be written to its end",
		     ky_quantity_count(a, facts->events_unwritten));
	if (facts->kernel_lost || facts->samples_lost)
		line("lost", "%s kernel events, %s samples: a larger --kernel-buffer keeps more",
		     ky_quantity_count(b, facts->kernel_lost),
		     ky_quantity_count(c, facts->samples_lost));
	if (facts->mailbox_overflow)
		line("lost",
		     "events of children that lived shortly: more began than kymo could take in");
	if (facts->missed)
		line("missed",
		     "%s program%s ended before %s events could be read: 'kymo run' misses none",
		     ky_quantity_count(a, facts->missed), facts->missed == 1 ? "" : "s",
		     facts->missed == 1 ? "its" : "their");
	if (facts->damaged)
		line("damaged", "%s place%s: the program wrote over its own buffer",
		     ky_quantity_count(a, facts->damaged), facts->damaged == 1 ? "" : "s");
}

static void print_snapshots(const struct ky_capture_command *command,
			    const struct ky_capture_facts *facts)
{
	char number[KY_QUANTITY_BYTES], text[64] = "";
	if (!command->capture.triggers_count)
		return;
	if (facts->snapshots_passed_over)
		snprintf(text, sizeof(text), ", %s passed over",
			 ky_quantity_count(number, facts->snapshots_passed_over));
	line("snapshots", "%u%s", facts->snapshots, text);
}

/* Report that the program itself recorded nothing: what was recorded, and what would give more. */
static void print_without_drums(const struct ky_capture_command *command,
				const struct ky_capture_facts *facts)
{
	const bool kernel = facts->kernel_on, samples = facts->samples_on;
	const char *const who = command->capture.command      ? "the program has"
				: command->capture.pids_count ? "the processes have"
							      : "no program that runs has";
	const char *const none =
		command->capture.command || command->capture.pids_count ? "no " : "";
	if (facts->drums || !command->capture.drums)
		return;
	fprintf(stderr, "  %s %skymo trace points that recorded anything; %s%s%s\n", who, none,
		kernel && samples  ? "kernel events and samples were recorded"
		: kernel           ? "kernel events were recorded"
		: samples          ? "samples were recorded"
		: facts->snapshots ? "each snapshot holds only its time, place and reason"
				   : "nothing was recorded",
		!kernel && !command->capture.kernel_count ? "; --kernel adds its scheduling" : "",
		!samples && !command->capture.samples_per_second
			? "; --sample 1000 adds its call stacks"
			: "");
	fputs("  spans and counters come from a program that is built with kymo: see kymo.h(3)\n",
	      stderr);
}

static void print_nothing_fired(const struct ky_capture_command *command,
				const struct ky_capture_facts *facts)
{
	const bool looks_at_events = ky_trigger_needs(
		command->capture.triggers, command->capture.triggers_count, KY_TRIGGER_BY_WATCH);
	fputs("kymo: no trigger fired, so there is no snapshot and no file\n", stderr);
	if (looks_at_events && !facts->drums)
		fputs("  there were no kymo trace points that recorded anything, which span:, "
		      "gap:, "
		      "counter: and api look at\n",
		      stderr);
}

void ky_capture_summary(const struct ky_capture_command *command,
			const struct ky_capture_facts *facts, const char *path, uint64_t bytes)
{
	char size[KY_QUANTITY_BYTES], number[KY_QUANTITY_BYTES];
	if (!facts->kept && command->capture.triggers_count) {
		print_nothing_fired(command, facts);
		return;
	}
	fputs("kymo: ", stderr);
	ky_cli_text(stderr, path, strlen(path));
	fprintf(stderr, ", %s", ky_quantity_bytes(size, bytes));
	if (facts->files > 1)
		fprintf(stderr, ", the last of %u files", facts->files);
	fputc('\n', stderr);
	if (facts->drums || !is_empty(facts))
		print_events(facts);
	print_functions(facts);
	print_snapshots(command, facts);
	print_losses(facts);
	print_without_drums(command, facts);
	if (facts->hidden && command->capture.scope == KY_PROCESSES_ALL)
		line("hidden", "%u process%s of other users: root sees them", facts->hidden,
		     facts->hidden == 1 ? "" : "es");
	if (facts->crowded)
		line("crowded",
		     "%u process%s not looked into: their users have too many descriptors open; use -p PID",
		     facts->crowded, facts->crowded == 1 ? "" : "es");
	if (facts->unseen && command->capture.scope == KY_PROCESSES_ALL)
		line("unseen", "up to %s short programs (or threads)%s",
		     ky_quantity_count(number, facts->unseen),
		     geteuid() == 0 ? ": more came than kymo could look at; 'kymo run' sees each"
				    : " between two looks: root sees each, and 'kymo run' does");
	if (!is_empty(facts) && command->output_is_file)
		line("next", "kymo report %s", ky_cli_path(path));
	else if (facts->snapshots && command->output_is_file)
		line("next", "kymo info %s", ky_cli_path(path));
}

/* Return the exit status as a shell has it; -1: unknown. */
static int exit_status(int status)
{
	if (status < 0)
		return -1;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void json_left_out(struct ky_json_out *json, const struct ky_patch_facts *patch)
{
	ky_json_out_begin(json, "left_out", '{');
	for (int why = KY_WHY_NONE + 1; why < KY_WHY_COUNT; why++) {
		if (patch->left_out[why])
			ky_json_out_uint(json, ky_function_why_text((enum ky_function_why)why),
					 patch->left_out[why]);
	}
	ky_json_out_end(json, '}');
}

static void json_functions(struct ky_json_out *json, const struct ky_capture_facts *facts)
{
	const struct ky_patch_facts *const patch = &facts->functions.patch;
	if (!facts->functions_on)
		return;
	ky_json_out_begin(json, "functions", '{');
	ky_json_out_text(json, "engine", ky_functrace_engine_name(facts->functions.engine));
	ky_json_out_text(json, "why", facts->functions.why);
	ky_json_out_uint(json, "modules", patch->modules);
	ky_json_out_uint(json, "functions", patch->functions);
	ky_json_out_uint(json, "patched", patch->patched);
	json_left_out(json, patch);
	ky_json_out_uint(json, "calls", patch->calls);
	ky_json_out_uint(json, "analysed_ns", patch->analysed_ns);
	ky_json_out_uint(json, "stopped_ns", patch->stopped_ns);
	ky_json_out_uint(json, "unstopped_ns", patch->unstopped_ns);
	ky_json_out_begin(json, "hot", '[');
	for (uint32_t i = 0; i < facts->hot_count; i++) {
		ky_json_out_begin(json, NULL, '{');
		ky_json_out_text(json, "name", facts->hot[i].name);
		ky_json_out_uint(json, "calls", facts->hot[i].calls);
		ky_json_out_uint(json, "left_out", facts->hot[i].missed);
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
	ky_json_out_uint(json, "samples", facts->functions.samples);
	ky_json_out_uint(json, "samples_lost", facts->functions.samples_lost);
	ky_json_out_end(json, '}');
}

/* What is missing in the recording, as kymo info --json has it of a file. */
static void json_faults(struct ky_json_out *json, const struct ky_capture_facts *facts)
{
	const struct ky_info_count losses[] = {
		{"events: the buffer was full", facts->events_lost, NULL},
		{"events: the file could not be written to its end", facts->events_unwritten, NULL},
		{"kernel events: the kernel's buffer was full", facts->kernel_lost, NULL},
		{"samples: the kernel's buffer was full", facts->samples_lost, NULL},
		{"samples of functions", facts->functions.samples_lost, NULL},
		{0},
	};
	const struct ky_info_count problems[] = {
		{"the program wrote over its own buffer", facts->damaged, "buffer_damaged"},
		{"programs ended before their events could be read", facts->missed,
		 "programs_missed"},
		{"more children began than kymo could take in", facts->mailbox_overflow ? 1 : 0,
		 "children_missed"},
		{0},
	};
	ky_info_json_counts(json, losses, problems);
}

void ky_capture_summary_json(const struct ky_capture_command *command,
			     const struct ky_capture_facts *facts,
			     const struct ky_capture_progress *progress, const char *path,
			     uint64_t bytes)
{
	const bool run = command->capture.command != NULL;
	const bool to_error = run || (command->output && strcmp(command->output, "-") == 0);
	struct ky_json_out json = {.file = to_error ? stderr : stdout};
	ky_json_out_begin(&json, NULL, '{');
	ky_json_out_text(&json, "output", facts->kept ? path : NULL);
	ky_json_out_uint(&json, "bytes", bytes);
	ky_json_out_uint(&json, "files", facts->files);
	ky_json_out_uint(&json, "elapsed_ns", facts->elapsed_ns);
	ky_json_out_uint(&json, "processes", facts->drums);
	ky_json_out_uint(&json, "events", facts->events);
	ky_json_out_uint(&json, "events_removed", facts->events_removed);
	ky_json_out_uint(&json, "events_lost", facts->events_lost);
	ky_json_out_uint(&json, "events_unwritten", facts->events_unwritten);
	ky_json_out_uint(&json, "damaged", facts->damaged);
	ky_json_out_bool(&json, "kernel", facts->kernel_on);
	ky_json_out_uint(&json, "kernel_pages", facts->kernel_pages);
	ky_json_out_uint(&json, "kernel_events_lost", facts->kernel_lost);
	ky_json_out_bool(&json, "sampled", facts->samples_on);
	ky_json_out_uint(&json, "samples", facts->samples);
	ky_json_out_uint(&json, "samples_lost", facts->samples_lost);
	ky_json_out_uint(&json, "snapshots", facts->snapshots);
	ky_json_out_uint(&json, "snapshots_passed_over", facts->snapshots_passed_over);
	ky_json_out_bool(&json, "processes_missed", facts->mailbox_overflow || facts->missed);
	ky_json_out_uint(&json, "programs_missed", facts->missed);
	ky_json_out_uint(&json, "programs_unseen_max", facts->unseen);
	ky_json_out_uint(&json, "unmatched", facts->unmatched + command->targets_missing);
	json_functions(&json, facts);
	json_faults(&json, facts);
	ky_json_out_begin(&json, "notes", '[');
	for (uint32_t i = 0; i < progress->notes_count; i++)
		ky_json_out_text(&json, NULL, progress->notes[i]);
	ky_json_out_end(&json, ']');
	if (run)
		ky_json_out_int(&json, "status", exit_status(facts->status));
	ky_json_out_end(&json, '}');
}
