/* SPDX-License-Identifier: MIT */
/*
 * sample_names.h: names for the places that were met in call stacks, as records of a KY_KYMO_STREAM_SYMBOLS stream.
 *
 *   files              symbolizer.h: functions, lines and what is inlined, by elfutils
 *   the kernel         /proc/kallsyms, where this user may see it
 *   made at run time   perf-PID.map and jit-PID.dump, by the reader's symbols.h
 *
 * This runs at the end of a capture and is limited in time, for each file and for all together. After that, functions get names
 * from the symbol table only, and the capture's notes say so.
 */
#ifndef KY_CAPTURE_SAMPLE_NAMES_H
#define KY_CAPTURE_SAMPLE_NAMES_H

#include "capture/bundle.h"
#include "capture/sample_addresses.h"
#include "capture/sample_modules.h"

/* Sort the addresses, and write a stream when there are any. */
void ky_sample_names_write(struct ky_bundle *bundle, struct ky_sample_addresses *places,
			   struct ky_sample_modules *modules);

#endif
