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

#include "base/map.h"
#include "functrace/functions.h"
#include "process/proc.h"
#include "process/proc_maps.h"
#include "process/symbol_table.h"
#include "process/symbolizer.h"

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- stack_modules.c ---- */

/*
 * The files that contain the code of sampled processes, and their addresses in processes.
 *
 *   process ── ranges, by address: [start, end) of module at offset     from /proc/PID/maps and MMAP2 records
 *                                      │
 *   modules, each file once  ◀─────────┘   .eh_frame for the unwinder, symbols and debug information for names
 *
 * Code that a program made itself is in a module without a file. The vDSO is the same in all processes: kymo's own is
 * read.
 */

/* ---- where functions of a stripped file begin: .eh_frame_hdr ---- */

/* All zero: a file without the table. */
struct ky_stack_starts {
	const uint8_t *table;
	uint64_t count;
	uint64_t address; /* of the section: starts are relative to it */
};

void ky_stack_starts_read(struct ky_stack_starts *starts, Elf *elf);
/* Return the last start that is not behind the address; false: none. Addresses are the file's. */
bool ky_stack_starts_find(const struct ky_stack_starts *starts, uint64_t address, uint64_t *start);

/* A part of the file that is loaded. */
struct ky_stack_segment {
	uint64_t offset, bytes, address;
};

struct ky_stack_module {
	char *path;
	const char *name; /* the last part of the path */
	uint64_t device, inode;
	bool made;                   /* no file: code that a program made */
	struct ky_symbolizer *names; /* NULL: none */
	int fd;
	char *image; /* the file's bytes; NULL: libelf reads them */
	Elf *elf;
	Dwarf *debug;
	Dwarf_CFI *cfi[2]; /* .eh_frame, .debug_frame; NULL: none */
	struct ky_stack_starts starts;
	struct ky_stack_segment *segments;
	uint32_t segments_count;
	struct ky_u64_map chains; /* of stack_names.c: by the offset in the file */
};

struct ky_stack_modules {
	struct ky_strings strings; /* of names */
	struct ky_stack_module *items;
	uint32_t count, room;
};

int ky_stack_modules_open(struct ky_stack_modules *modules);
void ky_stack_modules_close(struct ky_stack_modules *modules);
/*
 * Return the functions at a byte of the file, the innermost first. Debug information that takes too long is given up:
 * then the file has only its table of symbols.
 */
void ky_stack_module_at(const struct ky_stack_module *module, uint64_t offset,
			ky_symbolizer_fn function, void *context);
/* Return the address that the byte of the file would be loaded at; false: it is not loaded. */
bool ky_stack_module_address(const struct ky_stack_module *module, uint64_t offset,
			     uint64_t *address);

/* Put all current mappings of the process into its space. Return 0 or -errno. */
int ky_stack_modules_read(struct ky_stack_modules *modules, struct ky_address_space *space,
			  pid_t pid);
/* Put a mapping of the process into its space. */
void ky_stack_modules_map(struct ky_stack_modules *modules, struct ky_address_space *space,
			  pid_t pid, const struct ky_proc_mapping *mapping);

/* ---- stack_names.c: names of code that a process made itself (perf-PID.map) ---- */

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
