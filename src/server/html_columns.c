/* SPDX-License-Identifier: MIT */
/*
 * html_columns.c: writes the selected rows column by column: the values of a column are alike, so that gzip packs them well.
 * docs/formats/html.md describes the packings.
 */
#include "server/html_parts.h"

#include <errno.h>
#include <stdlib.h>

#define PIECE_BYTES 16384u
#define NUMBER_BYTES_MAX 10u

struct packer {
	struct ky_html_out *out;
	uint64_t before; /* value of the previous row */
	uint32_t used;
	uint8_t bytes[PIECE_BYTES];
};

static void mark_texts(struct ky_html_data *data, enum ky_html_table table, ky_html_get_fn *get)
{
	const struct ky_html_rows *const rows = &data->rows[table];
	const uint32_t count = ky_html_rows_count(rows);
	for (uint32_t i = 0; i < count; i++) {
		const uint64_t string = get(data, ky_html_rows_at(rows, i));
		if (string < data->trace->strings.count)
			data->strings[string] = 1;
	}
}

static void mark_arg_texts(struct ky_html_data *data)
{
	const struct ky_html_rows *const rows = &data->rows[KY_HTML_ARGS];
	const uint32_t count = ky_html_rows_count(rows);
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t row = ky_html_rows_at(rows, i);
		const uint64_t string =
			ky_html_arg_is_text(data, row) ? data->trace->args.value[row] : 0;
		if (string < data->trace->strings.count)
			data->strings[string] = 1;
	}
}

static uint64_t category_of(struct ky_html_data *data, uint32_t row)
{
	return data->trace->slices.category[row];
}

/* Numbers ascend as in the trace, so that sorting by them gives the same order. */
int ky_html_columns_strings(struct ky_html_data *data)
{
	const uint32_t count = data->trace->strings.count;
	data->strings = calloc((size_t)count + 1, sizeof(*data->strings));
	if (!data->strings)
		return -ENOMEM;
	for (uint32_t i = 0; i < ky_html_columns_count; i++) {
		if (ky_html_columns[i].packing == 's')
			mark_texts(data, ky_html_columns[i].table, ky_html_columns[i].get);
	}
	mark_texts(data, KY_HTML_SLICES, category_of);
	mark_arg_texts(data);
	data->strings[0] = 0;
	data->strings_count = 1;
	for (uint32_t i = 1; i < count; i++) {
		if (data->strings[i])
			data->strings[i] = data->strings_count++;
	}
	return 0;
}

static void list_column(struct ky_json_out *json, const char *name, char packing, uint64_t count)
{
	ky_json_out_begin(json, NULL, '[');
	ky_json_out_text(json, NULL, name);
	ky_json_out_string(json, NULL, &packing, 1);
	ky_json_out_uint(json, NULL, count);
	ky_json_out_end(json, ']');
}

static uint64_t strings_bytes(const struct ky_html_data *data)
{
	uint64_t bytes = 0;
	for (uint32_t i = 1; i < data->trace->strings.count; i++)
		bytes += data->strings[i] ? ky_strings_bytes(&data->trace->strings, i) : 0;
	return bytes;
}

void ky_html_columns_list(const struct ky_html_data *data, struct ky_json_out *json)
{
	ky_json_out_begin(json, "columns", '[');
	for (uint32_t i = 0; i < ky_html_columns_count; i++) {
		list_column(json, ky_html_columns[i].name, ky_html_columns[i].packing,
			    ky_html_rows_count(&data->rows[ky_html_columns[i].table]));
	}
	list_column(json, "slices.listed", 'd', data->rows[KY_HTML_SLICES].listed_count);
	list_column(json, "strings.bytes", 'u', data->strings_count);
	list_column(json, "strings.text", 'b', strings_bytes(data));
	ky_json_out_end(json, ']');
}

static void flush(struct packer *packer)
{
	ky_html_out_data(packer->out, packer->bytes, packer->used);
	packer->used = 0;
}

static void put_number(struct packer *packer, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		packer->bytes[packer->used++] = (uint8_t)(value | 0x80);
	packer->bytes[packer->used++] = (uint8_t)value;
}

static void put_double(struct packer *packer, uint64_t bits)
{
	for (int i = 0; i < 8; i++)
		packer->bytes[packer->used++] = (uint8_t)(bits >> 8 * i);
}

/* 0 stays 0, so that a missing value does not make the next difference large. */
static void put_near(struct packer *packer, uint64_t value)
{
	put_number(packer, value ? ky_html_zigzag(value - packer->before) + 1 : 0);
	packer->before = value ? value : packer->before;
}

static void put(struct packer *packer, const struct ky_html_data *data, char packing,
		uint64_t value)
{
	if (PIECE_BYTES - packer->used < NUMBER_BYTES_MAX)
		flush(packer);
	if (packing == 't') {
		put_number(packer, ky_html_zigzag(value - packer->before));
		packer->before = value;
	} else if (packing == 'd') {
		put_near(packer, value);
	} else if (packing == 'f') {
		put_double(packer, value);
	} else if (packing == 'b') {
		packer->bytes[packer->used++] = (uint8_t)value;
	} else if (packing == 's') {
		put_number(packer, value < data->trace->strings.count ? data->strings[value] : 0);
	} else {
		put_number(packer, packing == 'i' ? ky_html_zigzag(value) : value);
	}
}

static void write_column(struct ky_html_data *data, struct packer *packer,
			 const struct ky_html_column *column)
{
	const struct ky_html_rows *const rows = &data->rows[column->table];
	const uint32_t count = ky_html_rows_count(rows);
	packer->before = 0;
	for (uint32_t i = 0; i < count && !ky_html_out_error(packer->out); i++)
		put(packer, data, column->packing, column->get(data, ky_html_rows_at(rows, i)));
}

/* Write the listed rows, plus one; 0 means no row, as in all such columns. */
static void write_listed(struct ky_html_data *data, struct packer *packer)
{
	const struct ky_html_rows *const rows = &data->rows[KY_HTML_SLICES];
	packer->before = 0;
	for (uint32_t i = 0; i < rows->listed_count; i++)
		put(packer, data, 'd', (uint64_t)rows->listed[i] + 1);
}

static void write_strings(struct ky_html_data *data, struct packer *packer)
{
	const struct ky_strings *const strings = &data->trace->strings;
	put(packer, data, 'u', 0);
	for (uint32_t i = 1; i < strings->count; i++) {
		if (data->strings[i])
			put(packer, data, 'u', ky_strings_bytes(strings, i));
	}
	flush(packer);
	for (uint32_t i = 1; i < strings->count; i++) {
		if (data->strings[i])
			ky_html_out_data(packer->out, ky_strings_text(strings, i),
					 ky_strings_bytes(strings, i));
	}
}

void ky_html_columns_write(struct ky_html_data *data, struct ky_html_out *out)
{
	struct packer packer = {.out = out};
	for (uint32_t i = 0; i < data->trace->tracks.rows.count; i++)
		data->last[i] = KY_NONE;
	for (uint32_t i = 0; i < ky_html_columns_count; i++) {
		write_column(data, &packer, &ky_html_columns[i]);
	}
	write_listed(data, &packer);
	write_strings(data, &packer);
}
