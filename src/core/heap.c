/* SPDX-License-Identifier: MIT */
/*
 * heap.c: find or add, without a lock.
 *
 *   bucket[hash] ─▶ record ─next▶ record ─next▶ 0
 *
 * To add: take room by moving heap_used up, write the record, then compare-and-swap it in as the head of its chain. When
 * that fails, other threads have added records: look through just those for an equal one and try again. So of two
 * threads with the same string one wins and both use its record; the loser's room stays unused, only in that race.
 */
#include "core/heap.h"

#include "core/assert.h"
#include "core/glob.h"
#include "os/os.h"

#include <errno.h>
#include <string.h>

static struct ky_heap_record *record_at(struct ky_drum *drum, uint32_t at)
{
	KY_ASSERT((uint64_t)at * KY_HEAP_UNIT >= drum->header->heap_at &&
		  (uint64_t)at * KY_HEAP_UNIT < drum->header->heap_at + drum->header->heap_bytes);
	return (struct ky_heap_record *)(void *)(drum->base + (uint64_t)at * KY_HEAP_UNIT);
}

static uint32_t hash_bytes(uint32_t kind, const void *data, size_t bytes)
{
	const uint8_t *p = data;
	uint32_t hash = 2166136261u ^ kind; /* FNV-1a */
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ p[i]) * 16777619u;
	return hash;
}

/* Return the record with this content in the chain from at up to end (not included), or 0. */
static uint32_t find(struct ky_drum *drum, uint32_t at, uint32_t end, uint32_t kind, uint32_t hash,
		     const void *data, size_t bytes)
{
	while (at != end && at != 0) {
		const struct ky_heap_record *r = record_at(drum, at);
		/* It may be mapped in part. */
		if ((uint64_t)at * KY_HEAP_UNIT + sizeof(*r) + bytes > drum->bytes)
			break;
		if (r->hash == hash && r->kind == kind && r->bytes == bytes &&
		    memcmp(r + 1, data, bytes) == 0)
			return at;
		at = r->next;
	}
	return 0;
}

/* Populate the pages of this part of the heap. */
static bool populate(uint8_t *heap, uint64_t from, uint64_t to)
{
	const uint64_t page = 4096;
	for (uint64_t at = from / page * page; at < to; at += page)
		if (!ky_os_populate(heap + at, page))
			return false;
	return true;
}

