/* SPDX-License-Identifier: MIT */
/* perf_script.h: the lines of `perf script`'s text. */
#ifndef KY_FORMATS_PERF_PERF_SCRIPT_H
#define KY_FORMATS_PERF_PERF_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ky_perf_text {
	const char *text;
	size_t bytes;
};

struct ky_perf_script_head {
	struct ky_perf_text comm; /* bytes 0: none */
	int64_t pid;              /* -1: unknown */
	int64_t tid;
	int64_t cpu; /* -1: unknown */
	int64_t time_ns;
	uint64_t period; /* 0: unknown */
	struct ky_perf_text event;
	struct ky_perf_text rest; /* of the line, without blanks around it */
};

struct ky_perf_script_frame {
	uint64_t address;
	struct ky_perf_text symbol; /* without its offset */
	uint64_t offset;
	struct ky_perf_text file; /* bytes 0: unknown */
};

/* A branch: from one place to another. */
struct ky_perf_script_branch {
	struct ky_perf_text kind; /* "call", "tr strt", ...; bytes 0: unknown */
	struct ky_perf_script_frame from;
	struct ky_perf_script_frame to;
};

bool ky_perf_script_head(const char *line, size_t bytes, struct ky_perf_script_head *head);
/* Parse a line of a call stack, with blanks in front or without. */
bool ky_perf_script_frame(const char *line, size_t bytes, struct ky_perf_script_frame *frame);
bool ky_perf_script_branch(const char *text, size_t bytes, struct ky_perf_script_branch *branch);

#endif
