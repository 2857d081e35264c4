/* SPDX-License-Identifier: MIT */
/*
 * heap.h: strings, trace points and categories in the drum, and the recorders that want categories on. Append-only, unique
 * by content, shared by all threads and all copies of the library without a lock. Safe in signal handlers. layout.h has
 * the invariants.
 */
#ifndef KY_CORE_HEAP_H
#define KY_CORE_HEAP_H

#include "core/drum.h"

#include <kymo/kymo.h>

/* Write the records that must exist before all others. */
void ky_heap_prepare(struct ky_drum *drum);

/* Return the record of a string; 0 for the empty one and, counted, without room. */
uint32_t ky_heap_intern(struct ky_drum *drum, const char *string, size_t bytes);

/* The same for the name of a thread: those have a part of the heap, and no more. */
uint32_t ky_heap_thread_name(struct ky_drum *drum, const char *name, size_t bytes);

/* Return the record of a trace point; the overflow site, counted, without room. */
uint32_t ky_heap_site(struct ky_drum *drum, const struct kymo_site_info *info, uint32_t category);

/* Return the category's entry, made if new; NULL, counted, when the table is full. */
struct ky_drum_category *ky_heap_category(struct ky_drum *drum, const char *name);
/* Return the name of the category with that byte, and its index; NULL when there is none. */
const char *ky_heap_category_of(struct ky_drum *drum, const unsigned char *flag, uint32_t *index);

/* Set which categories the recorder in that slot wants: globs, or NULL for none. Return 0 or -ENOSPC. */
int ky_heap_recorder_set(struct ky_drum *drum, uint32_t slot, const char *globs);
/* Take a slot for a session of this process. Return it, or -EBUSY. */
int ky_heap_recorder_take(struct ky_drum *drum);
/* Give the slot back; its recorder wants no categories any more. */
void ky_heap_recorder_release(struct ky_drum *drum, uint32_t slot);

#endif
