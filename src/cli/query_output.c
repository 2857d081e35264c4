/* SPDX-License-Identifier: MIT */
/*
 * query_output.c: see query_output.h.
 * The first rows are kept to find the widths of a table's columns; later rows are printed at once in the same widths,
 * so that results of any size need little memory.
 */
#include "cli/query_output.h"

#include "base/json_out.h"
#include "cli/cli.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_KEPT 1000u
#define GAP 2u
/* Longer texts do not widen a column. */
#define WIDTH_MAX 60u

struct cell {
	char *text; /* NULL: no value */
	size_t bytes;
	bool number;
};

struct column {
	const char *name;
	char *key; /* in JSON: the name, made unique */
	unsigned width;
	bool right; /* all values are numbers */
};

struct ky_query_output {
	enum ky_query_form form;
	sqlite3_stmt *stmt;
	FILE *to;
	struct ky_json_out json;
	unsigned columns_count;
	struct column *columns;
	struct cell *kept; /* rows kept until the widths are known */
	unsigned kept_rows;
	bool laid_out;
	bool broken; /* memory was short */
	uint64_t rows;
};

/* ---- cells ---- */

/* Print the shortest text that reads back as the same number. */
static void print_real(char *to, size_t room, double value)
{
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(to, room, "%.*g", digits, value);
		if (strtod(to, NULL) == value)
			break;
	}
	if (isfinite(value) && !strpbrk(to, ".en"))
		strncat(to, ".0", room - strlen(to) - 1);
}

#define NUMBER_BYTES 40

static const char *cell_text(sqlite3_stmt *stmt, int at, char number[NUMBER_BYTES], size_t *bytes)
{
	const char *text = number;

	switch (sqlite3_column_type(stmt, at)) {
	case SQLITE_NULL:
		*bytes = 0;
		return NULL;
	case SQLITE_INTEGER:
		snprintf(number, NUMBER_BYTES, "%lld", sqlite3_column_int64(stmt, at));
		break;
	case SQLITE_FLOAT:
		print_real(number, NUMBER_BYTES, sqlite3_column_double(stmt, at));
		break;
	default:
		text = (const char *)sqlite3_column_text(stmt, at);
		*bytes = (size_t)sqlite3_column_bytes(stmt, at);
		return text ? text : "";
	}
	*bytes = strlen(number);
	return text;
}

