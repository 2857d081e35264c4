/* SPDX-License-Identifier: MIT */
/*
 * cli.c: what every verb begins and ends with: options, messages, loading a trace, the last flush
 * of standard output.
 */
#include "cli/cli.h"
#include "formats/reader.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OPTIONS_MAX 48
#define SHORTS_MAX 96
#define HELP_VALUE 0x10000

static const struct ky_verb *current;

void ky_cli_begin(const struct ky_verb *verb)
{
	current = verb;
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
		fprintf(stderr, "'kymo %s --help' says how it is used\n", current->name);
	else
		fputs("'kymo --help' says how it is used\n", stderr);
	return KY_EXIT_USAGE;
}

int ky_cli_end(int code)
{
	errno = 0;
	const bool failed = ferror(stdout) != 0;
	if (fflush(stdout) == 0 && !failed)
		return code;
	int cause = errno;
	/* The write that failed was earlier; some files say why once more. */
	if (!cause && write(STDOUT_FILENO, "", 0) < 0)
		cause = errno;
	if (cause == EPIPE)
		return code;
	ky_cli_error("cannot write to standard output: %s",
		     cause ? strerror(cause) : "a write failed; is the disk full?");
	return code == KY_EXIT_DONE ? KY_EXIT_FAILED : code;
}

static _Noreturn void bad_option(int result, char **argv, const struct option *longs)
{
	const char *const word = argv[optind - 1];
	if (result == ':' && optopt && optopt < HELP_VALUE && strncmp(word, "--", 2) != 0)
		exit(ky_cli_usage("option -%c needs a value", optopt));
	if (result == ':')
		exit(ky_cli_usage("option %s needs a value", word));
	if (optopt > 0 && optopt < 128 && strncmp(word, "--", 2) != 0)
		exit(ky_cli_usage("there is no option -%c", optopt));
	for (const struct option *option = longs; optopt && option->name; option++) {
		if (option->val == optopt)
			exit(ky_cli_usage("option --%s takes no value", option->name));
	}
	exit(ky_cli_usage("there is no option %s", word));
}

int ky_cli_option(int argc, char **argv, const char *shorts, const struct option *longs)
{
	static struct option all[OPTIONS_MAX + 2];
	char all_shorts[SHORTS_MAX];
	unsigned count = 0;
	for (; longs[count].name && count < OPTIONS_MAX; count++)
		all[count] = longs[count];
	all[count] = (struct option){"help", no_argument, NULL, HELP_VALUE};
	all[count + 1] = (struct option){0};
	const bool in_order = shorts[0] == '+';
	snprintf(all_shorts, sizeof(all_shorts), "%s:h%s", in_order ? "+" : "", shorts + in_order);
	opterr = 0;
	const int result = getopt_long(argc, argv, all_shorts, all, NULL);
	if (result == HELP_VALUE || result == 'h') {
		fputs(current ? current->help : "", stdout);
		exit(ky_cli_end(KY_EXIT_DONE));
	}
	if (result == '?' || result == ':')
		bad_option(result, argv, all);
	return result;
}

static int load_progress(void *context, const char *stage, uint64_t done, uint64_t all)
{
	(void)context;
	return ky_cli_progress(stage, done, all);
}

/* One line on what is wrong with the input, for those who did not ask. */
static void say_problems(const struct ky_trace *trace, const char *path)
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
	char place[48] = "", count[KY_CLI_NUMBER_BYTES];
	if (problems->first_at[first] != KY_NO_PLACE)
		snprintf(place, sizeof(place), " at byte %" PRIu64, problems->first_at[first]);
	const char *const name = ky_text_of(trace, problems->name[first]);
	const char *const text = ky_text_of(trace, problems->first[first]);
	ky_cli_error("%s: %s %s with the input, the first%s: %s; 'kymo validate' lists them", path,
		     ky_cli_count(count, number), number == 1 ? "problem" : "problems", place,
		     text   ? text
		     : name ? name
			    : "not known");
}

static void say_losses(const struct ky_trace *trace, const char *path)
{
	char count[KY_CLI_NUMBER_BYTES];
	if (trace->lost)
		ky_cli_error("%s: %s events were lost before they got into the file", path,
			     ky_cli_count(count, trace->lost));
}

static void say_not_loaded(int error, const char *message)
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
	/* A read that a signal ended is told of here, where no progress was. */
	if (error == -EINTR)
		ky_cli_progress("opening", 0, 0);
	ky_cli_progress_end();
	if (error) {
		ky_trace_close(&trace);
		if (!how->mute)
			say_not_loaded(error, message);
		return NULL;
	}
	if (!how->quiet) {
		say_losses(trace, path);
		say_problems(trace, path);
	}
	return trace;
}

struct ky_trace *ky_cli_load(const char *path, const char *format, bool quiet)
{
	return ky_cli_load_with(path, &(struct ky_cli_load){.format = format, .quiet = quiet});
}
