/* SPDX-License-Identifier: MIT */
/*
 * capture_progress.h: what a capture says while it runs and when it is over, on standard error.
 *
 *   recording 12.3 s  2 processes  1.20 M events/s  45.1 MiB  nothing lost  Ctrl-C ends it
 */
#ifndef KY_CLI_CAPTURE_PROGRESS_H
#define KY_CLI_CAPTURE_PROGRESS_H

#include "cli/capture_options.h"

struct ky_capture_progress {
	bool wanted; /* a terminal, and not the program's */
	bool flight;
	bool shown;
	uint64_t next_ns; /* of the capture's time */
	uint64_t last_ns, last_events, last_calls;
	double rate, calls; /* a second */
};

/* For ky_capture_options: context is struct ky_capture_progress. */
int ky_capture_progress_show(void *progress, const struct ky_capture_facts *facts);
void ky_capture_progress_note(void *progress, const char *line);
void ky_capture_progress_clear(struct ky_capture_progress *progress);

/* The last word: file, size, events, losses, snapshots, what next. path is what the user gets. */
void ky_capture_summary(const struct ky_capture_command *command,
			const struct ky_capture_facts *facts, const char *path, uint64_t bytes);
/* The same as one line of JSON. */
void ky_capture_summary_json(const struct ky_capture_command *command,
			     const struct ky_capture_facts *facts, const char *path,
			     uint64_t bytes);

#endif
