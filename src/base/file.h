/* SPDX-License-Identifier: MIT */
/*
 * file.h: whole reads and writes, and files that appear whole.
 *
 * Counts are bytes; errors are -errno. A signal or a short transfer ends nothing early.
 */
#ifndef KY_BASE_FILE_H
#define KY_BASE_FILE_H

#include "os/place.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Return the last part of a path; NULL for NULL. */
const char *ky_file_name(const char *path);

/* Open a regular file for reading. Never waits, as for a pipe's writer. A descriptor, -EINVAL when it is no file, -errno. */
int ky_file_open_plain(const char *path);
/* Write all bytes. 0 or -errno. */
int ky_file_write_all(int fd, const void *data, size_t bytes);
/* Write all bytes at an offset. 0 or -errno. */
int ky_file_pwrite_all(int fd, const void *data, size_t bytes, uint64_t offset);
/* Read up to that many bytes; return how many, fewer only at the end of the file, or -errno. */
int64_t ky_file_read_all(int fd, void *data, size_t bytes);
int64_t ky_file_pread_all(int fd, void *data, size_t bytes, uint64_t offset);

/*
 * Read a file of up to bytes_max bytes; also one in /proc, whose size is unknown. Return its bytes with a NUL
 * behind them, which the caller frees; NULL with errno set (EFBIG when it is larger, EINVAL when it is no file).
 */
char *ky_file_read(const char *path, size_t bytes_max, size_t *bytes);
/* Do the same from an open descriptor's place on; it may also be a pipe. */
char *ky_file_read_fd(int fd, size_t bytes_max, size_t *bytes);
/* Read the first bytes of a file (of /proc, of /sys) into room bytes, NUL-terminated. Return their count or -errno. */
int64_t ky_file_read_text(const char *path, char *text, size_t room);

/*
 * A file that appears under its name whole or not at all: until the end it has no name (or, where the file system
 * cannot do that, a temporary one beside the target), so that neither a full disk nor a killed program leaves a part
 * of it, and what had the name before stays. What is no regular file (a pipe, a device) and "-", standard output,
 * are written to directly. A new file has the mode 0600; one that replaces another gets its mode and owner. Links are
 * followed as os/place.h says.
 */
struct ky_file_replacer {
	int fd;        /* write here; also readable where it is a file without a name */
	bool keep_old; /* to be set by the caller: what had the name gets the name NAME.old at the end */
	/* Private. */
	bool direct; /* it has its name already */
	struct ky_place place;
	char temporary[KY_PLACE_NAME_BYTES]; /* "": none */
};

/* Open the file that will replace path. 0 or -errno; then there is nothing to abandon. */
int ky_file_replacer_open(struct ky_file_replacer *file, const char *path);
#define KY_FILE_KEEP "keep" /* the verb for NAME.old */
/* Give the file its name now; more may be written to it until it is abandoned. 0 or -errno, and *what as below. */
int ky_file_replacer_name(struct ky_file_replacer *file, const char **what);
/* Give the file its name and close it, in any case. 0 or -errno, and in *what the verb that failed. */
int ky_file_replacer_commit(struct ky_file_replacer *file, const char **what);
/* Close the file: unless it has its name, nothing remains. */
void ky_file_replacer_abandon(struct ky_file_replacer *file);

#endif
