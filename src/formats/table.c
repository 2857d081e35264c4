/* SPDX-License-Identifier: MIT */
/*
 * table.c: growing arrays by dense index. See table.h.
 */
#include "formats/table.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_ITEMS 64u

void *ky_table_grow(struct ky_table *table, uint32_t index, struct ky_out *out)
{
	size_t count = table->count ? table->count : FIRST_ITEMS;
	while (count <= index)
		count *= 2;
	if (count > UINT32_MAX)
		count = UINT32_MAX; /* the last index stays out of reach */
	void *items = index < count ? realloc(table->items, count * table->item_bytes) : NULL;
	if (!items) {
		if (!out->error)
			out->error = -ENOMEM;
		return NULL;
	}
	table->items = items;
	memset(ky_table_at(table, table->count), 0, (count - table->count) * table->item_bytes);
	table->count = (uint32_t)count;
	return ky_table_at(table, index);
}

void ky_table_free(struct ky_table *table)
{
	free(table->items);
	table->items = NULL;
	table->count = 0;
}