static bool is_number(sqlite3_stmt *stmt, int at)
{
	const int type = sqlite3_column_type(stmt, at);

	return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

/* ---- CSV: RFC 4180, lines end with a newline alone ---- */

static void csv_text(FILE *to, const char *text, size_t bytes)
{
	ky_cli_csv(to, text, bytes, bytes == 0);
}

static void csv_head(const struct ky_query_output *output)
{
	for (unsigned i = 0; i < output->columns_count; i++) {
		if (i)
			fputc(',', output->to);
		csv_text(output->to, output->columns[i].name, strlen(output->columns[i].name));
	}
	fputc('\n', output->to);
}

/* NULL is nothing; the empty text is quoted. */
static void csv_row(const struct ky_query_output *output)
{
	char number[NUMBER_BYTES];

	for (unsigned i = 0; i < output->columns_count; i++) {
		size_t bytes;
		const char *text = cell_text(output->stmt, (int)i, number, &bytes);
		if (i)
			fputc(',', output->to);
		if (text)
			csv_text(output->to, text, bytes);
	}
	fputc('\n', output->to);
}

/* ---- JSON ---- */

static void json_blob(struct ky_json_out *json, const char *key, const unsigned char *bytes,
		      int count)
{
	char *const text = malloc(2 * (size_t)count + 1);
	for (int i = 0; text && i < count; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	ky_json_out_string(json, key, text, 2 * (size_t)count);
	free(text);
}

static void json_cell(struct ky_json_out *json, const char *key, sqlite3_stmt *stmt, int at)
{
	char number[NUMBER_BYTES];
	size_t bytes;

	if (sqlite3_column_type(stmt, at) == SQLITE_BLOB) {
		json_blob(json, key, sqlite3_column_blob(stmt, at), sqlite3_column_bytes(stmt, at));
		return;
	}
	const char *text = cell_text(stmt, at, number, &bytes);
	if (sqlite3_column_type(stmt, at) == SQLITE_FLOAT &&
	    !isfinite(sqlite3_column_double(stmt, at)))
		text = NULL; /* JSON has no infinity */
	if (text && is_number(stmt, at))
		ky_json_out_raw(json, key, text, bytes);
	else
		ky_json_out_string(json, key, text, bytes);
}

static void json_row(struct ky_query_output *output)
{
	if (output->form == KY_QUERY_JSON && !output->rows)
		ky_json_out_begin(&output->json, NULL, '[');
	ky_json_out_begin(&output->json, NULL, '{');
	for (unsigned i = 0; i < output->columns_count; i++)
		json_cell(&output->json, output->columns[i].key, output->stmt, (int)i);
	ky_json_out_end(&output->json, '}');
}

static void json_end(struct ky_query_output *output)
{
	if (!output->rows)
		ky_json_out_begin(&output->json, NULL, '[');
	ky_json_out_end(&output->json, ']');
}

/* ---- the table ---- */

static void blanks(FILE *to, unsigned count)
{
	while (count-- > 0)
		fputc(' ', to);
}

static void table_cell(const struct ky_query_output *output, unsigned at, const char *text,
		       size_t bytes, bool number)
{
	const struct column *column = &output->columns[at];
	const unsigned width = ky_cli_text_columns(text, bytes);
	const unsigned rest = width < column->width ? column->width - width : 0;
	const bool right = number || column->right;

	if (right)
		blanks(output->to, rest);
	ky_cli_text(output->to, text, bytes);
	if (at + 1 == output->columns_count)
		fputc('\n', output->to);
	else
		blanks(output->to, (right ? 0 : rest) + GAP);
}

static void table_head(const struct ky_query_output *output)
{
	fputs(ky_cli_style("1"), output->to);
	for (unsigned i = 0; i < output->columns_count; i++)
		table_cell(output, i, output->columns[i].name, strlen(output->columns[i].name),
			   false);
	fputs(ky_cli_plain(), output->to);
	for (unsigned i = 0; i < output->columns_count; i++) {
		for (unsigned n = 0; n < output->columns[i].width; n++)
			fputc('-', output->to);
		if (i + 1 < output->columns_count)
			blanks(output->to, GAP);
	}
	fputc('\n', output->to);
}

#define NO_VALUE "NULL"

static void table_kept(struct ky_query_output *output)
{
	for (unsigned row = 0; row < output->kept_rows; row++)
		for (unsigned i = 0; i < output->columns_count; i++) {
			struct cell *cell = &output->kept[row * output->columns_count + i];
			table_cell(output, i, cell->text ? cell->text : NO_VALUE,
				   cell->text ? cell->bytes : strlen(NO_VALUE), cell->number);
			free(cell->text);
			cell->text = NULL;
		}
	output->kept_rows = 0;
}

static void table_lay_out(struct ky_query_output *output)
{
	for (unsigned i = 0; i < output->columns_count; i++) {
		struct column *column = &output->columns[i];
		unsigned numbers = 0, values = 0;
		for (unsigned row = 0; row < output->kept_rows; row++) {
			const struct cell *cell = &output->kept[row * output->columns_count + i];
			const unsigned width =
				cell->text ? ky_cli_text_columns(cell->text, cell->bytes)
					   : (unsigned)strlen(NO_VALUE);
			numbers += cell->number;
			values += cell->text != NULL;
			if (width > column->width && width <= WIDTH_MAX)
				column->width = width;
			else if (width > WIDTH_MAX && column->width < WIDTH_MAX)
				column->width = WIDTH_MAX;
		}
		column->right = numbers > 0 && numbers == values;
	}
	/* Blanks after the last column would only make lines longer than the terminal. */
	output->laid_out = true;
	table_head(output);
	table_kept(output);
}

static void table_keep(struct ky_query_output *output)
{
	struct cell *row = &output->kept[output->kept_rows * output->columns_count];
	char number[NUMBER_BYTES];

	for (unsigned i = 0; i < output->columns_count; i++) {
		const char *text = cell_text(output->stmt, (int)i, number, &row[i].bytes);
		row[i].number = is_number(output->stmt, (int)i);
		row[i].text = text ? malloc(row[i].bytes + 1) : NULL;
		if (row[i].text)
			memcpy(row[i].text, text, row[i].bytes);
		else if (text)
			output->broken = true;
	}
	output->kept_rows++;
}

static void table_row(struct ky_query_output *output)
{
	char number[NUMBER_BYTES];

	if (!output->laid_out) {
		table_keep(output);
		if (output->kept_rows == ROWS_KEPT)
			table_lay_out(output);
		return;
	}
	for (unsigned i = 0; i < output->columns_count; i++) {
		size_t bytes;
		const char *text = cell_text(output->stmt, (int)i, number, &bytes);
		table_cell(output, i, text ? text : NO_VALUE, text ? bytes : strlen(NO_VALUE),
			   is_number(output->stmt, (int)i));
	}
}

/* ---- all of them ---- */

static bool name_key(struct ky_query_output *output, unsigned at)
{
	unsigned same = 1;

	for (unsigned i = 0; i < at; i++)
		same += strcmp(output->columns[i].name, output->columns[at].name) == 0;
	output->columns[at].key =
		same == 1 ? sqlite3_mprintf("%s", output->columns[at].name)
			  : sqlite3_mprintf("%s_%u", output->columns[at].name, same);
	return output->columns[at].key != NULL;
}

static bool name_columns(struct ky_query_output *output)
{
	for (unsigned i = 0; i < output->columns_count; i++) {
		const char *name = sqlite3_column_name(output->stmt, (int)i);
		output->columns[i].name = name ? name : "?";
		output->columns[i].width = ky_cli_text_columns(output->columns[i].name,
							       strlen(output->columns[i].name));
		if (!name_key(output, i))
			return false;
	}
	return true;
}

static void release(struct ky_query_output *output)
{
	for (unsigned i = 0; i < output->columns_count && output->columns; i++)
		sqlite3_free(output->columns[i].key);
	for (unsigned i = 0; i < output->kept_rows * output->columns_count; i++)
		free(output->kept[i].text);
	free(output->columns);
	free(output->kept);
	free(output);
}

struct ky_query_output *ky_query_output_new(enum ky_query_form form, struct sqlite3_stmt *stmt,
					    FILE *to)
{
	struct ky_query_output *output = calloc(1, sizeof(*output));

	if (!output)
		return NULL;
	output->form = form;
	output->stmt = stmt;
	output->to = to;
	output->columns_count = (unsigned)sqlite3_column_count(stmt);
	output->columns = calloc(output->columns_count, sizeof(output->columns[0]));
	output->json = (struct ky_json_out){.file = output->to, .lines = form == KY_QUERY_JSON};
	if (form == KY_QUERY_TABLE)
		output->kept =
			calloc((size_t)ROWS_KEPT * output->columns_count, sizeof(output->kept[0]));
	if (!output->columns || (form == KY_QUERY_TABLE && !output->kept) ||
	    !name_columns(output)) {
		release(output);
		return NULL;
	}
	if (form == KY_QUERY_CSV)
		csv_head(output);
	return output;
}

bool ky_query_output_row(struct ky_query_output *output)
{
	if (output->form == KY_QUERY_TABLE)
		table_row(output);
	else if (output->form == KY_QUERY_CSV)
		csv_row(output);
	else
		json_row(output);
	output->rows++;
	return !output->broken;
}

uint64_t ky_query_output_end(struct ky_query_output **out, bool whole)
{
	struct ky_query_output *output = *out;
	const uint64_t rows = output->rows;

	if (output->form == KY_QUERY_TABLE && !output->laid_out && (whole || rows))
		table_lay_out(output);
	if (output->form == KY_QUERY_JSON && (whole || rows))
		json_end(output);
	release(output);
	*out = NULL;
	return rows;
}
