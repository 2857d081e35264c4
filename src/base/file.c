/* SPDX-License-Identifier: MIT */
/*
 * file.c: see file.h. The way of a file that appears whole:
 *
 *   fd (nameless) ──▶ link as .kymo-PID-RANDOM.tmp ──▶ rename to its name
 *
 * A nameless file (O_TMPFILE) cannot take the place of another one; so it gets a name for the moment before
 * it is renamed.
 */
#include "base/file.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_FIRST 4096u

/* ---- whole reads and writes ---- */

const char *ky_file_name(const char *path)
{
	const char *const slash = path ? strrchr(path, '/') : NULL;
	return slash ? slash + 1 : path;
}

int ky_file_open_plain(const char *path)
{
	struct stat status;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) != 0 || S_ISREG(status.st_mode))
		return fd;
	close(fd);
	return S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
}

#define NO_OFFSET UINT64_MAX /* transfer at the descriptor's own place */

static int write_from(int fd, const char *from, size_t bytes, uint64_t offset)
{
	for (size_t done = 0; done < bytes;) {
		const ssize_t n = offset == NO_OFFSET ? write(fd, from + done, bytes - done)
						      : pwrite(fd, from + done, bytes - done,
							       (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return 0;
}

int ky_file_write_all(int fd, const void *data, size_t bytes)
{
	return write_from(fd, data, bytes, NO_OFFSET);
}

int ky_file_pwrite_all(int fd, const void *data, size_t bytes, uint64_t offset)
{
	return write_from(fd, data, bytes, offset);
}

static int64_t read_into(int fd, char *to, size_t bytes, uint64_t offset)
{
	size_t done = 0;
	while (done < bytes) {
		const ssize_t n = offset == NO_OFFSET ? read(fd, to + done, bytes - done)
						      : pread(fd, to + done, bytes - done,
							      (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (int64_t)done;
}

int64_t ky_file_read_all(int fd, void *data, size_t bytes)
{
	return read_into(fd, data, bytes, NO_OFFSET);
}

int64_t ky_file_pread_all(int fd, void *data, size_t bytes, uint64_t offset)
{
	return read_into(fd, data, bytes, offset);
}

/* ---- small files ---- */

/* Return how much room to begin with: all of a file that has a size, and a byte to notice its end. */
static size_t room_for(int fd, size_t bytes_max)
{
	struct stat status;
	size_t room = READ_FIRST;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
		room = (uint64_t)status.st_size < SIZE_MAX - 2 ? (size_t)status.st_size + 2
							       : SIZE_MAX;
	return room > bytes_max ? bytes_max + 1 : room;
}

char *ky_file_read_fd(int fd, size_t bytes_max, size_t *bytes)
{
	char *data = NULL;
	size_t room = 0;
	*bytes = 0;
	if (bytes_max > SIZE_MAX / 4)
		bytes_max = SIZE_MAX / 4;
	/* One byte is for the NUL; it also shows that the file is too large. */
	for (int64_t n = 1;; *bytes += (size_t)n) {
		if (*bytes + 1 >= room) {
			room = room ? room * 2 : room_for(fd, bytes_max) + 1;
			char *larger = realloc(data, room);
			if (!larger) {
				ky_memory_missing();
				break;
			}
			data = larger;
		}
		n = ky_file_read_all(fd, data + *bytes, room - 1 - *bytes);
		if (n < 0) {
			errno = (int)-n;
			break;
		}
		if (*bytes + (size_t)n > bytes_max) {
			errno = EFBIG;
			break;
		}
		if (n == 0 || *bytes + (size_t)n + 1 < room) {
			*bytes += (size_t)n;
			data[*bytes] = '\0';
			return data;
		}
	}
	const int error = errno;
	free(data);
	*bytes = 0;
	errno = error;
	return NULL;
}

char *ky_file_read(const char *path, size_t bytes_max, size_t *bytes)
{
	*bytes = 0;
	const int fd = ky_file_open_plain(path);
	char *const data = fd < 0 ? NULL : ky_file_read_fd(fd, bytes_max, bytes);
	const int error = fd < 0 ? -fd : errno;
	if (fd >= 0)
		close(fd);
	errno = error;
	return data;
}

int64_t ky_file_read_text(const char *path, char *text, size_t room)
{
	text[0] = '\0';
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	const int64_t bytes = ky_file_read_all(fd, text, room - 1);
	close(fd);
	text[bytes < 0 ? 0 : bytes] = '\0';
	return bytes;
}

/* ---- files that appear whole ---- */

/* Open a file without a name in the place's directory. 0 or -errno. */
static int open_nameless(struct ky_file_replacer *file)
{
	file->fd = openat(file->place.dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, KY_PLACE_FILE_MODE);
	return file->fd < 0 ? -errno : 0;
}

static int open_temporary(struct ky_file_replacer *file)
{
	if (open_nameless(file) == 0)
		return 0;
	file->fd = ky_place_open_beside(&file->place, file->temporary);
	return file->fd < 0 ? file->fd : 0;
}

static int open_direct(struct ky_file_replacer *file, int fd)
{
	file->direct = true;
	file->fd = fd;
	return fd < 0 ? fd : 0;
}

static int open_target(struct ky_file_replacer *file, const char *path)
{
	struct stat st;
	if (strcmp(path, "-") == 0)
		return open_direct(file, STDOUT_FILENO);
	int error = ky_place_find(&file->place, path);
	if (error)
		return error;
	error = ky_place_stat(&file->place, &st);
	if (error && error != -ENOENT)
		return error;
	if (!error && S_ISDIR(st.st_mode))
		return -EISDIR;
	if (file->place.magic || (!error && !S_ISREG(st.st_mode)))
		return open_direct(file, ky_place_open(&file->place, O_WRONLY));
	/* One that may not be written to is not replaced either. */
	if (!error && faccessat(file->place.dir, file->place.name, W_OK, AT_EACCESS) != 0)
		return -errno;
	return open_temporary(file);
}

int ky_file_replacer_open(struct ky_file_replacer *file, const char *path)
{
	*file = (struct ky_file_replacer){.fd = -1, .place.dir = -1};
	const int error = open_target(file, path);
	if (error)
		ky_file_replacer_abandon(file);
	return error;
}

/* Give what has the name the name NAME.old too; where there are no links, that alone. 0 or -errno. */
static int keep_old(const struct ky_file_replacer *file)
{
	const struct ky_place *const place = &file->place;
	char old[KY_PLACE_NAME_BYTES];
	const int bytes = snprintf(old, sizeof(old), "%s.old", place->name);
	if (bytes < 0 || bytes >= (int)sizeof(old))
		return -ENAMETOOLONG;
	if (unlinkat(place->dir, old, 0) != 0 && errno != ENOENT)
		return -errno;
	if (linkat(place->dir, place->name, place->dir, old, 0) == 0 || errno == ENOENT)
		return 0;
	return renameat(place->dir, place->name, place->dir, old) == 0 ? 0 : -errno;
}

int ky_file_replacer_name(struct ky_file_replacer *file, const char **what)
{
	int error = 0;
	*what = "rename";
	if (file->direct)
		return 0;
	if (!file->temporary[0])
		error = ky_place_link_beside(&file->place, file->fd, file->temporary);
	if (!error && file->keep_old) {
		error = keep_old(file);
		*what = error ? KY_FILE_KEEP : *what;
	}
	if (!error)
		error = ky_place_replace(&file->place, file->fd, file->temporary);
	if (!error) {
		file->temporary[0] = '\0';
		file->direct = true;
	}
	return error;
}

int ky_file_replacer_commit(struct ky_file_replacer *file, const char **what)
{
	int error = 0;
	*what = "write";
	/* Network file systems report a full disk only when a file is closed. */
	const int copy = file->direct ? -1 : dup(file->fd);
	if (copy >= 0 && close(copy) != 0)
		error = -errno;
	if (!error)
		error = ky_file_replacer_name(file, what);
	ky_file_replacer_abandon(file);
	return error;
}

void ky_file_replacer_abandon(struct ky_file_replacer *file)
{
	if (file->fd >= 0 && file->fd != STDOUT_FILENO)
		close(file->fd);
	if (file->temporary[0])
		ky_place_remove(&file->place, file->temporary);
	ky_place_close(&file->place);
	*file = (struct ky_file_replacer){.fd = -1, .place.dir = -1};
}
