/* SPDX-License-Identifier: MIT */
/*
 * uftrace_reader.h: the parts of a uftrace data directory.
 *
 *   info       ─▶ what the records carry (features, which functions have arguments)
 *   task.txt   ─▶ sessions, threads, forks, libraries loaded later
 *   sid-N.map  ─▶ where modules are in memory;  MODULE.sym ─▶ their functions
 *   TID.dat    ─▶ calls and returns;  perf-cpuN.dat ─▶ when threads did not run
 */
#ifndef KY_FORMATS_UFTRACE_UFTRACE_READER_H
#define KY_FORMATS_UFTRACE_UFTRACE_READER_H

#include "formats/load.h"

/* Read a file, with a 0 behind it; NULL on failure. The caller frees it. */
char *ky_uftrace_slurp(const char *directory, const char *name, size_t *bytes);
/* Take the next line from *at on, without its end; NULL at the end. */
char *ky_uftrace_line(char **at);

/* ---- functions by address ---- */

struct ky_uftrace_symbols;

int ky_uftrace_symbols_open(struct ky_uftrace_symbols **symbols, const char *directory,
			    bool relative);
void ky_uftrace_symbols_close(struct ky_uftrace_symbols **symbols);
/* Add the modules of a session from its map file, if there is one. Return 0 or -ENOMEM. */
int ky_uftrace_symbols_session(struct ky_uftrace_symbols *symbols, const char *session);
/* Add a library that was loaded later. */
int ky_uftrace_symbols_library(struct ky_uftrace_symbols *symbols, const char *session,
			       uint64_t base, const char *path);
/* Return the function at the address, or NULL. */
const char *ky_uftrace_symbols_name(const struct ky_uftrace_symbols *symbols, const char *session,
				    uint64_t address);

/* ---- arguments ---- */

/* The arguments in the records of each function, from the info file. */
struct ky_uftrace_specs {
	char *texts[4]; /* argspec, retspec, argauto, retauto; "func@spec,spec;func@..." or NULL */
	struct ky_uftrace_spec *specs[4]; /* each of these in parts; uftrace_args.c */
	uint64_t rooms[4];
	uint32_t counts[4];
	const char **found[2]; /* by a function's string: of its calls, of its returns */
	uint64_t found_rooms[2];
};

/* Open, once the texts are set; the caller keeps them. */
void ky_uftrace_specs_open(struct ky_uftrace_specs *specs, struct ky_trace *trace);
void ky_uftrace_specs_close(struct ky_uftrace_specs *specs);

/*
 * Add the values in the payload of a call (or return, with returned) to the current set of arguments. Return its bytes
 * with padding; 0 when they are unknown or more than there are.
 */
size_t ky_uftrace_args(struct ky_trace *trace, struct ky_uftrace_specs *specs, const char *function,
		       bool returned, const uint8_t *data, size_t bytes);

#endif
