/* SPDX-License-Identifier: MIT */
/*
 * atomic_file.h: the file that an export goes to. It appears under its name whole or not at all: until the end it has
 * no name (or, where the file system cannot do that, a temporary one beside the target), so that neither a full
 * disk nor a killed program leaves a part of it, and what had the name before stays.
 *
 * What is no regular file (a pipe, a device) and "-", standard output, are written to as they are.
 */
#ifndef KY_FORMATS_ATOMIC_FILE_H
#define KY_FORMATS_ATOMIC_FILE_H

#include "out.h"

#include <stdbool.h>

enum ky_sink_packing { KY_SINK_PLAIN, KY_SINK_GZIP, KY_SINK_ZSTD };

struct ky_sink;

/* Opens it; *out takes the bytes until the end. 0 or -errno, and *what was tried. */
int ky_sink_open(struct ky_sink **sink, const char *path, enum ky_sink_packing packing,
		 struct ky_out **out, const char **what);
/* Writes what is left and gives the file its name. The sink is gone in any case. 0 or -errno. */
int ky_sink_commit(struct ky_sink **sink, const char **what);
/* Gives it up: nothing remains. NULL is allowed. */
void ky_sink_abandon(struct ky_sink **sink);

#endif
