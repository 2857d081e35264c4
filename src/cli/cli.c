/* SPDX-License-Identifier: MIT */
/* cli.c: messages, loading a trace, the last flush of standard output. */
#include "cli/cli.h"
#include "formats/load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

void ky_cli_error(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	print_message(format, args);
	va_end(args);
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
	if (cause == EPIPE)
		return code;
	ky_cli_error("cannot write to standard output: %s",
		     cause ? strerror(cause) : "a write failed; is the disk full?");
	return code == KY_EXIT_DONE ? KY_EXIT_FAILED : code;
}

static int load_progress(void *context, const char *stage, uint64_t done, uint64_t all)
{
	(void)context;
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

static void report_not_loaded(int error, const char *message)
{
	if (error != -ECANCELED && !ky_cli_interrupted())
		ky_cli_error("%s", message[0] ? message : strerror(-error));
}

struct ky_trace *ky_cli_load_with(const char *path, const struct ky_cli_load *how)
{
	const struct ky_load_options options = {.size = sizeof(options),
						.format = how->format,
						.progress = how->progress ? how->progress
									  : load_progress,
						.context = how->context};
	char message[KY_LOAD_MESSAGE_BYTES] = "";
	struct ky_trace *trace = NULL;
	ky_cli_progress("opening", 0, 0);
	const int error = ky_load(&trace, path, &options, message);
	/* A read that a signal interrupted: no progress call has seen it yet. */
	if (error == -EINTR)
		ky_cli_progress("opening", 0, 0);
	ky_cli_progress_end();
	if (error) {
		ky_trace_close(&trace);
		if (!how->mute)
			report_not_loaded(error, message);
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
