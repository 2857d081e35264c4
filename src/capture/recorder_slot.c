/* SPDX-License-Identifier: MIT */
/*
 * recorder_slot.c: a recorder's slot in another process's drum.
 *
 *   free ── claim ──▶ claimed ── pattern, bits set ──▶ on ── pattern 0, bits cleared ─┐
 *    ▲      pid: own     ▲                                                            │
 *    │                   └── take over: pid: own ── holder is gone                    │
 *    └──────────────────────────── release, pid: 0 ───────────────────────────────────┘
 *
 * Rules for concurrent access:
 *
 * - A slot belongs to the process that its pid names. It changes hands by compare-and-swap on the
 *   word of pattern and pid: of several that want a free slot, one gets it. Start and namespaces
 *   follow, by which others can find that the holder is gone; then the bit in recorders_taken, for
 *   those who count; then what has an effect. (A recorder that is killed between the first two
 *   leaves a slot that has none.)
 * - Of several that find a holder gone, the one that clears the namespaces takes over: a slot without
 *   them must be left alone until it is signed again.
 * - The pattern is written by the holder alone, and each bit of a category's word is that of one
 *   slot, so recorders outside and sessions inside the process never undo each other's bits. The word
 *   changes by compare-and-swap with its low byte, which trace points test, in the same step: 1
 *   when any bit is left.
 * - Every recorder sees a category that the process adds: either its pattern was there before
 *   the entry (then heap.c applies it), or the holder walks the table after it set its pattern.
 *   When it leaves, the pattern goes first and the bits after it; heap.c looks at the pattern a
 *   second time after it set a bit.
 * - Sizes only ever grow, as in drum.c, and stay.
 *
 * The drum may hold anything: a name is copied before it is matched, and every loop ends.
 */
#include "capture/recorder_slot.h"

#include "base/fail.h"
#include "capture/category_list.h"
#include "core/glob.h"
#include "os/os.h"
#include "process/proc.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * ---- owners ----
 *
 * A pid identifies a process only together with its start, since pids are used again, and only in the namespaces where both
 * were read: a process of another cannot be judged from here. In doubt an owner lives.
 */

static uint64_t namespace_of(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 ? (uint32_t)status.st_ino : 0;
}

struct ky_recorder_slot_owner ky_recorder_slot_self(void)
{
	struct ky_recorder_slot_owner own = {.pid = (uint32_t)getpid()};
	struct ky_proc_stat stat;
	if (ky_proc_stat(KY_PROC_SELF, 0, &stat) == 0)
		own.started_ns = stat.started_ns;
	const uint64_t pids = namespace_of("/proc/self/ns/pid");
	/* Kernels before 5.6 have no namespaces of time: then all are in the same one. */
	own.namespaces = pids ? pids | namespace_of("/proc/self/ns/time") << 32 : 0;
	return own;
}

bool ky_recorder_slot_is_over(const struct ky_recorder_slot_owner *life,
			      const struct ky_recorder_slot_owner *own)
{
	if (life->namespaces == 0 || life->namespaces != own->namespaces || life->pid == 0 ||
	    life->pid > INT32_MAX)
		return false;
	/* Ask the kernel, not /proc, where other users' processes may be hidden. */
	if (kill((pid_t)life->pid, 0) != 0)
		return errno == ESRCH;
	struct ky_proc_stat stat;
	if (ky_proc_stat((pid_t)life->pid, 0, &stat) != 0 || stat.started_ns == 0)
		return false;
	return ky_proc_state_ended(stat.state) ||
	       (life->started_ns != 0 && life->started_ns != stat.started_ns);
}

/*
 * ---- a string in the heap of the drum ----
 *
 * Find or add one, by the protocol of core/heap.c. The difference is trust: sizes and offsets are those of the view, which
 * were checked once, and what is read from the drum later (heap_used, a chain's links, a record's size) is checked where it
 * is used. When the owner keeps changing what is looked at, it is an error after some tries.
 */

/* No chain is longer, and no more races are lost in a row, in a drum that is not corrupt. */
#define CHAIN_MAX 100000u
#define HEAP_TRIES_MAX 1000u

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

/* Return the record if it lies in the heap, else NULL. */
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

