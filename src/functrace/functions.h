/* SPDX-License-Identifier: MIT */
/*
 * functions.h: the functions of an ELF file, and how each of them can be traced. Addresses are the file's own.
 *
 *   .symtab, its debug file's, .dynsym ─┐
 *   .eh_frame (stripped files)          ├─▶ functions, by address ─ window.c ─▶ how, or why not
 *   __patchable_function_entries        │        │
 *   xray_instr_map                     ─┘        └─ ky_selection: which the user wants
 *
 * The decoding is kept in a cache by build id ($XDG_CACHE_HOME/kymo/functions), for it takes a second with 75,000
 * functions. A cache that cannot be written or is damaged is as none.
 */
#ifndef KY_FUNCTRACE_FUNCTIONS_H
#define KY_FUNCTRACE_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KY_FUNCTRACE_MESSAGE_BYTES 512 /* as KY_CAPTURE_MESSAGE_BYTES */

enum ky_function_how {
	KY_FUNCTION_NOT,   /* see why */
	KY_FUNCTION_PATCH, /* its first instructions are moved */
	KY_FUNCTION_NOPS,  /* compiled with -fpatchable-function-entry: its nops are overwritten */
	KY_FUNCTION_SLED,  /* clang's XRay: its entry sled is overwritten */
};

/* Why a function is left alone; in the order in which they are shown. */
enum ky_function_why {
	KY_WHY_NONE,
	KY_WHY_SHORT,       /* shorter than a jump, and its neighbour begins at once */
	KY_WHY_JUMPED_INTO, /* a branch of its own leads into the first instructions */
	KY_WHY_CALL,        /* a call among them that is not the last */
	KY_WHY_STRANGE,     /* an instruction that cannot be moved or decoded */
	KY_WHY_JIT, /* a builtin of V8, or Go, OCaml: they read return addresses, or move stacks */
	KY_WHY_RUNTIME, /* of the loader, the unwinder, or what runs before threads are set up; setjmp and its like */
	KY_WHY_COUNT
};
const char *ky_function_why_text(enum ky_function_why why); /* "shorter than a jump" */

struct ky_function {
	uint64_t address;
	uint64_t bytes;
	const char *
		linked; /* its name as the file has it; made of its address ("0x1b30") when it has none */
	const char *name; /* as people wrote it; "file+0x1b30" when it has none */
	const char *file; /* NULL: not known; where debug information is */
	uint32_t line;
	uint8_t how, why;
	uint8_t at;     /* bytes from the address to the jump: 4 behind endbr64 */
	uint8_t window; /* bytes from there that are overwritten or moved, 5 to 31 */
};

struct ky_code_range {
	uint64_t from, bytes; /* addresses of the file */
};

/* A word of the GOT that leads to __cyg_profile_func_enter or _exit. */
#define KY_CYG_SLOTS_MAX 8u
struct ky_cyg_slot {
	uint64_t address; /* of the file, of 8 bytes */
	bool is_exit;
};

struct ky_functions {
	const char *path;
	uint8_t build_id[32];
	uint32_t build_id_bytes;
	struct ky_function *functions; /* by address; no two at the same one */
	uint32_t count;
	const char *names_from;     /* ".symtab", "debug file", ".dynsym"; NULL: it has no names */
	struct ky_code_range *code; /* its executable segments */
	uint32_t code_count;
	struct ky_code_range
		builtins; /* of V8, or all code of a Go or OCaml program: bytes is 0 when there are none */
	uint64_t find_fde; /* _Unwind_Find_FDE, 0: none */
	uint64_t
		debug_state; /* of the loader: where it stops for debuggers (r_brk's function), 0: none */
	uint64_t call_prctl,
		call_syscall; /* prctl() and syscall(), by which programs put themselves into sandboxes, 0: none */
	uint64_t cyg_enter,
		cyg_exit; /* __cyg_profile_func_enter and _exit as this file defines them, 0: none, or
			     both are one (glibc's, which do nothing) */
	struct ky_cyg_slot cyg_slots[KY_CYG_SLOTS_MAX]; /* where it looks up those of other files */
	uint32_t cyg_slots_count;
	bool calls_cyg; /* it was compiled with -finstrument-functions */
	bool throws;    /* it has .gcc_except_table */
	bool is_static; /* no loader */
	bool makes_code; /* it is known to have a JIT: callers may be outside of all files, and read stacks */
	void *private_data;
};

/* fd stays the caller's and may be closed. lines: also files and lines, which takes longer. 0, or -errno with a message. */
int ky_functions_read(struct ky_functions **functions, int fd, const char *path, bool lines,
		      char message[KY_FUNCTRACE_MESSAGE_BYTES]);
void ky_functions_free(struct ky_functions **functions);
/*
 * The same, but read only once as long as the file stays as it is: for all processes that have it mapped, which must not change it.
 * What nobody uses any more is kept for the next, up to a bound. All of it from one thread.
 */
int ky_functions_share(const struct ky_functions **functions, int fd, const char *path, bool lines,
		       char message[KY_FUNCTRACE_MESSAGE_BYTES]);
void ky_functions_unshare(const struct ky_functions **functions);
/* Frees what nobody uses: how many files. */
uint32_t ky_functions_shared_clear(void);
/* Whether most of them were compiled to be traced: then there is no need to patch others. */
bool ky_functions_are_ready(const struct ky_functions *functions);
/* The function that has the address; NULL: none. */
const struct ky_function *ky_functions_over(const struct ky_functions *functions, uint64_t address);
/* Whether it is of an unwinder, by its name. */
bool ky_function_unwinds(const struct ky_function *function);
/* The code at an address, and how many bytes of it follow in the file; NULL when there is none. */
const uint8_t *ky_functions_code(const struct ky_functions *functions, uint64_t address,
				 uint64_t *bytes);

/*
 * Which functions the user wants: globs over the name (demangled or as linked), with '-' before one that excludes; and
 * "module:GLOB" over the file's base name, "file:GLOB" over the source file. Nothing said: all functions of all
 * modules. The last that matches decides; when the first is no exclusion, nothing else is wanted to begin with.
 */
struct ky_selection;
int ky_selection_parse(struct ky_selection **selection, const char *list, uint64_t min_bytes,
		       char message[KY_FUNCTRACE_MESSAGE_BYTES]);
void ky_selection_free(struct ky_selection **selection);
bool ky_selection_wants(const struct ky_selection *selection, const struct ky_functions *module,
			const struct ky_function *function);
bool ky_selection_needs_lines(const struct ky_selection *selection);

#endif
