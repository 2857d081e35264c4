/* SPDX-License-Identifier: MIT */
/*
 * columns.h: the memory under a table: one array a column, all of the same number of rows.
 *
 *   rows ───────▶
 *   ts    ████████████████░░░░░░░░   █ rows
 *   dur   ████████████████░░░░░░░░   ░ room: address space that has no memory yet
 *   track ████████████████░░░░░░░░
 *
 * Large arrays are mappings that the kernel moves when they grow (base/array.h): nothing is copied, and unwritten room
 * takes no memory. So a table's peak is its own size, and a column is one plain array.
 */
#ifndef KY_MODEL_COLUMNS_H
#define KY_MODEL_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A column of a table: the offset of its pointer in the table's struct, and the size of an item. */
struct ky_column {
	uint16_t offset;
	uint16_t item_bytes;
};

#define KY_COLUMN(type, field)                                                                     \
	{                                                                                          \
		(uint16_t) offsetof(struct type, field),                                           \
			(uint16_t)sizeof(*((struct type *)0)->field)                               \
	}

/* The head of every table's struct. A row's id is its number below count; KY_NONE is no row. */
struct ky_rows {
	uint32_t count;
	uint32_t room;
};

#define KY_NONE UINT32_MAX

/*
 * Make room for one more row of a struct that begins with struct ky_rows. False without memory, or
 * when all ids are taken.
 */
bool ky_rows_grow(void *table, const struct ky_column *columns, uint32_t columns_count);
void ky_rows_free(void *table, const struct ky_column *columns, uint32_t columns_count);
/* Return the bytes of all rows. */
uint64_t ky_rows_bytes(const void *table, const struct ky_column *columns, uint32_t columns_count);

#endif
