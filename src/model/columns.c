/* SPDX-License-Identifier: MIT */
/*
 * columns.c: see columns.h. A column's array knows its own size, so a table of which only some columns could grow is
 * still consistent. A large table gets its memory a stretch at a time, by one call for each column: a page fault for
 * each page costs more.
 */
#include "model/columns.h"

#include "base/array.h"

#define ROWS_FIRST 32u
#define ROWS_MAX (UINT32_MAX - 1)
#define ROWS_STRETCH (64u << 10)

static void **pointer_of(void *table, const struct ky_column *column)
{
	return (void **)((char *)table + column->offset);
}

bool ky_rows_grow(void *table, const struct ky_column *columns, uint32_t columns_count)
{
	struct ky_rows *rows = table;
	if (rows->count < rows->room)
		return true;
	if (rows->room >= ROWS_MAX)
		return false;
	const bool large = rows->room >= ROWS_STRETCH;
	uint64_t room = rows->room ? (uint64_t)rows->room * 2 : ROWS_FIRST;
	if (large)
		room = (uint64_t)rows->room + ROWS_STRETCH;
	if (room > ROWS_MAX)
		room = ROWS_MAX;
	for (uint32_t i = 0; i < columns_count; i++) {
		void **items = pointer_of(table, &columns[i]);
		const size_t bytes = columns[i].item_bytes;
		void *grown = ky_array_resized(*items, (size_t)room * bytes);
		if (!grown)
			return false;
		*items = grown;
		if (large)
			ky_array_populate(grown, rows->room * bytes, (size_t)room * bytes);
	}
	rows->room = (uint32_t)room;
	return true;
}

void ky_rows_free(void *table, const struct ky_column *columns, uint32_t columns_count)
{
	for (uint32_t i = 0; i < columns_count; i++) {
		void **items = pointer_of(table, &columns[i]);
		ky_array_release(*items);
		*items = NULL;
	}
	*(struct ky_rows *)table = (struct ky_rows){0, 0};
}

uint64_t ky_rows_bytes(const void *table, const struct ky_column *columns, uint32_t columns_count)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < columns_count; i++)
		bytes += (uint64_t)((const struct ky_rows *)table)->count * columns[i].item_bytes;
	return bytes;
}
