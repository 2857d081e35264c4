/* SPDX-License-Identifier: MIT */
/*
 * place.c: see place.h. The path is followed part by part with O_PATH descriptors:
 *
 *   directory ─▶ part ─▶ directory: go on there
 *                     ─▶ link: may we follow it? then its text comes before the rest of the path
 *                     ─▶ the last part: the place is found, whether a file has that name or not
 */
#include "os/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LINKS_MAX 40
#define NAMES_MAX 64            /* names tried beside a file */
#define PROC_FILE_SYSTEM 0x9fa0 /* PROC_SUPER_MAGIC */
#define ACL_NAME "system.posix_acl_access"
#define ACL_BYTES 1024

/* ---- the rule ---- */

static bool is_open_to_all(const struct stat *dir)
{
	const mode_t both = S_ISVTX | S_IWOTH;
	return (dir->st_mode & both) == both;
}

/* Apply the rule to a file or link in that directory. 0 or -errno. */
static int check_owner(int dir, const struct stat *status)
{
	struct stat around;
	if (fstat(dir, &around) != 0)
		return -errno;
	if (!is_open_to_all(&around) || status->st_uid == geteuid() ||
	    status->st_uid == around.st_uid)
		return 0;
	return S_ISREG(status->st_mode) || S_ISFIFO(status->st_mode) || S_ISLNK(status->st_mode)
		       ? -EACCES
		       : 0;
}

/* ---- following a path ---- */

/* A path on its way. */
struct walk {
	int dir;
	unsigned links;
	char rest[PATH_MAX];
};

static int enter(struct walk *walk, int dir)
{
	if (dir < 0)
		return -errno;
	if (walk->dir >= 0)
		close(walk->dir);
	walk->dir = dir;
	return 0;
}

