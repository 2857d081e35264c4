/* SPDX-License-Identifier: MIT */
/*
 * ftrace_files.h: a copy of tracefs, whatever it is kept in: its files by their paths, and pages of its ring buffers.
 *
 *   directory (ftrace_pages_read.c) ─┐
 *                                    ├─▶ files by path, pages by CPU ─▶ ky_ftrace_format ─▶ model
 *   stream (ftrace_stream.c) ────────┘
 *
 * Unknown files are skipped, so that a copy may be complete. Files that explain events (formats, header_page,
 * printk_formats, kallsyms, uname) must come before the pages; saved_cmdlines, tasks and stats may come at any time.
 */
#ifndef KY_FORMATS_FTRACE_FTRACE_FILES_H
#define KY_FORMATS_FTRACE_FTRACE_FILES_H

#include "formats/ftrace/ftrace_format.h"
#include "formats/load.h"

#define KY_FTRACE_PAGE_BYTES_MAX (1u << 20)
#define KY_FTRACE_CPUS_MAX 65536u

struct ky_ftrace_files {
	struct ky_ftrace_format *format;
	uint32_t page_bytes; /* as header_page has it */
	uint32_t formats;    /* of events, seen */
	struct {
		uint64_t first, last; /* lost in all, by the first and the last stats */
		bool there;
	} * lost;
	uint32_t lost_cpus;
};

/* Open it, in this machine's byte order. Return 0 or -ENOMEM. */
int ky_ftrace_files_open(struct ky_ftrace_files *files, struct ky_trace *trace);
/* Take a file; path is relative to tracefs; the text ends in a NUL. at: place in the input, or KY_NO_PLACE. */
void ky_ftrace_files_take(struct ky_ftrace_files *files, const char *path, const char *text,
			  size_t bytes, uint64_t at);
/* Put the facts that are known only after all pages, and close. */
void ky_ftrace_files_finish(struct ky_ftrace_files *files);

/* Get N of "cpuN" and the suffix; false for any other name. */
bool ky_ftrace_files_cpu(const char *name, const char *suffix, uint32_t *cpu);

/* ---- the kernel's events in a .kymo file (struct ky_kymo_ftrace): ftrace_stream.c ---- */

/*
 * Read the records of load->input into load->trace, up to damage, which is counted as a problem. Times are
 * CLOCK_BOOTTIME. Return 0, -ENOMEM, or the result of progress.
 */
int ky_ftrace_stream_read(struct ky_load *load);

#endif
