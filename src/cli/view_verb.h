/* SPDX-License-Identifier: MIT */
/*
 * view_verb.h: the parts of kymo view: cmd_view.c reads what is asked for, and one of these does it.
 *
 *   view_serve.c      serves the page, loads, follows what grows
 *   view_export.c     writes one HTML file
 *   view_perfetto.c   serves the file to ui.perfetto.dev
 */
#ifndef KY_CLI_VIEW_VERB_H
#define KY_CLI_VIEW_VERB_H

#include "cli/cli.h"
#include "cli/cli_filter.h"

#define KY_VIEW_INPUTS_MAX 256
#define KY_VIEW_NO_PORT UINT32_MAX

struct ky_view_command {
	const char *paths[KY_VIEW_INPUTS_MAX];
	uint32_t paths_count;
	const char *targets[KY_VIEW_INPUTS_MAX]; /* -p */
	uint32_t targets_count;
	const char *output;          /* where the recording of targets stays; NULL: nowhere */
	const char *format;          /* of the inputs; NULL: by content */
	const char *export;          /* an HTML file */
	struct ky_cli_filter filter; /* of the export */
	const char *bind;
	uint32_t port; /* 0: a free one */
	bool perfetto, json, quiet;
	bool no_browser, no_follow;
};

/* Each an enum ky_exit. */
int ky_view_serve(const struct ky_view_command *command);
int ky_view_export(const struct ky_view_command *command);
int ky_view_perfetto(const struct ky_view_command *command);

/* The inputs as one trace; NULL: failed, and said. how->format is the command's. */
struct ky_trace *ky_view_load(const struct ky_view_command *command, const struct ky_cli_load *how);
/* "a.kymo + b.kymo": what is looked at. NULL without memory. */
char *ky_view_name(const struct ky_view_command *command);

/* Prints the address: a line, or an object, on standard output. False: nobody reads it. */
bool ky_view_print_address(const struct ky_view_command *command, const char *address);

#endif
