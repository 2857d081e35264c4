/* SPDX-License-Identifier: MIT */
/*
 * query_prompt.h: statements from a person at a terminal: lines edited by readline, with a history that is kept, and
 * completion of tables, columns and functions.
 */
#ifndef KY_CLI_QUERY_PROMPT_H
#define KY_CLI_QUERY_PROMPT_H

#include <stdbool.h>

struct sqlite3;

/* Reads the history and learns the names. */
void ky_query_prompt_open(struct sqlite3 *db);
/*
 * The next statement or command of one line (".tables"), to be freed; *end is set at the end of input. NULL
 * also when a line was given up with Ctrl-C.
 */
char *ky_query_prompt_next(bool *end);
/* Keeps the history. */
void ky_query_prompt_close(void);

/* Whether Ctrl-C was pressed since the last time this was asked. */
bool ky_query_prompt_interrupted(void);

#endif
