/* SPDX-License-Identifier: MIT */
/*
 * perf_events.h: perf events on threads or on whole CPUs, and a ring for each CPU that all of them write to.
 *
 *   cpu 0: an event of kymo's own thread that counts nothing ── its ring ◀──┬── event of thread 7 on cpu 0
 *                                                                         └── event of thread 8 on cpu 0
 *   cpu 1: ...
 *
 * A ring needs an event that it is of, on its CPU, and that outlives the others: one of kymo's own. Threads that a thread
 * makes have its events too (attr.inherit), which is only allowed with a ring for each CPU. The kernel and kymo share
 * a ring by a mapping:
 *
 *   ┌ a page: head, tail ┐┌ data, a power of two of pages ─────────────────────────────┐
 *                          ... read │ tail ── records that wait ── head │ free ...
 *
 * The kernel moves head and never passes tail: what does not fit is counted in a LOST record. Here tail is moved, once
 * for all that was read. A record may go over the end of the ring: then it is put together in a buffer.
 */
#ifndef KY_PROCESS_PERF_EVENTS_H
#define KY_PROCESS_PERF_EVENTS_H

#include "base/fail.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

/* ---- events ---- */

struct ky_perf_cpu {
	uint32_t number;
	int fd; /* of the event that the ring is of */
	struct ky_perf_ring ring;
};

struct ky_perf_events {
	struct perf_event_attr attr; /* as far as this kernel and user allow it */
	bool kernel_hidden; /* without what happens in the kernel: this user may not see it */
	struct ky_perf_cpu *cpus;
	uint32_t cpus_count;
	int poll_fd; /* an epoll of the rings */
};

/* Events that begin and end together. All zero is an empty set. */
struct ky_perf_set {
	int *fds;
	uint32_t count, room;
};

/*
 * Return an event that samples that many times a second of CPU time, with the records of what is mapped, named, forked
 * and ended. The reader is woken when its ring is half full.
 */
struct perf_event_attr ky_perf_events_clock(uint32_t per_second, uint64_t sample_type);
/*
 * Find out how much of attr is allowed, by trying it on kymo itself, and make the rings, each of at most
 * ring_bytes. 0 or -errno.
 */
int ky_perf_events_open(struct ky_perf_events *events, const struct perf_event_attr *attr,
			uint64_t ring_bytes);
void ky_perf_events_close(struct ky_perf_events *events);
/*
 * Open an event that writes to the ring of its CPU, which is on when attr says so. The limit of descriptors is raised
 * when it is reached. A descriptor or -errno.
 */
int ky_perf_events_on(const struct ky_perf_cpu *cpu, const struct perf_event_attr *attr, pid_t tid);
/*
 * Add events on a thread on all CPUs, or, when tid is -1, on everything that runs. They begin to write together.
 * attr is like that of open. 0 or -errno: then none was added.
 */
int ky_perf_set_add(struct ky_perf_set *set, const struct ky_perf_events *events,
		    const struct perf_event_attr *attr, pid_t tid);
void ky_perf_set_close(struct ky_perf_set *set);

/*
 * Write a message that says why events are unavailable and what to do. what was tried ("samples: process 12");
 * paranoid: the kernel.perf_event_paranoid that would allow it. Return error.
 */
int ky_perf_events_refused(int error, const char *what, int paranoid,
			   char message[KY_MESSAGE_BYTES]);

#endif
