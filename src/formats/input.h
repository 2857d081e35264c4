/* SPDX-License-Identifier: MIT */
/*
 * input.h: the bytes that a reader reads: from a file, a pipe, standard input, an archive member or memory. gzip, zstd
 * and zlib streams are unpacked on the way, also one inside the other.
 *
 *   ┌ dropped ┐┌ buffer ─────────────────────────┐┌ not read yet ...
 *              ▲ at                          ▲ end
 *
 * A reader looks at the buffer, asks for more (ky_input_need), and moves on (ky_input_skip). Files are read, not
 * mapped: a file that is cut while it is read is a short file and not a signal, and memory stays small. Positions
 * count unpacked bytes.
 */
#ifndef KY_FORMATS_INPUT_H
#define KY_FORMATS_INPUT_H

#include "base/fail.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

struct ky_input {
	const uint8_t *at;  /* next byte */
	const uint8_t *end; /* of the buffer; there is always one readable byte more, which is 0 */
	uint64_t position;  /* of at in the input */
	bool ended;         /* nothing comes after end */
	int error;          /* -errno of reading, -EBADMSG of unpacking: then it ended there */
	const char *name;   /* for messages */
	struct ky_input_state *state; /* private */
};

/* Report progress in bytes of the file; all is 0 when unknown. A result other than 0 ends the input with that error. */
typedef int (*ky_input_progress_fn)(void *context, uint64_t done, uint64_t all);

/* Open a file; "-" is standard input. Return 0, or -errno and a message with the cause and the remedy. */
int ky_input_open(struct ky_input **input, const char *path, ky_input_progress_fn progress,
		  void *context, char message[KY_MESSAGE_BYTES]);
/* Open bytes that the caller keeps as long as the input is open. */
int ky_input_open_memory(struct ky_input **input, const void *data, uint64_t bytes,
			 const char *name);
/* Open a plain file's descriptor, from its first byte on, and own it, also on failure. Nothing is unpacked. */
int ky_input_open_fd(struct ky_input **input, int fd, const char *name);
void ky_input_close(struct ky_input **input);

/* Part of ky_input_need(). */
bool ky_input_fill(struct ky_input *input, size_t bytes);

/* Report whether the buffer has at least that many bytes from at on, after reading more if needed. */
static inline bool ky_input_need(struct ky_input *input, size_t bytes)
{
	return (size_t)(input->end - input->at) >= bytes || ky_input_fill(input, bytes);
}

/* Read more, keeping the buffer from at on; false at the end. */
bool ky_input_more(struct ky_input *input);

/* Skip bytes of the buffer. */
static inline void ky_input_skip(struct ky_input *input, size_t bytes)
{
	input->at += bytes;
	input->position += bytes;
}

/* Skip any number of bytes; false when the input ends before. */
bool ky_input_skip_far(struct ky_input *input, uint64_t bytes);

/* Prepare for a rewind, before anything is skipped: copy a pipe to a temporary file. Return 0 or -errno. */
int ky_input_remember(struct ky_input *input);
/* Go back to the first byte. Return 0 or -errno. */
int ky_input_rewind(struct ky_input *input);

/*
 * Return the descriptor of a plain file with the unpacked bytes (a temporary one if needed) and their number, for
 * formats that need random access. The input owns it. On failure return -1 and set input->error.
 */
int ky_input_file(struct ky_input *input, uint64_t *bytes);
/* Read at any place of that file, as pread() does; short at the end. Return -errno on failure. */
ssize_t ky_input_read_at(struct ky_input *input, uint64_t at, void *to, size_t bytes);

/*
 * Return in one line what is wrong with packed data so far, or NULL. ky_load() checks it; readers need not. truncated:
 * it is cut off, and not damaged inside.
 */
const char *ky_input_damage(const struct ky_input *input, bool *truncated);

/* Count the files of an archive, of which the input is the first; 0 for anything else. */
uint32_t ky_input_members(const struct ky_input *input);
/* Continue with the archive's next file; false after the last. */
bool ky_input_next_member(struct ky_input *input);

/* Get the bytes of the file on disk, read and in all, for progress. */
void ky_input_progress(const struct ky_input *input, uint64_t *done, uint64_t *all);

#define KY_INPUT_LINE_MAX (1u << 20) /* a longer line is cut into several */

/*
 * Get the next line without its end ("\n" or "\r\n"), and its position; false at the end. The text
 * lives until the next call.
 */
static inline bool ky_input_line(struct ky_input *input, const char **text, size_t *bytes,
				 uint64_t *position)
{
	size_t seen = 0;
	const uint8_t *newline = NULL;
	for (;;) {
		const size_t have = (size_t)(input->end - input->at);
		newline = have > seen ? memchr(input->at + seen, '\n', have - seen) : NULL;
		seen = have;
		if (newline || seen >= KY_INPUT_LINE_MAX || !ky_input_more(input))
			break;
	}
	if (!newline && input->at == input->end)
		return false;
	const size_t length = newline ? (size_t)(newline - input->at) : seen;
	*text = (const char *)input->at;
	*bytes = length && input->at[length - 1] == '\r' ? length - 1 : length;
	*position = input->position;
	ky_input_skip(input, length + (newline ? 1 : 0));
	return true;
}

/* ---- inside ---- */

/*
 * An input from inside, for the files that make it.
 *
 *   store (file, pipe, memory) ─▶ plain feed ─▶ gzip ─▶ zstd ─▶ ... ─▶ buffer
 *                             └─▶ member of an archive ─▶ ...
 *
 * A feed returns bytes in order and owns the feed below it. Damage of packed data is described once, in struct
 * ky_damage; the feed then ends as if there were no more.
 */

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
void ky_damage_note(struct ky_damage *damage, bool truncated, const char *format, ...)
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
