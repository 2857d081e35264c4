/* SPDX-License-Identifier: MIT */
/*
 * path.c: name, open, replace and write output files.
 *
 * Everything is opened close-on-exec, so that a program's children neither hold a lock nor a trace
 * open. Streams are opened non-blocking and without O_TRUNC: a FIFO or a terminal must not hang the
 * program, and a file may only be emptied after its lock was won.
 */
#include "sink/path.h"

#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WRITE_WAIT_MS 3000
#define OPEN_WAIT_MS 1000
#define OPEN_RETRY_MS 10
#define NAMES_MAX 16 /* names tried when others are locked */

static const char rotation_mark[] = "${rotation}";

/* A name being put together; used is room when it did not fit. */
struct path_name {
	char *out;
	size_t room;
	size_t used;
};

static void name_add(struct path_name *name, const char *text, size_t bytes)
{
	if (bytes >= name->room - name->used) {
		name->used = name->room;
		return;
	}
	memcpy(name->out + name->used, text, bytes);
	name->used += bytes;
}

static int name_end(struct path_name *name)
{
	if (name->room == 0)
		return -ENAMETOOLONG;
	if (name->used == name->room || name->used > INT_MAX) {
		name->out[0] = '\0';
		return -ENAMETOOLONG;
	}
	name->out[name->used] = '\0';
	return (int)name->used;
}

static bool begins_with(const char *text, const char *head)
{
	return strncmp(text, head, strlen(head)) == 0;
}

/* Return the bytes of the mark that path begins with, or 0; number is its value. */
static size_t mark_at(const char *path, int32_t pid, uint32_t rotation, int64_t *number)
{
	static const char pid_mark[] = "${pid}";

	if (begins_with(path, pid_mark)) {
		*number = pid;
		return sizeof(pid_mark) - 1;
	}
	if (begins_with(path, rotation_mark)) {
		*number = rotation;
		return sizeof(rotation_mark) - 1;
	}
	return 0;
}

int ky_path_expand(char *out, size_t room, const char *path, int32_t pid, uint32_t rotation)
{
	struct path_name name = {out, room, 0};
	char digits[24];
	int64_t number = 0;

	while (*path) {
		const size_t mark = mark_at(path, pid, rotation, &number);
		if (mark == 0) {
			name_add(&name, path++, 1);
			continue;
		}
		const int length = snprintf(digits, sizeof(digits), "%lld", (long long)number);
		name_add(&name, digits, (size_t)length);
		path += mark;
	}
	return name_end(&name);
}

bool ky_path_rotates(const char *path)
{
	return strstr(path, rotation_mark) != NULL;
}

/* Return where the suffix begins: the last dot, or the one before a .gz; not a leading dot. */
static const char *suffix_of(const char *path)
{
	const char *const slash = strrchr(path, '/');
	const char *const base = slash ? slash + 1 : path;
	const char *const end = base + strlen(base);
	const char *suffix = end;

	for (const char *at = end; at > base + 1; at--) {
		if (at[-1] != '.')
			continue;
		const bool first = suffix == end;
		suffix = at - 1;
		if (!first || strcmp(suffix, ".gz") != 0)
			break;
	}
	return suffix;
}

int ky_path_insert(char *out, size_t room, const char *path, const char *label)
{
	struct path_name name = {out, room, 0};
	const char *const suffix = suffix_of(path);

	name_add(&name, path, (size_t)(suffix - path));
	name_add(&name, ".", 1);
	name_add(&name, label, strlen(label));
	name_add(&name, suffix, strlen(suffix));
	return name_end(&name);
}

/*
 * A program that closed its standard streams would print into a trace that took one of their
 * numbers. Return a descriptor or a negative errno, as fd may be already.
 */
static int keep_off_stdio(int fd)
{
	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	const int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	const int error = -errno;
	close(fd);
	return moved < 0 ? error : moved;
}

