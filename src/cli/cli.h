/* SPDX-License-Identifier: MIT */
/*
 * cli.h: what the verbs share: messages, loading a trace, progress, tables and text for a terminal.
 *
 * Results go to standard output, everything else to standard error.
 */
#ifndef KY_CLI_CLI_H
#define KY_CLI_CLI_H

#include "cli/verb.h"
#include "model/quantity.h"
#include "model/trace.h"

#include <stdio.h>

/* Set the running verb, which messages name; NULL is kymo itself. */
void ky_cli_begin(const struct ky_verb *verb);
const struct ky_verb *ky_cli_verb(void);
/* Flush standard output. Report an error there and turn KY_EXIT_DONE into KY_EXIT_FAILED. */
int ky_cli_end(int code);

/* Print "kymo VERB: ..." on standard error. */
void ky_cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
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
/*
 * Clear the progress line before anything else is printed and end the work: Ctrl-C has its usual effect again. A Ctrl-C
 * that no ky_cli_progress() has returned takes effect now.
 */
void ky_cli_progress_end(void);
/* After Ctrl-C cancelled some work: report it, once, and return true. */
bool ky_cli_interrupted(void);

/* Report whether to colour standard output: it is a terminal, and NO_COLOR is not set. */
bool ky_cli_colour(void);
/* Return the columns of the terminal on standard output; 0: it is not a terminal. */
unsigned ky_cli_width(void);

/* Return the sequences that begin a colour or weight ("1", "31", ...) and end it; "" unless ky_cli_colour(). */
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
/* Add the next cell, row after row; the text is copied and shown as one line. NULL is empty. */
void ky_cli_table_cell(struct ky_cli_table *table, const char *text);
/* Add a cell in a colour, as in ky_cli_style(). */
void ky_cli_table_styled(struct ky_cli_table *table, const char *text, const char *sgr);
void ky_cli_table_format(struct ky_cli_table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Set the number of blanks before each line; 0 by default. */
void ky_cli_table_indent(struct ky_cli_table *table, unsigned blanks);
/* Print and free the table; one without rows prints nothing. */
void ky_cli_table_print(struct ky_cli_table **table, FILE *to);

/* Print text of a trace on one line: replace what would move the cursor or is not UTF-8. */
void ky_cli_text(FILE *to, const char *text, size_t bytes);
/* Return the columns of a terminal that such a text takes. */
unsigned ky_cli_text_columns(const char *text, size_t bytes);
/* Return the bytes of as many of its characters as fit into that many columns. */
size_t ky_cli_text_fit(const char *text, size_t bytes, unsigned columns);

#endif
