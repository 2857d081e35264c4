/* SPDX-License-Identifier: MIT */
/*
 * query_output.h: the rows of a query, as a table for people, as CSV or as JSON.
 */
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

/* For the rows of a statement that has columns. NULL without memory. */
struct ky_query_output *ky_query_output_new(enum ky_query_form form, struct sqlite3_stmt *stmt,
					    FILE *to);
/* The row that the statement is at. */
void ky_query_output_row(struct ky_query_output *output);
/* Ends it; whole says that all rows came. Returns how many there were. */
uint64_t ky_query_output_end(struct ky_query_output **output, bool whole);

#endif
