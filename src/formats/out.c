/* SPDX-License-Identifier: MIT */
/*
 * out.c: the buffer between a writer and where its bytes go.
 *
 * The buffer never has fewer than KY_OUT_ROOM_MAX bytes. That is what makes ky_out_room() always
 * succeed: when it cannot grow, its content is dropped and the same memory is written over, with
 * error set. From the first error on nothing is kept any more: a file with a hole in the middle
 * would be worse than one that ends early.
 */
#include "formats/out.h"

#include <errno.h>
#include <stdlib.h>

int ky_out_init(struct ky_out *out, size_t size)
{
	memset(out, 0, sizeof(*out));
	if (size < KY_OUT_ROOM_MAX)
		size = KY_OUT_ROOM_MAX;
	out->data = malloc(size);
	if (!out->data)
		return -ENOMEM;
	out->size = size;
	return 0;
}

void ky_out_free(struct ky_out *out)
{
	free(out->data);
	memset(out, 0, sizeof(*out));
}

static int grow_to(struct ky_out *out, size_t bytes)
{
	size_t size = out->size;
	while (size - out->used < bytes) {
		if (size > SIZE_MAX / 2)
			return -ENOMEM;
		size *= 2;
	}
	uint8_t *data = realloc(out->data, size);
	if (!data)
		return -ENOMEM;
	out->data = data;
	out->size = size;
	return 0;
}

uint8_t *ky_out_grow(struct ky_out *out, size_t bytes)
{
	if (!out->error)
		out->error = grow_to(out, bytes);
	if (out->error)
		out->used = 0;
	return out->data + out->used;
}

int ky_out_push(struct ky_out *out)
{
	if (!out->error && out->used && out->push) {
		const int error = out->push(out, out->data, out->used);
		if (error)
			out->error = error;
		else
			out->pushed_bytes += out->used;
	}
	out->used = 0;
	return out->error;
}

void ky_out_append_slow(struct ky_out *out, const void *data, size_t bytes)
{
	const uint8_t *from = data;
	while (bytes) {
		const size_t part = bytes < KY_OUT_ROOM_MAX ? bytes : KY_OUT_ROOM_MAX;
		uint8_t *to = ky_out_room(out, part);
		memcpy(to, from, part);
		ky_out_done(out, to + part);
		from += part;
		bytes -= part;
	}
}

/* ---- tables ---- */

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
