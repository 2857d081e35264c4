/* SPDX-License-Identifier: MIT */
/*
 * place.h: where a path leads a writer: a directory and a name in it, held by a descriptor, so that nobody can exchange
 * what was checked.
 *
 * In a directory in which everybody may create files (/tmp: sticky, writable for all) the name of a file is no proof of
 * whose it is. There a link, a file or a FIFO is used only if it belongs to us or to the directory's owner: the rule of
 * the kernel's fs.protected_symlinks, protected_regular and protected_fifos, whether they are set or not, and for links
 * at any place in the path. What breaks it is -EACCES.
 */
#ifndef KY_OS_PLACE_H
#define KY_OS_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#define KY_PLACE_NAME_BYTES 256
#define KY_PLACE_FILE_MODE 0600 /* of new files: a trace says what a program does */

struct ky_place {
	int dir;
	dev_t device; /* the directory's: a program may close all descriptors, also those of a library */
	ino_t inode;
	char name[KY_PLACE_NAME_BYTES]; /* not a link's */
	bool magic; /* a link of /proc, such as /proc/self/fd/1: the kernel follows it */
};

/* Follow the path. Its last part need not exist. 0 or -errno; then there is nothing to close. */
int ky_place_find(struct ky_place *place, const char *path);
void ky_place_close(struct ky_place *place);

/* Describe the file there. 0, -ENOENT when there is none, -EACCES when it is another's, -errno. */
int ky_place_stat(const struct ky_place *place, struct stat *status);
/* Open the file there with these flags of open(); O_CREAT makes one of mode 0600. A descriptor or -errno. */
int ky_place_open(const struct ky_place *place, int flags);
/* Make a new file beside it to be written to, with a name that nobody can know before. A descriptor or -errno. */
int ky_place_open_beside(const struct ky_place *place, char name[KY_PLACE_NAME_BYTES]);
/* Give the file of a descriptor without a name (O_TMPFILE) such a name. 0 or -errno. */
int ky_place_link_beside(const struct ky_place *place, int fd, char name[KY_PLACE_NAME_BYTES]);
/*
 * Let the file named beside take the place's name. Where a file had it, the new one gets its owner, group, mode and
 * access list, as far as we may; who could not read the old one cannot read the new one. 0 or -errno.
 */
int ky_place_replace(const struct ky_place *place, int fd, const char *beside);
/* Remove the file named beside. */
void ky_place_remove(const struct ky_place *place, const char *beside);

#endif
