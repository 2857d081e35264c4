/* SPDX-License-Identifier: MIT */
/*
 * merge_inputs.h: several files as one trace: loads them, aligns their clocks, reports how, and puts them on the
 * timeline of the first.
 */
#ifndef KY_CLI_MERGE_INPUTS_H
#define KY_CLI_MERGE_INPUTS_H

#include "cli/cli.h"
#include "formats/merge.h"

struct ky_merge_input {
	const char *path;
	struct ky_trace *trace;
	struct ky_alignment alignment;
	uint32_t machine;
	bool given; /* the user gave the offset */
	int64_t offset_ns;
};

struct ky_merge_how {
	const char *by; /* only "clocks" or only "flows"; NULL: either */
	struct ky_cli_load load;
};

/* Load and align all; report what fails. Return an enum ky_exit. */
int ky_merge_load(struct ky_merge_input *inputs, uint32_t count, const struct ky_merge_how *how);
/* Print the offset to the first and how it was found, on standard error. */
void ky_merge_say(const struct ky_merge_input *first, const struct ky_merge_input *other);
/*
 * Put all into one finished trace. Close each input's trace once it is in, so that they are not all in memory twice.
 * Report what fails. Return 0 or -errno.
 */
int ky_merge_put(struct ky_trace **merged, struct ky_merge_input *inputs, uint32_t count,
		 const struct ky_merge_how *how);

#endif
