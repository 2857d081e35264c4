/* SPDX-License-Identifier: MIT */
/*
 * input_parts.h: an input from inside, for the files that make it.
 *
 *   store (file, pipe, memory) ─▶ plain feed ─▶ gzip ─▶ zstd ─▶ ... ─▶ buffer
 *                             └─▶ member of an archive ─▶ ...
 *
 * A feed returns bytes in order and owns the feed below it. Damage of packed data is described once, in struct
 * ky_damage; the feed then ends as if there were no more.
 */
#ifndef KY_FORMATS_INPUT_PARTS_H
#define KY_FORMATS_INPUT_PARTS_H

#include "formats/input.h"

/* Where the bytes are. A pipe can be read only once. */
struct ky_store {
	int fd;              /* -1: in memory */
	bool owned;          /* close it */
	bool seekable;       /* a plain file, or memory */
	const uint8_t *data; /* the caller's */
	uint64_t bytes;      /* of what is seekable, when it was opened */
};

/* Read as pread() does; from a pipe, as read(). */
int64_t ky_store_read(const struct ky_store *store, uint64_t at, void *to, size_t bytes);
void ky_store_close(struct ky_store *store);
/* Make an unlinked file in $TMPDIR, /var/tmp or /tmp. Return its descriptor or -errno. */
int ky_store_temporary(void);

struct ky_damage {
	bool found;
	bool truncated; /* else it is damaged inside */
	char text[256];
};
/* Describe the damage, unless some was found before. */
void ky_damage_say(struct ky_damage *damage, bool truncated, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define KY_FEED_HEAD_BYTES 512u

struct ky_feed {
	/* Return at least one byte, at most room; 0 at the end; -errno. */
	int64_t (*read)(struct ky_feed *feed, uint8_t *to, size_t room);
	void (*close)(struct ky_feed *feed);
	/* Bytes that were peeked and not read yet. */
	uint32_t head_at, head_bytes;
	uint8_t head[KY_FEED_HEAD_BYTES];
};

int64_t ky_feed_read(struct ky_feed *feed, uint8_t *to, size_t room);
/* Get the first bytes into head, before anything was read; reading returns them again. Return how many, or -errno. */
int64_t ky_feed_peek(struct ky_feed *feed);
void ky_feed_close(struct ky_feed **feed);

/* Feed the store's bytes from at to end; *taken grows by what was read. Return 0 or -ENOMEM. */
int ky_feed_plain(struct ky_feed **feed, const struct ky_store *store, uint64_t at, uint64_t end,
		  uint64_t *taken);
/* Skip bytes of a plain feed. */
void ky_feed_plain_skip(struct ky_feed *feed, uint64_t bytes);

enum ky_packing {
	KY_PACKING_NONE,
	KY_PACKING_GZIP,
	KY_PACKING_ZLIB,
	KY_PACKING_ZSTD,
	KY_PACKING_DEFLATE /* without a head: members of archives */
};
/* Put an unpacking feed on *feed and own that, also on failure. Return 0 or -ENOMEM. */
int ky_feed_unpack(struct ky_feed **feed, enum ky_packing packing, struct ky_damage *damage);
/* Put on *feed all unpacking feeds that its bytes need; *packed: there was one. Return 0 or -errno. */
int ky_feed_unpack_all(struct ky_feed **feed, struct ky_damage *damage, bool *packed);

/* A zip archive: a list of its members that are files. */
struct ky_archive;

bool ky_archive_is(const uint8_t *head, size_t bytes);
/* Open an archive; the store must be seekable and outlive it. Return 0, -ENOMEM, or -EBADMSG when it has no file. */
int ky_archive_open(struct ky_archive **archive, const struct ky_store *store,
		    struct ky_damage *damage);
void ky_archive_close(struct ky_archive **archive);
uint32_t ky_archive_count(const struct ky_archive *archive);
/* Feed a member's bytes, unpacked. Return 0, -ENOTSUP when its packing is unknown, -EBADMSG, -ENOMEM. */
int ky_archive_member(const struct ky_archive *archive, uint32_t index, struct ky_feed **feed,
		      struct ky_damage *damage, uint64_t *taken);

#endif
