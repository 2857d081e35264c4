/* SPDX-License-Identifier: MIT */
/*
 * path.c: name, open, replace and write output files.
 *
 * Everything is opened close-on-exec, so that a program's children neither hold a lock nor a trace
 * open. Streams are opened non-blocking and without O_TRUNC: a FIFO or a terminal must not hang the
 * program, and a file may only be emptied after its lock was won.
 */
#include "sink/path.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WRITE_WAIT_MS 3000
#define OPEN_WAIT_MS 1000
#define OPEN_RETRY_MS 10
#define NAMES_MAX 16      /* names tried when others are locked */
#define TEMP_NAMES_MAX 64 /* names tried for a temporary file */

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

static void pause_ms(long ms)
{
	const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	(void)nanosleep(&pause, NULL);
}

/*
 * A program that closed its standard streams would print into a trace that took one of their
 * numbers. Like open(): errno is set on failure.
 */
static int keep_off_stdio(int fd)
{
	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	const int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	const int error = errno;
	close(fd);
	errno = error;
	return moved;
}

/* Call open() again when it was interrupted, and for a while when a FIFO has no reader yet. */
static int open_patiently(const char *path, int flags)
{
	flags |= O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	for (long waited_ms = 0;; waited_ms += OPEN_RETRY_MS) {
		const int fd = keep_off_stdio(open(path, flags, 0666));
		if (fd >= 0)
			return fd;
		if (errno == EINTR)
			continue;
		if (errno != ENXIO || waited_ms >= OPEN_WAIT_MS)
			return -errno;
		pause_ms(OPEN_RETRY_MS);
	}
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
		const int fd = open_patiently(used, O_CREAT);
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
		const int fd = length < 0
				       ? -1
				       : keep_off_stdio(open(used, O_RDWR | O_CLOEXEC | O_NOCTTY |
									   O_NONBLOCK));
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
	return !is_system_name(path) && (stat(path, &status) != 0 || S_ISREG(status.st_mode));
}

/* The name that a rename must go to: that of the file itself, not of a symbolic link to it. */
static int resolve(char *target, const char *path)
{
	struct path_name name = {target, PATH_MAX, 0};

	if (realpath(path, target))
		return 0;
	if (errno != ENOENT)
		return -errno;
	name_add(&name, path, strlen(path)); /* a new file */
	const int length = name_end(&name);
	return length < 0 ? length : 0;
}

static int open_temp(struct ky_path_replacement *replacement)
{
	const char *const slash = strrchr(replacement->target, '/');
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	const int folder = slash ? (int)(slash + 1 - replacement->target) : 0;

	for (unsigned n = 0; n < TEMP_NAMES_MAX; n++) {
		const int length = snprintf(replacement->temp, sizeof(replacement->temp),
					    "%.*s.kymo-%d-%u.tmp", folder, replacement->target,
					    (int)getpid(), n);
		if (length < 0 || (size_t)length >= sizeof(replacement->temp))
			return -ENAMETOOLONG;
		const int fd = keep_off_stdio(open(replacement->temp, flags, 0666));
		if (fd >= 0)
			return fd;
		if (errno != EEXIST && errno != EINTR)
			return -errno;
	}
	return -EEXIST;
}

static int replace_in_place(struct ky_path_replacement *replacement, const char *path)
{
	const int fd = open_patiently(path, 0);

	replacement->fd = fd;
	replacement->temp[0] = '\0';
	replacement->target[0] = '\0';
	if (fd < 0)
		return fd;
	const int error = take(fd);
	if (error)
		ky_path_replace_abandon(replacement);
	return error;
}

int ky_path_replace_check(const char *path)
{
	char target[PATH_MAX];

	if (!ky_path_is_plain(path))
		return 0;
	const int error = resolve(target, path);
	if (error)
		return error;
	char *const slash = strrchr(target, '/');
	if (slash)
		slash[slash == target] = '\0';
	return access(slash ? target : ".", W_OK | X_OK) != 0 ? -errno : 0;
}

int ky_path_replace(struct ky_path_replacement *replacement, const char *path)
{
	struct stat status;
	const bool exists = stat(path, &status) == 0;

	if (is_system_name(path) || (exists && !S_ISREG(status.st_mode)))
		return replace_in_place(replacement, path);
	replacement->fd = -1;
	const int error = resolve(replacement->target, path);
	if (error)
		return error;
	replacement->fd = open_temp(replacement);
	if (replacement->fd < 0)
		return replacement->fd;
	if (exists) /* the new file is as readable as the old one */
		(void)fchmod(replacement->fd, status.st_mode & 0777);
	return 0;
}

int ky_path_replace_finish(struct ky_path_replacement *replacement)
{
	/* After close() the descriptor is gone on Linux, whatever it returned. */
	int error = close(replacement->fd) != 0 && errno != EINTR ? -errno : 0;

	replacement->fd = -1;
	if (replacement->temp[0] == '\0')
		return error;
	if (!error && rename(replacement->temp, replacement->target) != 0)
		error = -errno;
	if (error)
		(void)unlink(replacement->temp);
	replacement->temp[0] = '\0';
	return error;
}

void ky_path_replace_abandon(struct ky_path_replacement *replacement)
{
	if (replacement->fd >= 0)
		(void)close(replacement->fd);
	replacement->fd = -1;
	if (replacement->temp[0] != '\0')
		(void)unlink(replacement->temp);
	replacement->temp[0] = '\0';
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
