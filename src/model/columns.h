/* SPDX-License-Identifier: MIT */
/*
 * columns.h: the memory under a table: one array a column, all of the same number of rows.
 *
 *   rows ───────▶
 *   ts    ████████████████░░░░░░░░   █ rows there are
 *   dur   ████████████████░░░░░░░░   ░ room: address space that has no memory yet
 *   track ████████████████░░░░░░░░
 *
 * Large arrays are mappings that the kernel moves when they grow: nothing is copied, and what was not
 * written takes no memory. So a table's peak is its own size, and a column is one plain array.
 */
#ifndef KY_MODEL_COLUMNS_H
#define KY_MODEL_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A column of a table: where its pointer is in the table's struct, and the bytes of an item. */
struct ky_column {
	uint16_t offset;
	uint16_t item_bytes;
};

#define KY_COLUMN(type, field)                                                                     \
	{                                                                                          \
		(uint16_t) offsetof(struct type, field),                                           \
			(uint16_t)sizeof(*((struct type *)0)->field)                               \
	}

/*
 * What every table's struct begins with. count is the rows there are; ids of rows are their numbers,
 * and KY_NONE is no row.
 */
struct ky_rows {
	uint32_t count;
	uint32_t room;
};

#define KY_NONE UINT32_MAX

/*
 * Room for one more row. table is a struct that begins with struct ky_rows. False without memory, or
 * when there are as many rows as ids.
 */
bool ky_rows_grow(void *table, const struct ky_column *columns, uint32_t columns_count);
void ky_rows_free(void *table, const struct ky_column *columns, uint32_t columns_count);
/* Bytes of the rows there are. */
uint64_t ky_rows_bytes(const void *table, const struct ky_column *columns, uint32_t columns_count);

#endif
