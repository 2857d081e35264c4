/* SPDX-License-Identifier: MIT */
/*
 * functions.h: the functions of an ELF file, and how each of them can be traced. Addresses are the file's own.
 *
 *   .symtab, its debug file's, .dynsym ─┐
 *   .eh_frame (stripped files)          ├─▶ functions, by address ─ prologue.c ─▶ how, or why not
 *   __patchable_function_entries        │        │
 *   xray_instr_map                     ─┘        └─ ky_selection: those that the user wants
 *
 * The decoding is kept in a cache by build id ($XDG_CACHE_HOME/kymo/functions), because it takes a second with 75,000
 * functions. A cache that cannot be written or is damaged is ignored.
 */
#ifndef KY_FUNCTRACE_FUNCTIONS_H
#define KY_FUNCTRACE_FUNCTIONS_H

#include "base/fail.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum ky_function_how {
	KY_FUNCTION_NOT,   /* see why */
	KY_FUNCTION_PATCH, /* its first instructions are moved */
	/* compiled with -fpatchable-function-entry: its nops are overwritten */
	KY_FUNCTION_NOPS,
	KY_FUNCTION_SLED, /* clang's XRay: its entry sled is overwritten */
};

/* Why a function is not traced; in the order in which they are shown. */
enum ky_function_why {
	KY_WHY_NONE,
	KY_WHY_SHORT,       /* shorter than a jump, and its neighbour begins at once */
	KY_WHY_JUMPED_INTO, /* one of its branches leads into the first instructions */
	KY_WHY_CALL,        /* a call among them that is not the last */
	KY_WHY_STRANGE,     /* an instruction that cannot be moved or decoded */
	/* a builtin of V8, or Go, OCaml: they read return addresses, or move stacks */
	KY_WHY_JIT,
	/* of the loader, the unwinder, or code that runs before threads are set up; setjmp and similar */
	KY_WHY_RUNTIME,
	KY_WHY_COUNT
};
const char *ky_function_why_text(enum ky_function_why why); /* "shorter than a jump" */

struct ky_function {
	uint64_t address;
	uint64_t bytes;
	/* its name in the file; made of its address ("0x1b30") when it has none */
	const char *linked;
	const char *name; /* the demangled name; "file+0x1b30" when it has none */
	const char *file; /* from debug information; NULL: unknown */
	uint32_t line;
	uint8_t how, why;
	uint8_t at; /* bytes from the address to the jump: 4 after endbr64 */
	/* bytes of the prologue, from there on, that are overwritten or moved, 5 to 31 */
	uint8_t prologue;
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
	/* ".symtab", "debug file", ".dynsym"; NULL: it has no names */
	const char *names_from;
	struct ky_code_range *code; /* its executable segments */
	uint32_t code_count;
	/* of V8, or all code of a Go or OCaml program; bytes is 0 when there are none */
	struct ky_code_range builtins;
	uint64_t find_fde; /* _Unwind_Find_FDE, 0: none */
	/* of the loader: where it stops for debuggers (r_brk's function), 0: none */
	uint64_t debug_state;
	/* prctl() and syscall(), by which programs put themselves into sandboxes, 0: none */
	uint64_t call_prctl, call_syscall;
	uint64_t call_arch_prctl; /* by which programs take gs for themselves, 0: none */
	/*
	 * __cyg_profile_func_enter and _exit as this file defines them, 0: none, or both are one (glibc's,
	 * which do nothing)
	 */
	uint64_t cyg_enter, cyg_exit;
	/* where it looks up those of other files */
	struct ky_cyg_slot cyg_slots[KY_CYG_SLOTS_MAX];
	uint32_t cyg_slots_count;
	bool calls_cyg;       /* it was compiled with -finstrument-functions */
	bool throws;          /* it has .gcc_except_table */
	bool shares_unwinder; /* it uses the unwinder of another file */
	bool other_unwinder;  /* it has one that is not libgcc's: LLVM's, or libunwind */
	/* its personality, which unwinders call for each frame, compares addresses of frames (LuaJIT) */
	bool compares_frames;
	bool sets_gs;    /* it has the instruction wrgsbase */
	bool is_static;  /* no loader */
	bool makes_code; /* it has a JIT: callers may be outside of all files, and read stacks */
	void *private_data;
};

