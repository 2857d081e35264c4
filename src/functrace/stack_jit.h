/* SPDX-License-Identifier: MIT */
/*
 * stack_jit.h: names of code that a process made itself, from its own /tmp/perf-PID.map, as the process sees that
 * path. The file grows while it runs: when an address is not found and the file is longer than before, it is read
 * again, but only a few times a second.
 */
#ifndef KY_FUNCTRACE_STACK_JIT_H
#define KY_FUNCTRACE_STACK_JIT_H

#include "process/symbol_table.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* All zero except pid: nothing was read yet. */
struct ky_stack_jit {
	pid_t pid;
	struct ky_symbol_table table;
	uint64_t file_bytes; /* bytes read so far */
	uint64_t looked_ns;
};

void ky_stack_jit_free(struct ky_stack_jit *jit);
/* Return the name as a string; 0: unknown. now_ns is of any clock. */
uint32_t ky_stack_jit_name(struct ky_stack_jit *jit, struct ky_strings *strings, uint64_t address,
			   uint64_t now_ns);

#endif
