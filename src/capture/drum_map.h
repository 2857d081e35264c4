/* SPDX-License-Identifier: MIT */
/*
 * drum_map.h: the drum of another process in this one's memory, mapped twice: all of it for
 * reading, and the part before the rings (header, categories, heap) for writing, where that is
 * allowed.
 */
#ifndef KY_CAPTURE_DRUM_MAP_H
#define KY_CAPTURE_DRUM_MAP_H

#include "capture/bundle.h"

#include <sys/types.h>

struct ky_drum_map {
	int fd;
	bool sealed;    /* a memfd that cannot be cut short */
	bool in_memory; /* a memfd, or on tmpfs */
	dev_t device;
	ino_t inode;
	uid_t owner;
	bool shared; /* it counts among its owner's (drum_map.c) */
	uint64_t bytes;
	const uint8_t *base;
	uint8_t *writable; /* NULL: not mapped */
	uint64_t writable_bytes;
	int guards[2]; /* of the two, -1: none */
};

/* Map a drum; fd is duplicated. Return 0; -EAGAIN when the drum is still being made; -errno with a message. */
int ky_drum_map_open(struct ky_drum_map *map, int fd, const char *name,
		     char message[KY_MESSAGE_BYTES]);
/* Map what a recorder writes to. Return 0, or -errno with a message. */
int ky_drum_map_write(struct ky_drum_map *map, const struct ky_drum_view *view, const char *name,
		      char message[KY_MESSAGE_BYTES]);
/*
 * Report whether any process has a writable mapping of it. If none has, none can get one any more
 * (F_SEAL_WRITE). Return false for one that cannot be sealed.
 */
bool ky_drum_map_is_written(const struct ky_drum_map *map);
void ky_drum_map_close(struct ky_drum_map *map);

/*
 * Report whether it has so many bytes of memory. Reading a hole of a memfd would allocate memory: a
 * drum that claims more than it wrote could use up the reader's.
 */
bool ky_drum_map_has_memory(const struct ky_drum_map *map, uint64_t bytes);
/* Report whether the file was cut short. */
bool ky_drum_map_is_cut(const struct ky_drum_map *map);

#endif
