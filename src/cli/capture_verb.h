/* SPDX-License-Identifier: MIT */
/*
 * capture_verb.h: what run, attach and record share: the options, the output file, the capture, its conversion, the
 * progress line and the summary.
 *
 * .kymo is written directly. Any other format is made from it at the end, when everything is known: until then the
 * capture is in OUTPUT.capture.kymo, which remains when kymo is killed, and which every verb reads.
 */
#ifndef KY_CLI_CAPTURE_VERB_H
#define KY_CLI_CAPTURE_VERB_H

#include "capture/capture.h"
#include "capture/symbol_list.h"
#include "cli/verb.h"

struct ky_capture_command {
	struct ky_capture_options capture;
	struct ky_functrace_options functions; /* when capture.functions points to it */
	const char *functions_only; /* an option that was given and needs --functions; NULL: none */
	const char *output;         /* -o; NULL: the default */
	const char *format;
	bool overhead_given;
	bool quiet, json, follow;
	bool progress; /* a line while it runs, even though the program has the terminal */
	bool no_kernel;
	bool stacks;          /* -g */
	bool all;             /* -a, which record does anyway */
	uint32_t files_max;   /* --rotate; UINT32_MAX: not given */
	bool output_is_file;  /* and not standard output; set once it is known */
	const char **targets; /* -p, as given */
	uint32_t targets_count, targets_room;
	uint32_t targets_missing; /* that name no process */
	struct ky_trigger *triggers;
	uint32_t triggers_room;
	char **kernel;
	uint32_t kernel_room;
};

/*
 * Run the capture and report the result. Return an enum ky_exit; for a program that was started its exit code, 128 + N
 * when signal N ended it, 127 or 126 when it could not be started.
 */
int ky_capture_verb(struct ky_capture_command *command);

/* ---- options (capture_options.c) ---- */

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
/*
 * Find the processes of -p; one name may be several. Report those that are missing, and go on with the rest. False: there are
 * none. pids are the caller's, and must outlive the capture.
 */
bool ky_capture_options_find(struct ky_capture_command *command, struct ky_pids *pids);
void ky_capture_options_free(struct ky_capture_command *command);

/* ---- progress and summary (capture_messages.c) ---- */

struct ky_capture_progress {
	bool wanted; /* a terminal, and not the program's */
	bool flight;
	bool shown;
	uint64_t next_ns; /* of the capture's time */
	uint64_t last_ns, last_events, last_calls;
	double rate, calls; /* a second */
	char **notes;       /* lines that were printed, for the JSON */
	uint32_t notes_count, notes_room;
};

/* Callbacks for ky_capture_options: context is struct ky_capture_progress. */
int ky_capture_progress_show(void *progress, const struct ky_capture_facts *facts);
void ky_capture_progress_note(void *progress, const char *line);
void ky_capture_progress_clear(struct ky_capture_progress *progress);
void ky_capture_progress_free(struct ky_capture_progress *progress);

/* Print the file, its size, events, losses, snapshots and what to do next. path is what the user gets. */
void ky_capture_summary(const struct ky_capture_command *command,
			const struct ky_capture_facts *facts, const char *path, uint64_t bytes);
/* Print the same as one line of JSON. */
void ky_capture_summary_json(const struct ky_capture_command *command,
			     const struct ky_capture_facts *facts,
			     const struct ky_capture_progress *progress, const char *path,
			     uint64_t bytes);

/* ---- symbol:? (finder.c) ---- */

/*
 * Let the user choose a function by typing some of its letters, in fzf, which draws on the terminal itself (/dev/tty): standard
 * input and output stay what they are. Put the chosen name into out. Return KY_EXIT_DONE; after a message KY_EXIT_FAILED when none was chosen, KY_EXIT_USAGE
 * without a terminal, KY_EXIT_IMPOSSIBLE without fzf.
 */
int ky_finder_choose(const struct ky_symbol_list *list, char *out, size_t room);

#endif
