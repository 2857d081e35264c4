/* SPDX-License-Identifier: MIT */
/*
 * sql_cells.h: cells that are computed when they are read, instead of read from an array of the
 * model.
 */
#ifndef KY_QUERY_SQL_CELLS_H
#define KY_QUERY_SQL_CELLS_H

#include "query/sql_table.h"

void ky_sql_cell_main_thread(const struct ky_trace *trace, uint32_t row, sqlite3_context *to);
void ky_sql_cell_track_machine(const struct ky_trace *trace, uint32_t row, sqlite3_context *to);
void ky_sql_cell_track_description(const struct ky_trace *trace, uint32_t row, sqlite3_context *to);
void ky_sql_cell_arg_set(const struct ky_trace *trace, uint32_t row, sqlite3_context *to);
void ky_sql_cell_arg_flat_key(const struct ky_trace *trace, uint32_t row, sqlite3_context *to);
void ky_sql_cell_arg_int(const struct ky_trace *trace, uint32_t row, sqlite3_context *to);
void ky_sql_cell_arg_string(const struct ky_trace *trace, uint32_t row, sqlite3_context *to);
void ky_sql_cell_arg_real(const struct ky_trace *trace, uint32_t row, sqlite3_context *to);
void ky_sql_cell_arg_type(const struct ky_trace *trace, uint32_t row, sqlite3_context *to);
void ky_sql_cell_arg_display(const struct ky_trace *trace, uint32_t row, sqlite3_context *to);
void ky_sql_cell_sched_end(const struct ky_trace *trace, uint32_t row, sqlite3_context *to);
void ky_sql_cell_cpu_mode(const struct ky_trace *trace, uint32_t row, sqlite3_context *to);
void ky_sql_cell_symbol_set(const struct ky_trace *trace, uint32_t row, sqlite3_context *to);
void ky_sql_cell_clock_name(const struct ky_trace *trace, uint32_t row, sqlite3_context *to);
void ky_sql_cell_metadata_type(const struct ky_trace *trace, uint32_t row, sqlite3_context *to);
void ky_sql_cell_metadata_int(const struct ky_trace *trace, uint32_t row, sqlite3_context *to);
void ky_sql_cell_severity(const struct ky_trace *trace, uint32_t row, sqlite3_context *to);
void ky_sql_cell_source(const struct ky_trace *trace, uint32_t row, sqlite3_context *to);
void ky_sql_cell_first_at(const struct ky_trace *trace, uint32_t row, sqlite3_context *to);
void ky_sql_cell_lost_events(const struct ky_trace *trace, uint32_t row, sqlite3_context *to);

/* Table functions: collect the rows for a slice (sql_relatives.c). False without memory. */
bool ky_sql_ancestors(struct ky_trace *trace, int64_t slice, struct ky_sql_rows *rows);
bool ky_sql_descendants(struct ky_trace *trace, int64_t slice, struct ky_sql_rows *rows);
bool ky_sql_following(struct ky_trace *trace, int64_t slice, struct ky_sql_rows *rows);
bool ky_sql_preceding(struct ky_trace *trace, int64_t slice, struct ky_sql_rows *rows);
bool ky_sql_connected(struct ky_trace *trace, int64_t slice, struct ky_sql_rows *rows);

#endif
