/* SPDX-License-Identifier: MIT */
/* child.h: running another program to its end and reading what it printed. */
#ifndef BENCH_CHILD_H
#define BENCH_CHILD_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Runs argv[0], found in PATH, with nothing on its standard error; puts the beginning of its standard
 * output into output as a string, if there is one. True when it ended with 0.
 */
bool child_run(const char *const *argv, char *output, size_t output_bytes);

#endif
