/* SPDX-License-Identifier: MIT */
/*
 * cli.h: what the verbs share: messages, loading a trace, progress, tables and text for a terminal; options that choose a part
 * of a trace; writing traces.
 *
 * Results go to standard output, everything else to standard error.
 */
#ifndef KY_CLI_CLI_H
#define KY_CLI_CLI_H

#include "base/json_out.h"
#include "cli/verb.h"
#include "formats/export.h"
#include "formats/merge.h"
#include "model/quantity.h"
#include "model/trace.h"
#include "query/stats.h"

#include <stdio.h>
#include <sys/types.h>

/* Set the running verb, which messages name; NULL is kymo itself. */
void ky_cli_begin(const struct ky_verb *verb);
const struct ky_verb *ky_cli_verb(void);
/* Flush standard output. Report an error there and turn KY_EXIT_DONE into KY_EXIT_FAILED. */
int ky_cli_end(int code);

/* Print "kymo VERB: ..." on standard error; return KY_EXIT_FAILED. */
int ky_cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Print the same, then where to find help; return KY_EXIT_USAGE. */
int ky_cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/*
 * Load a trace with a progress line on a terminal; Ctrl-C cancels. On failure print the error and return NULL. format may
 * be NULL. Unless quiet, report problems of the input in one line.
 */
struct ky_trace *ky_cli_load(const char *path, const char *format, bool quiet);
/* The same with a progress callback, which may cancel: -ECANCELED is not reported. */
struct ky_cli_load {
	const char *format;
	bool quiet;
	bool mute; /* does not report a failure either */
	/* NULL: ky_cli_progress() */
	int (*progress)(void *context, const char *stage, uint64_t done, uint64_t all);
	void *context;
};
struct ky_trace *ky_cli_load_with(const char *path, const struct ky_cli_load *how);
/* Show a progress line for other work: stage, done of all. Return -EINTR after Ctrl-C, else 0. */
int ky_cli_progress(const char *stage, uint64_t done, uint64_t all);
/* Do the same as callbacks of work that names its stages, and of work that does not: then the context is the name. */
int ky_cli_on_progress(void *context, const char *stage, uint64_t done, uint64_t all);
int ky_cli_on_stage(void *stage, uint64_t done, uint64_t all);
/*
 * Clear the progress line before anything else is printed and end the work: Ctrl-C has its usual effect again. A Ctrl-C
 * that no ky_cli_progress() has returned takes effect now.
 */
void ky_cli_progress_end(void);
/* After Ctrl-C cancelled some work: report it, once, and return true. */
bool ky_cli_interrupted(void);

/* Report whether a process is a kymo that captures: it blocks the signal for snapshots (capture/signals.h). */
bool ky_cli_captures(pid_t pid);

/* Return the columns of the terminal on standard output, or COLUMNS; 0: it is not a terminal. */
unsigned ky_cli_width(void);
/* Return the columns of what need not be a terminal: COLUMNS, the terminal's, or otherwise. */
unsigned ky_cli_width_or(unsigned otherwise);
/* Return the columns of the terminal on standard error, or 80. */
unsigned ky_cli_error_width(void);

/* Report whether the locale (LC_ALL=C) shows ASCII alone; text of a trace has '?' for the rest then. */
bool ky_cli_ascii(void);
/* Return one or the other. */
static inline const char *ky_cli_sign(const char *unicode, const char *ascii)
{
	return ky_cli_ascii() ? ascii : unicode;
}

/* Return the sequences that begin a colour or weight ("1", "31", ...) and end it; "" unless standard output shows colours. */
const char *ky_cli_style(const char *sgr);
const char *ky_cli_plain(void);

