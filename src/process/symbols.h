/* SPDX-License-Identifier: MIT */
/*
 * symbols.h: names for addresses of a recorded program, from what this machine still has of it:
 *
 *   ELF files        .symtab or .dynsym, or the debug file by build id; only when it is known to be the same file
 *   the kernel       kallsyms that came with the recording, or of the kernel that runs when its build id matches
 *   run-time code    perf-PID.map and jit-PID.dump, beside the recording or where the program wrote them
 *
 * Everything is opened when it is first needed, plain files only. Names of C++ and Rust are demangled. Strings are
 * the owner's.
 */
#ifndef KY_PROCESS_SYMBOLS_H
#define KY_PROCESS_SYMBOLS_H

#include "base/strings.h"

#define KY_SYMBOLS_NO_FILE UINT32_MAX

struct ky_symbols;

/*
 * Open without any symbols. beside: the recording's path, or NULL when it is no file and nothing beside it is
 * looked for. 0 or -ENOMEM.
 */
int ky_symbols_open(struct ky_symbols **symbols, struct ky_strings *strings, const char *beside);
void ky_symbols_close(struct ky_symbols **symbols);
/* Called for each damaged place of a perf map or jitdump: its kind, the byte, and what is wrong. */
typedef void (*ky_symbols_damaged_fn)(void *context, const char *kind, uint64_t at,
				      const char *what);
void ky_symbols_on_damage(struct ky_symbols *symbols, ky_symbols_damaged_fn damaged, void *context);

/*
 * Return a number for a file that code was mapped from, for ky_symbols_in_file(). path and build_id are strings.
 * Without a build id (0) the file is known by its device (major << 32 | minor) and inode (0: neither).
 */
uint32_t ky_symbols_file(struct ky_symbols *symbols, uint32_t path, uint32_t build_id,
			 uint64_t device, uint64_t inode);
/* Return the function at a byte of the file; 0: unknown. */
uint32_t ky_symbols_in_file(struct ky_symbols *symbols, uint32_t file, uint64_t offset);

/* Add kallsyms, as text, that came with the recording; NULL: those of the running kernel. */
void ky_symbols_add_kallsyms(struct ky_symbols *symbols, const char *text, size_t bytes);
/*
 * Describe the recorded kernel: its build id, and the address of the symbol reference ("_text"; NULL: unknown).
 * Without a build id (0) it is the running kernel if its release is the same (NULL: unknown) and the symbol is
 * still at that address.
 */
void ky_symbols_kernel(struct ky_symbols *symbols, uint32_t build_id, const char *release,
		       const char *reference, uint64_t address);
uint32_t ky_symbols_in_kernel(struct ky_symbols *symbols, uint64_t address);

/* Note that the process mapped that jitdump. timed: its times are of the recording's clock. */
void ky_symbols_jitdump(struct ky_symbols *symbols, int64_t pid, const char *path, bool timed);
/*
 * Return the function that was there at that time, and its file and line (0: unknown). Times of a process must not
 * go back.
 */
uint32_t ky_symbols_in_jit(struct ky_symbols *symbols, int64_t pid, uint64_t address, uint64_t time,
			   uint32_t *file, uint32_t *line);

/* ---- kallsyms: lines "ffffffff81000000 T _stext [module]" ---- */

struct ky_kallsym {
	uint64_t address; /* 0: this user may not see it */
	char type;        /* as nm(1) has it */
	const char *name; /* in the line */
	size_t name_bytes;
};

/* Called with each line, which ends with a newline and a NUL, until it returns false. */
typedef bool (*ky_kallsym_fn)(void *context, const char *line, const struct ky_kallsym *symbol);
/* Go through /proc/kallsyms, no further than needed: all of it takes a tenth of a second. */
void ky_symbols_kallsyms(ky_kallsym_fn each, void *context);

#endif
