/* SPDX-License-Identifier: MIT */
/*
 * functions_parts.h: how the functions of an ELF file are found, step by step, for the files that each do one of them.
 *
 *   functions.c           opens, calls the others in order
 *   functions_segments.c  what the file has in memory, read into our own
 *   functions_frames.c    .eh_frame: where functions begin and end, and whether a place is an entry
 *   functions_symbols.c   the tables of symbols; makes the list
 *   compiler_marks.c     what compilers left for tracers: nops, sleds; V8's and Go's code
 *   functions_runtime.c   what must not be hooked, by name
 *   functions_scan.c      every instruction: who branches into first instructions
 *   return_address_users.c     and who looks at its own return address
 *   functions_cache.c     keeps what the last two found
 *   functions_lines.c     source files and lines
 *   functions_shared.c    keeps all of it in memory, for other processes
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
/* Of relocations, of sleds: files have a few, and hostile ones thousands of the same bytes. */
#define KY_FUNCTIONS_SECTIONS_MAX 64u
/* Symbols can share their names' bytes: long ones would cost memory out of proportion to the file. */
#define KY_FUNCTIONS_NAME_MAX 2048u

struct ky_functions_segment {
	uint64_t address, bytes;
	uint8_t *data;
	bool is_code;
};

struct ky_functions_texts; /* a piece of the memory for texts */

/* What stays as long as the functions. */
struct ky_functions_own {
	struct ky_functions_segment segments[KY_FUNCTIONS_SEGMENTS_MAX];
	uint32_t segments_count;
	struct ky_functions_texts *texts;
	uint64_t texts_left;  /* bytes that they may still take */
	csh capstone;         /* 0: not there */
	cs_insn *instruction; /* room for one of its */
};

/* A description of .eh_frame. */
struct ky_functions_frame {
	uint64_t address, bytes;
	uint64_t program_bytes; /* its instructions, with those of its CIE */
	uint64_t cie;           /* where that is in the section */
	bool is_plain;          /* at its first address it is as its CIE says */
};

/* What is known of a place in a frame. */
struct ky_functions_row {
	bool is_entry, returns;
};

struct ky_functions_ranges {
	struct ky_code_range items[KY_FUNCTIONS_RANGES_MAX];
	uint32_t count;
};

/* While they are being found. */
struct ky_functions_reading {
	struct ky_functions *out;
	struct ky_functions_own *own;
	int fd;
	struct ky_program_file *file;
	Elf *elf, *debug;
	GElf_Ehdr head;
	uint32_t room; /* for functions */
	bool without_memory;
	bool has_data;                     /* of the segments that are no code */
	struct ky_functions_frame *frames; /* by address */
	uint32_t frames_count, frames_room;
	Dwarf_CFI *cfi;     /* NULL: none */
	uint64_t asked_cie; /* the last whose plain frames were asked about; ~0: none */
	struct ky_functions_row plain;
	struct ky_functions_ranges text;  /* sections of instructions, */
	struct ky_functions_ranges stubs; /* and those of .plt, which are no functions, */
	struct ky_functions_ranges glue;  /* .init and .fini: pieces of several files */
};

/* ---- functions.c ---- */
/* Says why they cannot be found; gives the error back. */
int ky_functions_fail(char message[KY_FUNCTRACE_MESSAGE_BYTES], const char *path, int error);

/* ---- functions_segments.c ---- */
/* Those of code. False without memory. */
bool ky_functions_segments(struct ky_functions_reading *reading);
/* The others too, for who needs them. */
void ky_functions_segments_data(struct ky_functions_reading *reading);
void ky_functions_segments_forget_data(struct ky_functions_own *own);
void ky_functions_own_free(struct ky_functions_own *own);
/* Bytes of memory. */
uint64_t ky_functions_own_size(const struct ky_functions_own *own);
const uint8_t *ky_functions_bytes(const struct ky_functions_own *own, uint64_t address,
				  bool is_code, uint64_t *bytes);