/* Move a count of bytes up, but not beyond most. Store where it was. */
static bool take_bytes(uint64_t *count, uint64_t bytes, uint64_t most, uint64_t *was)
{
	*was = __atomic_load_n(count, __ATOMIC_RELAXED);
	do {
		if (*was + bytes > most)
			return false;
	} while (!__atomic_compare_exchange_n(count, was, *was + bytes, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return true;
}

/* Return room for a record, or 0. A byte more than asked for is zero: the end of a string. */
static uint32_t take_room(struct ky_drum *drum, size_t bytes, bool is_name)
{
	struct ky_drum_header *h = drum->header;
	const uint64_t size = (sizeof(struct ky_heap_record) + bytes + 1 + KY_HEAP_UNIT - 1) &
			      ~(uint64_t)(KY_HEAP_UNIT - 1);
	uint64_t used;
	if ((is_name && !take_bytes(&h->names_used, size, h->heap_bytes / KY_NAMES_PART, &used)) ||
	    !take_bytes(&h->heap_used, size, h->heap_bytes, &used))
		return 0;
	KY_ASSERT(used % KY_HEAP_UNIT == 0 && used + size <= h->heap_bytes);
	if (drum->on_disk && !drum->populated &&
	    !populate(drum->base + h->heap_at, used, used + size))
		return 0;
	return (uint32_t)((h->heap_at + used) / KY_HEAP_UNIT);
}

static uint32_t find_or_add(struct ky_drum *drum, uint32_t kind, const void *data, size_t bytes,
			    bool is_name)
{
	KY_ASSERT((drum->header->buckets_count & (drum->header->buckets_count - 1)) == 0);
	const uint32_t hash = hash_bytes(kind, data, bytes);
	uint32_t *bucket = &drum->buckets[hash & (drum->header->buckets_count - 1)];
	/* Pairs with the release of the compare-and-swap below: the records of the chain are complete. */
	uint32_t head = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
	const uint32_t found = find(drum, head, 0, kind, hash, data, bytes);
	if (found)
		return found;
	const uint32_t mine = take_room(drum, bytes, is_name);
	if (!mine)
		return 0;
	struct ky_heap_record *r = record_at(drum, mine);
	KY_ASSERT(r->kind == 0 && r->next == 0);
	r->kind = (uint16_t)kind;
	r->bytes = (uint32_t)bytes;
	r->hash = hash;
	memcpy(r + 1, data, bytes);
	for (;;) {
		const uint32_t seen = head;
		r->next = head;
		/* Release: the record is complete before another thread finds it. Acquire: so are the others'. */
		if (__atomic_compare_exchange_n(bucket, &head, mine, false, __ATOMIC_RELEASE,
						__ATOMIC_ACQUIRE))
			return mine;
		const uint32_t other = find(drum, head, seen, kind, hash, data, bytes);
		if (other)
			return other;
	}
}

uint32_t ky_heap_intern(struct ky_drum *drum, const char *string, size_t bytes)
{
	if (bytes == 0)
		return 0;
	const uint32_t at = find_or_add(drum, KY_HEAP_STRING, string, bytes, false);
	if (!at)
		__atomic_fetch_add(&drum->header->refused_strings, 1, __ATOMIC_RELAXED);
	return at;
}

uint32_t ky_heap_thread_name(struct ky_drum *drum, const char *name, size_t bytes)
{
	const uint32_t at = bytes ? find_or_add(drum, KY_HEAP_STRING, name, bytes, true) : 0;
	if (!at && bytes)
		__atomic_fetch_add(&drum->header->refused_names, 1, __ATOMIC_RELAXED);
	return at;
}

static uint32_t intern_text(struct ky_drum *drum, const char *text)
{
	return text ? ky_heap_intern(drum, text, strnlen(text, KY_TEXT_BYTES_MAX)) : 0;
}

void ky_heap_prepare(struct ky_drum *drum)
{
	static const struct kymo_site_info overflow = {.abi = KYMO_I_ABI,
						       .kind = KYMO_KIND_INSTANT,
						       .name = "(no room for this trace point)"};
	drum->header->overflow_site = ky_heap_site(drum, &overflow, 0);
}

uint32_t ky_heap_site(struct ky_drum *drum, const struct kymo_site_info *info, uint32_t category)
{
	KY_ASSERT(info->items <= KYMO_I_ITEMS_MAX && info->args <= info->items);
	struct ky_heap_site site;
	memset(&site, 0, sizeof(site));
	site.kind = info->kind;
	site.flags = info->flags;
	site.items = info->items;
	site.args = info->args;
	site.line = info->line;
	site.types = info->types;
	site.category = category;
	site.name = intern_text(drum, info->name);
	site.file = intern_text(drum, info->file);
	site.function = intern_text(drum, info->function);
	const uint32_t lead = (uint32_t)(info->items - info->args);
	for (uint32_t i = 0; i < info->args && i < KYMO_ARGS_MAX; i++)
		site.keys[i] = intern_text(drum, info->keys[lead + i]);
	const uint32_t at = find_or_add(drum, KY_HEAP_SITE, &site, sizeof(site), false);
	if (at)
		return at;
	__atomic_fetch_add(&drum->header->refused_sites, 1, __ATOMIC_RELAXED);
	return drum->header->overflow_site;
}

static const char *string_at(struct ky_drum *drum, uint32_t at)
{
	return at ? (const char *)(record_at(drum, at) + 1) : "";
}

const char *ky_heap_category_of(struct ky_drum *drum, const unsigned char *flag, uint32_t *index)
{
	const uintptr_t at = (uintptr_t)flag - (uintptr_t)drum->categories;
	const size_t number = at / sizeof(*drum->categories);
	if (at % sizeof(*drum->categories) || number >= drum->header->categories_max)
		return NULL;
	*index = (uint32_t)number;
	return string_at(drum, __atomic_load_n(&drum->categories[number].name, __ATOMIC_ACQUIRE));
}

/*
 * Set or clear a recorder's bit; the byte that trace points test follows in the same store. Sequentially consistent, as
 * are the accesses to patterns and names below: see category_added().
 */
static void want(struct ky_drum_category *category, uint32_t slot, bool wanted)
{
	KY_ASSERT(slot < KY_RECORDERS_MAX);
	const uint64_t bit = UINT64_C(1) << (8 + slot);

	uint64_t old = __atomic_load_n(&category->state, __ATOMIC_RELAXED);
	uint64_t now;
	do {
		now = (wanted ? old | bit : old & ~bit) & ~UINT64_C(0xff);
		now |= now != 0;
	} while (!__atomic_compare_exchange_n(&category->state, &old, now, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
}

/* Switch the category on if the recorder's pattern matches. */
static void apply(struct ky_drum *drum, struct ky_drum_category *category, uint32_t slot)
{
	const uint32_t pattern =
		__atomic_load_n(&drum->header->recorders[slot].pattern, __ATOMIC_SEQ_CST);
	if (pattern == 0)
		return;
	const uint32_t name = __atomic_load_n(&category->name, __ATOMIC_SEQ_CST);
	if (!ky_glob_list_match(string_at(drum, pattern), string_at(drum, name)))
		return;
	want(category, slot, true);
	/* The recorder may have left, and cleared its bits before this one was set. */
	if (__atomic_load_n(&drum->header->recorders[slot].pattern, __ATOMIC_SEQ_CST) == 0)
		want(category, slot, false);
}

/*
 * Every recorder sees a new category: either the recorder's pattern was there before the entry (then it is applied here),
 * or the recorder walks the table after it set its pattern. Each side stores its own and then loads the other's: that
 * neither misses the other needs one order of all four accesses, __ATOMIC_SEQ_CST.
 */
static struct ky_drum_category *category_added(struct ky_drum *drum,
					       struct ky_drum_category *category)
{
	for (uint32_t slot = 0; slot < KY_RECORDERS_MAX; slot++)
		apply(drum, category, slot);
	return category;
}

struct ky_drum_category *ky_heap_category(struct ky_drum *drum, const char *name)
{
	const uint32_t string = intern_text(drum, name);
	for (uint32_t i = 0; string && i < drum->header->categories_max; i++) {
		struct ky_drum_category *category = &drum->categories[i];
		/* Pairs with the compare-and-swap below: the name's record is complete. */
		uint32_t now = __atomic_load_n(&category->name, __ATOMIC_ACQUIRE);
		if (now == 0 && __atomic_compare_exchange_n(&category->name, &now, string, false,
							    __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE))
			return category_added(drum, category);
		/* The thread that added it may be suspended before it asked the recorders: ask them again. */
		if (now == string)
			return category_added(drum, category);
	}
	__atomic_fetch_add(&drum->header->refused_categories, 1, __ATOMIC_RELAXED);
	return NULL;
}

int ky_heap_recorder_set(struct ky_drum *drum, uint32_t slot, const char *globs)
{
	KY_ASSERT(slot < KY_RECORDERS_MAX);
	/* The empty string has no record; "*" means the same. */
	const uint32_t pattern = globs ? intern_text(drum, *globs ? globs : "*") : 0;
	if (globs && !pattern)
		return -ENOSPC;
	/* Pairs with the loads in apply(), of threads that add a category. */
	__atomic_store_n(&drum->header->recorders[slot].pattern, pattern, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < drum->header->categories_max; i++) {
		struct ky_drum_category *category = &drum->categories[i];
		if (__atomic_load_n(&category->name, __ATOMIC_SEQ_CST) == 0)
			break;
		if (pattern == 0)
			want(category, slot, false);
		else
			apply(drum, category, slot);
	}
	return 0;
}

int ky_heap_recorder_take(struct ky_drum *drum)
{
	uint64_t *taken = &drum->header->recorders_taken;
	uint64_t old = __atomic_load_n(taken, __ATOMIC_RELAXED);
	for (;;) {
		uint32_t slot = 0;
		while (slot < KY_RECORDER_ENV && old >> slot & 1)
			slot++;
		if (slot == KY_RECORDER_ENV)
			return -EBUSY;
		/* Acquire pairs with ky_heap_recorder_release(): the slot's pattern is 0. */
		if (__atomic_compare_exchange_n(taken, &old, old | UINT64_C(1) << slot, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return (int)slot;
	}
}

void ky_heap_recorder_release(struct ky_drum *drum, uint32_t slot)
{
	ky_heap_recorder_set(drum, slot, NULL);
	/* Pairs with the acquire in ky_heap_recorder_take(). */
	__atomic_fetch_and(&drum->header->recorders_taken, ~(UINT64_C(1) << slot),
			   __ATOMIC_RELEASE);
}
