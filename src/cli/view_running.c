/* SPDX-License-Identifier: MIT */
/* view_running.c: see view_running.h. */
#include "cli/view_running.h"

#include "cli/capturing.h"
#include "cli/cli.h"
#include "process/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 16

struct files {
	char paths[FILES_MAX][PATH_MAX];
	uint32_t count;
};

/* A capture names its file only when there is something in it, and the link still says that it has no name. */
static bool find_name(char path[PATH_MAX], const struct stat *file)
{
	struct stat named;
	char folder[PATH_MAX];
	char *const slash = strrchr(path, '/');
	if (stat(path, &named) == 0 && named.st_ino == file->st_ino && named.st_dev == file->st_dev)
		return true;
	snprintf(folder, sizeof(folder), "%.*s", slash == path ? 1 : (int)(slash - path), path);
	DIR *const dir = opendir(folder);
	bool found = false;
	for (struct dirent *entry; dir && !found && (entry = readdir(dir));) {
		const size_t room = PATH_MAX - (size_t)(slash + 1 - path);
		found = entry->d_ino == file->st_ino && strlen(entry->d_name) < room;
		if (found)
			strcpy(slash + 1, entry->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* It may be open more than once, and in a process that a capture has forked. */
static bool is_known(const struct files *files, const char *path)
{
	for (uint32_t i = 0; i < files->count; i++)
		if (strcmp(files->paths[i], path) == 0)
			return true;
	return false;
}

/* Regular files that have a name, open for writing. */
static void take_descriptor(struct files *files, int folder, int fd)
{
	char name[16];
	struct stat link, file;
	char *const path = files->paths[files->count];
	snprintf(name, sizeof(name), "%d", fd);
	if (fstatat(folder, name, &link, AT_SYMLINK_NOFOLLOW) != 0 || !(link.st_mode & S_IWUSR) ||
	    fstatat(folder, name, &file, 0) != 0 || !S_ISREG(file.st_mode) || !file.st_nlink)
		return;
	const ssize_t bytes = readlinkat(folder, name, path, PATH_MAX - 1);
	if (bytes <= 0 || path[0] != '/')
		return;
	path[bytes] = '\0';
	files->count += find_name(path, &file) && !is_known(files, path);
}

/* What it prints may be redirected into a file: those of standard streams are none. */
static void look_into(struct files *files, pid_t pid)
{
	DIR *const list = ky_proc_fds(pid, 0);
	for (int fd; files->count < FILES_MAX && (fd = ky_proc_next(list)) >= 0;)
		if (fd > STDERR_FILENO)
			take_descriptor(files, dirfd(list), fd);
	ky_proc_close(list);
}

static void find_all(struct files *files)
{
	struct ky_pids pids = {0};
	if (ky_proc_all(&pids) == 0)
		for (uint32_t i = 0; i < pids.count && files->count < FILES_MAX; i++)
			if (ky_capturing(pids.at[i]))
				look_into(files, pids.at[i]);
	ky_pids_free(&pids);
}

bool ky_running_find(char path[PATH_MAX], bool quiet)
{
	static struct files files;
	files.count = 0;
	find_all(&files);
	if (files.count == 1) {
		memcpy(path, files.paths[0], PATH_MAX);
		if (!quiet)
			ky_cli_error("showing %s, which is being recorded", path);
		return true;
	}
	if (files.count == 0) {
		ky_cli_usage("which file? And nothing is being recorded now; -p PID|NAME records a "
			     "process and shows it");
		return false;
	}
	for (uint32_t i = 0; i < files.count; i++)
		fprintf(stderr, "  kymo view %s\n", files.paths[i]);
	ky_cli_usage("which file? These are being recorded now");
	return false;
}
