/* SPDX-License-Identifier: MIT */
/*
 * fuzz_directory.h: any bytes as the files of a trace that is a directory. The input is a row of files, each a byte
 * that says which one, two bytes of length, and its content.
 */
#ifndef KY_FUZZ_DIRECTORY_H
#define KY_FUZZ_DIRECTORY_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char fuzz_directory[64];
static const char *const *fuzz_file_names; /* ends with NULL */

static inline void fuzz_directory_clear(void)
{
	char path[128];
	for (size_t i = 0; fuzz_file_names[i]; i++) {
		snprintf(path, sizeof(path), "%s/%s", fuzz_directory, fuzz_file_names[i]);
		unlink(path);
	}
}

static inline void fuzz_directory_remove(void)
{
	fuzz_directory_clear();
	rmdir(fuzz_directory);
}

static inline void fuzz_directory_make(const char *const *names)
{
	if (fuzz_directory[0])
		return;
	fuzz_file_names = names;
	strcpy(fuzz_directory, access("/dev/shm", W_OK) == 0 ? "/dev/shm/kymo-fuzz-XXXXXX"
							     : "/tmp/kymo-fuzz-XXXXXX");
	if (!mkdtemp(fuzz_directory))
		abort();
	atexit(fuzz_directory_remove);
}

static inline void fuzz_directory_write(const char *name, const uint8_t *data, size_t bytes)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", fuzz_directory, name);
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
		abort();
	close(fd);
}

/* The directory has the input's files and no other; names are all that there may be, and end with NULL. */
static inline void fuzz_directory_fill(const char *const *names, const uint8_t *data, size_t bytes)
{
	size_t count = 0;
	while (names[count])
		count++;
	fuzz_directory_make(names);
	fuzz_directory_clear();
	for (size_t at = 0; bytes - at >= 3;) {
		size_t length = data[at + 1] | (size_t)data[at + 2] << 8;
		if (length > bytes - at - 3)
			length = bytes - at - 3;
		fuzz_directory_write(names[data[at] % count], data + at + 3, length);
		at += 3 + length;
	}
}

#endif
