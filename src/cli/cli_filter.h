/* SPDX-License-Identifier: MIT */
/*
 * cli_filter.h: the options that choose a part of a trace, the same in every verb that has them:
 * --from, --to, --name, --category, --thread, --process.
 */
#ifndef KY_CLI_CLI_FILTER_H
#define KY_CLI_CLI_FILTER_H

#include "query/stats.h"

#define KY_CLI_LABEL_BYTES 160

struct ky_cli_filter {
	const char *from, *to; /* as typed, or NULL */
	const char *name, *category, *thread, *process;
};

/* Values of these options for getopt; a verb's own begin at KY_CLI_OPTION_OWN. */
enum {
	KY_CLI_OPTION_FROM = 0x200,
	KY_CLI_OPTION_TO,
	KY_CLI_OPTION_NAME,
	KY_CLI_OPTION_CATEGORY,
	KY_CLI_OPTION_THREAD,
	KY_CLI_OPTION_PROCESS,
	KY_CLI_OPTION_OWN
};

/* clang-format off */
#define KY_CLI_FILTER_OPTIONS                                                                      \
	{"from", required_argument, NULL, KY_CLI_OPTION_FROM},                                     \
	{"to", required_argument, NULL, KY_CLI_OPTION_TO},                                         \
	{"name", required_argument, NULL, KY_CLI_OPTION_NAME},                                     \
	{"category", required_argument, NULL, KY_CLI_OPTION_CATEGORY},                             \
	{"thread", required_argument, NULL, KY_CLI_OPTION_THREAD},                                 \
	{"process", required_argument, NULL, KY_CLI_OPTION_PROCESS}
/* clang-format on */

#define KY_CLI_FILTER_HELP                                                                         \
	"  --from TIME, --to TIME  only what reaches into this range, cut to it: 1.5s, 200ms "     \
	"from\n"                                                                                   \
	"                          the trace's begin; -1s from its end; @NS of the trace's "       \
	"clock\n"                                                                                  \
	"  --name GLOB             only slices of these names\n"                                   \
	"  --category GLOB         only slices of these categories\n"                              \
	"  --thread GLOB|TID       only these threads\n"                                           \
	"  --process GLOB|PID      only these processes\n"

/* Takes an option that is one of these: true. */
bool ky_cli_filter_option(struct ky_cli_filter *filter, int option, const char *value);
/* 0, or KY_EXIT_USAGE after a message when a time cannot be understood. */
int ky_cli_filter_check(const struct ky_cli_filter *filter);
/* The filter of that trace, whose texts are the typed ones. */
struct ky_stats_filter ky_cli_filter_of(const struct ky_cli_filter *filter,
					const struct ky_trace *trace);

/* "worker 1234", "thread 1234": buf has KY_CLI_LABEL_BYTES. KY_NONE is "(none)". */
const char *ky_cli_thread_label(char *buf, const struct ky_trace *trace, uint32_t thread);
const char *ky_cli_process_label(char *buf, const struct ky_trace *trace, uint32_t process);
/* A slice's name or category; "(no name)". */
const char *ky_cli_name(const struct ky_trace *trace, uint32_t string);
/* What rows by that are called: the title of the column. */
const char *ky_cli_by_title(enum ky_stats_by by);
const char *ky_cli_by_label(char *buf, const struct ky_trace *trace, enum ky_stats_by by,
			    uint32_t key);

#endif
