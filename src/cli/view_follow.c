/* SPDX-License-Identifier: MIT */
/* view_follow.c: see view_follow.h. */
#include "cli/view_follow.h"

#include "process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* So long a file whose writer is not seen counts as live after it has changed. */
#define UNSEEN_NS INT64_C(10000000000)

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

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

/* The mode of the link says for what the descriptor is open. */
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

/* Whether the writer that was found still has it open. */
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
	return is_written(file) ||
	       (!file->writer && file->changed_ns && now_ns() - file->changed_ns < UNSEEN_NS);
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
		if (file->writer) /* it was seen to end: nobody need guess */
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
		if (stat(file->path, &now) != 0) /* gone: what was loaded stays */
			continue;
		if (!is_unchanged(&now, &file->last))
			file->changed_ns = now_ns();
		file->last = now;
	}
	judge(follow);
}
