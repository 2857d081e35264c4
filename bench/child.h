/* SPDX-License-Identifier: MIT */
/* child.h: run another program to its end and read its output. */
#ifndef BENCH_CHILD_H
#define BENCH_CHILD_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Run argv[0], found in PATH, without standard error; put the beginning of its standard output into output
 * as a string, unless that is NULL. Return true when it ended with 0.
 */
bool child_run(const char *const *argv, char *output, size_t output_bytes);

#endif
