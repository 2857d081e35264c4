/* SPDX-License-Identifier: MIT */
/*
 * kymo_export.c: a trace as a .kymo file of columns (kymo_columns.h), which holds everything that the trace has.
 *
 *   table ─ rows ─▶ column ─▶ packed ─▶ COLUMN chunk ─▶ out
 *                                          └▶ its place, for PLACES
 */
#include "base/array.h"
#include "base/buffer.h"
#include "formats/export.h"
#include "formats/kymo/kymo_chunk.h"
#include "formats/kymo/kymo_columns.h"
#include "formats/part.h"
#include "formats/xxh64.h"

#include <errno.h>
#include <stdlib.h>

#define PUSH_BYTES (256u << 10)
#define NS_PER_S UINT64_C(1000000000)

struct columns_export {
	const struct ky_export_job *job;
	const struct ky_trace *trace;
	struct ky_kymo_strings strings;
	struct ky_kymo_chunks chunks;
	struct ky_kymo_packer packer;
	struct ky_kymo_place *places;
	uint32_t places_count, places_room;
	uint64_t rows_done, rows_all;
};

/* ---- SCHEMA ---- */

static void add_u16(struct ky_buffer *buffer, size_t number)
{
	const uint16_t value = (uint16_t)number;
	ky_buffer_add(buffer, &value, sizeof(value));
}

static uint8_t kind_of(const struct ky_column *column)
{
	return column->holds == KY_HOLDS_REAL ? KY_KYMO_CELL_REAL : KY_KYMO_CELL_NUMBER;
}

static void describe(struct ky_buffer *buffer, const struct ky_table_spec *spec, uint32_t rows)
{
	ky_buffer_add(buffer, &rows, sizeof(rows));
	add_u16(buffer, spec->columns_count);
	add_u16(buffer, strlen(spec->name));
	for (uint32_t i = 0; i < spec->columns_count; i++) {
		const uint8_t cell[] = {(uint8_t)spec->columns[i].item_bytes,
					kind_of(&spec->columns[i])};
		ky_buffer_add(buffer, cell, sizeof(cell));
		add_u16(buffer, strlen(spec->columns[i].name));
	}
	ky_buffer_text(buffer, spec->name);
	for (uint32_t i = 0; i < spec->columns_count; i++)
		ky_buffer_text(buffer, spec->columns[i].name);
}

static int write_tables(struct columns_export *w)
{
	struct ky_kymo_schema head = {.size = sizeof(head),
				      .tables = ky_kymo_tables_count(),
				      .clock = w->trace->clock,
				      .events = w->trace->events};
	struct ky_buffer buffer = {0};
	for (uint32_t i = 0; i < head.tables; i++)
		describe(&buffer, ky_kymo_table(i),
			 ky_kymo_table_of(w->trace, &w->strings, i)->count);
	uint8_t *body =
		buffer.failed
			? NULL
			: ky_kymo_chunks_body(
				  &w->chunks,
				  sizeof(head) + ky_kymo_chunks_bound(&w->chunks, buffer.bytes));
	if (body) {
		head.bytes = (uint32_t)buffer.bytes;
		head.stored_bytes = (uint32_t)ky_kymo_chunks_store(
			&w->chunks, body + sizeof(head), (const uint8_t *)buffer.data, buffer.bytes,
			KY_KYMO_DEFINE_RATIO_MAX);
		memcpy(body, &head, sizeof(head));
		ky_kymo_chunks_write(&w->chunks, KY_KYMO_SCHEMA, sizeof(head) + head.stored_bytes);
	}
	ky_buffer_free(&buffer);
	return body ? 0 : -ENOMEM;
}

/* ---- COLUMN ---- */

static uint64_t place_now(const struct columns_export *w)
{
	return w->chunks.out->pushed_bytes + w->chunks.out->used;
}

static int write_column(struct columns_export *w, uint32_t table, uint32_t number, uint32_t first,
			uint32_t rows)
{
	const struct ky_column *column = &ky_kymo_table(table)->columns[number];
	const char *items = *ky_column_of(ky_kymo_table_of(w->trace, &w->strings, table), column);
	struct ky_kymo_column head = {.size = sizeof(head),
				      .version = KY_KYMO_COLUMN_VERSION,
				      .table = (uint16_t)table,
				      .column = (uint16_t)number,
				      .item_bytes = (uint8_t)column->item_bytes,
				      .first = first,
				      .rows = rows};
	const uint8_t *stored =
		ky_kymo_pack_column(&w->packer, items + (size_t)first * column->item_bytes, &head);
	size_t bytes = sizeof(head) + head.stored_bytes;
	const size_t least = (size_t)rows * column->item_bytes / KY_KYMO_RATIO_MAX + 1;
	uint8_t *body = ky_kymo_chunks_body(&w->chunks, bytes + least);
	if (!body)
		return -ENOMEM;
	memcpy(body, &head, sizeof(head));
	memcpy(body + sizeof(head), stored, head.stored_bytes);
	if (bytes < least) {
		memset(body + bytes, 0, least - bytes);
		bytes = least;
	}
	const struct ky_kymo_place place = {
		.at = place_now(w),
		.chunk_bytes = (uint32_t)(sizeof(struct ky_kymo_chunk) + KY_KYMO_PADDED(bytes)),
		.raw_bytes = head.raw_bytes,
		.first = first,
		.rows = rows,
		.table = head.table,
		.column = head.column,
		.version = head.version};
	ky_kymo_chunks_write(&w->chunks, KY_KYMO_COLUMN, bytes);
	if (!KY_ARRAY_ADD(w->places, w->places_count, w->places_room, place))
		return -ENOMEM;
	w->places[w->places_count - 1].body_hash = ky_xxh64(w->chunks.body, KY_KYMO_PADDED(bytes));
	return w->chunks.out->error;
}

