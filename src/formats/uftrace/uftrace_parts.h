/* SPDX-License-Identifier: MIT */
/*
 * uftrace_parts.h: the parts of a uftrace data directory.
 *
 *   info       ─▶ what the records carry (features, which functions have arguments)
 *   task.txt   ─▶ sessions, threads, forks, libraries loaded later
 *   sid-N.map  ─▶ where modules are in memory;  MODULE.sym ─▶ their functions
 *   TID.dat    ─▶ calls and returns;  perf-cpuN.dat ─▶ when threads did not run
 */
#ifndef KY_FORMATS_UFTRACE_UFTRACE_PARTS_H
#define KY_FORMATS_UFTRACE_UFTRACE_PARTS_H

#include "formats/load.h"

/* A file as text or bytes, with a 0 behind it; NULL when it cannot be read. The caller's to free. */
char *ky_uftrace_slurp(const char *directory, const char *name, size_t *bytes);
/* The next line of text from *at on, its end cut off; NULL at the end. */
char *ky_uftrace_line(char **at);

/* ---- functions by address ---- */

struct ky_uftrace_symbols;

int ky_uftrace_symbols_open(struct ky_uftrace_symbols **symbols, const char *directory,
			    bool relative);
void ky_uftrace_symbols_close(struct ky_uftrace_symbols **symbols);
/* The modules of a session: of its map file. 0 or -ENOMEM; a file that is not there is none. */
int ky_uftrace_symbols_session(struct ky_uftrace_symbols *symbols, const char *session);
/* A library that was loaded later. */
int ky_uftrace_symbols_library(struct ky_uftrace_symbols *symbols, const char *session,
			       uint64_t base, const char *path);
/* The function at the address, NULL when it is not known. */
const char *ky_uftrace_symbols_name(const struct ky_uftrace_symbols *symbols, const char *session,
				    uint64_t address);

/* ---- arguments ---- */

/* Which functions' records carry what, as the info file has it. */
struct ky_uftrace_specs {
	char *texts[4]; /* argspec, retspec, argauto, retauto; "func@spec,spec;func@..." or NULL */
	struct ky_uftrace_spec *specs[4]; /* each of these in parts; uftrace_args.c */
	uint64_t rooms[4];
	uint32_t counts[4];
	const char **found[2]; /* by a function's string: of its calls, of its returns */
	uint64_t found_rooms[2];
};

/* Once the texts are there. They stay the caller's, and must stay. */
void ky_uftrace_specs_open(struct ky_uftrace_specs *specs, struct ky_trace *trace);
void ky_uftrace_specs_close(struct ky_uftrace_specs *specs);

/*
 * Adds the values of a call's (or with returned, a return's) payload to the set being made. Returns the bytes that it
 * takes with its padding, or 0 when that is not known or more than there is.
 */
size_t ky_uftrace_args(struct ky_trace *trace, struct ky_uftrace_specs *specs, const char *function,
		       bool returned, const uint8_t *data, size_t bytes);

#endif
