/* SPDX-License-Identifier: MIT */
/*
 * drum_intern.c: find or add in somebody else's heap. Sizes and offsets are those of the view,
 * which were checked once; what is read from the drum later (heap_used, a chain's links, a record's
 * size) is checked where it is used. A drum whose owner keeps changing what is looked at gets an
 * error after some tries.
 */
#include "capture/drum_intern.h"

#include "os/os.h"

#include <errno.h>
#include <string.h>

/*
 * Longer chains, and more races lost in a row, there are none in a drum that nobody scribbled over.
 */
#define CHAIN_MAX 100000u
#define TRIES_MAX 1000u

struct text {
	const char *data;
	size_t bytes;
	uint32_t hash;
};

struct heap {
	uint8_t *base;
	uint64_t at, bytes; /* of the heap */
	uint32_t *buckets;
	uint32_t buckets_count;
	uint64_t *used;
	bool on_disk;
};

static int find_heap(struct heap *heap, const struct ky_drum_map *map,
		     const struct ky_drum_view *view)
{
	const struct ky_drum_header *h = &view->header;
	const uint64_t buckets_bytes = h->buckets_count * (uint64_t)sizeof(uint32_t);
	if (h->buckets_count == 0 || (h->buckets_count & (h->buckets_count - 1)) != 0 ||
	    h->buckets_at % 8 != 0 || h->buckets_at < KY_DRUM_HEADER_BYTES ||
	    h->buckets_at > map->writable_bytes ||
	    buckets_bytes > map->writable_bytes - h->buckets_at ||
	    h->heap_bytes < sizeof(struct ky_heap_record) ||
	    h->heap_at + h->heap_bytes > map->writable_bytes)
		return -EBADMSG;
	*heap = (struct heap){
		.base = map->writable,
		.at = h->heap_at,
		.bytes = h->heap_bytes,
		.buckets = (uint32_t *)(void *)(map->writable + h->buckets_at),
		.buckets_count = h->buckets_count,
		.used = &((struct ky_drum_header *)(void *)map->writable)->heap_used,
		.on_disk = !map->sealed,
	};
	return 0;
}

static struct text text_of(const char *string, size_t bytes)
{
	uint32_t hash = 2166136261u ^ KY_HEAP_STRING; /* FNV-1a, as heap.c */
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (uint8_t)string[i]) * 16777619u;
	return (struct text){string, bytes, hash};
}

/* The record, when it lies in the heap; else NULL. */
static struct ky_heap_record *record_at(const struct heap *heap, uint32_t record)
{
	const uint64_t at = (uint64_t)record * KY_HEAP_UNIT;
	if (at < heap->at || at - heap->at > heap->bytes - sizeof(struct ky_heap_record))
		return NULL;
	return (struct ky_heap_record *)(void *)(heap->base + at);
}

static bool is_text(const struct heap *heap, const struct ky_heap_record *r,
		    const struct text *text)
{
	const uint64_t room =
		heap->at + heap->bytes - (uint64_t)((const uint8_t *)(r + 1) - heap->base);
	/* One byte more: it is read up to its NUL. */
	return r->hash == text->hash && r->kind == KY_HEAP_STRING && r->bytes == text->bytes &&
	       text->bytes < room && memcmp(r + 1, text->data, text->bytes) == 0;
}

/* In the chain from record up to end. 0 when it is not there, -EBADMSG when that is no chain. */
static int find(const struct heap *heap, uint32_t record, uint32_t end, const struct text *text,
		uint32_t *found)
{
	*found = 0;
	for (uint32_t steps = 0; record != end && record != 0; steps++) {
		const struct ky_heap_record *r = record_at(heap, record);
		if (!r || steps == CHAIN_MAX)
			return -EBADMSG;
		if (is_text(heap, r, text)) {
			*found = record;
			return 0;
		}
		record = __atomic_load_n(&r->next, __ATOMIC_RELAXED);
	}
	return 0;
}

static int take_room(const struct heap *heap, size_t bytes, uint32_t *record)
{
	const uint64_t size = (sizeof(struct ky_heap_record) + bytes + 1 + KY_HEAP_UNIT - 1) &
			      ~(uint64_t)(KY_HEAP_UNIT - 1);
	uint64_t used = __atomic_load_n(heap->used, __ATOMIC_RELAXED);
	for (uint32_t tries = 0; tries < TRIES_MAX; tries++) {
		if (used % KY_HEAP_UNIT != 0 || used > heap->bytes)
			return -EBADMSG;
		if (size > heap->bytes - used)
			return -ENOSPC;
		if (!__atomic_compare_exchange_n(heap->used, &used, used + size, false,
						 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			continue;
		uint8_t *room = heap->base + heap->at + used;
		uint8_t *page = (uint8_t *)((uintptr_t)room & ~(uintptr_t)4095);
		if (heap->on_disk && !ky_os_populate(page, (uint64_t)(room + size - page)))
			return -ENOSPC;
		*record = (uint32_t)((heap->at + used) / KY_HEAP_UNIT);
		return 0;
	}
	return -EBADMSG;
}

/* Makes the record the head of its chain, unless somebody adds an equal one first. */
static int link_record(const struct heap *heap, uint32_t *bucket, uint32_t head, uint32_t mine,
		       const struct text *text, uint32_t *record)
{
	struct ky_heap_record *r = record_at(heap, mine);
	for (uint32_t tries = 0; r && tries < TRIES_MAX; tries++) {
		const uint32_t seen = head;
		__atomic_store_n(&r->next, head, __ATOMIC_RELAXED);
		/* Release: the record is whole before the process finds it. */
		if (__atomic_compare_exchange_n(bucket, &head, mine, false, __ATOMIC_RELEASE,
						__ATOMIC_ACQUIRE)) {
			*record = mine;
			return 0;
		}
		const int error = find(heap, head, seen, text, record);
		if (error || *record)
			return error;
	}
	return -EBADMSG;
}

static int add(const struct heap *heap, uint32_t *bucket, uint32_t head, const struct text *text,
	       uint32_t *record)
{
	uint32_t mine = 0;
	const int error = take_room(heap, text->bytes, &mine);
	if (error)
		return error;
	struct ky_heap_record *r = record_at(heap, mine);
	*r = (struct ky_heap_record){
		.kind = KY_HEAP_STRING, .bytes = (uint32_t)text->bytes, .hash = text->hash};
	memcpy(r + 1, text->data, text->bytes);
	((char *)(r + 1))[text->bytes] = '\0'; /* whatever was there before */
	return link_record(heap, bucket, head, mine, text, record);
}

int ky_drum_intern(const struct ky_drum_map *map, const struct ky_drum_view *view,
		   const char *string, size_t bytes, uint32_t *record)
{
	struct heap heap;
	*record = 0;
	int error = find_heap(&heap, map, view);
	if (error)
		return error;
	const struct text text = text_of(string, bytes);
	uint32_t *bucket = &heap.buckets[text.hash & (heap.buckets_count - 1)];
	/* Acquire: pairs with the release of whoever added the records. */
	const uint32_t head = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
	error = find(&heap, head, 0, &text, record);
	return error || *record ? error : add(&heap, bucket, head, &text, record);
}