/* Open the file, again when that was interrupted, and for a while when a FIFO has no reader yet. */
static int open_patiently(const struct ky_place *place, int flags)
{
	for (long waited_ms = 0;; waited_ms += OPEN_RETRY_MS) {
		const int fd = ky_place_open(place, flags | O_NONBLOCK);
		if (fd >= 0)
			return keep_off_stdio(fd);
		if (fd == -EINTR)
			continue;
		if (fd != -ENXIO || waited_ms >= OPEN_WAIT_MS)
			return fd;
		ky_os_sleep(OPEN_RETRY_MS * UINT64_C(1000000));
	}
}

/* Do the same with a path. */
static int open_path(const char *path, int flags)
{
	struct ky_place place;
	const int error = ky_place_find(&place, path);
	if (error)
		return error;
	const int fd = open_patiently(&place, flags);
	ky_place_close(&place);
	return fd;
}

/* Locks and empties a regular file. 0; -EBUSY when it is locked; another error. */
static int take(int fd)
{
	struct stat status;

	if (fstat(fd, &status) != 0)
		return -errno;
	if (!S_ISREG(status.st_mode))
		return 0;
	/* Some network file systems have no locks: then there is none, and that is all. */
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
		return -EBUSY;
	return ftruncate(fd, 0) != 0 ? -errno : 0;
}

/* The path itself, with the pid, with the pid and a number. */
static int candidate(char *out, size_t room, const char *path, int32_t pid, unsigned attempt)
{
	char label[32];

	if (attempt == 0) {
		struct path_name name = {out, room, 0};
		name_add(&name, path, strlen(path));
		return name_end(&name);
	}
	if (attempt == 1)
		snprintf(label, sizeof(label), "%d", pid);
	else
		snprintf(label, sizeof(label), "%d-%u", pid, attempt);
	return ky_path_insert(out, room, path, label);
}

int ky_path_open(const char *path, int32_t pid, char *used, size_t used_room)
{
	for (unsigned attempt = 0; attempt < NAMES_MAX; attempt++) {
		const int length = candidate(used, used_room, path, pid, attempt);
		if (length < 0)
			return length;
		const int fd = open_path(used, O_WRONLY | O_CREAT);
		if (fd < 0)
			return fd;
		const int error = take(fd);
		if (error == 0)
			return fd;
		close(fd);
		if (error != -EBUSY)
			return error;
	}
	return -EBUSY;
}

uint64_t ky_path_identity(dev_t device, ino_t inode)
{
	return ((uint64_t)device * UINT64_C(0x9e3779b97f4a7c15) ^ inode) | 1;
}

/* Lock the file if it is the one, and go to its end. Return 0 or a negative errno. */
static int take_again(int fd, uint64_t identity, const char *end)
{
	char last[8];
	struct stat status;
	const off_t bytes = (off_t)strlen(end);

	if (fstat(fd, &status) != 0)
		return -errno;
	if (!S_ISREG(status.st_mode) || ky_path_identity(status.st_dev, status.st_ino) != identity)
		return -ENOENT;
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
		return -EBUSY;
	if (bytes && status.st_size > bytes &&
	    pread(fd, last, (size_t)bytes, status.st_size - bytes) == bytes &&
	    memcmp(last, end, (size_t)bytes) == 0 && ftruncate(fd, status.st_size - bytes) != 0)
		return -errno;
	return lseek(fd, 0, SEEK_END) < 0 ? -errno : 0;
}

