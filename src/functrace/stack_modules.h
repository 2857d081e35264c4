/* SPDX-License-Identifier: MIT */
/*
 * stack_modules.h: the files that contain the code of sampled processes, and their addresses in processes.
 *
 *   process ── ranges, by address: [start, end) of module at offset     from /proc/PID/maps and MMAP2 records
 *                                      │
 *   modules, each file once  ◀─────────┘   .eh_frame for the unwinder, symbols and debug information for names
 *
 * Code that a program made itself is in a module without a file. The vDSO is the same in all processes: kymo's own is
 * read.
 */
#ifndef KY_FUNCTRACE_STACK_MODULES_H
#define KY_FUNCTRACE_STACK_MODULES_H

#include "base/map.h"
#include "process/address_space.h"
#include "process/proc.h"
#include "process/proc_maps.h"
#include "process/symbolizer.h"

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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

#endif
