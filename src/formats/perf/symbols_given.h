/* SPDX-License-Identifier: MIT */
/*
 * symbols_given.h: names that came with a recording: struct ky_kymo_symbol records (kymo_layout.h), which say what is at a byte of
 * a file, at an address of the kernel, or of a process for code that was made at run time. They hold wherever the recording is
 * read, and are asked before what that machine has.
 */
#ifndef KY_FORMATS_PERF_SYMBOLS_GIVEN_H
#define KY_FORMATS_PERF_SYMBOLS_GIVEN_H

#include "formats/input.h"
#include "model/trace.h"

struct ky_symbols_given;

/* A function; strings of the trace. */
struct ky_given_name {
	uint32_t name;
	uint32_t file; /* 0: not known */
	uint32_t line;
};

/* Read all of the input. Damage is counted in the trace's problems and ends it. 0, -ENOMEM or -errno of the input. */
int ky_symbols_given_open(struct ky_symbols_given **given, struct ky_trace *trace,
			  struct ky_input *input);
void ky_symbols_given_close(struct ky_symbols_given **given);

/*
 * The names at a byte of a file: the innermost of those inlined there first, *count of them, the last is the function itself.
 * NULL: not given. path and build_id (0: none) are strings of the trace.
 */
const struct ky_given_name *ky_symbols_given_in_file(const struct ky_symbols_given *given,
						     uint32_t path, uint32_t build_id,
						     uint64_t offset, uint32_t *count);
/* Report whether names of the kernel are among them. */
bool ky_symbols_given_kernel(const struct ky_symbols_given *given);
const struct ky_given_name *ky_symbols_given_in_kernel(const struct ky_symbols_given *given,
						       uint64_t address, uint32_t *count);
const struct ky_given_name *ky_symbols_given_in_process(const struct ky_symbols_given *given,
							int32_t pid, uint64_t address,
							uint32_t *count);

#endif
