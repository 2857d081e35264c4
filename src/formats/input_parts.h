/* SPDX-License-Identifier: MIT */
/*
 * input_parts.h: an input from inside, for the files that make it.
 *
 *   store (file, pipe, memory) ─▶ plain feed ─▶ gzip ─▶ zstd ─▶ ... ─▶ window
 *                             └─▶ member of an archive ─▶ ...
 *
 * A feed hands out bytes one after the other and owns the feed below it. What is wrong with packed
 * data is said once, in struct ky_damage; the feed then ends as if there were no more.
 */
#ifndef KY_FORMATS_INPUT_PARTS_H
#define KY_FORMATS_INPUT_PARTS_H

#include "formats/input.h"

/* Where the bytes are. Of a pipe nothing can be read twice. */
struct ky_store {
	int fd;              /* -1: in memory */
	bool owned;          /* close it */
	bool seekable;       /* a plain file, or memory */
	const uint8_t *data; /* the caller's */
	uint64_t bytes;      /* of what is seekable, when it was opened */
};

/* As pread(); of a pipe, as read(). */
int64_t ky_store_read(const struct ky_store *store, uint64_t at, void *to, size_t bytes);
void ky_store_close(struct ky_store *store);
/* An unlinked file in $TMPDIR, /var/tmp or /tmp. A descriptor or -errno. */
int ky_store_temporary(void);

struct ky_damage {
	bool found;
	bool truncated; /* else it is damaged inside */
	char text[256];
};
/* Keeps the first. */
void ky_damage_say(struct ky_damage *damage, bool truncated, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define KY_FEED_HEAD_BYTES 512u

struct ky_feed {
	/* At least one byte, at most room; 0 at the end; -errno. */
	int64_t (*read)(struct ky_feed *feed, uint8_t *to, size_t room);
	void (*close)(struct ky_feed *feed);
	/* What was looked at before it was read. */
	uint32_t head_at, head_bytes;
	uint8_t head[KY_FEED_HEAD_BYTES];
};

int64_t ky_feed_read(struct ky_feed *feed, uint8_t *to, size_t room);
/* The first bytes, which are read again after that; before anything was read. Their number or -errno. */
int64_t ky_feed_peek(struct ky_feed *feed);
void ky_feed_close(struct ky_feed **feed);

/* The store's bytes from at to end; *taken grows by what was read. 0 or -ENOMEM. */
int ky_feed_plain(struct ky_feed **feed, const struct ky_store *store, uint64_t at, uint64_t end,
		  uint64_t *taken);
/* Moves a plain feed on. */
void ky_feed_plain_skip(struct ky_feed *feed, uint64_t bytes);

enum ky_packing {
	KY_PACKING_NONE,
	KY_PACKING_GZIP,
	KY_PACKING_ZLIB,
	KY_PACKING_ZSTD,
	KY_PACKING_DEFLATE /* bare: of members of archives */
};
/* Puts an unpacking feed on *feed, which is its then, also on failure. 0 or -ENOMEM. */
int ky_feed_unpack(struct ky_feed **feed, enum ky_packing packing, struct ky_damage *damage);
/* Puts on *feed all that its bytes need; *packed says whether there was any. 0, -ENOMEM, or -errno. */
int ky_feed_unpack_all(struct ky_feed **feed, struct ky_damage *damage, bool *packed);

/* A zip archive: a list of its members that are files. */
struct ky_archive;

bool ky_archive_is(const uint8_t *head, size_t bytes);
/* 0, -ENOMEM or -EBADMSG when nothing is found in it. The store must be seekable and stay. */
int ky_archive_open(struct ky_archive **archive, const struct ky_store *store,
		    struct ky_damage *damage);
void ky_archive_close(struct ky_archive **archive);
uint32_t ky_archive_count(const struct ky_archive *archive);
/* A feed of a member's bytes, unpacked. 0, -ENOTSUP when its packing is not known, -EBADMSG, -ENOMEM. */
int ky_archive_member(const struct ky_archive *archive, uint32_t index, struct ky_feed **feed,
		      struct ky_damage *damage, uint64_t *taken);

#endif
