/* SPDX-License-Identifier: MIT */
/* capture_options.h: the options that run, attach and record share, and the command that they make. */
#ifndef KY_CLI_CAPTURE_OPTIONS_H
#define KY_CLI_CAPTURE_OPTIONS_H

#include "capture/capture.h"
#include "cli/verb.h"

struct ky_capture_command {
	struct ky_capture_options capture;
	struct ky_functrace_options functions; /* when capture.functions points to it */
	const char *functions_only; /* an option that was given and needs --functions; NULL: none */
	const char *output;         /* -o; NULL: the default */
	const char *format;
	bool quiet, json, follow;
	bool progress; /* a line while it runs, even though the program has the terminal */
	bool no_kernel;
	uint32_t files_max;   /* --rotate; UINT32_MAX: not given */
	bool output_is_file;  /* and not standard output; set once it is known */
	const char **targets; /* -p, as given */
	uint32_t targets_count;
	struct ky_trigger *triggers;
	char **kernel;
};

/* The options that verbs share; their places are in struct ky_capture_command. */
extern const struct ky_option ky_capture_options[];          /* of run, attach and record */
extern const struct ky_option ky_capture_function_options[]; /* of run and attach */

/*
 * Read the options of the running verb; optind is the first argument then. False: wrong usage, reported. Free the command
 * in either case.
 */
bool ky_capture_options_read(struct ky_capture_command *command, int argc, char **argv);
/* Add a list of kernel events. */
void ky_capture_options_kernel(struct ky_capture_command *command, const char *list);
/* Add a process to those of -p. For the option's take(). */
int ky_capture_options_target(void *command, const char *value);
void ky_capture_options_free(struct ky_capture_command *command);

#endif
