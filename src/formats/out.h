/* SPDX-License-Identifier: MIT */
/*
 * out.h: the buffer between a writer and where its bytes go.
 *
 *   data         data + used          data + size
 *   ├── bytes ─────┼── free ────────────┤
 *
 * A writer asks for room with ky_out_room(), writes there, and adds what it used. Between two calls
 * of the writer the buffer holds whole records only: that is when the sink may push it on, so that a
 * file can be cut off at any push and stays readable.
 */
#ifndef KY_FORMATS_OUT_H
#define KY_FORMATS_OUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct ky_out {
	uint8_t *data;
	size_t used;
	size_t size;
	int error; /* first error: no memory, or what push returned; then everything is dropped */
	uint64_t pushed_bytes;                                           /* given to push so far */
	int (*push)(struct ky_out *out, const void *data, size_t bytes); /* 0 or a negative error */
	void *context;                                                   /* push's own */
};

int ky_out_init(struct ky_out *out, size_t size);
void ky_out_free(struct ky_out *out);
/* Grow the buffer; part of ky_out_room(). */
uint8_t *ky_out_grow(struct ky_out *out, size_t bytes);
/* Hand everything in the buffer to push. Return the first error. */
int ky_out_push(struct ky_out *out);

/*
 * Room for at least that many bytes, always: when memory is short it is a scratch area whose content
 * is dropped, and error is set. bytes is at most KY_OUT_ROOM_MAX.
 */
#define KY_OUT_ROOM_MAX (64u << 10)
static inline uint8_t *ky_out_room(struct ky_out *out, size_t bytes)
{
	if (__builtin_expect(out->size - out->used < bytes, 0))
		return ky_out_grow(out, bytes);
	return out->data + out->used;
}

/* End what ky_out_room() began: end is one past the last byte written. */
static inline void ky_out_done(struct ky_out *out, const uint8_t *end)
{
	out->used = (size_t)(end - out->data);
}

/* Append where there is not enough room yet; part of ky_out_append(). */
void ky_out_append_slow(struct ky_out *out, const void *data, size_t bytes);

/* Append bytes of any length. */
static inline void ky_out_append(struct ky_out *out, const void *data, size_t bytes)
{
	if (__builtin_expect(out->size - out->used < bytes, 0)) {
		ky_out_append_slow(out, data, bytes);
		return;
	}
	if (bytes)
		memcpy(out->data + out->used, data, bytes);
	out->used += bytes;
}

/* ---- tables ---- */

/*
 * An array by a dense index, for a writer's knowledge of each trace point or thread. It grows geometrically; new items
 * are zero. Growing moves the items: a pointer to one is valid until the next ky_table_make().
 */
struct ky_table {
	void *items;
	uint32_t count;
	uint32_t item_bytes; /* set once, before the first use */
};

/* Return the item, growing the table if needed; NULL and out->error set without memory. */
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
