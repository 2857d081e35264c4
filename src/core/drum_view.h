/* SPDX-License-Identifier: MIT */
/*
 * drum_view.h: a drum as untrusted bytes. The header is checked once and copied: no read goes outside the drum, whatever
 * is written into it later.
 */
#ifndef KY_CORE_DRUM_VIEW_H
#define KY_CORE_DRUM_VIEW_H

#include "core/event.h"
#include "core/layout.h"

/*
 * Which pages of a drum have data. What the header and the rings claim costs nothing: a reader that has this looks at
 * no other page, and so works in proportion to what is there. It may change between two reads.
 */
#define KY_DRUM_PAGE_BYTES 4096u
struct ky_drum_pages {
	uint64_t *bits;    /* one for each page of the drum, and zeros up to a whole word */
	uint64_t count;    /* pages of the drum */
	uint64_t has_data; /* how many of them have data */
};

/* Invariant: the parts that header describes are within bytes, and within what layout.h allows. */
struct ky_drum_view {
	uint64_t bad_at; /* after a failure to open: the byte that is wrong */
	const uint8_t *base;
	uint64_t bytes;
	struct ky_drum_header header;      /* a copy: sizes and offsets are checked */
	const struct ky_drum_header *live; /* the drum's own, for what changes */
	const struct ky_drum_clock *clock;
	const struct ky_drum_category *categories;
	const struct ky_drum_ring *rings;
	const struct ky_drum_pages *pages; /* NULL: every page may be looked at */
};

/*
 * Open a view. Return 0; -EINVAL when it is not a drum, -ENOTSUP when it has another version, -EBADMSG when a part is not
 * within it; *what then says which in words (static).
 */
int ky_drum_view_open(struct ky_drum_view *view, const void *base, uint64_t bytes,
		      const char **what);

/* Return a string of the heap; empty when there is no such record. It may lack a final NUL. */
struct ky_text ky_drum_view_string(const struct ky_drum_view *view, uint32_t at);
/* Copy a trace point. Return false when there is no such record. */
bool ky_drum_view_site(const struct ky_drum_view *view, uint32_t at, struct ky_heap_site *site);
/* Return the place of the first page with data from at on, or end; and of the first one without. */
uint64_t ky_drum_view_data(const struct ky_drum_view *view, uint64_t at, uint64_t end);
uint64_t ky_drum_view_hole(const struct ky_drum_view *view, uint64_t at, uint64_t end);
/* Return how many bytes there are data for. */
uint64_t ky_drum_view_data_bytes(const struct ky_drum_view *view, uint64_t at, uint64_t bytes);
/* Return how many rings there are. */
uint32_t ky_drum_view_rings(const struct ky_drum_view *view);

#endif
