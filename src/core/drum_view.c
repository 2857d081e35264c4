/* SPDX-License-Identifier: MIT */
/* drum_view.c: the one place that checks a drum's offsets and sizes. */
#include "core/drum_view.h"

#include "core/assert.h"

#include <errno.h>
#include <string.h>

static bool fits(uint64_t at, uint64_t count, uint64_t each, uint64_t bytes)
{
	return at % 8 == 0 && at >= KY_DRUM_HEADER_BYTES && at <= bytes && count <= bytes / each &&
	       count * each <= bytes - at;
}

#define BAD(field, text) (*bad_at = offsetof(struct ky_drum_header, field), (text))

static const char *check_parts(const struct ky_drum_header *h, uint64_t bytes, uint64_t *bad_at)
{
	if (h->header_bytes != KY_DRUM_HEADER_BYTES)
		return BAD(header_bytes, "the header has another size");
	if (h->drum_bytes > bytes)
		return BAD(drum_bytes, "the drum is cut short");
	if (!fits(h->clock_at, (uint64_t)h->clock_max + 1, sizeof(struct ky_drum_reading), bytes))
		return BAD(clock_at, "the clock readings lie outside");
	if (h->categories_max > KY_CATEGORIES_MAX ||
	    !fits(h->categories_at, h->categories_max, sizeof(struct ky_drum_category), bytes))
		return BAD(categories_at, "the categories lie outside");
	if (h->rings_max > KY_RINGS_MAX ||
	    !fits(h->rings_at, h->rings_max, sizeof(struct ky_drum_ring), bytes))
		return BAD(rings_at, "the directory of rings lies outside");
	if (!fits(h->heap_at, h->heap_bytes, 1, bytes) || h->heap_at % KY_HEAP_UNIT != 0 ||
	    h->heap_at + h->heap_bytes > KY_HEAP_END_MAX)
		return BAD(heap_at, "the heap lies outside");
	if (!fits(h->space_at, h->space_bytes, 1, bytes))
		return BAD(space_at, "the rings lie outside");
	return NULL;
}

/* Copy word by word: counters in it change. */
static void copy_header(struct ky_drum_header *to, const struct ky_drum_header *live)
{
	const uint64_t *from = (const uint64_t *)(const void *)live;
	for (size_t at = 0; at < sizeof(*to); at += sizeof(uint64_t)) {
		const uint64_t word = KYMO_I_LOAD(from++);
		memcpy((char *)to + at, &word, sizeof(word));
	}
}

int ky_drum_view_open(struct ky_drum_view *view, const void *base, uint64_t bytes,
		      const char **what)
{
	memset(view, 0, sizeof(*view));
	uint64_t *const bad_at = &view->bad_at;
	if (bytes < KY_DRUM_HEADER_BYTES) {
		*what = "too short for a drum's header";
		return -EINVAL;
	}
	const struct ky_drum_header *live = base;
	/* Pairs with the release store of magic in ky_drum_make_finish(). */
	if (__atomic_load_n(&live->magic, __ATOMIC_ACQUIRE) != KY_DRUM_MAGIC) {
		*what = "no drum's magic number at the beginning";
		return -EINVAL;
	}
	copy_header(&view->header, live);
	*what = BAD(version, "the drum has another version");
	if (view->header.version != KY_DRUM_VERSION)
		return -ENOTSUP;
	*what = check_parts(&view->header, bytes, bad_at);
	if (*what)
		return -EBADMSG;
	view->base = base;
	view->bytes = bytes;
	view->live = live;
	view->clock = (const void *)(view->base + view->header.clock_at);
	view->categories = (const void *)(view->base + view->header.categories_at);
	view->rings = (const void *)(view->base + view->header.rings_at);
	return 0;
}

/* Return the body of the record if it is of that kind with at least that many bytes, else NULL. */
static const uint8_t *body_at(const struct ky_drum_view *view, uint32_t at, uint32_t kind,
			      uint32_t least, uint32_t *bytes)
{
	const uint64_t offset = (uint64_t)at * KY_HEAP_UNIT;
	const uint64_t end = view->header.heap_at + view->header.heap_bytes;
	if (offset < view->header.heap_at || offset > end - sizeof(struct ky_heap_record))
		return NULL;
	struct ky_heap_record record;
	memcpy(&record, view->base + offset, sizeof(record));
	if (record.kind != kind || record.bytes < least ||
	    record.bytes > end - offset - sizeof(record))
		return NULL;
	*bytes = record.bytes;
	KY_ASSERT(offset + sizeof(record) + record.bytes <= view->bytes);
	return view->base + offset + sizeof(record);
}

struct ky_text ky_drum_view_string(const struct ky_drum_view *view, uint32_t at)
{
	uint32_t bytes = 0;
	const uint8_t *body = body_at(view, at, KY_HEAP_STRING, 1, &bytes);
	return body && bytes <= KY_TEXT_BYTES_MAX ? (struct ky_text){(const char *)body, bytes}
						  : (struct ky_text){"", 0};
}

bool ky_drum_view_site(const struct ky_drum_view *view, uint32_t at, struct ky_heap_site *site)
{
	uint32_t bytes;
	const uint8_t *body = body_at(view, at, KY_HEAP_SITE, sizeof(*site), &bytes);
	if (body)
		memcpy(site, body, sizeof(*site));
	return body && ky_event_kind_is_recorded(site->kind) && site->items <= KYMO_I_ITEMS_MAX &&
	       site->args <= KYMO_ARGS_MAX && site->args <= site->items;
}

uint32_t ky_drum_view_rings(const struct ky_drum_view *view)
{
	const uint32_t used = __atomic_load_n(&view->live->rings_used, __ATOMIC_RELAXED);
	return used < view->header.rings_max ? used : view->header.rings_max;
}

/* Return the first page from first on, before end, whose bit is not flip. */
static uint64_t find_page(const struct ky_drum_pages *pages, uint64_t first, uint64_t end,
			  uint64_t flip)
{
	end = end < pages->count ? end : pages->count;
	for (uint64_t at = first; at < end; at = (at / 64 + 1) * 64) {
		const uint64_t word = (pages->bits[at / 64] ^ flip) >> at % 64;
		if (word != 0)
			return at + (uint64_t)__builtin_ctzll(word);
	}
	return end;
}

static uint64_t find_place(const struct ky_drum_view *view, uint64_t at, uint64_t end,
			   uint64_t flip)
{
	const uint64_t page = at / KY_DRUM_PAGE_BYTES;
	const uint64_t last = (end + KY_DRUM_PAGE_BYTES - 1) / KY_DRUM_PAGE_BYTES;
	const uint64_t found = find_page(view->pages, page, last, flip);
	const uint64_t place = found == page ? at : found * KY_DRUM_PAGE_BYTES;
	return place < end ? place : end;
}

uint64_t ky_drum_view_data(const struct ky_drum_view *view, uint64_t at, uint64_t end)
{
	return view->pages && at < end ? find_place(view, at, end, 0) : at;
}

uint64_t ky_drum_view_hole(const struct ky_drum_view *view, uint64_t at, uint64_t end)
{
	return view->pages && at < end ? find_place(view, at, end, UINT64_MAX) : end;
}

uint64_t ky_drum_view_data_bytes(const struct ky_drum_view *view, uint64_t at, uint64_t bytes)
{
	const uint64_t end = at + bytes;
	uint64_t sum = 0;
	for (at = ky_drum_view_data(view, at, end); at < end;
	     at = ky_drum_view_data(view, at, end)) {
		const uint64_t hole = ky_drum_view_hole(view, at, end);
		sum += hole - at;
		at = hole;
	}
	return sum;
}
