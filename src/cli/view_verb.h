/* SPDX-License-Identifier: MIT */
/*
 * view_verb.h: the parts of kymo view: cmd_view.c reads the options and loads, and one of the first three does the work.
 *
 *   cmd_view.c        writes one HTML file
 *   view_serve.c      serves the page and follows what grows, records a process for -p; signals and the browser
 *   view_perfetto.c   serves the file to ui.perfetto.dev
 *   view_files.c      files that grow, running recordings, a private folder
 */
#ifndef KY_CLI_VIEW_VERB_H
#define KY_CLI_VIEW_VERB_H

#include "cli/cli.h"

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

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

/* Do what the command asks for. Return an enum ky_exit. */
int ky_view_serve(const struct ky_view_command *command);
int ky_view_perfetto(const struct ky_view_command *command);

/* Load the inputs as one trace, with the command's format. NULL after a message. */
struct ky_trace *ky_view_load(const struct ky_view_command *command, const struct ky_cli_load *how);
/* Return "a.kymo + b.kymo", the title of the view. NULL without memory. */
char *ky_view_name(const struct ky_view_command *command);

/* Print the address on standard output, as a line or as JSON. False: nobody reads it. */
bool ky_view_print_address(const struct ky_view_command *command, const char *address);
/* Print a line of JSON: what is missing in the trace, and what is wrong with it. */
void ky_view_print_faults(const struct ky_trace *trace, const char *name);

/* ---- signals ---- */

/*
 * SIGINT, SIGTERM and SIGHUP end kymo view in order and are read from a descriptor. After the first one they have their
 * usual effect: a second Ctrl-C ends kymo at once.
 */
struct ky_stop {
	int fd;
	sigset_t before; /* the mask before, for programs that are started */
	bool asked;
};

/* Open it before there are threads, which inherit the mask. Return 0 or -errno. */
int ky_stop_open(struct ky_stop *stop);
void ky_stop_close(struct ky_stop *stop);
/* Wait for it, at most that long. */
bool ky_stop_wait(struct ky_stop *stop, int milliseconds);

/* ---- a private folder ---- */

/* For files that are needed while kymo view runs; on a disk, because a recording may be large. */
struct ky_scratch {
	char path[PATH_MAX / 2]; /* "": not made */
};

/* Make the folder unless it exists. False after a message. */
bool ky_scratch_open(struct ky_scratch *scratch);
/* Remove the folder and the files in it. */
void ky_scratch_close(struct ky_scratch *scratch);
void ky_scratch_name(const struct ky_scratch *scratch, const char *name, char path[PATH_MAX]);

/* ---- the browser ---- */

/* Report whether there is a screen. */
bool ky_browser_may_open(void);
/*
 * Open the browser and wait for nothing; mask is for its signals. Others can read a command line, so it gets a file of
 * ours that leads to the address. False after a message.
 */
bool ky_browser_open(const char *address, struct ky_scratch *scratch, const sigset_t *mask);

/* ---- files that grow ---- */

/*
 * A file is live while a process that we may look into has it open for writing or, if we cannot see the writer, until it
 * has not changed for a while.
 */
struct ky_followed {
	const char *path;
	struct stat seen; /* at the last load */
	struct stat last; /* at the last look */
	pid_t writer;     /* 0: unknown */
	int writer_fd;
	int64_t changed_ns; /* when a change was last seen; 0: never */
};

struct ky_follow {
	struct ky_followed *files; /* regular files */
	uint32_t count;
	bool changed; /* since the load */
	bool live;
};

/* Return 0 or -ENOMEM. The paths stay the caller's. */
int ky_follow_open(struct ky_follow *follow, const char *const *paths, uint32_t count);
void ky_follow_close(struct ky_follow *follow);
/* Note the files before a load, and set live. */
void ky_follow_begin_load(struct ky_follow *follow);
/* Look at the files, and set changed and live. */
void ky_follow_look(struct ky_follow *follow);

/* ---- running recordings ---- */

/* Find the file of the only recording that this user is making. False after a message: there is none, or several. */
bool ky_running_find(char path[PATH_MAX], bool quiet);

#endif
