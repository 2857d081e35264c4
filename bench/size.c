/* SPDX-License-Identifier: MIT */
/*
 * size.c: the library's size without symbols, the time to compile its header, and the bytes that a span
 * of a real program (the demo) takes on disk.
 */
#include "bench.h"
#include "child.h"
#include "repeat.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kymo/session.h>

#define COMPILES 15
#define COMPILES_QUICK 1

static const struct report_column columns[] = {{"value", "value", 3}, {NULL, NULL, 0}};

static double file_bytes(const char *path)
{
	struct stat file;
	return stat(path, &file) == 0 ? (double)file.st_size : NAN;
}

/* Find the file that has a function of the library; return false when that is this program. */
static bool find_library(const struct settings *settings, char path[PATH_MAX])
{
	Dl_info info;
	int (*function)(const struct kymo_session *) = kymo_session_error;
	void *address;
	memcpy(&address, &function, sizeof(address)); /* C has no cast for it */
	return dladdr(address, &info) != 0 && realpath(info.dli_fname, path) &&
	       strcmp(path, settings->self) != 0;
}

static void library_size(const struct settings *settings, struct report *report)
{
	char library[PATH_MAX], stripped[PATH_MAX + 16];
	double kib = NAN;
	snprintf(stripped, sizeof(stripped), "%s/stripped", settings->files);
	const char *const argv[] = {"strip", "-o", stripped, library, NULL};
	if (!find_library(settings, library))
		report_note(report, "no size of the library: it is linked into this program");
	else if (!child_run(argv, NULL, 0))
		report_note(report, "no size of the library: strip is missing (binutils)");
	else
		kib = file_bytes(stripped) / 1024;
	unlink(stripped);
	report_row(report, "libkymo.so stripped, KiB", &kib);
	report_target(report, kib, 200, "KiB", "libkymo.so, stripped");
}

/* Return the shortest time to compile such a source, or NAN. */
static double compile_s(const struct settings *settings, const char *source)
{
	char path[PATH_MAX + 16];
	double shortest = NAN;
	snprintf(path, sizeof(path), "%s/compile.c", settings->files);
	FILE *file = fopen(path, "w");
	const bool written = file && fputs(source, file) >= 0;
	if (!file || fclose(file) != 0 || !written)
		return NAN;
	const char *const argv[] = {BENCH_CC, "-I", BENCH_INCLUDE, "-O2", "-c",
				    path,     "-o", "/dev/null",   NULL};
	for (int i = 0; i < (settings->quick ? COMPILES_QUICK : COMPILES); i++) {
		const uint64_t begin_ns = repeat_now_ns();
		if (!child_run(argv, NULL, 0))
			break;
		shortest = fmin(shortest, (double)(repeat_now_ns() - begin_ns) / 1e9);
	}
	unlink(path);
	return shortest;
}

static void header_time(const struct settings *settings, struct report *report)
{
	const double empty_s = compile_s(settings, "extern int empty;\n");
	const double header_s = compile_s(settings, "#include <kymo/kymo.h>\nextern int empty;\n");
	report_row(report, "compile an empty file, s", &empty_s);
	report_row(report, "compile one that includes kymo.h, s", &header_s);
	if (isnan(header_s))
		report_note(report, "no time to compile: %s or the headers in %s are missing",
			    BENCH_CC, BENCH_INCLUDE);
	report_target(report, header_s, 0.1, "s", "compile a file that includes kymo.h");
}

/* Count the text in the file, which has lines of any length. */
static double count_in_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;
	double count = file ? 0 : NAN;
	while (file && getline(&line, &room, file) >= 0)
		for (const char *at = line; (at = strstr(at, text)); at++)
			count++;
	free(line);
	if (file)
		fclose(file);
	return count;
}

/* The demo records the same events as .kymo and as JSON, in which they can be counted. */
static void demo_size(const struct settings *settings, struct report *report)
{
	char demo[PATH_MAX], kymo[PATH_MAX + 16], json[PATH_MAX + 16];
	double values[2] = {NAN, NAN};
	snprintf(demo, sizeof(demo), "%s", settings->self);
	for (int up = 0; up < 2 && strrchr(demo, '/'); up++)
		*strrchr(demo, '/') = '\0';
	strncat(demo, "/examples/demo", sizeof(demo) - strlen(demo) - 1);
	snprintf(kymo, sizeof(kymo), "%s/demo.kymo", settings->files);
	snprintf(json, sizeof(json), "%s/demo.json", settings->files);
	const char *const argv[] = {demo,
				    "--tasks",
				    settings->quick ? "100" : "20000",
				    "--seconds",
				    "0",
				    "--trace-output",
				    kymo,
				    "--trace-output",
				    json,
				    NULL};
	if (child_run(argv, NULL, 0)) {
		values[0] =
			count_in_file(json, "\"ph\":\"B\"") + count_in_file(json, "\"ph\":\"b\"");
		values[1] = file_bytes(kymo) / values[0];
	} else {
		report_note(report, "no bytes of a span: %s did not run", demo);
	}
	report_row(report, "spans of the demo", &values[0]);
	report_row(report, "bytes of a span in its .kymo", &values[1]);
	report_target(report, values[1], 8, "bytes", "a span of the demo in .kymo");
}

void size_run(const struct settings *settings, struct report *report)
{
	report_begin(report, "size", "sizes", columns);
	library_size(settings, report);
	header_time(settings, report);
	demo_size(settings, report);
	report_end(report);
}
