/* SPDX-License-Identifier: MIT */
/* view_scratch.c: see view_scratch.h. */
#include "cli/view_scratch.h"

#include "cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool make_in(struct ky_scratch *scratch, const char *folder)
{
	if (!folder || !*folder || strlen(folder) + 32 > sizeof(scratch->path))
		return false;
	snprintf(scratch->path, sizeof(scratch->path), "%s/kymo-view-XXXXXX", folder);
	return mkdtemp(scratch->path) != NULL;
}

bool ky_scratch_open(struct ky_scratch *scratch)
{
	if (scratch->path[0])
		return true;
	if (make_in(scratch, getenv("TMPDIR")) || make_in(scratch, "/var/tmp") ||
	    make_in(scratch, "/tmp"))
		return true;
	scratch->path[0] = '\0';
	ky_cli_error("cannot make a temporary directory: %s; name one with TMPDIR",
		     strerror(errno));
	return false;
}

void ky_scratch_close(struct ky_scratch *scratch)
{
	DIR *const dir = scratch->path[0] ? opendir(scratch->path) : NULL;
	if (!dir)
		return;
	for (struct dirent *entry; (entry = readdir(dir));)
		unlinkat(dirfd(dir), entry->d_name, 0); /* . and .. stay */
	closedir(dir);
	rmdir(scratch->path);
	scratch->path[0] = '\0';
}

void ky_scratch_name(const struct ky_scratch *scratch, const char *name, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%s", scratch->path, name);
}
