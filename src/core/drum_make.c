/* SPDX-License-Identifier: MIT */
/* drum_make.c: the parts come one after the other, each beginning on a page of its own; see layout.h. */
#include "core/drum_make.h"

#include "core/assert.h"
#include "core/clock.h"
#include "core/heap.h"
#include "os/os.h"
#include "os/ticks.h"

#include <string.h>

/* When the second clock reading is due: 1 to 200 ms, as fast as counters are. It shows the rate. */
#define FIRST_READING_TICKS (UINT64_C(1) << 22)
#define CLOCK_READINGS 1024u
#define PAGE 4096u

uint64_t ky_drum_make_page_up(uint64_t bytes)
{
	return (bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

static uint32_t power_of_two(uint32_t n)
{
	uint32_t power = 16;
	while (power < n)
		power *= 2;
	return power;
}

void ky_drum_make_plan(struct ky_drum_header *h, const struct ky_limits *limits,
		       uint64_t space_bytes)
{
	memset(h, 0, sizeof(*h));
	h->version = KY_DRUM_VERSION;
	h->header_bytes = KY_DRUM_HEADER_BYTES;
	h->clock_max = CLOCK_READINGS;
	h->categories_max = limits->categories_max;
	h->rings_max = limits->rings_max;
	h->heap_bytes = ky_drum_make_page_up(limits->heap_bytes);
	h->buckets_count = power_of_two((uint32_t)(h->heap_bytes / 128));
	h->space_bytes = space_bytes;
	h->clock_at = KY_DRUM_HEADER_BYTES;
	h->categories_at = ky_drum_make_page_up(h->clock_at + sizeof(struct ky_drum_clock) +
						h->clock_max * sizeof(struct ky_drum_reading));
	h->buckets_at = ky_drum_make_page_up(h->categories_at +
					     h->categories_max * sizeof(struct ky_drum_category));
	h->rings_at = ky_drum_make_page_up(h->buckets_at + h->buckets_count * sizeof(uint32_t));
	h->reads_at = h->rings_at + h->rings_max * sizeof(struct ky_drum_ring);
	h->heap_at = ky_drum_make_page_up(h->reads_at + (uint64_t)KY_READERS_MAX * h->rings_max *
								sizeof(uint64_t));
	if (h->heap_at + h->heap_bytes > KY_HEAP_END_MAX)
		h->heap_bytes = KY_HEAP_END_MAX - h->heap_at;
	h->space_at = h->heap_at + h->heap_bytes;
	h->drum_bytes = h->space_at + h->space_bytes;
	KY_ASSERT(h->categories_max <= KY_CATEGORIES_MAX && h->rings_max <= KY_RINGS_MAX);
	KY_ASSERT(h->heap_at < h->space_at && h->space_at <= KY_HEAP_END_MAX);
}

void ky_drum_make_parts(struct ky_drum *d)
{
	d->header = (struct ky_drum_header *)(void *)d->base;
	d->clock = (struct ky_drum_clock *)(void *)(d->base + d->header->clock_at);
	d->categories = (struct ky_drum_category *)(void *)(d->base + d->header->categories_at);
	d->buckets = (uint32_t *)(void *)(d->base + d->header->buckets_at);
	d->rings = (struct ky_drum_ring *)(void *)(d->base + d->header->rings_at);
	d->reads = (uint64_t *)(void *)(d->base + d->header->reads_at);
	d->ticks_inline = d->header->tick_source != KY_TICKS_MONOTONIC;
}

void ky_drum_make_fill(struct ky_drum *d, const struct ky_drum_header *planned,
		       const struct ky_drum_maker *maker, const char *categories)
{
	struct ky_drum_header *h = (struct ky_drum_header *)(void *)d->base;
	memcpy(h, planned, sizeof(*h));
	h->pid = maker->pid;
	h->image = maker->image;
	h->tick_source = maker->tick_source;
	h->made_boottime_ns = ky_os_boottime();
	const uint64_t budget = maker->total_bytes + h->space_used;
	h->budget_bytes = budget < h->space_bytes ? budget : h->space_bytes;
	h->ring_bytes = maker->ring_bytes;
	ky_drum_make_parts(d);
	KY_ASSERT(h->magic == 0 && h->budget_bytes <= h->space_bytes);
	d->clock->every_ticks = FIRST_READING_TICKS;
	ky_heap_prepare(d);
	ky_clock_take(d, true);
	if (categories)
		ky_heap_recorder_set(d, KY_RECORDER_ENV, categories);
	h->process_name = ky_heap_intern(d, maker->process_name, strlen(maker->process_name));
}

void ky_drum_make_finish(struct ky_drum *d)
{
	/* Pairs with the acquire loads of magic in ky_drum_view_open() and adopt(). */
	__atomic_store_n(&d->header->magic, KY_DRUM_MAGIC, __ATOMIC_RELEASE);
}