/* A table for people: columns are aligned, and the flexible one is cut to fit the terminal. */
struct ky_cli_table;
struct ky_cli_column {
	const char *title;
	bool right;
	bool flexible; /* cut this one when the line is too long */
};
struct ky_cli_table *ky_cli_table_new(const struct ky_cli_column *columns, unsigned count);
/* Make a table of all columns of an array. */
#define KY_CLI_TABLE(columns) ky_cli_table_new(columns, sizeof(columns) / sizeof((columns)[0]))
/* Add the next cell, row after row; the text is copied and shown as one line. NULL is empty. */
void ky_cli_table_cell(struct ky_cli_table *table, const char *text);
/* Add a cell in a colour, as in ky_cli_style(). */
void ky_cli_table_styled(struct ky_cli_table *table, const char *text, const char *sgr);
void ky_cli_table_format(struct ky_cli_table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Print the table with so many blanks before each line, and free it; one without rows prints nothing. */
void ky_cli_table_print(struct ky_cli_table **table, unsigned blanks);

/* Print how many of all rows are not shown, if any, and that --limit shows them. */
void ky_cli_more(uint32_t shown, uint32_t all);

/* Print text of a trace on one line: replace what would move the cursor or is not UTF-8. */
void ky_cli_text(FILE *to, const char *text, size_t bytes);
/* Print the stacks of a capture's snapshots: where the program crashed. all: not only the first. */
void ky_cli_stacks(const struct ky_trace *trace, bool all);
/* Write a cell of a CSV file (RFC 4180), with quotes where they are needed or wanted; to a terminal, as ky_cli_text(). */
void ky_cli_csv(FILE *to, const char *text, size_t bytes, bool quoted);
/* Return a path as ky_cli_text() would print it; up to four are valid at a time. */
const char *ky_cli_path(const char *path);
/* Return the columns of a terminal that such a text takes. */
unsigned ky_cli_text_columns(const char *text, size_t bytes);
/* Return the bytes of as many of its characters as fit into that many columns. */
size_t ky_cli_text_fit(const char *text, size_t bytes, unsigned columns);

/* ---- options that choose a part of a trace, the same in every verb; labels of threads and processes (cli_filter.c) ---- */

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

/* --input-format of verbs that read a trace; --format is the output's everywhere. */
#define KY_CLI_INPUT_FORMAT(command, field)                                                        \
	{                                                                                          \
		"input-format", KY_OPTION_AT(TEXT, command, field),                                \
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

/*
 * Report that nothing of the trace, its slices or its samples, passes the filter: which option is the reason, and what is
 * like it. Return KY_EXIT_NOTHING.
 */
int ky_cli_filter_nothing(const struct ky_cli_filter *filter, struct ky_trace *trace, bool samples);

/* Return "worker 1234", "thread 1234" or "(no thread)"; buf has KY_STATS_LABEL_BYTES. */
const char *ky_cli_thread_label(char *buf, const struct ky_trace *trace, uint32_t thread);
const char *ky_cli_process_label(char *buf, const struct ky_trace *trace, uint32_t process);
/* Return a slice's name or category, or "(no name)". */
const char *ky_cli_name(const struct ky_trace *trace, uint32_t string);
/* Return the label of a row of a table by that. */
const char *ky_cli_by_label(char *buf, const struct ky_trace *trace, enum ky_stats_by by,
			    uint32_t key);

/* ---- writing traces: with a progress line, a report of what the format cannot hold, and default names (output.c) ---- */

/*
 * Where to write a trace, and as what. default_name: an existing file becomes PATH.old; if writing fails, it keeps its
 * name, and an older PATH.old stays, too.
 */
struct ky_output_target {
	const char *path, *format;
	bool default_name;
	bool quiet; /* do not report what was left out */
};
/* Write a trace; report errors and what was left out. Return an enum ky_exit. */
int ky_output_write(const struct ky_output_target *output, const struct ky_trace *trace,
		    const struct ky_export_selection *selection, struct ky_export_left *left);
/* Write the trace of a capture file; return as above. */
int ky_output_convert(const struct ky_output_target *output, const char *captured);
/* Write what write() produces, with its progress; report errors. Return an enum ky_exit. */
int ky_output_write_by(const struct ky_output_target *output, ky_export_fn write, void *context);
/* Return PATH with .middle before its suffixes: trace.json.gz becomes trace.middle.json.gz. NULL without memory. */
char *ky_output_name(const char *path, const char *middle, const char *suffix);
/* Return the suffix of a format (trace->format), or NULL: it cannot be written. */
const char *ky_output_suffix(const char *format);
/* Return the formats that can be written, for options. */
const struct ky_choice *ky_output_formats(void);
/* Report that there is no such output format, or that the file's name has no known suffix. Return KY_EXIT_USAGE. */
int ky_output_unknown(const char *path, const char *format);
/* Write what was left out as the member "left_out" of an object. */
void ky_output_json_left(struct ky_json_out *json, const struct ky_export_left *left);

/* ---- several files as one trace, on the timeline of the first (cmd_merge.c) ---- */

struct ky_merge_input {
	const char *path;
	struct ky_trace *trace;
	struct ky_alignment alignment;
	uint32_t machine;
	bool given; /* the user gave the offset */
	int64_t offset_ns;
};

struct ky_merge_how {
	const char *by; /* only "clocks" or only "flows"; NULL: either */
	struct ky_cli_load load;
	struct ky_export_left
		*left; /* NULL, or for the kernel's rows of other hosts, which are left out */
};

/* Load and align all; report what fails. Return an enum ky_exit. */
int ky_merge_load(struct ky_merge_input *inputs, uint32_t count, const struct ky_merge_how *how);
/* Print the offset to the first and how it was found, on standard error. */
void ky_merge_report(const struct ky_merge_input *first, const struct ky_merge_input *other);
/*
 * Put all into one finished trace. Close each input's trace once it is in, so that they are not all in memory twice.
 * Report what fails. Return 0 or -errno.
 */
int ky_merge_put(struct ky_trace **merged, struct ky_merge_input *inputs, uint32_t count,
		 const struct ky_merge_how *how);

#endif
