/* SPDX-License-Identifier: MIT */
/*
 * functions_parts.h: the steps that find the functions of an ELF file, one file for each.
 *
 *   functions.c              opens, calls the others in order
 *   functions_segments.c     the bytes that the file has in memory, read into our own
 *   functions_cfi.c       .eh_frame: start and end of functions, and whether a place is an entry
 *   functions_symbols.c      the tables of symbols; makes the list
 *   compiler_marks.c         marks that compilers leave for tracers: nops, sleds; V8's and Go's code
 *   functions_runtime.c      functions that must not be hooked, by name
 *   functions_scan.c         every instruction: branches into first instructions
 *   return_address_users.c   and functions that look at their own return address
 *   functions_cache.c        keeps the results of the last two in files, and all of it in memory for other processes
 */
#ifndef KY_FUNCTRACE_FUNCTIONS_PARTS_H
#define KY_FUNCTRACE_FUNCTIONS_PARTS_H

#include "functrace/functions.h"
#include "process/program_file.h"

#include <capstone/capstone.h>
#include <elfutils/libdw.h>
#include <gelf.h>

#define KY_FUNCTIONS_SEGMENTS_MAX 32u
#define KY_FUNCTIONS_RANGES_MAX 64u
/* Limit of sections of relocations and of sleds: files have a few, and hostile ones thousands of the same bytes. */
#define KY_FUNCTIONS_SECTIONS_MAX 64u
/* Symbols can share their names' bytes: long ones would cost memory out of proportion to the file. */
#define KY_FUNCTIONS_NAME_MAX 2048u

struct ky_functions_segment {
	uint64_t address, bytes;
	uint8_t *data;
	bool is_code;
};

struct ky_functions_texts; /* a piece of the memory for texts */

/* Data that lives as long as the functions. */
struct ky_functions_own {
	struct ky_functions_segment segments[KY_FUNCTIONS_SEGMENTS_MAX];
	uint32_t segments_count;
	struct ky_functions_texts *texts;
	uint64_t texts_left;  /* bytes that they may still take */
	csh capstone;         /* 0: missing */
	cs_insn *instruction; /* room for one instruction of capstone */
};

/* A description of .eh_frame. */
struct ky_functions_fde {
	uint64_t address, bytes;
	uint64_t program_bytes; /* its instructions, with those of its CIE */
	uint64_t cie;           /* offset of the CIE in the section */
	bool is_plain;          /* its first address has the row of its CIE */
};

/* The row of an address in a description. */
struct ky_functions_row {
	bool is_entry; /* the return address is where a call leaves it: CFA = rsp + 8 */
	bool returns; /* there is one: outermost functions (_start, the start of a thread) have none */
};

struct ky_functions_ranges {
	struct ky_code_range items[KY_FUNCTIONS_RANGES_MAX];
	uint32_t count;
};

/* The state of finding the functions. */
struct ky_functions_reading {
	struct ky_functions *out;
	struct ky_functions_own *own;
	int fd;
	struct ky_program_file *file;
	Elf *elf, *debug;
	Elf *cfi_elf; /* for cfi alone */
	GElf_Ehdr head;
	uint32_t room; /* for functions */
	bool without_memory;
	bool may_be_kept;              /* in the cache */
	bool has_data;                 /* whether the segments that are not code are read */
	struct ky_functions_fde *fdes; /* by address */
	uint32_t fdes_count, fdes_room;
	Dwarf_CFI *cfi;     /* NULL: none */
	uint64_t asked_cie; /* the last CIE whose plain descriptions were asked about; ~0: none */
	struct ky_functions_row plain;
	struct ky_functions_ranges text; /* sections of instructions, */
	struct ky_functions_ranges plt;  /* those of .plt, which are not functions, */
	struct ky_functions_ranges glue; /* .init and .fini: pieces of several files */
};

/* ---- functions.c ---- */
/* Write why they cannot be found to message; return the error. */
int ky_functions_fail(char message[KY_MESSAGE_BYTES], const char *path, int error);

