/* SPDX-License-Identifier: MIT */
/* query_output.h: the rows of a query, as a table, CSV or JSON; and the prompt at which statements are typed. */
#ifndef KY_CLI_QUERY_OUTPUT_H
#define KY_CLI_QUERY_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct sqlite3_stmt;

enum ky_query_form {
	KY_QUERY_TABLE,
	KY_QUERY_CSV,
	KY_QUERY_JSON, /* an array of objects */
	KY_QUERY_LINES /* an object a line */
};

struct ky_query_output;

/* Make an output for the rows of a statement that has columns. NULL without memory. */
struct ky_query_output *ky_query_output_new(enum ky_query_form form, struct sqlite3_stmt *stmt,
					    FILE *to);
/* Print the statement's current row. */
bool ky_query_output_row(struct ky_query_output *output);
/* End the output; whole: all rows came. Return how many there were. */
uint64_t ky_query_output_end(struct ky_query_output **output, bool whole);

/* ---- the prompt ---- */

struct sqlite3;

/* Read the history, and the names for completion. */
void ky_query_prompt_open(struct sqlite3 *db);
/*
 * Return the next statement, or a command such as ".tables", to be freed; set *end at the end of the input. NULL also
 * when Ctrl-C cancelled a line.
 */
char *ky_query_prompt_next(bool *end);
/* Save the history. */
void ky_query_prompt_close(void);

/* Report whether Ctrl-C was pressed since the last call. */
bool ky_query_prompt_interrupted(void);

#endif
