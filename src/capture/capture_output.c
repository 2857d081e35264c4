/* SPDX-License-Identifier: MIT */
/* capture_output.c: see capture_output.h. */
#include "capture/capture_output.h"

#include "capture/fail.h"
#include "sink/path.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int cannot_write(const char *path, int error, char message[KY_CAPTURE_MESSAGE_BYTES])
{
	return ky_capture_fail(message, -error, "cannot write %s: %s; choose another file with -o",
			       path, strerror(error));
}

/* Resolve the path: a link stays, and the file behind it is replaced. */
static int resolve(struct ky_capture_output *output, const char *path, bool *special)
{
	struct stat status;
	const int bytes =
		ky_path_expand(output->path, sizeof(output->path), path, (int32_t)getpid(), 0);
	*special = false;
	if (bytes < 0)
		return bytes;
	memcpy(output->target, output->path, sizeof(output->target));
	if (stat(output->path, &status) != 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(status.st_mode))
		return -EISDIR;
	*special = !S_ISREG(status.st_mode);
	if (!*special && access(output->path, W_OK) != 0)
		return -errno;
	return *special || realpath(output->path, output->target) ? 0 : -errno;
}

static int open_waiting(struct ky_capture_output *output)
{
	char copy[PATH_MAX];
	memcpy(copy, output->target, sizeof(copy));
	output->fd = open(dirname(copy), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
	if (output->fd >= 0)
		return 0;
	const int bytes = snprintf(output->waiting, sizeof(output->waiting), "%s.%ld.tmp",
				   output->target, (long)getpid());
	if (bytes < 0 || bytes >= (int)sizeof(output->waiting)) {
		output->waiting[0] = '\0';
		return -ENAMETOOLONG;
	}
	unlink(output->waiting);
	output->fd =
		open(output->waiting, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0666);
	return output->fd >= 0 ? 0 : -errno;
}

int ky_capture_output_open(struct ky_capture_output *output, const char *path, bool keep_old,
			   char message[KY_CAPTURE_MESSAGE_BYTES])
{
	bool special = false;
	*output = (struct ky_capture_output){.fd = -1, .keep_old = keep_old};
	if (ky_path_rotates(path)) {
		output->kept = true;
		return 0;
	}
	int error = resolve(output, path, &special);
	if (!error && !special)
		error = open_waiting(output);
	output->kept = special;
	return error ? cannot_write(path, -error, message) : 0;
}

static int give_name(const struct ky_capture_output *output)
{
	char self[32], between[PATH_MAX];
	if (output->waiting[0])
		return rename(output->waiting, output->target) == 0 ? 0 : -errno;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", output->fd);
	if (linkat(AT_FDCWD, self, AT_FDCWD, output->target, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	/* Only a rename replaces a file. */
	const int bytes =
		snprintf(between, sizeof(between), "%s.%ld.tmp", output->target, (long)getpid());
	if (bytes < 0 || bytes >= (int)sizeof(between))
		return -ENAMETOOLONG;
	unlink(between);
	if (linkat(AT_FDCWD, self, AT_FDCWD, between, AT_SYMLINK_FOLLOW) != 0)
		return -errno;
	if (rename(between, output->target) == 0)
		return 0;
	const int error = -errno;
	unlink(between);
	return error;
}

int ky_capture_output_keep(struct ky_capture_output *output, char message[KY_CAPTURE_MESSAGE_BYTES])
{
	char old[PATH_MAX];
	if (output->kept)
		return 0;
	output->kept = true;
	const int bytes = snprintf(old, sizeof(old), "%s.old", output->target);
	if (output->keep_old && bytes > 0 && bytes < (int)sizeof(old) &&
	    rename(output->target, old) != 0 && errno != ENOENT)
		return ky_capture_fail(message, -errno,
				       "cannot keep %s as %s: %s; choose another file with -o",
				       output->path, old, strerror(errno));
	const int error = give_name(output);
	return error ? cannot_write(output->path, -error, message) : 0;
}

void ky_capture_output_close(struct ky_capture_output *output)
{
	if (!output->kept && output->waiting[0])
		unlink(output->waiting);
	if (output->fd >= 0)
		close(output->fd);
	output->fd = -1;
}
