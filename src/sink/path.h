/* SPDX-License-Identifier: MIT */
/*
 * path.h: from the path that a user gave to an open file: filling in names, opening without
 * treading on another process's trace, replacing a file in one step, writing all of a buffer.
 *
 * A stream's file is opened with ky_path_open() and locked while it is written: a second process
 * with the same path (a program that forks, a test run in parallel) gets a file of its own, with
 * its pid in the name, instead of two traces in one file.
 *
 * A snapshot's file is written under another name beside the target and renamed over it at the end:
 * whoever looks at the target sees the old snapshot or the new one, never half of one. It is not
 * synced to disk: it shall survive the program, not the machine.
 *
 * Lengths are checked everywhere: a name that does not fit is -ENAMETOOLONG, never a shorter name.
 */
#ifndef KY_SINK_PATH_H
#define KY_SINK_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Copies path and fills in ${pid} and ${rotation}; any other ${...} stays as it is. Returns the
 * length or -ENAMETOOLONG, and out is then empty.
 */
int ky_path_expand(char *out, size_t room, const char *path, int32_t pid, uint32_t rotation);

/* Whether the path has a place for the rotation number. */
bool ky_path_rotates(const char *path);

/*
 * Copies path with .label before its suffix: out.json.gz and 1234 make out.1234.json.gz. Returns
 * the length or -ENAMETOOLONG, and out is then empty.
 */
int ky_path_insert(char *out, size_t room, const char *path, const char *label);

/*
 * Opens an expanded path for streaming: created if need be, locked and emptied if it is a regular
 * file. When it is locked by somebody else, a name with the pid (and then a number) is taken
 * instead. The name taken is stored in used. A FIFO waits for a reader for a moment, not for ever.
 * Returns a descriptor, which may be non-blocking, or a negative errno: -EBUSY when all names are
 * locked.
 */
int ky_path_open(const char *path, int32_t pid, char *used, size_t used_room);

/* A file that is about to replace another. */
struct ky_path_replacement {
	int fd;                /* write here */
	char target[PATH_MAX]; /* with symbolic links resolved */
	char temp[PATH_MAX];   /* empty when the target is written in place */
};

/*
 * Whether a replacement of path could begin now, so that a flight recorder that could never write
 * is refused when it starts. Writes nothing. 0 or a negative errno.
 */
int ky_path_replace_check(const char *path);

/*
 * Begins a replacement of path. What no rename can replace (a FIFO, a terminal, names in /dev and
 * /proc) is opened and written in place. Returns 0 or a negative errno; then there is nothing to
 * finish or abandon.
 */
int ky_path_replace(struct ky_path_replacement *replacement, const char *path);

/* Closes the new file and puts it in place, or removes it on failure. 0 or a negative errno. */
int ky_path_replace_finish(struct ky_path_replacement *replacement);

/* Closes and removes the new file; the old one stays. Does nothing after a finish. */
void ky_path_replace_abandon(struct ky_path_replacement *replacement);

/*
 * Writes everything, through interruptions and partial writes. Waits for a non-blocking descriptor
 * a few seconds in all, then gives up with -EAGAIN. Returns 0 or a negative errno.
 *
 * Writing to a pipe without a reader returns -EPIPE only in a thread that has blocked SIGPIPE:
 * drain threads do so. This function does not, since it would cost a system call each time.
 */
int ky_path_write(int fd, const void *data, size_t bytes);

#endif
