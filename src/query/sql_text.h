/* SPDX-License-Identifier: MIT */
/*
 * sql_text.h: one statement after the other out of a text, with Perfetto's words made SQLite's: INCLUDE PERFETTO
 * MODULE is nothing, CREATE PERFETTO TABLE and VIEW are SQLite's.
 */
#ifndef KY_QUERY_SQL_TEXT_H
#define KY_QUERY_SQL_TEXT_H

#include <stddef.h>

struct ky_sql_statement {
	const char *begin; /* its first word in the text */
	const char *end;   /* behind it and its semicolon */
	const char *text;  /* what SQLite is given */
	size_t bytes;      /* 0: nothing to run */
	char *replaces;    /* statement to run first: "DROP TABLE IF EXISTS x", or NULL */
	char *own;
};

/* Read the next statement. 0, -ENOMEM, or -E2BIG if it is too long for SQLite. */
int ky_sql_statement_next(struct ky_sql_statement *statement, const char *text);
void ky_sql_statement_free(struct ky_sql_statement *statement);

#endif
