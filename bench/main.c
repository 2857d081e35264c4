/* SPDX-License-Identifier: MIT */
/*
 * main.c: the benchmarks. One run measures everything beside a bare loop and compares it with the
 * targets at the end. Times depend on the machine and its load, so a missed target is reported and is
 * a failure only with --check.
 */
#include "bench.h"
#include "capture.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kymo/session.h>

#include "loops.h"

static const char help[] =
	"usage: bench [options]\n"
	"\n"
	"Measures what kymo costs, side by side with a bare loop that reads the CPU's counter\n"
	"and stores 16 bytes, and shows which targets are met.\n"
	"\n"
	"  --only SECTION    cost, threads, instructions, throughput, load, capture, functions,\n"
	"                    programs (with traced functions), view, viewer (in a browser)\n"
	"                    or size\n"
	"  --quick           tiny counts: a smoke test, its figures are meaningless\n"
	"  --json            for machines\n"
	"  --check           exit with 1 when a target is missed\n"
	"  --dir DIR         where the files go (TMPDIR, or /tmp); up to 12 GB, removed again\n"
	"  --help            this text\n"
	"\n"
	"Exit code: 0 done, 1 failed or (with --check) a target is missed, 2 used wrongly.\n";

enum choice {
	ONLY = 1,
	QUICK,
	JSON,
	CHECK,
	DIRECTORY,
	HELP,
	LOOP,
	ITERATIONS,
	STREAM,
	TRACE,
	VIEW,
	BUSY,
	HITS,
	SLOW,
	SPANS
};

static const struct option longs[] = {
	{"only", required_argument, NULL, ONLY},
	{"quick", no_argument, NULL, QUICK},
	{"json", no_argument, NULL, JSON},
	{"check", no_argument, NULL, CHECK},
	{"dir", required_argument, NULL, DIRECTORY},
	{"help", no_argument, NULL, HELP},
	/* For this program as its own child. */
	{"loop", required_argument, NULL, LOOP},
	{"iterations", required_argument, NULL, ITERATIONS},
	{"stream", required_argument, NULL, STREAM},
	{"trace", required_argument, NULL, TRACE},
	{"view", required_argument, NULL, VIEW},
	{"busy", required_argument, NULL, BUSY},
	{"hits", required_argument, NULL, HITS},
	{"slow", required_argument, NULL, SLOW},
	{"spans", required_argument, NULL, SPANS},
	{NULL, 0, NULL, 0},
};

static const struct {
	const char *name;
	void (*run)(const struct settings *settings, struct report *report);
} sections[] = {
	{"cost", cost_run},
	{"threads", threads_run},
	{"instructions", instructions_run},
	{"throughput", throughput_run},
	{"load", load_run},
	{"capture", capture_run},
	{"functions", functions_run},
	{"programs", functions_programs_run},
	{"view", view_run},
	{"viewer", viewer_run},
	{"size", size_run},
};
#define SECTIONS_COUNT (sizeof(sections) / sizeof(sections[0]))

struct command {
	struct settings settings;
	bool json;
	bool check;
	bool help;
	const char *dir;
	const char *loop;   /* the child's */
	const char *stream; /* the child's */
	const char *trace;  /* the child's */
	const char *view;   /* the child's */
	const char *busy;   /* the child's */
	const char *hits;   /* the child's */
	const char *slow;   /* the child's */
	uint32_t count;     /* the child's */
};

void tracing_on(void)
{
	static struct kymo_session *session;
	const struct kymo_options options = {
		.size = sizeof(options), .format = KYMO_FORMAT_NONE, .categories = LOOPS_CATEGORY};
	const int error = session ? 0 : kymo_session_start(&session, &options);
	if (error)
		fprintf(stderr, "bench: cannot trace: %s\n", kymo_strerror(error));
}

static bool section_exists(const char *name)
{
	for (size_t i = 0; i < SECTIONS_COUNT; i++)
		if (strcmp(sections[i].name, name) == 0)
			return true;
	fprintf(stderr, "bench: '%s' is not a section: use one that --help lists\n", name);
	return false;
}

/* Take one option; return false when it is wrong. */
static bool take(struct command *command, int option, const char *text)
{
	switch (option) {
	case ONLY:
		command->settings.only = text;
		return section_exists(text);
	case QUICK:
		return command->settings.quick = true;
	case JSON:
		return command->json = true;
	case CHECK:
		return command->check = true;
	case DIRECTORY:
		command->dir = text;
		return true;
	case HELP:
		return command->help = true;
	case LOOP:
		command->loop = text;
		return true;
	case STREAM:
		command->stream = text;
		return true;
	case TRACE:
		command->trace = text;
		return true;
	case VIEW:
		command->view = text;
		return true;
	case BUSY:
		command->busy = text;
		return true;
	case HITS:
		command->hits = text;
		return true;
	case SLOW:
		command->slow = text;
		return true;
	case ITERATIONS:
	case SPANS:
		command->count = (uint32_t)strtoul(text, NULL, 10);
		return true;
	default:
		return false; /* getopt has said why */
	}
}

static bool parse(struct command *command, int argc, char **argv)
{
	int option;
	while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1)
		if (!take(command, option, optarg))
			return false;
	if (optind < argc)
		fprintf(stderr, "bench: '%s' is one too many\n", argv[optind]);
	return optind == argc;
}

static bool make_directory(struct command *command)
{
	struct settings *settings = &command->settings;
	const char *dir = command->dir ? command->dir : getenv("TMPDIR");
	const ssize_t bytes = readlink("/proc/self/exe", settings->self, PATH_MAX - 1);
	snprintf(settings->files, PATH_MAX, "%s/kymo-bench-XXXXXX", dir ? dir : "/tmp");
	if (bytes > 0 && mkdtemp(settings->files))
		return true;
	fprintf(stderr, "bench: cannot make %s: %s\n", settings->files, strerror(errno));
	return false;
}

/* Remove also what a killed child left. */
static void remove_directory(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(path);
}

static int run_sections(const struct command *command)
{
	struct report report;
	report_open(&report, command->json, !command->settings.quick);
	for (size_t i = 0; i < SECTIONS_COUNT; i++)
		if (!command->settings.only ||
		    strcmp(command->settings.only, sections[i].name) == 0)
			sections[i].run(&command->settings, &report);
	const uint32_t missed = report_close(&report);
	return report.failed || (command->check && missed) ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct command command = {.json = false};
	if (!parse(&command, argc, argv)) {
		fputs("bench: try --help\n", stderr);
		return 2;
	}
	if (command.help)
		return fputs(help, stdout) < 0;
	if (command.loop)
		return instructions_child(command.loop, command.count);
	if (command.stream)
		return throughput_child(command.stream, command.count);
	if (command.trace)
		return load_child(command.trace, command.count);
	if (command.view)
		return viewer_child(command.view, command.count);
	if (command.busy)
		return capture_busy_child(command.busy, command.count);
	if (command.hits)
		return capture_hits_child((uint32_t)strtoul(command.hits, NULL, 10));
	if (command.slow)
		return capture_slow_child((uint32_t)strtoul(command.slow, NULL, 10));
	if (!make_directory(&command))
		return 1;
#ifndef __OPTIMIZE__
	fputs("bench: compiled without optimization: the numbers mean nothing\n", stderr);
#endif
	const int result = run_sections(&command);
	remove_directory(command.settings.files);
	return result;
}
