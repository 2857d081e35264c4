/* SPDX-License-Identifier: MIT */
/*
 * view_scratch.h: a directory for what kymo view needs for as long as it runs. Nobody else may look into it, and it
 * is on a disk rather than in memory: a recording may be large.
 */
#ifndef KY_CLI_VIEW_SCRATCH_H
#define KY_CLI_VIEW_SCRATCH_H

#include <limits.h>
#include <stdbool.h>

struct ky_scratch {
	char path[PATH_MAX / 2]; /* "": there is none */
};

/* Makes it, unless there is one. False: it cannot be made, and that was said. */
bool ky_scratch_open(struct ky_scratch *scratch);
/* With all files in it. */
void ky_scratch_close(struct ky_scratch *scratch);
void ky_scratch_name(const struct ky_scratch *scratch, const char *name, char path[PATH_MAX]);

#endif