/*
 * Read the functions of a file. fd stays the caller's and may be closed. lines: also files and lines, which takes
 * longer. Return 0, or -errno with a message.
 */
int ky_functions_read(struct ky_functions **functions, int fd, const char *path, bool lines,
		      char message[KY_MESSAGE_BYTES]);
void ky_functions_free(struct ky_functions **functions);
/*
 * Do the same, but read a file only once as long as it does not change: all processes that map it share the result,
 * which must not be changed. Unused results are kept for the next process, up to a bound. Use it from one thread only.
 */
int ky_functions_share(const struct ky_functions **functions, int fd, const char *path, bool lines,
		       char message[KY_MESSAGE_BYTES]);
void ky_functions_unshare(const struct ky_functions **functions);
/* Free unused results. Return how many files. */
uint32_t ky_functions_shared_clear(void);
/* Report whether most of them were compiled to be traced: then there is no need to patch others. */
bool ky_functions_are_ready(const struct ky_functions *functions);
/* Return the function that contains the address; NULL: none. */
const struct ky_function *ky_functions_over(const struct ky_functions *functions, uint64_t address);
/*
 * Return why returns must not be hooked in a process that has this file, because exceptions may not find their way
 * through the hooks: its unwinder is not libgcc's for certain, or looks closer than others. NULL: they may.
 */
const char *ky_functions_why_entry_only(const struct ky_functions *functions);
/* Report whether it belongs to an unwinder, by its name. */
bool ky_function_unwinds(const struct ky_function *function);
/* Return the code at an address, and how many bytes of it follow in the file; NULL: none. */
const uint8_t *ky_functions_code(const struct ky_functions *functions, uint64_t address,
				 uint64_t *bytes);

/*
 * The functions that the user wants: globs over the name (demangled or as linked), with '-' before one that excludes;
 * "module:GLOB" over the file's base name, "file:GLOB" over the source file. An empty selection means all functions
 * of all modules. The last entry that matches decides; when the first is not an exclusion, nothing else is wanted by
 * default.
 */
struct ky_selection;
int ky_selection_parse(struct ky_selection **selection, const char *list, uint64_t min_bytes,
		       char message[KY_MESSAGE_BYTES]);
void ky_selection_free(struct ky_selection **selection);
bool ky_selection_wants(const struct ky_selection *selection, const struct ky_functions *module,
			const struct ky_function *function);
bool ky_selection_needs_lines(const struct ky_selection *selection);

/* ---- what a capture asks for; each engine (functrace.h) takes what concerns it ---- */

enum ky_functrace_engine {
	KY_FUNCTRACE_AUTO,
	KY_FUNCTRACE_PT,
	KY_FUNCTRACE_NOPS, /* only functions that were compiled for it */
	KY_FUNCTRACE_PATCH,
	KY_FUNCTRACE_SAMPLE
};

struct ky_functrace_options {
	enum ky_functrace_engine engine;
	const char *functions; /* syntax of ky_selection_parse(); NULL: all */
	uint64_t min_bytes;
	const struct ky_selection *selection; /* what these two say, for the engines */
	bool entry_only;
	/* limit of calls of one function; beyond it the function is no longer traced. 0: no limit */
	uint64_t hot_per_second;
	/* what tracing may cost a thread, as a part of its own time: functions that are called most are left out. 0: no limit */
	uint32_t overhead_percent;
	uint32_t samples_per_second; /* at most 10000; 0: the usual number */
	/* engine pt: of each thread; 0: 4 MiB as root, otherwise what is allowed */
	uint64_t aux_bytes;
	uint64_t ring_bytes, total_bytes; /* of a drum: per thread and in all */
	/* Report a new drum of the process; the descriptor stays functrace's. */
	void (*drum)(void *context, pid_t pid, int fd);
	/*
	 * Report that its threads are about to be stopped (true), or go on again (false): another tracer of them
	 * detaches for that time, because a thread has only one tracer. May be NULL.
	 */
	void (*stops)(void *context, pid_t pid, bool begins);
	void (*note)(void *context, const char *line);
	/* Report that a process has ended, perhaps a child that was not seen before; may be NULL. */
	void (*ended)(void *context, pid_t pid);
	void *context;
};

#endif
