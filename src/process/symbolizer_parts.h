/* SPDX-License-Identifier: MIT */
/* symbolizer_parts.h: struct ky_sample_elf from inside, for the files that each look in one place. */
#ifndef KY_PROCESS_SYMBOLIZER_PARTS_H
#define KY_PROCESS_SYMBOLIZER_PARTS_H

#include "process/symbolizer.h"
#include "symbol_table.h"

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

/* Addresses that belong to something: a unit by its number, a function by the place of its DIE. */
struct ky_sample_span {
	uint64_t low, high;
	uint64_t what;
};

struct ky_sample_spans {
	struct ky_sample_span *items;
	size_t count, room;
};

/* False without memory, or when there are too many. */
bool ky_sample_spans_add(struct ky_sample_spans *spans, uint64_t low, uint64_t high, uint64_t what);
void ky_sample_spans_sort(struct ky_sample_spans *spans);
/* The narrowest that begins last before the address and has it; NULL: none. */
const struct ky_sample_span *ky_sample_spans_find(const struct ky_sample_spans *spans,
						  uint64_t address);

/* A compilation unit. */
struct ky_sample_unit {
	Dwarf_Die die; /* where the lines are */
	Dwarf_Die
		inner; /* where the functions are: another one when they are in a file of their own (.dwo) */
	bool indexed;
	struct ky_sample_spans functions;
};

/* A stub that jumps to a function of another file. */
struct ky_sample_stub {
	uint64_t address; /* of the stub */
	uint64_t bytes;
	char *name; /* with "@plt" */
};

struct ky_sample_elf {
	Dwfl *dwfl;
	Dwfl_Module *module;
	Elf *elf;
	uint64_t bias; /* from the file's addresses to the module's */
	uint64_t deadline_ns;
	bool late;
	struct ky_trace *trace; /* has the strings of symbols */
	bool symbols_made;
	struct ky_symbol_table symbols;
	bool units_made;
	struct ky_sample_unit *units;
	uint32_t units_count, units_room;
	struct ky_sample_spans unit_spans;
	struct ky_sample_stub *stubs;
	uint32_t stubs_count;
};

/* ---- symbolizer_lines.c ---- */

/* Functions that the debug information knows at an address of the file; how many it told of. name is the outermost's, or NULL. */
uint32_t ky_sample_elf_lines(struct ky_sample_elf *elf, uint64_t address, const char *name,
			     ky_sample_function_fn function, void *context);
void ky_sample_elf_lines_free(struct ky_sample_elf *elf);

/* ---- symbolizer_symbols.c ---- */

/* The function's name, readable, or NULL. */
const char *ky_sample_elf_symbol(struct ky_sample_elf *elf, uint64_t address);

/* ---- symbolizer_stubs.c ---- */

void ky_sample_elf_stubs_load(struct ky_sample_elf *elf);
/* The stub's name, or NULL. */
const char *ky_sample_elf_stub(const struct ky_sample_elf *elf, uint64_t address);
void ky_sample_elf_stubs_free(struct ky_sample_elf *elf);

#endif
