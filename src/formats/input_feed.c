/* SPDX-License-Identifier: MIT */
/*
 * input_feed.c: where the bytes of an input come from, before anything is unpacked: a store, and the
 * feed that reads a part of it from begin to end.
 */
#include "formats/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

/* The most bytes of one read, so that progress is reported and a signal noticed while a slow disk works. */
#define READ_BYTES_MAX (4u << 20)

static int64_t memory_read(const struct ky_store *store, uint64_t at, void *to, size_t bytes)
{
	if (at >= store->bytes)
		return 0;
	if (bytes > store->bytes - at)
		bytes = (size_t)(store->bytes - at);
	memcpy(to, store->data + at, bytes);
	return (int64_t)bytes;
}

int64_t ky_store_read(const struct ky_store *store, uint64_t at, void *to, size_t bytes)
{
	if (store->fd < 0)
		return memory_read(store, at, to, bytes);
	if (bytes > READ_BYTES_MAX)
		bytes = READ_BYTES_MAX;
	if (at > INT64_MAX)
		return 0;
	/* Not tried again after a signal: a pipe that nothing comes from is left with Ctrl-C. */
	const ssize_t got = store->seekable ? pread(store->fd, to, bytes, (off_t)at)
					    : read(store->fd, to, bytes);
	return got >= 0 ? got : -errno;
}

void ky_store_close(struct ky_store *store)
{
	if (store->owned && store->fd >= 0)
		close(store->fd);
	*store = (struct ky_store){.fd = -1};
}

