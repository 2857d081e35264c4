/* SPDX-License-Identifier: MIT */
/*
 * drum_map.h: the drum of another process in this one's memory, twice: all of it to be read, and
 * the part before the rings (header, categories, heap) to be written, when it may be.
 */
#ifndef KY_CAPTURE_DRUM_MAP_H
#define KY_CAPTURE_DRUM_MAP_H

#include "capture/bundle.h"

#include <sys/types.h>

struct ky_drum_map {
	int fd;
	bool sealed; /* a memfd that nobody can cut short */
	dev_t device;
	ino_t inode;
	uint64_t bytes;
	const uint8_t *base;
	uint8_t *writable; /* NULL: it is not */
	uint64_t writable_bytes;
	int guards[2]; /* of the two, -1: none */
};

/* Whether reading it ends: the server of a FUSE file system may be the process that is looked at. */
bool ky_drum_map_is_local(int fd);

/* fd is duplicated. 0; -EAGAIN when the drum is still being made; -errno with a message. */
int ky_drum_map_open(struct ky_drum_map *map, int fd, const char *name,
		     char message[KY_CAPTURE_MESSAGE_BYTES]);
/* Maps what a recorder writes to. 0, or -errno with a message. */
int ky_drum_map_write(struct ky_drum_map *map, const struct ky_drum_view *view, const char *name,
		      char message[KY_CAPTURE_MESSAGE_BYTES]);
/*
 * Whether anybody has it mapped so that it can be written to. When nobody has, nobody can any more (F_SEAL_WRITE). Of one that
 * cannot be sealed: false.
 */
bool ky_drum_map_is_written(const struct ky_drum_map *map);
void ky_drum_map_close(struct ky_drum_map *map);

/*
 * Whether it has so many bytes of memory. Reading a hole of a memfd would have memory made for it: a
 * drum that lies about what it wrote could use up the reader's.
 */
bool ky_drum_map_has_memory(const struct ky_drum_map *map, uint64_t bytes);
/* Whether the file was cut short. */
bool ky_drum_map_is_cut(const struct ky_drum_map *map);

#endif
