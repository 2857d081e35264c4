/* SPDX-License-Identifier: MIT */
/* stall.c: a writer's side of sessions that are to miss no event, and how they come and go. */
#include "core/stall.h"

#include "os/os.h"

#define NAP_NS 50000u
/* Naps between looks whether somebody is waited for at all. */
#define LOOK_NAPS 64u

static uint64_t *read_of(const struct ky_drum *drum, uint32_t reader, uint32_t ring)
{
	return &drum->reads[(uint64_t)reader * drum->header->rings_max + ring];
}

/*
 * Return the longest time that a reader which has not read the oldest block of the ring wants to be waited for, or -1 when
 * all have read it. *read is how far the last of them is.
 */
static int64_t find_behind(const struct ky_drum *drum, const struct ky_ring_writer *w,
			   uint64_t *read)
{
	const uint32_t ring = (uint32_t)(w->ring - drum->rings);
	const uint64_t oldest = w->next - w->blocks;
	int64_t longest = -1;
	*read = UINT64_MAX;
	for (uint32_t i = 0; i < KY_READERS_MAX; i++) {
		const struct ky_drum_reader *reader = &drum->header->readers[i];
		/* Both pair with the release stores of the reader: it has copied what it says. */
		if (__atomic_load_n(&reader->state, __ATOMIC_ACQUIRE) != KY_READER_ACTIVE)
			continue;
		const uint64_t now = __atomic_load_n(read_of(drum, i, ring), __ATOMIC_ACQUIRE);
		const int64_t stall = (int64_t)(KYMO_I_LOAD(&reader->stall_ns) & INT64_MAX);
		if (now > oldest)
			continue;
		longest = stall > longest ? stall : longest;
		*read = now < *read ? now : *read;
	}
	return longest;
}

/* Report whether a reader lives. One that a signal killed, or whose number is another's here (containers), is not waited for. */
static bool is_reader_alive(const struct ky_drum *drum)
{
	for (uint32_t i = 0; i < KY_READERS_MAX; i++) {
		const struct ky_drum_reader *reader = &drum->header->readers[i];
		if (__atomic_load_n(&reader->state, __ATOMIC_ACQUIRE) == KY_READER_ACTIVE &&
		    ky_os_thread_alive(KY_OS_ANY_PROCESS, (int32_t)KYMO_I_LOAD(&reader->pid)))
			return true;
	}
	return false;
}

/* Wait until the readers have read the oldest block, or for as long as they live and may be waited for. */
static void wait(struct ky_drum *drum, struct ky_slot *slot, int64_t longest)
{
	const struct ky_ring_writer *w = &slot->level[0];
	const uint64_t begin = ky_os_monotonic();
	uint64_t read, waited = 0;
	uint32_t naps = 0;
	KYMO_I_STORE(&slot->stalling, true);
	do {
		ky_os_nap(NAP_NS);
		waited = ky_os_monotonic() - begin;
		longest = find_behind(drum, w, &read);
	} while (longest >= 0 && waited < (uint64_t)longest &&
		 (++naps % LOOK_NAPS != 0 || is_reader_alive(drum)));
	KYMO_I_STORE(&slot->stalling, false);
	slot->vain_ring = longest >= 0 ? w->ring : NULL;
	slot->vain_read = read;
	__atomic_fetch_add(&drum->header->stalled, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&drum->header->stalled_ns, waited, __ATOMIC_RELAXED);
}

void ky_stall_make_room(struct ky_drum *drum, struct ky_slot *slot, uint32_t words)
{
	struct ky_ring_writer *w = &slot->level[0];
	uint64_t read;
	if (!w->ring || w->quiet || ky_ring_has_room(w, words) || w->next < w->blocks)
		return;
	int64_t longest = find_behind(drum, w, &read);
	if (longest < 0 || ky_ring_grow(drum, w, slot->tid))
		return;
	const bool vain = slot->vain_ring == w->ring && slot->vain_read == read;
	if (longest > 0 && !vain)
		wait(drum, slot, longest);
}

int ky_stall_join(struct ky_drum *drum, uint64_t stall_ns)
{
	for (uint32_t i = 0; i < KY_READERS_MAX; i++) {
		struct ky_drum_reader *reader = &drum->header->readers[i];
		uint32_t none = KY_READER_NONE;
		if (!__atomic_compare_exchange_n(&reader->state, &none, KY_READER_TAKEN, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		reader->pid = (uint32_t)ky_os_pid();
		KYMO_I_STORE(&reader->stall_ns, stall_ns);
		for (uint32_t ring = 0; ring < drum->header->rings_max; ring++)
			KYMO_I_STORE(read_of(drum, i, ring), 0);
		return (int)i;
	}
	return -1;
}

void ky_stall_begin(struct ky_drum *drum, int reader, struct ky_stream *stream)
{
	if (reader < 0)
		return;
	stream->reads = read_of(drum, (uint32_t)reader, 0);
	for (uint32_t i = 0; i < stream->inputs_count; i++) {
		const struct ky_ring_cursor *c = &stream->inputs[i]->cursor;
		if (c->blocks && c->number < UINT64_MAX / 2)
			KYMO_I_STORE(&stream->reads[i], c->number);
	}
	/* Pairs with the acquire load in find_behind(). */
	__atomic_store_n(&drum->header->readers[reader].state, KY_READER_ACTIVE, __ATOMIC_RELEASE);
}

void ky_stall_leave(struct ky_drum *drum, int reader)
{
	if (reader >= 0)
		__atomic_store_n(&drum->header->readers[reader].state, KY_READER_NONE,
				 __ATOMIC_RELEASE);
}