/* ---- functions_segments.c ---- */
/* Read the segments of code. Return false without memory. */
bool ky_functions_segments(struct ky_functions_reading *reading);
/* Read the others too, for the steps that need them. */
void ky_functions_segments_data(struct ky_functions_reading *reading);
void ky_functions_segments_forget_data(struct ky_functions_own *own);
void ky_functions_own_free(struct ky_functions_own *own);
/* Return the bytes of memory that it uses. */
uint64_t ky_functions_own_size(const struct ky_functions_own *own);
const uint8_t *ky_functions_bytes(const struct ky_functions_own *own, uint64_t address,
				  bool is_code, uint64_t *bytes);
/* Return a copy that lives as long as the functions; NULL without memory, or when there are too many for the file. */
const char *ky_functions_text(struct ky_functions_own *own, const char *text, size_t bytes);
bool ky_functions_in(const struct ky_functions_ranges *ranges, uint64_t address);

/* ---- functions_cfi.c ---- */
void ky_functions_cfi_read(struct ky_functions_reading *reading);
/* Return the last one that begins at or before the address and contains it, or NULL. */
const struct ky_functions_fde *ky_functions_cfi_at(const struct ky_functions_reading *reading,
						   uint64_t address);

struct ky_functions_row ky_functions_cfi_row(struct ky_functions_reading *reading,
					     const struct ky_functions_fde *fde, uint64_t address);
void ky_functions_cfi_free(struct ky_functions_reading *reading);

/* ---- functions_symbols.c ---- */
void ky_functions_symbols(struct ky_functions_reading *reading);
/* Return the function that begins there; NULL: none. */
struct ky_function *ky_functions_find(const struct ky_functions *functions, uint64_t address);

/* ---- compiler_marks.c ---- */
void ky_compiler_marks_read(struct ky_functions_reading *reading);
/* Call back for each relative relocation, with its address and its value. */
void ky_compiler_marks_relocations(const struct ky_functions_reading *reading,
				   void (*each)(void *context, uint64_t where, uint64_t what),
				   void *context);

/* Call back for each word of the GOT through which functions of other files are called. */
typedef void (*ky_functions_slot_fn)(void *context, const char *name, uint64_t address);
void ky_compiler_marks_slots(const struct ky_functions_reading *reading, ky_functions_slot_fn each,
			     void *context);

/* ---- functions_runtime.c ---- */
/* Report whether it is known to look at its return address. */
bool ky_functions_runtime_looks(const char *name);
void ky_functions_runtime(struct ky_functions_reading *reading);

/* ---- functions_scan.c ---- */
/* Set how and why of all functions that are still undecided. */
void ky_functions_scan(struct ky_functions_reading *reading);

/* ---- return_address_users.c ---- */
struct ky_instruction;
#define KY_FUNCTIONS_SLOTS_MAX 32u
/* The position of the stack pointer, from a function's entry on. */
struct ky_functions_stack {
	bool follows;
	int64_t depth;       /* bytes pushed since the entry */
	int64_t frame_depth; /* depth when rbp became rsp; -1: it did not */
};
/* A function that goes on in another one, which then has its return address. By number. */
struct ky_functions_tail {
	uint32_t from, to;
};
struct ky_functions_looks {
	struct ky_functions_reading *reading;
	bool *found; /* for each function: whether it looks at its return address */
	uint32_t in; /* the function that began last; UINT32_MAX: none */
	struct ky_functions_stack stack;
	struct ky_functions_tail *tails;
	uint32_t tails_count, tails_room;
	/* of the GOT: functions of other files that look at theirs */
	uint64_t slots[KY_FUNCTIONS_SLOTS_MAX];
	uint32_t slots_count;
};
/* Return false without memory. */
bool ky_return_address_users_open(struct ky_functions_looks *looks,
				  struct ky_functions_reading *reading);
void ky_return_address_users_close(struct ky_functions_looks *looks);
void ky_return_address_users_enter(struct ky_functions_looks *looks, uint32_t function);
/* Take each instruction of the file, in order. */
void ky_return_address_users_at(struct ky_functions_looks *looks, const struct ky_instruction *it,
				const uint8_t *code, uint64_t address);
/* Set why of the functions that look. */
void ky_return_address_users_take(struct ky_functions_looks *looks);

/* ---- functions_cache.c ---- */
/* Report whether what is found in this program may be kept: no other user but root can have written it. */
bool ky_functions_cache_may_keep(int fd);
bool ky_functions_cache_load(struct ky_functions *functions);
void ky_functions_cache_save(const struct ky_functions *functions);

void ky_functions_lines(struct ky_functions_reading *reading);

#endif
