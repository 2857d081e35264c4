/* SPDX-License-Identifier: MIT */
/* symbols_parts.h: struct ky_symbols from inside, for the files that each look in one place. */
#ifndef KY_PROCESS_SYMBOLS_PARTS_H
#define KY_PROCESS_SYMBOLS_PARTS_H

#include "base/map.h"
#include "base/ranges.h"
#include "process/symbol_table.h"
#include "process/symbols.h"

#define KY_SYMBOLS_PATH_BYTES 4096

/* Where a segment of an ELF file lies in the file and in memory. */
struct ky_symbols_segment {
	uint64_t offset;
	uint64_t bytes;
	uint64_t address;
};

struct ky_symbols_file {
	uint32_t path;
	uint32_t build_id; /* 0: not recorded */
	uint64_t device;   /* major << 32 | minor */
	uint64_t inode;    /* 0: not recorded */
	bool tried;
	struct ky_symbols_segment *segments;
	uint32_t segments_count;
	struct ky_symbol_table table;
};

/* Code that came to be at some time; of the same time, what came later in the file holds. */
struct ky_symbols_code {
	uint32_t order;
	uint64_t since;
	uint64_t start;
	uint64_t end;
	uint32_t name;
	uint32_t file;
	uint32_t line;
};

/* One process's run-time code: those up to done are in space, which says what is there now. */
struct ky_symbols_jit {
	struct ky_symbols_code *codes;
	uint32_t count;
	uint64_t room;
	uint32_t done;
	bool map_tried;
	bool sorted;
	struct ky_space space;
};

struct ky_symbols {
	struct ky_strings *strings;
	ky_symbols_damaged_fn damaged;
	void *damaged_context;
	char *folder; /* of the recording with a slash at its end, or NULL */
	struct ky_symbols_file *files;
	uint32_t files_count;
	uint64_t files_room;
	struct ky_u64_map file_of; /* path and build id */
	struct ky_symbol_table kernel;
	uint64_t kernel_shift; /* subtracted from an address before it is looked for */
	bool kernel_tried;
	struct ky_symbols_jit *jits;
	uint32_t jits_count;
	uint64_t jits_room;
	struct ky_u64_map jit_of; /* pid */
	struct ky_ranges ranges;
};

/* Open a plain file outside of /proc, /sys and /dev. A descriptor, or less than 0. */
int ky_symbols_open_plain(const char *path);

#endif
