/* SPDX-License-Identifier: MIT */
/*
 * bench.h: the settings of the command line, and the sections. A section prints one table and adds its
 * targets to the report; a note names what it cannot measure on this machine.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "report.h"

#include <limits.h>
#include <stdbool.h>

struct settings {
	bool quick;           /* tiny counts: a smoke test, not a measurement */
	const char *only;     /* the one section to run, or NULL */
	char self[PATH_MAX];  /* this program */
	char files[PATH_MAX]; /* a directory of our own for files, removed at the end */
};

/* Cost of trace points, on and off, beside the bare loop. */
void cost_run(const struct settings *settings, struct report *report);
/* The same for one thread and for two at once. */
void threads_run(const struct settings *settings, struct report *report);
/* Instructions, counted by callgrind. */
void instructions_run(const struct settings *settings, struct report *report);
/* Spans at full speed to a finished file. */
void throughput_run(const struct settings *settings, struct report *report);
/* Traces read back. */
void load_run(const struct settings *settings, struct report *report);
/* Traces viewed. */
void view_run(const struct settings *settings, struct report *report);
/* A program watched from outside, and triggers. */
void capture_run(const struct settings *settings, struct report *report);
/* Calls of traced functions. */
void functions_run(const struct settings *settings, struct report *report);
/* Whole programs with traced functions. */
void functions_programs_run(const struct settings *settings, struct report *report);
/* Large traces in a browser. */
void viewer_run(const struct settings *settings, struct report *report);
/* Sizes of the library and of files, and the time to compile the header. */
void size_run(const struct settings *settings, struct report *report);

/*
 * This program as its own child, so that each measurement has a process and a drum to itself. All
 * return the exit code.
 */
int instructions_child(const char *name, uint32_t iterations);
int throughput_child(const char *path, uint32_t spans);
int load_child(const char *path, uint32_t slices);
int viewer_child(const char *path, uint32_t slices);

/* Enable the loops' category. The rings are overwritten; nothing reads them. */
void tracing_on(void);

#endif
