/* SPDX-License-Identifier: MIT */
/*
 * perf_ring.h: the ring in which the kernel puts the records of perf events, shared by a mapping.
 *
 *   ┌ a page: head, tail ┐┌ data, a power of two of pages ─────────────────────────────┐
 *                          ... read │ tail ── records that wait ── head │ free ...
 *
 * The kernel moves head and never passes tail: what does not fit is counted in a LOST record. Here tail is moved, once
 * for all that was read. A record may go over the end of the ring: then it is put together in a buffer.
 */
#ifndef KY_PROCESS_PERF_RING_H
#define KY_PROCESS_PERF_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ky_perf_ring {
	struct perf_event_mmap_page *page; /* NULL: not open */
	uint8_t *data;
	uint64_t bytes; /* of data */
	uint64_t at;    /* next to be read */
	uint64_t head;  /* up to here it may be read */
	uint8_t *whole; /* for a record that goes over the end */
};

/*
 * Map the ring of an event, whose descriptor stays the caller's. bytes is halved until the kernel allows it
 * (perf_event_mlock_kb). 0 or -errno.
 */
int ky_perf_ring_open(struct ky_perf_ring *ring, int fd, uint64_t bytes);
void ky_perf_ring_close(struct ky_perf_ring *ring);

/* Note how far the kernel has written: ky_perf_ring_next() goes up to there. */
void ky_perf_ring_begin(struct ky_perf_ring *ring);
/* Return the next whole record, valid until the next call; NULL at the end. */
const struct perf_event_header *ky_perf_ring_next(struct ky_perf_ring *ring);
/* Give what was read back to the kernel. */
void ky_perf_ring_end(struct ky_perf_ring *ring);

#endif
