/* SPDX-License-Identifier: MIT */
/*
 * drum.h: the drum of this process: where it is, its parts, and when it is made.
 *
 * There is one at most, mapped at one address for the life of the process. A forked child gets a new
 * one at the same address, so that pointers into it (the bytes that trace points test) stay good.
 * Several copies of the library in one process find each other's through /proc/self/fd.
 *
 * All but the limits may be called on an event's slow path, also in a signal handler.
 */
#ifndef KY_CORE_DRUM_H
#define KY_CORE_DRUM_H

#include "core/layout.h"

#include <stdbool.h>

struct ky_drum {
	uint8_t *base;
	struct ky_drum_header *header;
	struct ky_drum_clock *clock;
	struct ky_drum_category *categories;
	uint32_t *buckets;
	struct ky_drum_ring *rings;
	uint64_t bytes;
	int fd;
	uint64_t identity; /* of the file behind fd: the program may close it and use the number */
	bool on_disk;      /* a file: what is written to must be populated first */
	bool adopted;      /* another copy of the library made it, and closes fd */
	bool ticks_inline; /* the counter that kymo.h reads is the one to use */
};

/* Taken from the environment when the library is loaded; what the drum is made with. */
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

/* The drum, made if there is none yet; NULL when it could not be made. */
struct ky_drum *ky_drum_get(void);
/* The drum if it was made already, else NULL. */
struct ky_drum *ky_drum_peek(void);
/* In a forked child: the drum is the parent's; the first use makes a new one. Noticed without it, too. */
void ky_drum_after_fork(void);
/* Whether there is none and will be none. */
bool ky_drum_failed(void);
/* Counts an event that came while there was no drum yet. */
void ky_drum_lose(void);

/* Ticks of the drum's counter, now. */
uint64_t ky_drum_ticks(const struct ky_drum *drum);

/* At least ring_bytes for each new ring and total_bytes for all, as far as the drum has space. */
void ky_drum_grow(struct ky_drum *drum, uint64_t ring_bytes, uint64_t total_bytes);

#endif
