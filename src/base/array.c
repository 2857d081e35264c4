/* SPDX-License-Identifier: MIT */
/*
 * array.c: the memory under array.h. A head before the items holds their size, so that a table of which only some
 * columns could grow is still consistent.
 */
#include "base/array.h"

#include "base/memory.h"

#include <stdlib.h>
#include <sys/mman.h>

#define HEAD_BYTES 64u /* keeps the items on cache lines of their own */
#define MAPPED_BYTES (128u << 10)
#define PAGE_BYTES 4096u
#define ITEMS_FIRST 4u

/* Directly before the items. */
struct head {
	size_t bytes; /* of the items; from MAPPED_BYTES on they are in a mapping */
	size_t unused;
};

static struct head *head_of(const void *items)
{
	return (struct head *)(uintptr_t)items - 1;
}

static size_t bytes_of(const void *items)
{
	return items ? head_of(items)->bytes : 0;
}

static void *map_items(void *items, size_t had, size_t bytes)
{
	char *mapping = had ? mremap((char *)items - HEAD_BYTES, had + HEAD_BYTES,
				     bytes + HEAD_BYTES, MREMAP_MAYMOVE)
			    : mmap(NULL, bytes + HEAD_BYTES, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return mapping == MAP_FAILED ? NULL : mapping + HEAD_BYTES;
}

static void *change(void *items, size_t bytes)
{
	const size_t had = bytes_of(items);
	if (had >= MAPPED_BYTES)
		return map_items(items, had, bytes);
	if (bytes < MAPPED_BYTES) {
		struct head *head = realloc(items ? head_of(items) : NULL, sizeof(*head) + bytes);
		return head ? head + 1 : NULL;
	}
	void *mapped = map_items(NULL, 0, bytes);
	if (mapped && items) {
		memcpy(mapped, items, had);
		free(head_of(items));
	}
	return mapped;
}

void *ky_array_resized(void *items, size_t bytes)
{
	const size_t had = bytes_of(items);
	if (bytes > SIZE_MAX / 2)
		return NULL;
	if (items && had >= bytes)
		return items;
	if (bytes >= MAPPED_BYTES) {
		if (bytes < 2 * had)
			bytes = 2 * had;
		bytes = ((bytes + HEAD_BYTES + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1)) -
			HEAD_BYTES;
	}
	void *changed = change(items, bytes);
	if (changed)
		head_of(changed)->bytes = bytes;
	else
		ky_memory_missing();
	return changed;
}

void *ky_array_grown(void *items, uint64_t *room, size_t item_bytes, uint64_t need,
		     uint64_t room_max)
{
	uint64_t more = *room ? *room * 2 : ITEMS_FIRST;
	if (more < need)
		more = need;
	if (more > room_max)
		more = room_max;
	if (more < need || more > SIZE_MAX / 2 / item_bytes)
		return NULL;
	void *grown = ky_array_resized(items, (size_t)more * item_bytes);
	if (grown)
		*room = more;
	return grown;
}

/* Where the kernel cannot do it (before Linux 5.14), pages fault in one by one. */
void ky_array_populate(void *items, size_t from, size_t to)
{
	const uintptr_t start = ((uintptr_t)items + from) & ~(uintptr_t)(PAGE_BYTES - 1);
	const uintptr_t end = ((uintptr_t)items + to) & ~(uintptr_t)(PAGE_BYTES - 1);
	if (bytes_of(items) >= MAPPED_BYTES && end > start)
		(void)madvise((void *)start, end - start, MADV_POPULATE_WRITE);
}

void ky_array_release(void *items)
{
	const size_t bytes = bytes_of(items);
	if (bytes >= MAPPED_BYTES)
		munmap((char *)items - HEAD_BYTES, bytes + HEAD_BYTES);
	else if (items)
		free(head_of(items));
}
