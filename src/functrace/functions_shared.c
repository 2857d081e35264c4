/* SPDX-License-Identifier: MIT */
/*
 * functions_shared.c: see functions.h. Keeps the results, because the next process has the same libraries:
 *
 *   files ─▶ libc.so.6, 3 users ─▶ worker, 2 users ─▶ libz.so.1, idle ─▶ ...      the last one asked for comes first
 *
 * A file is the same as long as its inode, size and times are; its path counts as well, because names and rules
 * depend on it. A result with lines also serves requests without. The last few unused results are kept, up to a
 * bound.
 */
#include "functrace/functions_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define IDLE_MAX 64u
#define IDLE_BYTES_MAX (UINT64_C(256) << 20)

struct file {
	struct file *next;
	struct ky_functions *functions;
	struct stat status;
	bool lines;
	uint32_t users;
};

static struct file *files;

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_same(const struct file *file, const struct stat *status, const char *path)
{
	const struct stat *own = &file->status;
	return own->st_dev == status->st_dev && own->st_ino == status->st_ino &&
	       own->st_size == status->st_size && is_same_time(&own->st_mtim, &status->st_mtim) &&
	       is_same_time(&own->st_ctim, &status->st_ctim) &&
	       strcmp(file->functions->path, path) == 0;
}

static void put_first(struct file *file)
{
	file->next = files;
	files = file;
}

/* Return the one that is the same and has lines if they are wanted, now the first; NULL: none. */
static struct file *find(const struct stat *status, const char *path, bool lines)
{
	for (struct file **link = &files; *link; link = &(*link)->next) {
		struct file *file = *link;
		if (file->lines < lines || !is_same(file, status, path))
			continue;
		*link = file->next;
		put_first(file);
		return file;
	}
	return NULL;
}

static void drop(struct file **link)
{
	struct file *file = *link;
	*link = file->next;
	ky_functions_free(&file->functions);
	free(file);
}

static uint64_t size_of(const struct ky_functions *functions)
{
	return functions->count * sizeof(functions->functions[0]) +
	       ky_functions_own_size(functions->private_data);
}

/* Free unused ones beyond that count and those bytes. Return how many. */
static uint32_t trim(uint32_t count_max, uint64_t bytes_max)
{
	uint32_t count = 0, dropped = 0;
	uint64_t bytes = 0;
	for (struct file **link = &files; *link;) {
		const struct file *file = *link;
		if (!file->users) {
			count++;
			bytes += size_of(file->functions);
		}
		if (!file->users && (count > count_max || bytes > bytes_max)) {
			drop(link);
			dropped++;
		} else {
			link = &(*link)->next;
		}
	}
	return dropped;
}

int ky_functions_share(const struct ky_functions **functions, int fd, const char *path, bool lines,
		       char message[KY_FUNCTRACE_MESSAGE_BYTES])
{
	struct stat status = {0};
	const bool known = fstat(fd, &status) == 0;
	struct file *file = known ? find(&status, path, lines) : NULL;
	*functions = NULL;
	if (!file) {
		struct ky_functions *fresh;
		const int error = ky_functions_read(&fresh, fd, path, lines, message);
		if (error)
			return error;
		file = malloc(sizeof(*file));
		if (!file) {
			ky_functions_free(&fresh);
			return ky_functions_fail(message, path, -ENOMEM);
		}
		*file = (struct file){.functions = fresh, .status = status, .lines = lines};
		put_first(file);
	}
	file->users++;
	*functions = file->functions;
	return 0;
}

void ky_functions_unshare(const struct ky_functions **functions)
{
	for (struct file *file = files; *functions && file; file = file->next) {
		if (file->functions != *functions)
			continue;
		file->users--;
		*functions = NULL;
	}
	(void)trim(IDLE_MAX, IDLE_BYTES_MAX);
}

uint32_t ky_functions_shared_clear(void)
{
	return trim(0, 0);
}
