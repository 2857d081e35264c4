/* SPDX-License-Identifier: MIT */
/*
 * drum.h: the drum of this process: where it is, its parts, and when it is made.
 *
 * There is at most one, mapped at one address for the life of the process. A forked child gets a new one at the same
 * address, so that pointers into it (the bytes that trace points test) stay valid. Several copies of the library in one
 * process find each other's drum through /proc/self/fd.
 *
 * All functions may be called on an event's slow path, also in a signal handler.
 */
#ifndef KY_CORE_DRUM_H
#define KY_CORE_DRUM_H

#include "core/layout.h"

#include <stdbool.h>

/* Invariant: base to base + bytes is mapped, and the pointers are those of the header's places. */
struct ky_drum {
	uint8_t *base;
	struct ky_drum_header *header;
	struct ky_drum_clock *clock;
	struct ky_drum_category *categories;
	uint32_t *buckets;
	struct ky_drum_ring *rings;
	uint64_t *reads;
	uint64_t bytes;
	int fd;
	uint64_t
		identity; /* of the file behind fd: the program may close fd and reuse its number */
	bool on_disk;     /* a file: populate memory before writing to it */
	bool populated;   /* all of the heap has been */
	bool adopted;     /* made by another copy of the library, which closes fd */
	bool borrowed;    /* mapped by another copy, too */
	bool ticks_inline; /* ticks are those of the counter that kymo.h reads */
	/* Not 0 after the counter was given up (clock.c): ticks a nanosecond of CLOCK_MONOTONIC, times 2^20, since then. */
	uint64_t made_rate;
	uint64_t made_ticks, made_ns;
};

/* The sizes of a new drum; init.c reads them from the environment. */
struct ky_limits {
	uint64_t ring_bytes;  /* of each thread */
	uint64_t total_bytes; /* of all rings */
	uint64_t heap_bytes;  /* trace points and strings */
	uint32_t rings_max;
	uint32_t categories_max;
	const char *dir;        /* KYMO_DRUM_DIR or NULL */
	const char *categories; /* KYMO_CATEGORIES or NULL */
	const char *mailbox;    /* KYMO_DRUM_MAIL or NULL */
	int fd;                 /* KYMO_DRUM_FD or -1 */
};
extern struct ky_limits ky_limits;

/* Return the drum, made if necessary; NULL when it cannot be made, or this thread is making it. */
struct ky_drum *ky_drum_get(void);
/* Return the drum if it was made already, else NULL. */
struct ky_drum *ky_drum_peek(void);
/* Note, in a forked child, that the drum is the parent's. The next use makes a new one, and notices this without the call. */
void ky_drum_after_fork(void);
/*
 * In a forked child: the trace points that are on stay on until the child makes its own drum, whatever the parent switches.
 */
void ky_drum_keep_categories(void);
/*
 * In a forked child that will finish an event of its parent's: writing to the drum changes it for the child alone, and the
 * child's own drum leaves the ring's place alone.
 */
void ky_drum_keep(const struct ky_drum_ring *ring);
/* Report whether there is no drum and will never be one. */
bool ky_drum_failed(void);
/* Return why there is none, a negative errno; 0 if nothing failed. */
int ky_drum_error(void);
/* Count an event that came before the drum was made. */
void ky_drum_lose(void);

/* Return the drum's counter. */
uint64_t ky_drum_ticks(const struct ky_drum *drum);

/* Allow at least ring_bytes for each new ring and total_bytes for all, as far as the drum has space. */
void ky_drum_grow(struct ky_drum *drum, uint64_t ring_bytes, uint64_t total_bytes);

#endif
