/* SPDX-License-Identifier: MIT */
/*
 * merge_inputs.h: several files as one trace, for the verbs that take several: loads them, finds out how far their
 * clocks are apart, says so, and puts them on the timeline of the first.
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
	bool given; /* the user said how far it is apart */
	int64_t offset_ns;
};

struct ky_merge_how {
	const char *by; /* "clocks" or "flows" alone; NULL: either */
	struct ky_cli_load load;
};

/* Loads and aligns all; says what cannot be. An enum ky_exit. */
int ky_merge_load(struct ky_merge_input *inputs, uint32_t count, const struct ky_merge_how *how);
/* How far it is apart from the first, and how that is known: a line on standard error. */
void ky_merge_say(const struct ky_merge_input *first, const struct ky_merge_input *other);
/*
 * All of them as one, finished. Inputs' traces are closed as they have been put in, so that not all are there twice.
 * Says what failed. 0 or -errno.
 */
int ky_merge_put(struct ky_trace **merged, struct ky_merge_input *inputs, uint32_t count,
		 const struct ky_merge_how *how);

#endif
