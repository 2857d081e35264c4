/* SPDX-License-Identifier: MIT */
/*
 * sample_names.h: names for the addresses that were met in call stacks, as records of a KY_KYMO_STREAM_SYMBOLS stream.
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
#include "capture/sample_processes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The addresses that were met in call stacks, each once: which will need a name. It is a byte of a file, an address of
 * the kernel, or of a process where a program made its code itself.
 *
 * Their number is bounded: when there is no more room, those go that are older than what is still kept of the samples
 * (a flight recorder's), and then no more are taken.
 */
#define KY_SAMPLE_KERNEL (UINT32_MAX - 1) /* not a module of sample_processes.h */

struct ky_sample_address {
	uint64_t address; /* offset in the file; of the kernel or the process */
	uint32_t module;  /* KY_NO_MODULE: of the process */
	uint32_t pid;     /* 0 when it is in a module */
	uint64_t seen;    /* when it was met last */
	bool wanted;      /* it is in what was written */
};

struct ky_sample_addresses {
	struct ky_sample_address *items;
	uint32_t count, room;
	struct ky_hash_index index; /* of items */
	uint64_t left_out;          /* for want of room */
};

void ky_sample_addresses_free(struct ky_sample_addresses *addresses);
/* keep_ns: when there is no more room, those seen before it and not wanted are forgotten. */
void ky_sample_addresses_add(struct ky_sample_addresses *addresses,
			     const struct ky_sample_address *one, uint64_t keep_ns);
/* All that were met since then were written. */
void ky_sample_addresses_want(struct ky_sample_addresses *addresses, uint64_t since);
/* Sort those that are wanted by module and address and drop the others, after the last add. Return how many. */
size_t ky_sample_addresses_sort(struct ky_sample_addresses *addresses);

/* Sort the addresses, and write a stream when there are any. */
void ky_sample_names_write(struct ky_bundle *bundle, struct ky_sample_addresses *addresses,
			   struct ky_sample_modules *modules);

#endif
