/* SPDX-License-Identifier: MIT */
/* sql_regexp.h: the functions of SQL over regular expressions. */
#ifndef KY_QUERY_SQL_REGEXP_H
#define KY_QUERY_SQL_REGEXP_H

#include <sqlite3.h>

void ky_sql_regexp_function(sqlite3_context *context, int argc, sqlite3_value **argv);
void ky_sql_regexp_extract(sqlite3_context *context, int argc, sqlite3_value **argv);

#endif
