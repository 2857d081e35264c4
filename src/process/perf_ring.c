/* SPDX-License-Identifier: MIT */
/* perf_ring.c: see perf_ring.h. */
#include "process/perf_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RECORD_MAX 65536u /* what its size can say */

int ky_perf_ring_open(struct ky_perf_ring *ring, int fd, uint64_t bytes)
{
	const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t pages = 1;
	*ring = (struct ky_perf_ring){.whole = malloc(RECORD_MAX)};
	if (!ring->whole)
		return -ENOMEM;
	while (2 * pages * page_bytes <= bytes)
		pages *= 2;
	void *mapped = MAP_FAILED;
	for (; pages && mapped == MAP_FAILED; pages /= 2) {
		mapped = mmap(NULL, (size_t)((pages + 1) * page_bytes), PROT_READ | PROT_WRITE,
			      MAP_SHARED, fd, 0);
		ring->bytes = pages * page_bytes;
		if (mapped == MAP_FAILED && errno != EPERM && errno != ENOMEM)
			break;
	}
	if (mapped == MAP_FAILED) {
		const int error = -errno;
		ky_perf_ring_close(ring);
		return error;
	}
	ring->page = mapped;
	ring->data = (uint8_t *)mapped + page_bytes;
	ring->at = ring->page->data_tail;
	ring->head = ring->at;
	return 0;
}

void ky_perf_ring_close(struct ky_perf_ring *ring)
{
	if (ring->page)
		munmap(ring->page, (size_t)(ring->bytes + (uint64_t)sysconf(_SC_PAGESIZE)));
	free(ring->whole);
	*ring = (struct ky_perf_ring){0};
}

void ky_perf_ring_begin(struct ky_perf_ring *ring)
{
	/* Pairs with the kernel's barrier before it stores data_head: the records are there. */
	ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

const struct perf_event_header *ky_perf_ring_next(struct ky_perf_ring *ring)
{
	struct perf_event_header head;
	const uint64_t left = ring->head - ring->at;
	if (left < sizeof(head))
		return NULL;
	/* Records are of whole words: a head never goes over the end. */
	const uint64_t place = ring->at & (ring->bytes - 1);
	memcpy(&head, ring->data + place, sizeof(head));
	if (head.size < sizeof(head) || head.size > left) {
		/* Not what the kernel writes: all of it is passed over. */
		ring->at = ring->head;
		return NULL;
	}
	ring->at += head.size;
	const uint64_t until_end = ring->bytes - place;
	if (head.size <= until_end)
		return (const struct perf_event_header *)(const void *)(ring->data + place);
	memcpy(ring->whole, ring->data + place, (size_t)until_end);
	memcpy(ring->whole + until_end, ring->data, (size_t)(head.size - until_end));
	return (const struct perf_event_header *)(const void *)ring->whole;
}

void ky_perf_ring_end(struct ky_perf_ring *ring)
{
	/* Pairs with the kernel's load of data_tail: all was read before it is written over. */
	__atomic_store_n(&ring->page->data_tail, ring->at, __ATOMIC_RELEASE);
}
