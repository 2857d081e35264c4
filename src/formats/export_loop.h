/* SPDX-License-Identifier: MIT */
/*
 * export_loop.h: the loop that exporters have in common: one item of the walk after the other, the buffer pushed on
 * between them, progress told now and then.
 */
#ifndef KY_FORMATS_EXPORT_LOOP_H
#define KY_FORMATS_EXPORT_LOOP_H

#include "formats/walk.h"

#include "core/event.h"
#include "out.h"

typedef void (*ky_export_item_fn)(void *self, const struct ky_walk_item *item);

/* 0 or -errno, of the buffer, of memory or of progress. */
int ky_export_drive(const struct ky_trace *trace, const struct ky_selection *selection,
		    struct ky_out *out, struct ky_export_left *left,
		    int (*progress)(void *, uint64_t, uint64_t), void *context,
		    ky_export_item_fn item, bool named_ends, void *self);

/* How many clock snapshots the trace has. */
uint64_t ky_export_snapshots(const struct ky_trace *trace);

static inline struct ky_text ky_export_text(const struct ky_trace *trace, uint32_t string)
{
	if (!string)
		return (struct ky_text){"", 0};
	return (struct ky_text){ky_text_of(trace, string),
				ky_strings_bytes(&trace->strings, string)};
}

#endif
