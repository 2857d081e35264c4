/* SPDX-License-Identifier: MIT */
/*
 * writer.h: the slow path of the trace points: choose the writer of an event in the thread's slot (slots.h).
 */
#ifndef KY_CORE_WRITER_H
#define KY_CORE_WRITER_H

#include "core/slots.h"

/* Called in an event's thread after the slow path recorded it, if set: the marker backend. slot is the thread's. */
typedef void ky_writer_hook_fn(const struct kymo_site_info *info, bool end, const uint64_t *values,
			       uint32_t slot);
extern ky_writer_hook_fn *ky_writer_hook;
/* Called in an event's thread after the slow path recorded it, if set: KYMO_TRACE's session waits to begin. */
typedef void ky_writer_wake_fn(void);
extern ky_writer_wake_fn *ky_writer_wake;

/* ky_cpu_is_wide(): set when the library is loaded, and read in asm alone. */
extern bool ky_writer_is_wide __attribute__((visibility("hidden")));

/* Record an event even if its category is off. Register the site as needed. Return 1 if recorded, else 0. */
int ky_writer_record(struct kymo_i_site *site, uint64_t end_bit, uint32_t items, uint64_t types,
		     const uint64_t *values);

/*
 * The same in two steps, for embedded libraries: reserve room for the items, then publish the event. frame is the stack
 * pointer of the code that does both.
 */
int ky_writer_reserve(uint64_t site, uint32_t words, uintptr_t frame,
		      struct kymo_reservation *reservation);
void ky_writer_commit(struct kymo_reservation *reservation, bool end);

#endif
