/* SPDX-License-Identifier: MIT */
/*
 * stack_names.h: the functions at the addresses of call stacks.
 *
 *   address ─▶ module, byte of its file ─▶ chain: parse_digit (inlined), parse_number (inlined), parse
 *              of a stripped file        ─▶ chain: "sqlite3+0x8e70", by its start; or "[unknown]"
 *              address of a JIT          ─▶ chain: the name in perf-PID.map, or "[jit]"
 *                                              │
 *   functions, each name of a module once  ◀───┘
 *
 * Both are looked up once and kept: debug information is slow. Functions that the user does not want are in no chain.
 * Texts are strings of their own: those of the modules must not move while names are looked up.
 */
#ifndef KY_FUNCTRACE_STACK_NAMES_H
#define KY_FUNCTRACE_STACK_NAMES_H

#include "functrace/functions.h"
#include "functrace/stack_modules.h"
#include "process/symbol_table.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- names of code that a process made itself (perf-PID.map) ---- */

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

struct ky_stack_function {
	uint32_t name, file; /* strings; 0: none */
	uint32_t line;
	uint32_t module; /* KY_NO_MODULE: kymo's own, such as "off CPU" */
	bool wanted;
};

#define KY_STACK_NO_FUNCTION UINT32_MAX

struct ky_stack_names {
	struct ky_stack_modules *modules;
	struct ky_strings strings;
	const struct ky_selection *selection; /* NULL: all are wanted */
	struct ky_stack_function *functions;
	uint32_t count, room;
	struct ky_u64_map by_name; /* module << 32 | string */
	uint32_t *chains;          /* count, functions, count, functions ... */
	uint32_t chains_count, chains_room;
	uint32_t made_at; /* the chain of a JIT's address */
};

int ky_stack_names_open(struct ky_stack_names *names, struct ky_stack_modules *modules,
			const struct ky_selection *selection);
void ky_stack_names_close(struct ky_stack_names *names);
/*
 * Return the numbers of the functions at an address, the innermost first, and how many; valid until the next call.
 * range may be NULL; jit is of the process.
 */
uint32_t ky_stack_names_at(struct ky_stack_names *names, const struct ky_address_range *range,
			   uint64_t address, struct ky_stack_jit *jit, const uint32_t **functions);

#endif