/*
 * Find the text in the chain from record up to end. *found is 0 when it is not there; return
 * -EBADMSG when that is not a chain.
 */
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
	for (uint32_t tries = 0; tries < HEAP_TRIES_MAX; tries++) {
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

/* Make the record the head of its chain, unless an equal one is added first. */
static int link_record(const struct heap *heap, uint32_t *bucket, uint32_t head, uint32_t mine,
		       const struct text *text, uint32_t *record)
{
	struct ky_heap_record *r = record_at(heap, mine);
	for (uint32_t tries = 0; r && tries < HEAP_TRIES_MAX; tries++) {
		const uint32_t seen = head;
		__atomic_store_n(&r->next, head, __ATOMIC_RELAXED);
		/*
		 * Release: the record is complete before the process finds it. Pairs with the
		 * acquire of the bucket's head.
		 */
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
	((char *)(r + 1))[text->bytes] = '\0'; /* overwrites what was there before */
	return link_record(heap, bucket, head, mine, text, record);
}

static int intern(const struct ky_drum_map *map, const struct ky_drum_view *view,
		  const char *string, size_t bytes, uint32_t *record)
{
	struct heap heap;
	*record = 0;
	int error = find_heap(&heap, map, view);
	if (error)
		return error;
	const struct text text = text_of(string, bytes);
	uint32_t *bucket = &heap.buckets[text.hash & (heap.buckets_count - 1)];
	/* Acquire: pairs with the release that added the records. */
	const uint32_t head = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
	error = find(&heap, head, 0, &text, record);
	return error || *record ? error : add(&heap, bucket, head, &text, record);
}

/* ---- slots ---- */

/* A compare-and-swap that fails so often fails on purpose. */
#define TRIES_MAX 10000u

_Static_assert(offsetof(struct ky_drum_recorder, pid) ==
		       offsetof(struct ky_drum_recorder, pattern) + 4,
	       "one word");
_Static_assert(offsetof(struct ky_drum_header, recorders) % 8 == 0, "aligned");

static struct ky_drum_header *header_of(const struct ky_drum_map *map)
{
	return (struct ky_drum_header *)(void *)map->writable;
}

static struct ky_drum_category *categories_of(const struct ky_drum_map *map,
					      const struct ky_drum_view *view)
{
	return (struct ky_drum_category *)(void *)(map->writable + view->header.categories_at);
}

/* Return the word of a pid without a pattern, as it is in memory. */
static uint64_t holder_word(uint32_t pid)
{
	return (uint64_t)pid << 32;
}

static bool change_holder(struct ky_drum_recorder *slot, uint64_t from, uint64_t to)
{
	uint64_t *word = (uint64_t *)(void *)slot;
	return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

/* Set or clear the slot's bit; the byte that trace points test changes in the same store. */
static void want(struct ky_drum_category *category, uint32_t slot, bool wanted)
{
	const uint64_t bit = UINT64_C(1) << (8 + slot);
	uint64_t old = __atomic_load_n(&category->state, __ATOMIC_SEQ_CST);
	for (uint32_t tries = 0; tries < TRIES_MAX; tries++) {
		uint64_t now = (wanted ? old | bit : old & ~bit) & ~UINT64_C(0xff);
		now |= now != 0;
		if (now == old || __atomic_compare_exchange_n(&category->state, &old, now, false,
							      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			return;
	}
}

/* Set the slot's bit of the categories that the globs select, and with exactly clear it of the others. */
static void switch_wanted(const struct ky_drum_map *map, const struct ky_drum_view *view,
			  uint32_t slot, const char *globs, bool exactly)
{
	char name[KY_TEXT_BYTES_MAX + 1];
	struct ky_drum_category *categories = categories_of(map, view);
	uint64_t left = view->header.heap_bytes; /* each name is there once */
	for (uint32_t i = 0; i < view->header.categories_max; i++) {
		const uint32_t record = __atomic_load_n(&categories[i].name, __ATOMIC_SEQ_CST);
		const struct ky_text text = ky_drum_view_string(view, record);
		if (record == 0 || text.bytes > left)
			break;
		left -= text.bytes;
		memcpy(name, text.data, text.bytes);
		name[text.bytes] = '\0';
		const bool wanted = ky_glob_list_match(globs, name);
		if (wanted || exactly)
			want(&categories[i], slot, wanted);
	}
}

/* Clear the whole table: a process that overwrites names must not keep categories on. */
static void clear_bits(const struct ky_drum_map *map, const struct ky_drum_view *view,
		       uint32_t slot)
{
	struct ky_drum_category *categories = categories_of(map, view);
	for (uint32_t i = 0; i < view->header.categories_max; i++)
		if (__atomic_load_n(&categories[i].state, __ATOMIC_SEQ_CST) >> (8 + slot) & 1)
			want(&categories[i], slot, false);
}

/* Release the slot. Only its holder may. */
static void release(const struct ky_drum_map *map, const struct ky_drum_view *view, uint32_t slot,
		    const struct ky_recorder_slot_owner *own)
{
	struct ky_drum_recorder *recorder = &header_of(map)->recorders[slot];
	__atomic_store_n(&recorder->pattern, 0, __ATOMIC_SEQ_CST);
	clear_bits(map, view, slot);
	__atomic_store_n(&recorder->started_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&recorder->namespaces, 0, __ATOMIC_RELAXED);
	__atomic_fetch_and(&header_of(map)->recorders_taken, ~(UINT64_C(1) << slot),
			   __ATOMIC_SEQ_CST);
	(void)change_holder(recorder, holder_word(own->pid), 0);
}

static void sign(struct ky_drum_recorder *recorder, const struct ky_recorder_slot_owner *own)
{
	__atomic_store_n(&recorder->started_ns, own->started_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&recorder->namespaces, own->namespaces, __ATOMIC_SEQ_CST);
}

static struct ky_recorder_slot_owner owner_of(const struct ky_drum_recorder *recorder)
{
	return (struct ky_recorder_slot_owner){
		.pid = __atomic_load_n(&recorder->pid, __ATOMIC_RELAXED),
		.namespaces = __atomic_load_n(&recorder->namespaces, __ATOMIC_SEQ_CST),
		.started_ns = __atomic_load_n(&recorder->started_ns, __ATOMIC_RELAXED),
	};
}

uint32_t ky_recorder_slot_count(const struct ky_drum_header *header,
				const struct ky_recorder_slot_owner *own)
{
	/* The target may set any bits. */
	uint64_t taken = __atomic_load_n(&header->recorders_taken, __ATOMIC_RELAXED) &
			 ((UINT64_C(1) << KY_RECORDERS_MAX) - 1);
	uint32_t count = 0;
	for (; taken; taken &= taken - 1) {
		const uint32_t slot = (uint32_t)__builtin_ctzll(taken);
		const struct ky_recorder_slot_owner life = owner_of(&header->recorders[slot]);
		count += slot < KY_RECORDERS_INSIDE || !ky_recorder_slot_is_over(&life, own);
	}
	return count;
}

static void free_if_gone(const struct ky_drum_map *map, const struct ky_drum_view *view,
			 uint32_t slot, const struct ky_recorder_slot_owner *own)
{
	struct ky_drum_recorder *recorder = &header_of(map)->recorders[slot];
	const uint64_t word = __atomic_load_n((uint64_t *)(void *)recorder, __ATOMIC_SEQ_CST);
	const struct ky_recorder_slot_owner life = {
		.pid = (uint32_t)(word >> 32),
		.namespaces = __atomic_load_n(&recorder->namespaces, __ATOMIC_SEQ_CST),
		.started_ns = __atomic_load_n(&recorder->started_ns, __ATOMIC_RELAXED),
	};
	uint64_t signed_in = life.namespaces;
	if (!ky_recorder_slot_is_over(&life, own) ||
	    !__atomic_compare_exchange_n(&recorder->namespaces, &signed_in, 0, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return;
	if (!change_holder(recorder, word, holder_word(own->pid))) {
		/* It changed hands to one that signed with the same: it was given back in between. */
		__atomic_store_n(&recorder->namespaces, life.namespaces, __ATOMIC_SEQ_CST);
		return;
	}
	sign(recorder, own);
	release(map, view, slot, own);
}

bool ky_recorder_slot_left(const struct ky_drum_header *header,
			   const struct ky_recorder_slot_owner *own)
{
	for (uint32_t slot = KY_RECORDERS_INSIDE; slot < KY_RECORDERS_MAX; slot++) {
		const struct ky_recorder_slot_owner life = owner_of(&header->recorders[slot]);
		if (ky_recorder_slot_is_over(&life, own))
			return true;
	}
	return false;
}

void ky_recorder_slot_tidy(const struct ky_drum_map *map, const struct ky_drum_view *view,
			   const struct ky_recorder_slot_owner *own)
{
	for (uint32_t slot = KY_RECORDERS_INSIDE; slot < KY_RECORDERS_MAX; slot++)
		free_if_gone(map, view, slot, own);
}

static uint32_t claim(const struct ky_drum_map *map, const struct ky_recorder_slot_owner *own)
{
	struct ky_drum_header *header = header_of(map);
	for (uint32_t slot = KY_RECORDERS_INSIDE; slot < KY_RECORDERS_MAX; slot++) {
		if (!change_holder(&header->recorders[slot], 0, holder_word(own->pid)))
			continue;
		sign(&header->recorders[slot], own);
		__atomic_fetch_or(&header->recorders_taken, UINT64_C(1) << slot, __ATOMIC_SEQ_CST);
		return slot;
	}
	return KY_DRUM_NO_SLOT;
}

static int intern_globs(const struct ky_drum_map *map, const struct ky_drum_view *view,
			const char *globs, uint32_t *pattern, const char *name, char *message)
{
	const int error = intern(map, view, globs, strlen(globs), pattern);
	if (!error)
		return 0;
	return ky_fail(message, error,
		       "%s: its categories cannot be switched: the buffer's heap is "
		       "%s; start the program with KYMO_CATEGORIES",
		       name, error == -ENOSPC ? "full" : "damaged");
}

int ky_recorder_slot_on(const struct ky_drum_map *map, const struct ky_drum_view *view,
			const struct ky_recorder_slot_owner *own, const char *globs,
			const char *name, char message[KY_MESSAGE_BYTES])
{
	globs = globs && *globs ? globs : "*"; /* the empty string has no record */
	if (strlen(globs) > KY_TEXT_BYTES_MAX)
		return ky_fail(message, -E2BIG,
			       "%s: a list of categories of %zu bytes; expected at most %u", name,
			       strlen(globs), KY_TEXT_BYTES_MAX);
	ky_recorder_slot_tidy(map, view, own);
	uint32_t pattern = 0;
	const int error = intern_globs(map, view, globs, &pattern, name, message);
	if (error)
		return error;
	const uint32_t slot = claim(map, own);
	if (slot == KY_DRUM_NO_SLOT)
		return ky_fail(message, -EBUSY,
			       "%s: its categories cannot be switched: %u recorders are "
			       "attached already; end one of them",
			       name, KY_RECORDERS_MAX - KY_RECORDERS_INSIDE);
	__atomic_store_n(&header_of(map)->recorders[slot].pattern, pattern, __ATOMIC_SEQ_CST);
	switch_wanted(map, view, slot, globs, false);
	return (int)slot;
}

void ky_recorder_slot_off(const struct ky_drum_map *map, const struct ky_drum_view *view,
			  uint32_t slot, const struct ky_recorder_slot_owner *own)
{
	if (slot >= KY_RECORDERS_INSIDE && slot < KY_RECORDERS_MAX && map->writable)
		release(map, view, slot, own);
}

/* ---- the process's own list ---- */

/*
 * The pattern of the slot that KYMO_CATEGORIES sets. The process changes it too, when a session of KYMO_TRACE starts or fails: the
 * one that is later wins. Categories that the process adds at the same moment may follow the older pattern; editing once more
 * puts them right.
 */
int ky_recorder_slot_edit_own(const struct ky_drum_map *map, const struct ky_drum_view *view,
			      const char *entries, bool on, const char *name,
			      char message[KY_MESSAGE_BYTES])
{
	uint32_t *const word = &header_of(map)->recorders[KY_RECORDER_ENV].pattern;
	char old[KY_TEXT_BYTES_MAX + 1], globs[KY_TEXT_BYTES_MAX + 1];
	uint32_t before = __atomic_load_n(word, __ATOMIC_SEQ_CST), pattern = 0;
	for (uint32_t tries = 0; tries < TRIES_MAX; tries++) {
		const struct ky_text text = ky_drum_view_string(view, before);
		memcpy(old, text.data, text.bytes);
		old[text.bytes] = '\0';
		int error = ky_category_list_edit(globs, sizeof(globs), before ? old : NULL,
						  entries, on);
		if (error)
			return ky_fail(
				message, error,
				"%s: its list of categories has more than %u bytes; disable all of them "
				"first",
				name, KY_TEXT_BYTES_MAX);
		error = *globs ? intern_globs(map, view, globs, &pattern, name, message) : 0;
		if (error)
			return error;
		pattern = *globs ? pattern : 0;
		if (!__atomic_compare_exchange_n(word, &before, pattern, false, __ATOMIC_SEQ_CST,
						 __ATOMIC_SEQ_CST))
			continue;
		if (pattern)
			switch_wanted(map, view, KY_RECORDER_ENV, globs, true);
		else
			clear_bits(map, view, KY_RECORDER_ENV);
		return 0;
	}
	return ky_fail(message, -EBUSY, "%s: it changes its list of categories all the time", name);
}

static void raise_to(uint64_t *field, uint64_t value)
{
	uint64_t now = __atomic_load_n(field, __ATOMIC_RELAXED);
	for (uint32_t tries = 0; now < value && tries < TRIES_MAX; tries++)
		if (__atomic_compare_exchange_n(field, &now, value, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return;
}

void ky_recorder_slot_grow(const struct ky_drum_map *map, const struct ky_drum_view *view,
			   uint64_t ring_bytes, uint64_t total_bytes)
{
	const uint64_t space = view->header.space_bytes;
	const uint64_t total = total_bytes > ring_bytes ? total_bytes : ring_bytes;
	const uint64_t pages = total < space ? (total + 4095) & ~UINT64_C(4095) : space;
	struct ky_drum_header *header = header_of(map);
	raise_to(&header->budget_bytes, pages < space ? pages : space);
	raise_to(&header->ring_bytes, ky_ring_bytes_asked(ring_bytes, space));
}

/* Take a place among the readers: a free one, or that of a recorder that is gone. */
static int take_reader(struct ky_drum_header *header)
{
	for (uint32_t i = 0; i < KY_READERS_MAX; i++) {
		struct ky_drum_reader *reader = &header->readers[i];
		uint32_t state = __atomic_load_n(&reader->state, __ATOMIC_ACQUIRE);
		const pid_t pid = (pid_t)__atomic_load_n(&reader->pid, __ATOMIC_RELAXED);
		const bool gone = pid > 0 && kill(pid, 0) != 0 && errno == ESRCH;
		if ((state == KY_READER_NONE || gone) &&
		    __atomic_compare_exchange_n(&reader->state, &state, KY_READER_TAKEN, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return (int)i;
	}
	return -1;
}

int ky_recorder_slot_stall(const struct ky_drum_map *map, const struct ky_drum_view *view,
			   uint64_t stall_ns, struct ky_stream *stream)
{
	const uint64_t rings = view->header.rings_max;
	const uint64_t at = view->header.rings_at + rings * sizeof(struct ky_drum_ring);
	struct ky_drum_header *header = header_of(map);
	/* An older drum has none. */
	if (header->reads_at != at || at + KY_READERS_MAX * rings * 8 > view->header.heap_at ||
	    view->header.heap_at > map->writable_bytes)
		return -1;
	const int number = take_reader(header);
	if (number < 0)
		return -1;
	stream->reads = (uint64_t *)(void *)(map->writable + at) + (uint64_t)number * rings;
	for (uint64_t i = 0; i < rings; i++)
		__atomic_store_n(&stream->reads[i], 0, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < stream->inputs_count && i < rings; i++)
		if (stream->inputs[i]->cursor.number < UINT64_MAX / 2)
			__atomic_store_n(&stream->reads[i], stream->inputs[i]->cursor.number,
					 __ATOMIC_RELAXED);
	struct ky_drum_reader *reader = &header->readers[number];
	__atomic_store_n(&reader->pid, (uint32_t)getpid(), __ATOMIC_RELAXED);
	__atomic_store_n(&reader->stall_ns, stall_ns, __ATOMIC_RELAXED);
	/* Pairs with the acquire load in find_behind(), stall.c. */
	__atomic_store_n(&reader->state, KY_READER_ACTIVE, __ATOMIC_RELEASE);
	return number;
}

void ky_recorder_slot_unstall(const struct ky_drum_map *map, int reader)
{
	if (reader >= 0 && map->writable)
		__atomic_store_n(&header_of(map)->readers[reader].state, KY_READER_NONE,
				 __ATOMIC_RELEASE);
}
