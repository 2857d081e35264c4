/* SPDX-License-Identifier: MIT */
/*
 * columns.c: arrays that grow without being copied. Each begins with a head that says how large it
 * is, so that a table of which only some columns could grow is still in order.
 *
 * Small ones are from malloc, larger ones are mappings of their own. A large table gets its memory a
 * stretch at a time, by one call for each column: a page fault for each page costs more.
 */
#include "model/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HEAD_BYTES 64u /* keeps the items on a cache line of their own */
#define MAPPED_BYTES (128u << 10)
#define PAGE_BYTES 4096u
#define ROWS_FIRST 32u
#define ROWS_MAX (UINT32_MAX - 1)
#define ROWS_STRETCH (64u << 10)

struct head {
	size_t bytes; /* with the head; from MAPPED_BYTES on it is a mapping */
};

static struct head *head_of(void *items)
{
	return (struct head *)((char *)items - HEAD_BYTES);
}

static struct head *change(struct head *old, size_t bytes)
{
	const size_t had = old ? old->bytes : 0;
	if (had >= MAPPED_BYTES) {
		void *moved = mremap(old, had, bytes, MREMAP_MAYMOVE);
		return moved == MAP_FAILED ? NULL : moved;
	}
	if (bytes < MAPPED_BYTES)
		return realloc(old, bytes);
	struct head *fresh = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fresh == MAP_FAILED)
		return NULL;
	if (old)
		memcpy(fresh, old, had);
	free(old);
	return fresh;
}

/* Makes the array hold at least that many bytes of items. */
static bool enlarge(void **items, size_t bytes)
{
	struct head *old = *items ? head_of(*items) : NULL;
	bytes += HEAD_BYTES;
	if (old && old->bytes >= bytes)
		return true;
	if (bytes >= MAPPED_BYTES) {
		if (old && bytes < 2 * old->bytes)
			bytes = 2 * old->bytes;
		bytes = (bytes + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
	}
	struct head *fresh = change(old, bytes);
	if (!fresh)
		return false;
	fresh->bytes = bytes;
	*items = (char *)fresh + HEAD_BYTES;
	return true;
}

static void release(void **items)
{
	if (!*items)
		return;
	struct head *head = head_of(*items);
	if (head->bytes >= MAPPED_BYTES)
		munmap(head, head->bytes);
	else
		free(head);
	*items = NULL;
}

static void **pointer_of(void *table, const struct ky_column *column)
{
	return (void **)((char *)table + column->offset);
}

/* Memory for the items from one byte to before another; where the kernel cannot, they fault as ever. */
static void populate(char *items, size_t from, size_t to)
{
	const uintptr_t begin = ((uintptr_t)items + from) & ~(uintptr_t)(PAGE_BYTES - 1);
	const uintptr_t end = ((uintptr_t)items + to) & ~(uintptr_t)(PAGE_BYTES - 1);
	if (head_of(items)->bytes >= MAPPED_BYTES && end > begin)
		(void)madvise((void *)begin, end - begin, MADV_POPULATE_WRITE);
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
		if (!enlarge(items, (size_t)room * bytes))
			return false;
		if (large)
			populate(*items, rows->room * bytes, (size_t)room * bytes);
	}
	rows->room = (uint32_t)room;
	return true;
}

void ky_rows_free(void *table, const struct ky_column *columns, uint32_t columns_count)
{
	for (uint32_t i = 0; i < columns_count; i++)
		release(pointer_of(table, &columns[i]));
	*(struct ky_rows *)table = (struct ky_rows){0, 0};
}

uint64_t ky_rows_bytes(const void *table, const struct ky_column *columns, uint32_t columns_count)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < columns_count; i++)
		bytes += (uint64_t)((const struct ky_rows *)table)->count * columns[i].item_bytes;
	return bytes;
}

bool ky_array_grow_raw(void **items, uint64_t *room, size_t item_bytes, uint64_t need)
{
	if (need <= *room)
		return true;
	uint64_t more = *room ? *room * 2 : ROWS_FIRST;
	if (more < need)
		more = need;
	if (more > SIZE_MAX / 2 / item_bytes || !enlarge(items, (size_t)more * item_bytes))
		return false;
	*room = more;
	return true;
}

bool ky_array_grow(void **items, uint64_t *room, size_t item_bytes, uint64_t need)
{
	const uint64_t had = *room;
	if (!ky_array_grow_raw(items, room, item_bytes, need))
		return false;
	memset((char *)*items + had * item_bytes, 0, (size_t)(*room - had) * item_bytes);
	return true;
}

void ky_array_free(void **items, uint64_t *room)
{
	release(items);
	*room = 0;
}
