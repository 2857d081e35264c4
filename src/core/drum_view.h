/* SPDX-License-Identifier: MIT */
/*
 * drum_view.h: a drum as somebody else's bytes. The header is checked once and copied: nothing that a
 * reader does can leave the drum, whatever is written into it meanwhile.
 */
#ifndef KY_CORE_DRUM_VIEW_H
#define KY_CORE_DRUM_VIEW_H

#include "core/event.h"
#include "core/layout.h"

struct ky_drum_view {
	uint64_t bad_at; /* when it could not be opened: the byte that is not as it must be */
	const uint8_t *base;
	uint64_t bytes;
	struct ky_drum_header header;      /* a copy: sizes and offsets are checked */
	const struct ky_drum_header *live; /* the drum's own, for what changes */
	const struct ky_drum_clock *clock;
	const struct ky_drum_category *categories;
	const struct ky_drum_ring *rings;
};

/*
 * 0; or -EINVAL when it is no drum, -ENOTSUP when its version is not ours, -EBADMSG when its parts
 * are not where they can be; *what then says which in words (static).
 */
int ky_drum_view_open(struct ky_drum_view *view, const void *base, uint64_t bytes,
		      const char **what);

/* A string of the heap; empty when there is no such record. Not NUL-terminated for sure. */
struct ky_text ky_drum_view_string(const struct ky_drum_view *view, uint32_t at);
/* A trace point, copied; false when there is no such record. */
bool ky_drum_view_site(const struct ky_drum_view *view, uint32_t at, struct ky_heap_site *site);
/* How many rings there are now. */
uint32_t ky_drum_view_rings(const struct ky_drum_view *view);

#endif