static int temporary_in(const char *folder)
{
	char path[4096];
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	/* Not every file system has O_TMPFILE. */
	const int length = snprintf(path, sizeof(path), "%s/kymo-XXXXXX", folder);
	if (length < 0 || (size_t)length >= sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

int ky_store_temporary(void)
{
	const char *const chosen = getenv("TMPDIR");
	const char *const folders[] = {chosen && *chosen ? chosen : "/var/tmp", "/var/tmp", "/tmp"};
	int fd = -ENOENT;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && fd < 0; i++)
		fd = temporary_in(folders[i]);
	return fd;
}

void ky_damage_note(struct ky_damage *damage, bool truncated, const char *format, ...)
{
	va_list args;
	if (damage->found)
		return;
	damage->found = true;
	damage->truncated = truncated;
	va_start(args, format);
	vsnprintf(damage->text, sizeof(damage->text), format, args);
	va_end(args);
}

int64_t ky_feed_read(struct ky_feed *feed, uint8_t *to, size_t room)
{
	const size_t left = feed->head_bytes - feed->head_at;
	if (!left)
		return feed->read(feed, to, room);
	const size_t bytes = left < room ? left : room;
	memcpy(to, feed->head + feed->head_at, bytes);
	feed->head_at += (uint32_t)bytes;
	return (int64_t)bytes;
}

int64_t ky_feed_peek(struct ky_feed *feed)
{
	while (feed->head_bytes < sizeof(feed->head)) {
		const int64_t got = feed->read(feed, feed->head + feed->head_bytes,
					       sizeof(feed->head) - feed->head_bytes);
		if (got < 0)
			return got;
		if (got == 0)
			break;
		feed->head_bytes += (uint32_t)got;
	}
	return feed->head_bytes;
}

void ky_feed_close(struct ky_feed **feed)
{
	if (*feed)
		(*feed)->close(*feed);
	*feed = NULL;
}

struct plain {
	struct ky_feed feed;
	const struct ky_store *store;
	uint64_t at;
	uint64_t end;
	uint64_t *taken;
};

static int64_t plain_read(struct ky_feed *feed, uint8_t *to, size_t room)
{
	struct plain *plain = (struct plain *)feed;
	if (room > plain->end - plain->at)
		room = (size_t)(plain->end - plain->at);
	if (!room)
		return 0;
	const int64_t got = ky_store_read(plain->store, plain->at, to, room);
	/* A terminal goes on after its end: it is not asked again. */
	if (got == 0)
		plain->end = plain->at;
	if (got > 0) {
		plain->at += (uint64_t)got;
		*plain->taken += (uint64_t)got;
	}
	return got;
}

static void plain_close(struct ky_feed *feed)
{
	free(feed);
}

int ky_feed_plain(struct ky_feed **feed, const struct ky_store *store, uint64_t at, uint64_t end,
		  uint64_t *taken)
{
	struct plain *plain = calloc(1, sizeof(*plain));
	*feed = NULL;
	if (!plain)
		return -ENOMEM;
	plain->feed.read = plain_read;
	plain->feed.close = plain_close;
	plain->store = store;
	plain->at = at;
	plain->end = end > at ? end : at;
	plain->taken = taken;
	*feed = &plain->feed;
	return 0;
}

void ky_feed_plain_skip(struct ky_feed *feed, uint64_t bytes)
{
	struct plain *plain = (struct plain *)feed;
	const uint64_t looked = feed->head_bytes - feed->head_at;
	const uint64_t head = bytes < looked ? bytes : looked;
	feed->head_at += (uint32_t)head;
	plain->at += bytes - head;
	*plain->taken += bytes - head;
}

/* ---- unpacking ---- */

/*
 * The feeds that unpack gzip, zlib, bare deflate and zstd.
 *
 * A packed stream may be followed by more of its kind (pigz, bgzip, cat a.gz b.gz, zstd frames): they are
 * one after the other, as gzip -d and zstd -d have it. Zeros behind the last are padding. A stream that
 * stops in the middle, or is damaged there, ends where it does, and what was unpacked before counts.
 * It streams: memory is a buffer and the packing's own window, however much comes out.
 */

#define PACKED_BYTES (128u << 10)
/* Packed data in packed data: more is no trace but a prank. */
#define PACKINGS_MAX 4

struct unpack {
	struct ky_feed feed;
	struct ky_feed *below;
	struct ky_damage *damage;
	enum ky_packing packing;
	bool below_ended;
	bool between; /* no stream has begun, or the last one ended */
	bool any;     /* a stream ended whole */
	bool done;
	uint64_t taken; /* bytes of below before in */
	z_stream z;
	ZSTD_DStream *zstd;
	ZSTD_inBuffer in;
	uint8_t buffer[PACKED_BYTES];
};

static const char *packing_name(enum ky_packing packing)
{
	static const char *const names[] = {"", "gzip", "zlib", "zstd", "deflate"};
	return names[packing];
}

/* More packed bytes, when those there are were used. 0 or -errno. */
static int refill(struct unpack *unpack)
{
	if (unpack->in.pos < unpack->in.size || unpack->below_ended)
		return 0;
	unpack->taken += unpack->in.size;
	unpack->in.pos = 0;
	unpack->in.size = 0;
	const int64_t got = ky_feed_read(unpack->below, unpack->buffer, sizeof(unpack->buffer));
	if (got < 0)
		return (int)got;
	unpack->in.size = (size_t)got;
	unpack->below_ended = got == 0;
	return 0;
}

static bool used_up(const struct unpack *unpack)
{
	return unpack->below_ended && unpack->in.pos == unpack->in.size;
}

static void note_cut(struct unpack *unpack)
{
	ky_damage_note(unpack->damage, true, "the %s data is cut off at byte %llu",
		       packing_name(unpack->packing),
		       (unsigned long long)(unpack->taken + unpack->in.pos));
	unpack->done = true;
}

static void note_bad(struct unpack *unpack, const char *what)
{
	ky_damage_note(unpack->damage, false, "the %s data is damaged near byte %llu: %s",
		       packing_name(unpack->packing),
		       (unsigned long long)(unpack->taken + unpack->in.pos),
		       what ? what : "not what was packed");
	unpack->done = true;
}

/* Behind a stream: whether another follows. One byte decides, for the second may not be here yet. */
static int member_follows(struct unpack *unpack, bool *follows)
{
	*follows = false;
	for (;;) {
		const int error = refill(unpack);
		if (error)
			return error;
		if (used_up(unpack))
			return 0;
		const uint8_t byte = unpack->buffer[unpack->in.pos];
		if (byte != 0)
			break;
		unpack->in.pos++;
	}
	*follows = unpack->packing == KY_PACKING_GZIP && unpack->buffer[unpack->in.pos] == 0x1f;
	return 0;
}

/* Begin the next stream, or end. 0 or -errno. */
static int next_member(struct unpack *unpack)
{
	bool follows = !unpack->any;
	/* A member of an archive ends where it ends: what follows is not its own. */
	if (unpack->any && unpack->packing != KY_PACKING_DEFLATE) {
		const int error = member_follows(unpack, &follows);
		if (error)
			return error;
	}
	if (!follows) {
		if (!used_up(unpack) && unpack->packing != KY_PACKING_DEFLATE)
			note_bad(unpack, "other data follows its end");
		unpack->done = true;
		return 0;
	}
	unpack->between = false;
	return inflateReset(&unpack->z) == Z_OK ? 0 : -ENOMEM;
}

/* Inflates what fits. The bytes that came out, 0 when it must be called again, or -errno. */
static int64_t inflate_some(struct unpack *unpack, uint8_t *to, size_t room)
{
	z_stream *z = &unpack->z;
	if (unpack->between) {
		const int error = next_member(unpack);
		if (error || unpack->done)
			return error;
	}
	const int error = refill(unpack);
	if (error)
		return error;
	const uInt in_bytes = (uInt)(unpack->in.size - unpack->in.pos);
	z->next_in = unpack->buffer + unpack->in.pos;
	z->avail_in = in_bytes;
	z->next_out = to;
	z->avail_out = room > UINT32_MAX ? UINT32_MAX : (uInt)room;
	const uInt out_bytes = z->avail_out;
	const int result = inflate(z, Z_NO_FLUSH);
	const size_t got = out_bytes - z->avail_out;
	unpack->in.pos += in_bytes - z->avail_in;
	if (result == Z_STREAM_END) {
		unpack->between = true;
		unpack->any = true;
	} else if (result == Z_MEM_ERROR) {
		return -ENOMEM;
	} else if (result != Z_OK && result != Z_BUF_ERROR) {
		note_bad(unpack, z->msg);
	} else if (!got && used_up(unpack)) {
		note_cut(unpack);
	}
	return (int64_t)got;
}

static int64_t zstd_some(struct unpack *unpack, uint8_t *to, size_t room)
{
	ZSTD_outBuffer out = {to, room, 0};
	const int error = refill(unpack);
	if (error)
		return error;
	if (unpack->between && used_up(unpack)) {
		unpack->done = true;
		return 0;
	}
	const size_t result = ZSTD_decompressStream(unpack->zstd, &out, &unpack->in);
	if (ZSTD_isError(result)) {
		if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation)
			return -ENOMEM;
		note_bad(unpack, ZSTD_getErrorName(result));
		return (int64_t)out.pos;
	}
	unpack->between = result == 0;
	if (!out.pos && used_up(unpack) && !unpack->between)
		note_cut(unpack);
	return (int64_t)out.pos;
}

