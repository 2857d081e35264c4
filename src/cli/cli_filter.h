/* SPDX-License-Identifier: MIT */
/*
 * cli_filter.h: the options that choose a part of a trace, the same in every verb: --from, --to, --name, --category,
 * --thread, --process; and how threads and processes are labelled.
 */
#ifndef KY_CLI_CLI_FILTER_H
#define KY_CLI_CLI_FILTER_H

#include "cli/verb.h"
#include "query/stats.h"

#define KY_CLI_LABEL_BYTES 160

struct ky_cli_filter {
	const char *from, *to; /* as typed, or NULL */
	const char *name, *category, *thread, *process;
};

/* The options, in parts that verbs take as they need them; their places are in struct ky_cli_filter. */
extern const struct ky_option ky_cli_filter_range[];  /* --from, --to */
extern const struct ky_option ky_cli_filter_slices[]; /* --name, --category */
extern const struct ky_option ky_cli_filter_tasks[];  /* --thread, --process */
/* All of them, as sets of options of a verb whose command has the filter as a member. */
#define KY_CLI_FILTER_SETS(command, field)                                                         \
	{ky_cli_filter_range, offsetof(command, field)},                                           \
		{ky_cli_filter_slices, offsetof(command, field)},                                  \
	{                                                                                          \
		ky_cli_filter_tasks, offsetof(command, field)                                      \
	}

/* --format of verbs that read a trace. */
#define KY_CLI_FORMAT_OPTION(command, field)                                                       \
	{                                                                                          \
		"format", KY_OPTION_AT(TEXT, command, field),                                      \
			.argument = "NAME", .choices_of = ky_cli_formats,                          \
			.help = "read the input as this format instead of detecting it",           \
	}
const struct ky_choice *ky_cli_formats(void);

/* What --by of several verbs groups by: enum ky_stats_by. */
extern const struct ky_choice ky_cli_by[];

/* Return 0, or KY_EXIT_USAGE after a message when a time cannot be understood. */
int ky_cli_filter_check(const struct ky_cli_filter *filter);
/* Return the filter of that trace; its texts are the typed ones. */
struct ky_stats_filter ky_cli_filter_of(const struct ky_cli_filter *filter,
					const struct ky_trace *trace);

/* Return "worker 1234" or "thread 1234"; buf has KY_CLI_LABEL_BYTES. */
const char *ky_cli_thread_label(char *buf, const struct ky_trace *trace, uint32_t thread);
const char *ky_cli_process_label(char *buf, const struct ky_trace *trace, uint32_t process);
/* Return a slice's name or category, or "(no name)". */
const char *ky_cli_name(const struct ky_trace *trace, uint32_t string);
/* Return the label of a row of a table by that. */
const char *ky_cli_by_label(char *buf, const struct ky_trace *trace, enum ky_stats_by by,
			    uint32_t key);

#endif