int ky_path_reopen(const char *path, int32_t pid, uint64_t identity, const char *end, char *used,
		   size_t used_room)
{
	for (unsigned attempt = 0; attempt < NAMES_MAX; attempt++) {
		const int length = candidate(used, used_room, path, pid, attempt);
		const int fd = length < 0 ? length : open_path(used, O_RDWR);
		const int error = fd < 0 ? -ENOENT : take_again(fd, identity, end);
		if (error == 0)
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -ENOENT;
}

/* Report whether the name is one of the system, such as /dev/stdout, which may also lead to a regular file. */
static bool is_system_name(const char *path)
{
	return begins_with(path, "/proc/") ||
	       (begins_with(path, "/dev/") && !begins_with(path, "/dev/shm/"));
}

bool ky_path_is_plain(const char *path)
{
	struct stat status;
	return !is_system_name(path) && (fstatat(AT_FDCWD, path, &status, 0) != 0 ||
					 S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
}

static int replace_in_place(struct ky_path_replacement *replacement)
{
	replacement->fd = open_patiently(&replacement->place, O_WRONLY);
	return replacement->fd < 0 ? replacement->fd : take(replacement->fd);
}

int ky_path_replace_check(const char *path)
{
	struct ky_place place;
	struct stat status;

	if (!ky_path_is_plain(path))
		return 0;
	int error = ky_place_find(&place, path);
	if (error)
		return error;
	error = ky_place_stat(&place, &status);
	if (!error && S_ISDIR(status.st_mode))
		error = -EISDIR;
	if (error == -ENOENT)
		error = 0;
	if (!error && faccessat(place.dir, ".", W_OK | X_OK, 0) != 0)
		error = -errno;
	ky_place_close(&place);
	return error;
}

static int begin_replacement(struct ky_path_replacement *replacement, const char *path)
{
	struct stat status;
	const int error = ky_place_stat(&replacement->place, &status);

	if (error && error != -ENOENT)
		return error;
	if (is_system_name(path) || replacement->place.magic ||
	    (!error && !S_ISREG(status.st_mode)))
		return replace_in_place(replacement);
	replacement->fd =
		keep_off_stdio(ky_place_open_beside(&replacement->place, replacement->temp));
	return replacement->fd < 0 ? replacement->fd : 0;
}

int ky_path_replace(struct ky_path_replacement *replacement, const char *path)
{
	replacement->fd = -1;
	replacement->temp[0] = '\0';
	int error = ky_place_find(&replacement->place, path);
	if (!error)
		error = begin_replacement(replacement, path);
	if (error)
		ky_path_replace_abandon(replacement);
	return error;
}

int ky_path_replace_finish(struct ky_path_replacement *replacement)
{
	int error = 0;

	if (replacement->temp[0] != '\0') {
		error = ky_place_replace(&replacement->place, replacement->fd, replacement->temp);
		if (!error)
			replacement->temp[0] = '\0';
	}
	/* After close() the descriptor is gone on Linux, whatever it returned. */
	if (close(replacement->fd) != 0 && errno != EINTR && !error)
		error = -errno;
	replacement->fd = -1;
	ky_path_replace_abandon(replacement);
	return error;
}

void ky_path_replace_abandon(struct ky_path_replacement *replacement)
{
	if (replacement->fd >= 0)
		(void)close(replacement->fd);
	replacement->fd = -1;
	if (replacement->temp[0] != '\0')
		ky_place_remove(&replacement->place, replacement->temp);
	replacement->temp[0] = '\0';
	ky_place_close(&replacement->place);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits until there is room. *deadline_ms is set the first time. 0, or -EAGAIN after it. */
static int wait_for_room(int fd, int64_t *deadline_ms)
{
	struct pollfd poller = {.fd = fd, .events = POLLOUT};
	const int64_t now = now_ms();

	if (*deadline_ms == 0)
		*deadline_ms = now + WRITE_WAIT_MS;
	if (now >= *deadline_ms)
		return -EAGAIN;
	/* Whatever it returns, the next write() tells. */
	(void)poll(&poller, 1, (int)(*deadline_ms - now));
	return 0;
}

/* A blocking socket that nobody reads must not hold up the end of the program. */
static ssize_t write_some(int fd, const void *data, size_t bytes)
{
	const ssize_t sent = send(fd, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
	return sent >= 0 || errno != ENOTSOCK ? sent : write(fd, data, bytes);
}

int ky_path_write(int fd, const void *data, size_t bytes)
{
	const char *at = data;
	int64_t deadline_ms = 0;

	while (bytes > 0) {
		const ssize_t written = write_some(fd, at, bytes);
		if (written > 0) {
			at += written;
			bytes -= (size_t)written;
		} else if (written == 0) {
			return -EIO;
		} else if (errno == EAGAIN) {
			const int error = wait_for_room(fd, &deadline_ms);
			if (error)
				return error;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}