/* A copy that lives as long as the functions; NULL without memory, or when there are too many for the file. */
const char *ky_functions_text(struct ky_functions_own *own, const char *text, size_t bytes);
bool ky_functions_in(const struct ky_functions_ranges *ranges, uint64_t address);
/* The section of that name that has bytes in the file; NULL when there is none. */
Elf_Scn *ky_functions_section(Elf *elf, const char *name, GElf_Shdr *head);

/* ---- functions_frames.c ---- */
void ky_functions_frames(struct ky_functions_reading *reading);
/* The last that begins at or before the address and has it, or NULL. */
const struct ky_functions_frame *ky_functions_frame_at(const struct ky_functions_reading *reading,
						       uint64_t address);

/* Report whether the return address is where a call leaves it: CFA = rsp + 8. */
bool ky_functions_frame_is_entry(struct ky_functions_reading *reading,
				 const struct ky_functions_frame *frame, uint64_t address);
/* Report whether there is a return address: not in outermost functions (_start, where a thread begins). */
bool ky_functions_frame_returns(struct ky_functions_reading *reading,
				const struct ky_functions_frame *frame, uint64_t address);
void ky_functions_frames_free(struct ky_functions_reading *reading);

/* ---- functions_symbols.c ---- */
void ky_functions_symbols(struct ky_functions_reading *reading);
/* The function that begins there; NULL when none does. */
struct ky_function *ky_functions_find(const struct ky_functions *functions, uint64_t address);

/* ---- compiler_marks.c ---- */
void ky_compiler_marks_read(struct ky_functions_reading *reading);
/* Each relative relocation: where, and what is put there. */
void ky_compiler_marks_relocations(const struct ky_functions_reading *reading,
				   void (*each)(void *context, uint64_t where, uint64_t what),
				   void *context);

/* Each word of the GOT through which functions of other files are called. */
typedef void (*ky_functions_slot_fn)(void *context, const char *name, uint64_t address);
void ky_compiler_marks_slots(const struct ky_functions_reading *reading, ky_functions_slot_fn each,
			     void *context);

/* ---- functions_runtime.c ---- */
/* Whether it is known to look at its return address. */
bool ky_functions_runtime_looks(const char *name);
void ky_functions_runtime(struct ky_functions_reading *reading);

/* ---- functions_scan.c ---- */
/* Sets how and why of all functions that are still open. */
void ky_functions_scan(struct ky_functions_reading *reading);

/* ---- return_address_users.c ---- */
struct ky_instruction;
#define KY_FUNCTIONS_SLOTS_MAX 32u
/* Where the stack pointer is, from a function's entry on. */
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
	bool *found; /* of each function: whether it looks */
	uint32_t in; /* the function that began last; UINT32_MAX: none */
	struct ky_functions_stack stack;
	struct ky_functions_tail *tails;
	uint32_t tails_count, tails_room;
	uint64_t slots[KY_FUNCTIONS_SLOTS_MAX]; /* of the GOT: functions of other files that look */
	uint32_t slots_count;
};
/* False without memory. */
bool ky_return_address_users_open(struct ky_functions_looks *looks,
				  struct ky_functions_reading *reading);
void ky_return_address_users_close(struct ky_functions_looks *looks);
void ky_return_address_users_enter(struct ky_functions_looks *looks, uint32_t function);
/* Each instruction of it, in order. */
void ky_return_address_users_at(struct ky_functions_looks *looks, const struct ky_instruction *it,
				const uint8_t *code, uint64_t address);
/* Sets why of those that look. */
void ky_return_address_users_take(struct ky_functions_looks *looks);

/* ---- functions_cache.c ---- */
bool ky_functions_cache_load(struct ky_functions *functions);
void ky_functions_cache_save(const struct ky_functions *functions);

/* ---- functions_lines.c ---- */
void ky_functions_lines(struct ky_functions_reading *reading);

#endif
