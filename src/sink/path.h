/* SPDX-License-Identifier: MIT */
/*
 * path.h: turn a user's path into an open file: expand names, open without overwriting another process's trace, replace a
 * file in one step, write all of a buffer.
 *
 * A stream's file is opened with ky_path_open() and locked while it is written: a second process with the same path (a
 * program that forks, a test run in parallel) gets a file of its own, with its pid in the name, instead of two traces in
 * one file.
 *
 * A snapshot's file is written under another name next to the target and renamed over it at the end: the target is the
 * old snapshot or the new one, never half of one. It is not synced to disk: it has to survive the program, not the machine.
 *
 * New files have the mode 0600; a file that replaces another gets its mode and owner. Links are followed as os/place.h says.
 *
 * Lengths are checked everywhere: a name that does not fit is -ENAMETOOLONG, never a shorter name.
 */
#ifndef KY_SINK_PATH_H
#define KY_SINK_PATH_H

#include "os/place.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Copy path and fill in ${pid} and ${rotation}; any other ${...} stays unchanged. Return the length, or -ENAMETOOLONG with
 * an empty out.
 */
int ky_path_expand(char *out, size_t room, const char *path, int32_t pid, uint32_t rotation);

/* Report whether the path has a place for the rotation number. */
bool ky_path_rotates(const char *path);

/* Report whether the name is a regular file's, or would be (or a directory's): not a device's, a pipe's or the system's. */
bool ky_path_is_plain(const char *path);

/*
 * Copy path with .label before its suffix: out.json.gz and 1234 make out.1234.json.gz. Return the length, or
 * -ENAMETOOLONG with an empty out.
 */
int ky_path_insert(char *out, size_t room, const char *path, const char *label);

/*
 * Open an expanded path for streaming: create it if necessary, lock and empty it if it is a regular file. When another
 * process has locked it, use a name with the pid (and then a number) instead. Store the name in used. Wait for a FIFO's
 * reader for a moment, not for ever. Return a descriptor, which may be non-blocking, or a negative errno: -EBUSY when all
 * names are locked.
 */
int ky_path_open(const char *path, int32_t pid, char *used, size_t used_room);

/* Return a number for a file, the same as long as it exists. Not 0. */
uint64_t ky_path_identity(dev_t device, ino_t inode);
/*
 * Open the file of that identity again, which ky_path_open() opened for the path, at its end; cut off this end if it has it.
 * Store its name in used. Return a descriptor or a negative errno.
 */
int ky_path_reopen(const char *path, int32_t pid, uint64_t identity, const char *end, char *used,
		   size_t used_room);

/* A file that will replace another. */
struct ky_path_replacement {
	int fd; /* write here */
	struct ky_place place;
	char temp[KY_PLACE_NAME_BYTES]; /* empty when the target is written in place */
};

/*
 * Check that a replacement of path could begin now, so that a flight recorder that could never write fails when it
 * starts. Write nothing. Return 0 or a negative errno.
 */
int ky_path_replace_check(const char *path);

/*
 * Begin a replacement of path. Files that no rename can replace (a FIFO, a terminal, names in /dev and /proc) are written
 * in place. Return 0, or a negative errno; then there is nothing to finish or abandon.
 */
int ky_path_replace(struct ky_path_replacement *replacement, const char *path);

/* Close the new file and put it in place, or remove it on failure. Return 0 or a negative errno. */
int ky_path_replace_finish(struct ky_path_replacement *replacement);

/* Close and remove the new file; keep the old one. Do nothing after a finish. */
void ky_path_replace_abandon(struct ky_path_replacement *replacement);

/*
 * Write everything, through interruptions and partial writes. Wait for a non-blocking descriptor a few seconds in all,
 * then fail with -EAGAIN. Return 0 or a negative errno.
 *
 * Writing to a pipe without a reader returns -EPIPE only in a thread that has blocked SIGPIPE, as drain threads have. This
 * function does not block it, which would cost a system call each time.
 */
int ky_path_write(int fd, const void *data, size_t bytes);

#endif
