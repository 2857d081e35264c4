/* SPDX-License-Identifier: MIT */
/*
 * heap.h: strings, trace points and categories in the drum. Append-only, unique by content, shared by
 * all threads and all copies of the library without a lock; safe in signal handlers.
 */
#ifndef KY_CORE_HEAP_H
#define KY_CORE_HEAP_H

#include "core/drum.h"

#include <kymo/kymo.h>

/* Writes the records that must exist before all others. */
void ky_heap_prepare(struct ky_drum *drum);

/* The record of a string; 0 for the empty one and, counted, when there is no room. */
uint32_t ky_heap_intern(struct ky_drum *drum, const char *string, size_t bytes);

/* The record of a trace point; the overflow site, counted, when there is no room. */
uint32_t ky_heap_site(struct ky_drum *drum, const struct kymo_site_info *info, uint32_t category);

/* The category's entry, made if new; NULL, counted, when the table is full. */
struct ky_drum_category *ky_category_get(struct ky_drum *drum, const char *name);

/* Which categories the recorder in that slot wants: globs, or NULL for none any more. */
int ky_recorder_set(struct ky_drum *drum, uint32_t slot, const char *globs);
/* A free slot for a session of this process, or a negative error. */
int ky_recorder_take(struct ky_drum *drum);
void ky_recorder_release(struct ky_drum *drum, uint32_t slot);

#endif
