/* SPDX-License-Identifier: MIT */
/*
 * atomic_file.c: files that appear whole.
 *
 *   out ──▶ push ──▶ gzip or zstd ──▶ fd (nameless) ──▶ link as TARGET.PID.tmp ──▶ rename to TARGET
 *
 * A nameless file (O_TMPFILE) cannot take the place of another one; so it gets a name for the moment before
 * it is renamed.
 */
#include "formats/atomic_file.h"

#include "compress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES (1u << 20)
#define ZSTD_LEVEL 3

struct ky_sink {
	struct ky_out out;
	enum ky_sink_packing packing;
	struct ky_gzip *gzip;
	struct ky_zstd *zstd;
	uint8_t *packed;
	size_t packed_room;
	int fd;
	bool direct;   /* fd is the target itself */
	bool nameless; /* temporary has no file yet */
	char *target;
	char *temporary;
};

/* ---- bytes ---- */

static int write_all(void *context, const void *data, size_t bytes)
{
	const struct ky_sink *sink = context;
	const char *from = data;
	while (bytes) {
		const ssize_t n = write(sink->fd, from, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		from += n;
		bytes -= (size_t)n;
	}
	return 0;
}

/* Each push is a frame of its own; frames one behind the other are one file. */
static int write_frame(struct ky_sink *sink, const void *data, size_t bytes)
{
	const size_t room = ky_zstd_bound(sink->zstd, bytes);
	if (room > sink->packed_room) {
		uint8_t *packed = realloc(sink->packed, room);
		if (!packed)
			return -ENOMEM;
		sink->packed = packed;
		sink->packed_room = room;
	}
	const int64_t n = ky_zstd_compress(sink->zstd, sink->packed, room, data, bytes, ZSTD_LEVEL);
	return n < 0 ? (int)n : write_all(sink, sink->packed, (size_t)n);
}

static int push(struct ky_out *out, const void *data, size_t bytes)
{
	struct ky_sink *sink = out->context;
	if (sink->gzip)
		return ky_gzip_write(sink->gzip, data, bytes, KY_GZIP_MORE, write_all, sink);
	if (sink->zstd)
		return write_frame(sink, data, bytes);
	return write_all(sink, data, bytes);
}

static int open_packing(struct ky_sink *sink)
{
	int error = 0;
	if (sink->packing == KY_SINK_GZIP) {
		error = ky_gzip_load();
		return error ? -ENOENT : ky_gzip_open(&sink->gzip, 0);
	}
	if (sink->packing == KY_SINK_ZSTD) {
		error = ky_zstd_load();
		return error ? error : ky_zstd_open(&sink->zstd);
	}
	return 0;
}

/* ---- the file ---- */

static int open_nameless(struct ky_sink *sink)
{
	char *directory = strdup(sink->target);
	if (!directory)
		return -ENOMEM;
	char *slash = strrchr(directory, '/');
	if (slash)
		slash[slash == directory ? 1 : 0] = 0;
	sink->fd = open(slash ? directory : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
	sink->nameless = sink->fd >= 0;
	free(directory);
	return sink->fd < 0 ? -errno : 0;
}

static int open_temporary(struct ky_sink *sink)
{
	if (open_nameless(sink) == 0)
		return 0;
	sink->fd =
		open(sink->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	return sink->fd < 0 ? -errno : 0;
}

/* A link is followed, so that it stays one. */
static char *resolve(const char *path)
{
	char *real = realpath(path, NULL);
	return real ? real : strdup(path);
}

static int open_file(struct ky_sink *sink, const char *path)
{
	struct stat st;
	if (strcmp(path, "-") == 0) {
		sink->direct = true;
		sink->fd = STDOUT_FILENO;
		return 0;
	}
	const bool exists = stat(path, &st) == 0;
	if (exists && S_ISDIR(st.st_mode))
		return -EISDIR;
	if (exists && !S_ISREG(st.st_mode)) {
		sink->direct = true;
		sink->fd = open(path, O_WRONLY | O_CLOEXEC);
		return sink->fd < 0 ? -errno : 0;
	}
	/* One that may not be written to is not replaced either. */
	if (exists && access(path, W_OK) != 0)
		return -errno;
	sink->target = resolve(path);
	if (!sink->target ||
	    asprintf(&sink->temporary, "%s.%ld.tmp", sink->target, (long)getpid()) < 0) {
		sink->temporary = NULL;
		return -ENOMEM;
	}
	return open_temporary(sink);
}

int ky_sink_open(struct ky_sink **sink, const char *path, enum ky_sink_packing packing,
		 struct ky_out **out, const char **what)
{
	struct ky_sink *s = calloc(1, sizeof(*s));
	*sink = NULL;
	*what = "make room for";
	if (!s)
		return -ENOMEM;
	s->fd = -1;
	s->packing = packing;
	int error = ky_out_init(&s->out, BUFFER_BYTES);
	if (!error) {
		*what = "load the library that compresses";
		error = open_packing(s);
	}
	if (!error) {
		*what = "create";
		error = open_file(s, path);
	}
	if (error) {
		ky_sink_abandon(&s);
		return error;
	}
	s->out.push = push;
	s->out.context = s;
	*sink = s;
	*out = &s->out;
	return 0;
}

static int finish(struct ky_sink *sink)
{
	int error = ky_out_push(&sink->out);
	if (!error && sink->gzip)
		error = ky_gzip_write(sink->gzip, "", 0, KY_GZIP_FINISH, write_all, sink);
	return error;
}

static int give_name(struct ky_sink *sink)
{
	char path[64];
	if (sink->direct)
		return 0;
	if (sink->nameless) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", sink->fd);
		unlink(sink->temporary);
		if (linkat(AT_FDCWD, path, AT_FDCWD, sink->temporary, AT_SYMLINK_FOLLOW) != 0)
			return -errno;
		sink->nameless = false;
	}
	if (rename(sink->temporary, sink->target) != 0)
		return -errno;
	free(sink->temporary);
	sink->temporary = NULL;
	return 0;
}

int ky_sink_commit(struct ky_sink **sink, const char **what)
{
	struct ky_sink *s = *sink;
	*what = "write";
	int error = finish(s);
	if (!error) {
		/* Network file systems tell of a full disk only here. */
		const int copy = s->direct ? -1 : dup(s->fd);
		if (copy >= 0 && close(copy) != 0)
			error = -errno;
	}
	if (!error) {
		*what = "rename";
		error = give_name(s);
	}
	ky_sink_abandon(sink);
	return error;
}

void ky_sink_abandon(struct ky_sink **sink)
{
	struct ky_sink *s = *sink;
	if (!s)
		return;
	if (s->fd >= 0 && s->fd != STDOUT_FILENO)
		close(s->fd);
	if (s->temporary && !s->nameless && s->fd >= 0)
		unlink(s->temporary);
	ky_gzip_close(&s->gzip);
	ky_zstd_close(&s->zstd);
	ky_out_free(&s->out);
	free(s->packed);
	free(s->target);
	free(s->temporary);
	free(s);
	*sink = NULL;
}
