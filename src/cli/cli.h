/* SPDX-License-Identifier: MIT */
/*
 * cli.h: what the verbs share. A verb is a const struct in one array (main.c); its file is
 * cmd_VERB.c.
 *
 * Results go to standard output, all else to standard error. Exit codes: 0 done, 1 failed, 2 used
 * wrongly, 77 not possible on this machine.
 */
#ifndef KY_CLI_CLI_H
#define KY_CLI_CLI_H

#include "model/trace.h"

#include <stdio.h>

enum ky_exit { KY_EXIT_DONE = 0, KY_EXIT_FAILED = 1, KY_EXIT_USAGE = 2, KY_EXIT_IMPOSSIBLE = 77 };

struct ky_verb {
	const char *name;
	const char *summary;               /* one line for `kymo --help` */
	const char *help;                  /* all of `kymo VERB --help`: usage, options, examples */
	int (*run)(int argc, char **argv); /* argv[0] is the verb; returns an enum ky_exit */
};

extern const struct ky_verb ky_verb_run;
extern const struct ky_verb ky_verb_attach;
extern const struct ky_verb ky_verb_record;
extern const struct ky_verb ky_verb_snapshot;
extern const struct ky_verb ky_verb_info;
extern const struct ky_verb ky_verb_report;
extern const struct ky_verb ky_verb_hist;
extern const struct ky_verb ky_verb_query;
extern const struct ky_verb ky_verb_diff;
extern const struct ky_verb ky_verb_convert;
extern const struct ky_verb ky_verb_merge;
extern const struct ky_verb ky_verb_split;
extern const struct ky_verb ky_verb_validate;
extern const struct ky_verb ky_verb_repair;
extern const struct ky_verb ky_verb_doctor;
extern const struct ky_verb ky_verb_list;
extern const struct ky_verb ky_verb_view;

/* All verbs; ends with NULL. */
extern const struct ky_verb *const ky_verbs[];

/* The verb that messages name and whose help --help prints; NULL is kymo itself. */
void ky_cli_begin(const struct ky_verb *verb);
/* Flushes standard output: an error there is said and turns KY_EXIT_DONE into KY_EXIT_FAILED. */
int ky_cli_end(int code);

/* "kymo VERB: ..." and a newline, on standard error. */
void ky_cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, then where to find help; returns KY_EXIT_USAGE. */
int ky_cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/*
 * getopt_long for verbs: handles --help (prints the verb's help to standard output and exits with
 * 0) and unknown options (message, exit 2) itself. Returns the option's val, or -1 at the end,
 * then optind is the first argument. longs must have room for no more than it lists; it ends with
 * zeros. A '+' before the shorts: what begins with no '-' ends the options.
 */
struct option;
int ky_cli_option(int argc, char **argv, const char *shorts, const struct option *longs);

/*
 * Loads a trace with a progress line on a terminal; Ctrl-C gives up. Prints the error and returns
 * NULL on failure. format may be NULL. Problems of the input are said in one line unless quiet.
 */
struct ky_trace *ky_cli_load(const char *path, const char *format, bool quiet);
/* The same, and progress is told to another, which may give up: with -ECANCELED nothing is said of it. */
struct ky_cli_load {
	const char *format;
	bool quiet;
	bool mute; /* says nothing of a failure either */
	/* NULL: ky_cli_progress() */
	int (*progress)(void *context, const char *stage, uint64_t done, uint64_t all);
	void *context;
};
struct ky_trace *ky_cli_load_with(const char *path, const struct ky_cli_load *how);
/* A progress line for other work: stage, done of all. Returns -EINTR after Ctrl-C, else 0. */
int ky_cli_progress(const char *stage, uint64_t done, uint64_t all);
/*
 * Clears the progress line before anything else is printed, and ends the work: Ctrl-C does what
 * it usually does again. A Ctrl-C that no ky_cli_progress() has returned does it now.
 */
void ky_cli_progress_end(void);
/* After Ctrl-C gave up some work: says so, once, and returns true. */
bool ky_cli_interrupted(void);

/* Whether to colour standard output: a terminal, and NO_COLOR is not set. */
bool ky_cli_colour(void);
/* Columns of the terminal on standard output; 0 when it is none. */
unsigned ky_cli_width(void);

/*
 * Begins and ends a colour or weight on standard output ("1", "31", ...); nothing unless
 * ky_cli_colour().
 */
const char *ky_cli_style(const char *sgr);
const char *ky_cli_plain(void);

/* "1.25 ms", always 3 digits and a unit; buf has KY_CLI_NUMBER_BYTES. Returns buf. */
#define KY_CLI_NUMBER_BYTES 32
const char *ky_cli_duration(char *buf, int64_t ns);
/* "12.3 M", "123" */
const char *ky_cli_count(char *buf, uint64_t n);
/* "12.3 MiB" */
const char *ky_cli_bytes(char *buf, uint64_t bytes);
/* "1.5ms", "200us", "3s", "10" (ns): false when it is none. */
bool ky_cli_parse_duration(const char *text, int64_t *ns);

/*
 * A table for people: columns aligned (numbers to the right), cut to the terminal's width at the
 * column that is flexible.
 */
struct ky_cli_table;
struct ky_cli_column {
	const char *title;
	bool right;
	bool flexible; /* cut this one when the line is too long */
};
struct ky_cli_table *ky_cli_table_new(const struct ky_cli_column *columns, unsigned count);
/* The next cell, row after row; text is copied, shown as one line. NULL is empty. */
void ky_cli_table_cell(struct ky_cli_table *table, const char *text);
/* The same in a colour, as in ky_cli_style(). */
void ky_cli_table_styled(struct ky_cli_table *table, const char *text, const char *sgr);
void ky_cli_table_format(struct ky_cli_table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The number of blanks before each line; 0 unless told. */
void ky_cli_table_indent(struct ky_cli_table *table, unsigned blanks);
/* Prints and frees; a table without rows prints nothing. */
void ky_cli_table_print(struct ky_cli_table **table, FILE *to);

/* Text of a trace on one line: what would move the cursor or is no UTF-8 is replaced. */
void ky_cli_text(FILE *to, const char *text, size_t bytes);
/* The columns of a terminal that it takes so. */
unsigned ky_cli_text_columns(const char *text, size_t bytes);
/* The bytes of as many of its characters as fit into that many columns. */
size_t ky_cli_text_fit(const char *text, size_t bytes, unsigned columns);

/* JSON to standard output: escapes what must be. text NULL prints null. */
void ky_cli_json_string(FILE *to, const char *text, size_t bytes);

#endif
