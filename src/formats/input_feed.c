/* SPDX-License-Identifier: MIT */
/*
 * input_feed.c: where the bytes of an input come from, before anything is unpacked: a store, and the
 * feed that reads a part of it from begin to end.
 */
#include "formats/input_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

void ky_damage_say(struct ky_damage *damage, bool truncated, const char *format, ...)
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