static int write_rows(struct columns_export *w, uint32_t table, uint32_t first, uint32_t rows)
{
	const struct ky_export_job *job = w->job;
	int error = 0;
	for (uint32_t i = 0; !error && i < ky_kymo_table(table)->columns_count; i++)
		error = write_column(w, table, i, first, rows);
	w->rows_done += rows;
	if (!error && job->out->used >= PUSH_BYTES)
		error = ky_out_push(job->out);
	if (!error && job->progress)
		error = job->progress(job->context, w->rows_done, w->rows_all);
	return error;
}

static int write_table(struct columns_export *w, uint32_t table)
{
	const uint32_t count = ky_kymo_table_of(w->trace, &w->strings, table)->count;
	int error = 0;
	for (uint32_t first = 0; !error && first < count; first += KY_KYMO_COLUMN_ROWS)
		error = write_rows(w, table, first,
				   count - first < KY_KYMO_COLUMN_ROWS ? count - first
								       : KY_KYMO_COLUMN_ROWS);
	return error;
}

/* ---- the file ---- */

static int write_places(struct columns_export *w)
{
	const struct ky_kymo_places head = {.size = sizeof(head),
					    .entry_bytes = sizeof(struct ky_kymo_place),
					    .entries = w->places_count};
	const size_t bytes = (size_t)w->places_count * sizeof(*w->places);
	uint8_t *body = ky_kymo_chunks_body(&w->chunks, sizeof(head) + bytes);
	if (!body)
		return -ENOMEM;
	memcpy(body, &head, sizeof(head));
	if (bytes)
		memcpy(body + sizeof(head), w->places, bytes);
	ky_kymo_chunks_write(&w->chunks, KY_KYMO_PLACES, sizeof(head) + bytes);
	return w->chunks.out->error;
}

static int write_chunks(struct columns_export *w)
{
	ky_kymo_chunks_file(&w->chunks, KY_KYMO_VERSION_COLUMNS, NS_PER_S);
	int error = write_tables(w);
	for (uint32_t i = 0; !error && i < ky_kymo_tables_count(); i++)
		error = write_table(w, i);
	const uint64_t tables_at = place_now(w);
	if (!error)
		error = write_tables(w);
	const uint64_t places_at = place_now(w);
	if (!error)
		error = write_places(w);
	if (!error)
		ky_kymo_chunks_end(&w->chunks, tables_at, places_at);
	return error ? error : w->chunks.out->error;
}

static int take_strings(struct columns_export *w)
{
	const struct ky_strings *from = &w->trace->strings;
	struct ky_kymo_strings *to = &w->strings;
	if (from->bytes_used >= KY_NONE)
		return -EFBIG;
	to->sizes.size = malloc(from->count * sizeof(*to->sizes.size));
	if (!to->sizes.size)
		return -ENOMEM;
	to->sizes.rows.count = from->count - 1; /* 0 is no text */
	for (uint32_t i = 1; i < from->count; i++)
		to->sizes.size[i - 1] = from->entries[i].size;
	to->texts.rows.count = (uint32_t)from->bytes_used;
	to->texts.text = (uint8_t *)from->bytes;
	return 0;
}

static int write_columns(const struct ky_export_job *job, const struct ky_trace *trace)
{
	struct columns_export w = {.job = job, .trace = trace};
	int error = take_strings(&w);
	if (!error)
		error = ky_kymo_packer_open(&w.packer);
	if (!error)
		error = ky_kymo_chunks_open(&w.chunks, job->out, 0);
	for (uint32_t i = 0; !error && i < ky_kymo_tables_count(); i++)
		w.rows_all += ky_kymo_table_of(trace, &w.strings, i)->count;
	if (!error)
		error = write_chunks(&w);
	ky_kymo_chunks_close(&w.chunks);
	ky_kymo_packer_close(&w.packer);
	KY_ARRAY_FREE(w.places, w.places_room);
	free(w.strings.sizes.size);
	return error;
}

static int write_trace(const struct ky_export_job *job)
{
	struct ky_trace *part = NULL;
	int error = ky_part_is_all(job->selection)
			    ? 0
			    : ky_part_make(&part, job->trace, job->selection);
	if (!error)
		error = write_columns(job, part ? part : job->trace);
	ky_trace_close(&part);
	return error;
}

const struct ky_exporter ky_exporter_kymo = {&ky_format_kymo, write_trace};
