/* SPDX-License-Identifier: MIT */
/*
 * table.h: what a writer knows about each trace point or thread: an array by their dense index that
 * grows geometrically. New items are zero. Growing moves the items, so a pointer into a table lives
 * until the next ky_table_make() on it.
 */
#ifndef KY_FORMATS_TABLE_H
#define KY_FORMATS_TABLE_H

#include "formats/out.h"

struct ky_table {
	void *items;
	uint32_t count;
	uint32_t item_bytes; /* set once, before the first use */
};

/* The item, growing the table if need be; NULL and out->error set when memory is short. */
void *ky_table_grow(struct ky_table *table, uint32_t index, struct ky_out *out);
void ky_table_free(struct ky_table *table);

static inline void *ky_table_at(const struct ky_table *table, uint32_t index)
{
	return (uint8_t *)table->items + (size_t)index * table->item_bytes;
}

static inline void *ky_table_make(struct ky_table *table, uint32_t index, struct ky_out *out)
{
	if (__builtin_expect(index >= table->count, 0))
		return ky_table_grow(table, index, out);
	return ky_table_at(table, index);
}

#endif