static int enter_start(struct walk *walk)
{
	const bool absolute = walk->rest[0] == '/';
	if (!absolute && walk->dir >= 0)
		return 0;
	return enter(walk, open(absolute ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* Take the next part off the path. Report whether it is the last one. Return 0 or -errno. */
static int next_part(struct walk *walk, char part[KY_PLACE_NAME_BYTES], bool *last)
{
	const char *at = walk->rest + strspn(walk->rest, "/");
	const size_t bytes = strcspn(at, "/");
	if (bytes >= KY_PLACE_NAME_BYTES)
		return -ENAMETOOLONG;
	memcpy(part, at, bytes);
	part[bytes] = '\0';
	at += bytes;
	*last = *at == '\0';
	/* A path that ends with a slash or dots names a directory. */
	if (*last && (bytes == 0 || strcmp(part, ".") == 0 || strcmp(part, "..") == 0))
		return -EISDIR;
	at += strspn(at, "/");
	if (*at == '\0' && !*last)
		return -EISDIR;
	memmove(walk->rest, at, strlen(at) + 1);
	return 0;
}

/* Put the link's text before the rest of the path. */
static int expand_link(struct walk *walk, int link)
{
	char text[PATH_MAX];
	if (++walk->links > LINKS_MAX)
		return -ELOOP;
	const ssize_t bytes = readlinkat(link, "", text, sizeof(text));
	if (bytes <= 0)
		return bytes < 0 ? -errno : -ENOENT;
	const size_t rest = strlen(walk->rest);
	if ((size_t)bytes + 1 + rest >= sizeof(walk->rest))
		return -ENAMETOOLONG;
	memmove(walk->rest + bytes + (rest ? 1 : 0), walk->rest, rest + 1);
	memcpy(walk->rest, text, (size_t)bytes);
	if (rest)
		walk->rest[bytes] = '/';
	return enter_start(walk);
}

/* Go through a link if we may. Return 0, -errno, or 1: it is the last part, and one that only the kernel can follow. */
static int follow(struct walk *walk, const char *part, bool last, int link,
		  const struct stat *status)
{
	struct statfs system;
	if (fstatfs(link, &system) == 0 && system.f_type == PROC_FILE_SYSTEM) {
		if (last)
			return 1;
		return enter(walk, openat(walk->dir, part, O_PATH | O_DIRECTORY | O_CLOEXEC));
	}
	const int error = check_owner(walk->dir, status);
	return error ? error : expand_link(walk, link);
}

/* Go one part further. Return 0, -errno, or 1: the place is found. */
static int step(struct walk *walk, struct ky_place *place)
{
	struct stat status;
	bool last = false;
	int error = next_part(walk, place->name, &last);
	if (error)
		return error;
	const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
	const int dir = last ? -1 : openat(walk->dir, place->name, flags | O_DIRECTORY);
	if (dir >= 0)
		return enter(walk, dir);
	const int fd = openat(walk->dir, place->name, flags);
	if (fd < 0)
		return last && errno == ENOENT ? 1 : -errno;
	if (fstat(fd, &status) != 0)
		error = -errno;
	else if (S_ISLNK(status.st_mode)) {
		error = follow(walk, place->name, last, fd, &status);
		place->magic = error == 1;
	} else {
		error = last ? 1 : -ENOTDIR;
	}
	close(fd);
	return error;
}

int ky_place_find(struct ky_place *place, const char *path)
{
	struct walk walk = {.dir = -1};
	const size_t bytes = strlen(path);
	place->dir = -1;
	place->magic = false;
	if (bytes == 0)
		return -ENOENT;
	if (bytes >= sizeof(walk.rest))
		return -ENAMETOOLONG;
	memcpy(walk.rest, path, bytes + 1);
	int error = enter_start(&walk);
	while (error == 0)
		error = step(&walk, place);
	struct stat dir;
	if (error == 1)
		error = fstat(walk.dir, &dir) != 0 ? -errno : 0;
	if (error) {
		if (walk.dir >= 0)
			close(walk.dir);
		return error;
	}
	place->dir = walk.dir;
	place->device = dir.st_dev;
	place->inode = dir.st_ino;
	return 0;
}

/* Report whether the descriptor is still the one of the directory. */
static bool is_held(const struct ky_place *place)
{
	struct stat dir;
	return place->dir >= 0 && fstat(place->dir, &dir) == 0 && dir.st_dev == place->device &&
	       dir.st_ino == place->inode;
}

void ky_place_close(struct ky_place *place)
{
	if (is_held(place))
		close(place->dir);
	place->dir = -1;
}

/* ---- the file there ---- */

int ky_place_stat(const struct ky_place *place, struct stat *status)
{
	if (fstatat(place->dir, place->name, status, place->magic ? 0 : AT_SYMLINK_NOFOLLOW) != 0)
		return -errno;
	if (place->magic)
		return 0;
	return S_ISLNK(status->st_mode) ? -ELOOP : check_owner(place->dir, status);
}

int ky_place_open(const struct ky_place *place, int flags)
{
	struct stat status;
	flags |= O_CLOEXEC | O_NOCTTY | (place->magic ? 0 : O_NOFOLLOW);
	const int fd = openat(place->dir, place->name, flags, KY_PLACE_FILE_MODE);
	if (fd < 0)
		return -errno;
	int error = fstat(fd, &status) != 0 ? -errno : 0;
	if (!error && !place->magic)
		error = check_owner(place->dir, &status);
	if (!error)
		return fd;
	close(fd);
	return error;
}

/* ---- a file beside it ---- */

static int make_name(char name[KY_PLACE_NAME_BYTES], unsigned attempt)
{
	unsigned random = 0;
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = attempt;
	return snprintf(name, KY_PLACE_NAME_BYTES, ".kymo-%ld-%08x.tmp", (long)getpid(), random);
}

int ky_place_open_beside(const struct ky_place *place, char name[KY_PLACE_NAME_BYTES])
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	for (unsigned attempt = 0; attempt < NAMES_MAX; attempt++) {
		make_name(name, attempt);
		const int fd = openat(place->dir, name, flags, KY_PLACE_FILE_MODE);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST && errno != EINTR)
			break;
	}
	const int error = -errno;
	name[0] = '\0';
	return error;
}

int ky_place_link_beside(const struct ky_place *place, int fd, char name[KY_PLACE_NAME_BYTES])
{
	char self[32];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	for (unsigned attempt = 0; attempt < NAMES_MAX; attempt++) {
		make_name(name, attempt);
		if (linkat(AT_FDCWD, self, place->dir, name, AT_SYMLINK_FOLLOW) == 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	const int error = -errno;
	name[0] = '\0';
	return error;
}

/* Give the new file the access list of the old one. Report whether it now has the same, or both have none. */
static bool copy_access_list(const struct ky_place *place, int fd)
{
	char list[ACL_BYTES];
	const int old = openat(place->dir, place->name,
			       O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (old < 0)
		return false;
	const ssize_t bytes = fgetxattr(old, ACL_NAME, list, sizeof(list));
	const bool none = bytes < 0 && (errno == ENODATA || errno == ENOTSUP);
	close(old);
	return none || (bytes > 0 && fsetxattr(fd, ACL_NAME, list, (size_t)bytes, 0) == 0);
}

/* A group that is not the old one, or an access list that is lost, leaves the group what all others may do. */
static void keep_attributes(const struct ky_place *place, int fd, const struct stat *old)
{
	mode_t mode = old->st_mode & 0777;
	bool group = true;
	if (fchown(fd, old->st_uid, old->st_gid) != 0)
		group = fchown(fd, (uid_t)-1, old->st_gid) == 0;
	if (!copy_access_list(place, fd) || !group)
		mode &= ~(mode_t)S_IRWXG | ((mode & S_IRWXO) << 3);
	(void)fchmod(fd, mode);
}

int ky_place_replace(const struct ky_place *place, int fd, const char *beside)
{
	struct stat old;
	if (!is_held(place))
		return -EBADF;
	const int error = ky_place_stat(place, &old);
	if (error && error != -ENOENT)
		return error;
	if (!error && !S_ISREG(old.st_mode))
		return S_ISDIR(old.st_mode) ? -EISDIR : -EEXIST;
	if (!error)
		keep_attributes(place, fd, &old);
	return renameat(place->dir, beside, place->dir, place->name) != 0 ? -errno : 0;
}

void ky_place_remove(const struct ky_place *place, const char *beside)
{
	if (is_held(place))
		(void)unlinkat(place->dir, beside, 0);
}
