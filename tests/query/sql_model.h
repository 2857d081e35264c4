/* SPDX-License-Identifier: MIT */
/* sql_model.h: small traces for the tests of SQL, and results as text: cells by |, rows by newlines. */
#ifndef KY_TESTS_QUERY_SQL_MODEL_H
#define KY_TESTS_QUERY_SQL_MODEL_H

#include "model/intake.h"
#include "model/kernel.h"
#include "query/sql.h"

/* Something in every table. */
struct ky_trace *model_of_all(void);
/* Slices, flows and counters by chance. */
struct ky_trace *model_random(unsigned seed, unsigned slices);

/* All statements of a text, through ky_sql_prepare(); "error: ..." when one fails. To be freed. */
char *query(struct ky_sql *sql, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* One statement, on the first connection and as it is. */
char *query_plain(struct ky_sql *sql, const char *text);
/* What EXPLAIN QUERY PLAN says of it on the first connection. */
char *plan(struct ky_sql *sql, const char *text);
/* Whether it runs without a step of SQLite for each row. */
bool is_batch(struct ky_sql *sql, const char *text);

#endif
