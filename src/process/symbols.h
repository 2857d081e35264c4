/* SPDX-License-Identifier: MIT */
/*
 * symbols.h: names for addresses of a recorded program, from what this machine still has of it:
 *
 *   ELF files        .symtab or .dynsym, or the debug file by build id; only when it is known to be the same file
 *   the kernel       kallsyms that came with the recording, or of the kernel that runs when its build id matches
 *   run-time code    perf-PID.map and jit-PID.dump, beside the recording or where the program wrote them
 *
 * Everything is opened when it is first needed, plain files only. Names of C++ and Rust are demangled. Strings are
 * those of the trace.
 */
#ifndef KY_PROCESS_SYMBOLS_H
#define KY_PROCESS_SYMBOLS_H

#include "base/strings.h"

#define KY_SYMBOLS_NO_FILE UINT32_MAX

struct ky_symbols;

/* beside: the recording's path, or NULL when it is no file: then nothing beside it is looked for. 0 or -ENOMEM. */
int ky_symbols_open(struct ky_symbols **symbols, struct ky_strings *strings, const char *beside);
void ky_symbols_close(struct ky_symbols **symbols);
/* Called for each damaged place of a perf map or jitdump: its kind, the byte, and what is wrong. */
typedef void (*ky_symbols_damaged_fn)(void *context, const char *kind, uint64_t at,
				      const char *what);
void ky_symbols_on_damage(struct ky_symbols *symbols, ky_symbols_damaged_fn damaged, void *context);

/*
 * A file that code was mapped from: a number for ky_symbols_in_file(). path and build_id are strings of the
 * trace. Without a build id (0) the file is known by its device (major << 32 | minor) and inode (0: neither).
 */
uint32_t ky_symbols_file(struct ky_symbols *symbols, uint32_t path, uint32_t build_id,
			 uint64_t device, uint64_t inode);
/* The function at a byte of the file; 0 when not known. */
uint32_t ky_symbols_in_file(struct ky_symbols *symbols, uint32_t file, uint64_t offset);

/* kallsyms as text, which came with the recording. */
void ky_symbols_add_kallsyms(struct ky_symbols *symbols, const char *text, size_t bytes);
/*
 * The recorded kernel: its build id, and the address that the symbol reference had ("_text"; NULL: not known).
 * Without a build id (0) it is the kernel that runs when release is the same (NULL: not known) and the
 * symbol is still at that address.
 */
void ky_symbols_kernel(struct ky_symbols *symbols, uint32_t build_id, const char *release,
		       const char *reference, uint64_t address);
uint32_t ky_symbols_in_kernel(struct ky_symbols *symbols, uint64_t address);

/* The process mapped that jitdump. timed: its times are of the recording's clock. */
void ky_symbols_jitdump(struct ky_symbols *symbols, int64_t pid, const char *path, bool timed);
/*
 * The function that was there at that time, and its file and line (0: not known). Times of a process must
 * not go back.
 */
uint32_t ky_symbols_in_jit(struct ky_symbols *symbols, int64_t pid, uint64_t address, uint64_t time,
			   uint32_t *file, uint32_t *line);

#endif
