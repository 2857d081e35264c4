/* SPDX-License-Identifier: MIT */
/* symbolizer_parts.h: struct ky_symbolizer from inside, for the files that each look in one place. */
#ifndef KY_PROCESS_SYMBOLIZER_PARTS_H
#define KY_PROCESS_SYMBOLIZER_PARTS_H

#include "process/symbol_table.h"
#include "process/symbolizer.h"

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

/* Addresses that belong to something: a unit by its number, a function by the place of its DIE. */
struct ky_symbolizer_range {
	uint64_t low, high;
	uint64_t what;
};

struct ky_symbolizer_ranges {
	struct ky_symbolizer_range *items;
	size_t count, room;
};

/* A compilation unit. */
struct ky_symbolizer_unit {
	Dwarf_Die die; /* where the lines are */
	Dwarf_Die
		inner; /* where the functions are: another one when they are in a file of their own (.dwo) */
	bool indexed;
	struct ky_symbolizer_ranges functions;
};

/* A stub that jumps to a function of another file. */
struct ky_symbolizer_stub {
	uint64_t address; /* of the stub */
	uint64_t bytes;
	char *name; /* with "@plt" */
};

/* Symbols can share their names' bytes, so that long names cost time out of proportion to the file. */
#define NAME_BYTES_MAX 4096u

struct ky_symbolizer {
	Dwfl *dwfl;
	Dwfl_Module *module;
	Elf *elf;
	uint64_t bias; /* from the file's addresses to the module's */
	uint64_t deadline_ns;
	bool late;
	struct ky_strings *strings; /* of symbols */
	bool symbols_made;
	struct ky_symbol_table symbols;
	bool units_made;
	struct ky_symbolizer_unit *units;
	uint32_t units_count, units_room;
	struct ky_symbolizer_ranges unit_ranges;
	struct ky_symbolizer_stub *stubs;
	uint32_t stubs_count;
};

/* ---- symbolizer_lines.c ---- */

/* Call back for the functions that the debug information has at an address; return how many. name is the outermost's, or NULL. */
uint32_t ky_symbolizer_lines(struct ky_symbolizer *elf, uint64_t address, const char *name,
			     ky_symbolizer_fn function, void *context);
void ky_symbolizer_lines_free(struct ky_symbolizer *elf);

#endif
