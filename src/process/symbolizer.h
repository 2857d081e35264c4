/* SPDX-License-Identifier: MIT */
/*
 * symbolizer.h: functions, source lines and inlined functions at bytes of an ELF file, by elfutils: its symbols, its debug
 * information or that of a separate file (by build id or .gnu_debuglink, under /usr/lib/debug), and the stubs that call other
 * files' functions ("malloc@plt").
 *
 * Debug information is indexed here and not searched by libdw, which goes through a whole compilation unit for each
 * address: units by their addresses, once for the file; functions by theirs, once for each unit that is met.
 */
#ifndef KY_PROCESS_SYMBOLIZER_H
#define KY_PROCESS_SYMBOLIZER_H

#include "base/strings.h"

#include <stdbool.h>
#include <stdint.h>

struct ky_symbolizer;

/* A function at an address. Texts are valid until the call returns. */
struct ky_symbolizer_function {
	const char *name;
	const char *file; /* NULL: unknown */
	uint32_t line;
	bool inlined;              /* into the one that comes next */
	const char *declared_file; /* where the function itself is written; NULL: unknown */
	uint32_t declared_line;
};
typedef void (*ky_symbolizer_fn)(void *context, const struct ky_symbolizer_function *function);

/*
 * Open a file and take over its descriptor. Names are kept in strings. From deadline_ns (CLOCK_MONOTONIC) on only
 * the table of symbols is used. 0, -EBADMSG when it is no ELF file that can be read, or -ENOMEM.
 */
int ky_symbolizer_open(struct ky_symbolizer **elf, struct ky_strings *strings, const char *path,
		       int fd, uint64_t deadline_ns);
void ky_symbolizer_close(struct ky_symbolizer **elf);
/* Set another deadline; without effect when one has passed already. */
void ky_symbolizer_until(struct ky_symbolizer *elf, uint64_t deadline_ns);
/* Call back for each function at a byte of the file, the innermost first; not at all when none is known. */
void ky_symbolizer_at(struct ky_symbolizer *elf, uint64_t offset, ky_symbolizer_fn function,
		      void *context);
/* Report whether the deadline passed before the debug information was read. */
bool ky_symbolizer_late(const struct ky_symbolizer *elf);

#endif
