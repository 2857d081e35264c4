/* SPDX-License-Identifier: MIT */
/*
 * bundle_file.c: the file behind a bundle's buffer: which name the next one has, writing to it, and
 * removing the oldest.
 *
 * A file is locked and emptied when it is opened (src/sink/path.h): one that another kymo is
 * writing is left alone, and this one gets a name with its pid. A pipe whose reader went away is an
 * error like any other, not the end of kymo.
 */
#include "capture/bundle_parts.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "sink/path.h"

static int remember(struct ky_bundle_file *file)
{
	if (file->kept_count == file->kept_room) {
		const uint32_t room = file->kept_room ? 2 * file->kept_room : 16;
		char **kept = realloc(file->kept, room * sizeof(*kept));
		if (!kept)
			return -ENOMEM;
		file->kept = kept;
		file->kept_room = room;
	}
	char *path = strdup(file->path);
	if (!path)
		return -ENOMEM;
	file->kept[file->kept_count++] = path;
	return 0;
}

int ky_bundle_file_begin(struct ky_bundle_file *file, uint64_t bytes)
{
	char path[PATH_MAX];
	file->bytes_before += bytes;
	const uint32_t number = file->number++;
	if (!file->pattern)
		return 0;
	const int length =
		ky_path_expand(path, sizeof(path), file->pattern, (int32_t)getpid(), number);
	if (length < 0)
		return length;
	const int fd = ky_path_open(path, (int32_t)getpid(), file->path, sizeof(file->path));
	if (fd < 0)
		return fd;
	file->fd = fd;
	return remember(file);
}

/*
 * Takes away the signal that a write to a pipe without a reader made, unless one was waiting
 * already.
 */
static void drop_sigpipe(const sigset_t *pipe_only)
{
	const struct timespec at_once = {0};
	while (sigtimedwait(pipe_only, NULL, &at_once) < 0 && errno == EINTR)
		;
}

int ky_bundle_file_push(struct ky_out *out, const void *data, size_t bytes)
{
	const struct ky_bundle_file *file = out->context;
	sigset_t pipe_only, before, waiting;
	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	sigemptyset(&waiting);
	sigpending(&waiting);
	pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
	const int error = ky_path_write(file->fd, data, bytes);
	if (error == -EPIPE && !sigismember(&waiting, SIGPIPE))
		drop_sigpipe(&pipe_only);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

int ky_bundle_file_end(struct ky_bundle_file *file)
{
	const int fd = file->fd;
	if (!file->pattern || fd < 0)
		return 0;
	file->fd = -1;
	return close(fd) != 0 && errno != EINTR ? -errno : 0;
}

void ky_bundle_file_keep(struct ky_bundle_file *file, uint32_t files_max)
{
	uint32_t gone = 0;
	while (files_max && file->kept_count - gone > files_max) {
		(void)unlink(file->kept[gone]);
		free(file->kept[gone++]);
	}
	file->kept_count -= gone;
	if (gone)
		memmove(file->kept, file->kept + gone, file->kept_count * sizeof(*file->kept));
}

void ky_bundle_file_close(struct ky_bundle_file *file)
{
	(void)ky_bundle_file_end(file);
	for (uint32_t i = 0; i < file->kept_count; i++)
		free(file->kept[i]);
	free(file->kept);
	free(file->pattern);
	*file = (struct ky_bundle_file){.fd = -1};
}
