/* SPDX-License-Identifier: MIT */
/*
 * drum_find.c: see drum_find.h. What a descriptor's name says is the other process's claim, and may change before it is
 * opened: so it is first taken without opening it (O_PATH), for to open a device or a pipe can do something.
 */
#include "drum_find.h"

#include "layout.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool ky_drum_find_names(const char *link)
{
	static const char memfd[] = "/memfd:" KY_DRUM_NAME;
	static const char deleted[] = " (deleted)";
	if (strncmp(link, memfd, sizeof(memfd) - 1) == 0) {
		const char *rest = link + sizeof(memfd) - 1;
		return *rest == '\0' || strcmp(rest, deleted) == 0;
	}
	const char *base = strrchr(link, '/');
	if (!base || strncmp(base, "/kymo-", 6) != 0 || !isdigit((unsigned char)base[6]))
		return false;
	for (base += 6; isdigit((unsigned char)*base); base++)
		;
	return strcmp(base, ".drum") == 0 || strcmp(base, ".drum (deleted)") == 0;
}

uint32_t ky_drum_find_own_pid(pid_t pid)
{
	char path[64], line[256];
	unsigned long own = (unsigned long)pid;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status))
		if (strncmp(line, "NSpid:", 6) == 0) {
			const char *last = strrchr(line, '\t');
			own = strtoul(last ? last : line + 6, NULL, 10);
			break;
		}
	if (status)
		fclose(status);
	return (uint32_t)own;
}

static bool link_names_drum(int folder, const char *number)
{
	char link[4096];
	const ssize_t n = readlinkat(folder, number, link, sizeof(link) - 1);
	if (n <= 0)
		return false;
	link[n] = '\0';
	return ky_drum_find_names(link);
}

int ky_drum_find_open(int folder, const char *number)
{
	const int held = openat(folder, number, O_PATH | O_CLOEXEC);
	if (held < 0)
		return -errno;
	struct stat status;
	char path[64];
	int fd = -EINVAL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", held);
	if (fstat(held, &status) == 0 && S_ISREG(status.st_mode)) {
		fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0 && (errno == EACCES || errno == EPERM || errno == EROFS))
			fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			fd = -errno;
	}
	close(held);
	return fd;
}

/* A drum that is not complete yet has no magic: it is one later. */
static bool read_head(int fd, uint32_t *pid)
{
	struct ky_drum_header head;
	const size_t bytes = offsetof(struct ky_drum_header, made_boottime_ns);
	if (pread(fd, &head, bytes, 0) != (ssize_t)bytes || head.magic != KY_DRUM_MAGIC)
		return false;
	*pid = head.pid;
	return true;
}

bool ky_drum_find_check(int fd, uint32_t *pid)
{
	char path[64];
	struct stat status;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	       link_names_drum(AT_FDCWD, path) && read_head(fd, pid);
}

/* 1: a drum of its own was visited, and *stop says whether that was enough. */
static int visit_entry(int folder, const char *number, uint32_t *own, pid_t pid,
		       ky_drum_find_fn visit, void *context, bool *stop)
{
	if (!isdigit((unsigned char)number[0]) || !link_names_drum(folder, number))
		return 0;
	const int fd = ky_drum_find_open(folder, number);
	if (fd < 0)
		return 0;
	uint32_t maker = 0;
	if (*own == 0)
		*own = ky_drum_find_own_pid(pid);
	const bool is_own = read_head(fd, &maker) && maker == *own;
	if (is_own)
		*stop = visit(context, fd) != 0;
	close(fd);
	return is_own;
}

int ky_drum_find(pid_t pid, ky_drum_find_fn visit, void *context)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *const folder = opendir(path);
	if (!folder)
		return errno == ENOENT ? -ESRCH : -errno;
	const struct dirent *entry;
	uint32_t own = 0;
	bool stop = false;
	int found = 0;
	while (!stop && (entry = readdir(folder)))
		found +=
			visit_entry(dirfd(folder), entry->d_name, &own, pid, visit, context, &stop);
	closedir(folder);
	return found;
}
