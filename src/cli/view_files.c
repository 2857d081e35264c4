/* SPDX-License-Identifier: MIT */
/* view_files.c: files that grow, running recordings, a private folder: see view_verb.h. */
#include "base/clock.h"
#include "cli/view_verb.h"

#include "cli/cli.h"
#include "process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How long a file counts as live after a change if its writer cannot be seen. */
#define UNSEEN_NS INT64_C(10000000000)

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_unchanged(const struct stat *a, const struct stat *b)
{
	return is_same(a, b) && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int ky_follow_open(struct ky_follow *follow, const char *const *paths, uint32_t count)
{
	*follow = (struct ky_follow){.files = calloc(count ? count : 1, sizeof(*follow->files))};
	if (!follow->files)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		struct stat status;
		if (stat(paths[i], &status) == 0 && S_ISREG(status.st_mode))
			follow->files[follow->count++] =
				(struct ky_followed){.path = paths[i], .seen = status};
	}
	return 0;
}

void ky_follow_close(struct ky_follow *follow)
{
	free(follow->files);
	*follow = (struct ky_follow){0};
}

/* ---- who writes ---- */

/* Report whether a descriptor is open for writing: the mode of its link says so. */
static bool is_open_for_writing(int folder, const char *name)
{
	struct stat link;
	return fstatat(folder, name, &link, AT_SYMLINK_NOFOLLOW) == 0 && link.st_mode & S_IWUSR;
}

static void match_descriptor(struct ky_follow *follow, pid_t pid, int folder, int fd)
{
	char name[16];
	struct stat status;
	snprintf(name, sizeof(name), "%d", fd);
	if (fstatat(folder, name, &status, 0) != 0 || !S_ISREG(status.st_mode))
		return;
	for (uint32_t i = 0; i < follow->count; i++) {
		struct ky_followed *const file = &follow->files[i];
		if (!is_same(&status, &file->seen) || !is_open_for_writing(folder, name))
			continue;
		file->writer = pid;
		file->writer_fd = fd;
	}
}

static void look_into(struct ky_follow *follow, pid_t pid)
{
	DIR *const list = pid == getpid() ? NULL : ky_proc_fds(pid, 0);
	if (!list)
		return;
	for (int fd; (fd = ky_proc_next(list)) >= 0;)
		match_descriptor(follow, pid, dirfd(list), fd);
	ky_proc_close(list);
}

static void find_writers(struct ky_follow *follow)
{
	struct ky_pids pids = {0};
	if (ky_proc_all(&pids) == 0)
		for (uint32_t i = 0; i < pids.count; i++)
			look_into(follow, pids.at[i]);
	ky_pids_free(&pids);
}

/* Report whether the known writer still has the file open. */
static bool is_written(const struct ky_followed *file)
{
	char path[64];
	struct stat status;
	if (!file->writer)
		return false;
	snprintf(path, sizeof(path), "/proc/%ld/fd/%d", (long)file->writer, file->writer_fd);
	return stat(path, &status) == 0 && is_same(&status, &file->seen);
}

/* ---- looking ---- */

static bool is_live(const struct ky_followed *file)
{
	return is_written(file) || (!file->writer && file->changed_ns &&
				    ky_clock_monotonic() - file->changed_ns < UNSEEN_NS);
}

static void judge(struct ky_follow *follow)
{
	follow->changed = follow->live = false;
	for (uint32_t i = 0; i < follow->count; i++) {
		const struct ky_followed *const file = &follow->files[i];
		follow->changed |= !is_unchanged(&file->last, &file->seen);
		follow->live |= is_live(file);
	}
}

void ky_follow_begin_load(struct ky_follow *follow)
{
	bool unknown = false;
	for (uint32_t i = 0; i < follow->count; i++) {
		struct ky_followed *const file = &follow->files[i];
		if (stat(file->path, &file->last) == 0)
			file->seen = file->last;
		if (is_written(file))
			continue;
		unknown = true;
		if (file->writer) /* its end was seen: no need to guess */
			file->changed_ns = 0;
		file->writer = 0;
	}
	if (unknown)
		find_writers(follow);
	judge(follow);
}

void ky_follow_look(struct ky_follow *follow)
{
	for (uint32_t i = 0; i < follow->count; i++) {
		struct ky_followed *const file = &follow->files[i];
		struct stat now;
		if (stat(file->path, &now) != 0) /* gone: keep what was loaded */
			continue;
		if (!is_unchanged(&now, &file->last))
			file->changed_ns = ky_clock_monotonic();
		file->last = now;
	}
	judge(follow);
}

/* ---- running recordings ---- */

#define FILES_MAX 16

struct files {
	char paths[FILES_MAX][PATH_MAX];
	uint32_t count;
};

/* Find the name of a capture's file. It gets one only when there is something in it, and the link still shows none. */
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

/* A file may be open more than once, and in a process that a capture has forked. */
static bool is_known(const struct files *files, const char *path)
{
	for (uint32_t i = 0; i < files->count; i++)
		if (strcmp(files->paths[i], path) == 0)
			return true;
	return false;
}

/* Take regular files that have a name and are open for writing. */
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

/* Skip the standard streams: output may be redirected into a file. */
static void find_in_process(struct files *files, pid_t pid)
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
			if (ky_cli_captures(pids.at[i]))
				find_in_process(files, pids.at[i]);
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
		ky_cli_usage(
			"no file is given, and nothing is being recorded: -p PID|NAME records a "
			"process and shows it");
		return false;
	}
	for (uint32_t i = 0; i < files.count; i++)
		fprintf(stderr, "  kymo view %s\n", files.paths[i]);
	ky_cli_usage("which file? These are being recorded now");
	return false;
}

/* ---- a private folder ---- */

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
