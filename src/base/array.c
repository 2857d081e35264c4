/* SPDX-License-Identifier: MIT */
/*
 * array.c: the memory under array.h. A head before the items holds their size, so that a table of which only some
 * columns could grow is still consistent.
 */
#include "base/array.h"

#include <stdlib.h>
#include <sys/mman.h>

#define HEAD_BYTES 64u /* keeps the items on a cache line of their own */
#define MAPPED_BYTES (128u << 10)
#define PAGE_BYTES 4096u
#define ITEMS_FIRST 16u

struct head {
	size_t bytes; /* including the head; from MAPPED_BYTES on it is a mapping */
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

void *ky_array_resized(void *items, size_t bytes)
{
	struct head *old = items ? head_of(items) : NULL;
	if (bytes > SIZE_MAX / 2)
		return NULL;
	bytes += HEAD_BYTES;
	if (old && old->bytes >= bytes)
		return items;
	if (bytes >= MAPPED_BYTES) {
		if (old && bytes < 2 * old->bytes)
			bytes = 2 * old->bytes;
		bytes = (bytes + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
	}
	struct head *fresh = change(old, bytes);
	if (!fresh)
		return NULL;
	fresh->bytes = bytes;
	return (char *)fresh + HEAD_BYTES;
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
	if (head_of(items)->bytes >= MAPPED_BYTES && end > start)
		(void)madvise((void *)start, end - start, MADV_POPULATE_WRITE);
}

void ky_array_release(void *items)
{
	if (!items)
		return;
	struct head *head = head_of(items);
	if (head->bytes >= MAPPED_BYTES)
		munmap(head, head->bytes);
	else
		free(head);
}