static int64_t unpack_read(struct ky_feed *feed, uint8_t *to, size_t room)
{
	struct unpack *unpack = (struct unpack *)feed;
	int64_t got = 0;
	while (!unpack->done && got == 0)
		got = unpack->zstd ? zstd_some(unpack, to, room) : inflate_some(unpack, to, room);
	return got;
}

static void unpack_close(struct ky_feed *feed)
{
	struct unpack *unpack = (struct unpack *)feed;
	ky_feed_close(&unpack->below);
	if (unpack->zstd)
		ZSTD_freeDStream(unpack->zstd);
	else
		inflateEnd(&unpack->z);
	free(unpack);
}

static bool start(struct unpack *unpack)
{
	static const int bits[] = {
		[KY_PACKING_GZIP] = 15 + 16,
		[KY_PACKING_ZLIB] = 15,
		[KY_PACKING_DEFLATE] = -15,
	};
	if (unpack->packing != KY_PACKING_ZSTD)
		return inflateInit2(&unpack->z, bits[unpack->packing]) == Z_OK;
	unpack->zstd = ZSTD_createDStream();
	return unpack->zstd != NULL;
}

int ky_feed_unpack(struct ky_feed **feed, enum ky_packing packing, struct ky_damage *damage)
{
	struct unpack *unpack = malloc(sizeof(*unpack));
	struct ky_feed *const below = *feed;
	*feed = NULL;
	if (!unpack) {
		ky_feed_close((struct ky_feed *[]){below});
		return -ENOMEM;
	}
	memset(unpack, 0, offsetof(struct unpack, buffer));
	unpack->feed.read = unpack_read;
	unpack->feed.close = unpack_close;
	unpack->below = below;
	unpack->damage = damage;
	unpack->packing = packing;
	unpack->between = true;
	unpack->in.src = unpack->buffer;
	if (!start(unpack)) {
		ky_feed_close(&unpack->below);
		free(unpack);
		return -ENOMEM;
	}
	*feed = &unpack->feed;
	return 0;
}

/* Two bytes are a weak sign for zlib ("x^" is text, too): its beginning must unpack. */
static bool is_zlib(const uint8_t *head, size_t bytes)
{
	uint8_t out[1024];
	z_stream z = {.next_in = (Bytef *)(uintptr_t)head,
		      .avail_in = (uInt)bytes,
		      .next_out = out,
		      .avail_out = sizeof(out)};
	if (bytes < 8 || (head[0] & 0x8f) != 0x08 || ((head[0] << 8) | head[1]) % 31 != 0)
		return false;
	if (inflateInit(&z) != Z_OK)
		return false;
	const int result = inflate(&z, Z_NO_FLUSH);
	const bool is = (result == Z_OK || result == Z_STREAM_END) && z.avail_out < sizeof(out);
	inflateEnd(&z);
	return is;
}

static enum ky_packing packing_of(const uint8_t *head, size_t bytes)
{
	static const uint8_t zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
	static const uint8_t skippable[] = {0x2a, 0x4d, 0x18};
	if (bytes >= 3 && head[0] == 0x1f && head[1] == 0x8b && head[2] == 0x08)
		return KY_PACKING_GZIP;
	if (bytes >= 4 && memcmp(head, zstd, sizeof(zstd)) == 0)
		return KY_PACKING_ZSTD;
	if (bytes >= 4 && (head[0] & 0xf0) == 0x50 &&
	    memcmp(head + 1, skippable, sizeof(skippable)) == 0)
		return KY_PACKING_ZSTD;
	return is_zlib(head, bytes) ? KY_PACKING_ZLIB : KY_PACKING_NONE;
}

int ky_feed_unpack_all(struct ky_feed **feed, struct ky_damage *damage, bool *packed)
{
	*packed = false;
	for (int i = 0; i < PACKINGS_MAX; i++) {
		const int64_t bytes = ky_feed_peek(*feed);
		if (bytes < 0)
			return (int)bytes;
		const enum ky_packing packing = packing_of((*feed)->head, (size_t)bytes);
		if (packing == KY_PACKING_NONE)
			return 0;
		const int error = ky_feed_unpack(feed, packing, damage);
		if (error)
			return error;
		*packed = true;
	}
	return 0;
}
