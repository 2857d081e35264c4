/* SPDX-License-Identifier: MIT */
/* proc_scan.c: see proc_scan.h. */
#include "capture/proc_scan.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

/* Of linux/pidfd.h, which is older than the kernel on some systems; exit_code since 6.15. */
struct exit_info {
	uint64_t mask;
	uint64_t cgroup;
	uint32_t ids[11];
	int32_t exit_code;
};
#define EXIT_INFO_GET _IOWR(0xff, 11, struct exit_info)
#define EXIT_INFO_KNOWN (UINT64_C(1) << 3)

int ky_pids_add(struct ky_pids *pids, pid_t pid)
{
	if (pids->count == pids->room) {
		const uint32_t room = pids->room ? pids->room * 2 : 64;
		pid_t *const at = realloc(pids->at, room * sizeof(*at));
		if (!at)
			return -ENOMEM;
		pids->at = at;
		pids->room = room;
	}
	pids->at[pids->count++] = pid;
	return 0;
}

void ky_pids_free(struct ky_pids *pids)
{
	free(pids->at);
	*pids = (struct ky_pids){0};
}

/* The file's begin, terminated. Its bytes or -errno. */
static ssize_t read_file(const char *path, char *text, size_t room)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	const ssize_t bytes = read(fd, text, room - 1);
	const int error = errno;
	close(fd);
	if (bytes < 0)
		return -error;
	text[bytes] = '\0';
	return bytes;
}

static uint64_t ticks_to_ns(uint64_t ticks)
{
	const long per_second = sysconf(_SC_CLK_TCK);
	return ticks * (UINT64_C(1000000000) / (uint64_t)(per_second > 0 ? per_second : 100));
}

/* The fields of proc_pid_stat(5), from the third on. */
static void parse_fields(const char *text, struct ky_proc_stat *stat)
{
	int field = 3;
	for (; *text; text++, field++) {
		if (field == 3)
			stat->state = *text;
		else if (field == 4)
			stat->parent = (pid_t)strtol(text, NULL, 10);
		else if (field == 22)
			stat->started_ns = ticks_to_ns(strtoull(text, NULL, 10));
		else if (field == 52)
			stat->exit_code = (int)strtol(text, NULL, 10);
		text = strchr(text, ' ');
		if (!text)
			return;
	}
}

int ky_proc_stat(pid_t pid, struct ky_proc_stat *stat)
{
	char path[64], text[1024];
	*stat = (struct ky_proc_stat){.exit_code = -1};
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	const ssize_t bytes = read_file(path, text, sizeof(text));
	if (bytes < 0)
		return bytes == -ENOENT ? -ESRCH : (int)bytes;
	/* The name is the process's choice, and may have blanks and parentheses in it. */
	const char *const begin = strchr(text, '('), *const end = strrchr(text, ')');
	if (!begin || !end || end < begin || end[1] != ' ')
		return -ESRCH;
	snprintf(stat->name, sizeof(stat->name), "%.*s", (int)(end - begin - 1), begin + 1);
	parse_fields(end + 2, stat);
	return 0;
}

/* Appends the numbers that are names in a folder. */
static int list_numbers(const char *path, struct ky_pids *pids)
{
	DIR *const folder = opendir(path);
	if (!folder)
		return errno == ENOENT ? -ESRCH : -errno;
	const struct dirent *entry;
	int error = 0;
	while (error == 0 && (entry = readdir(folder)))
		if (isdigit((unsigned char)entry->d_name[0]))
			error = ky_pids_add(pids, (pid_t)strtol(entry->d_name, NULL, 10));
	closedir(folder);
	return error;
}

static int ascending(const void *a, const void *b)
{
	const pid_t left = *(const pid_t *)a, right = *(const pid_t *)b;
	return (left > right) - (left < right);
}

int ky_proc_all(struct ky_pids *pids)
{
	const uint32_t before = pids->count;
	const int error = list_numbers("/proc", pids);
	if (pids->count > before)
		qsort(pids->at + before, pids->count - before, sizeof(pid_t), ascending);
	return error;
}

/* A thread that has just ended has none. */
static int children_of_thread(pid_t pid, pid_t tid, struct ky_pids *pids)
{
	char path[96];
	long child;
	int error = 0;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)tid);
	FILE *const file = fopen(path, "re");
	while (file && error == 0 && fscanf(file, "%ld", &child) == 1)
		error = ky_pids_add(pids, (pid_t)child);
	if (file)
		fclose(file);
	return error;
}

static bool tells_children(void)
{
	static int tells = -1;
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	if (tells < 0)
		tells = access(path, R_OK) == 0;
	return tells;
}

int ky_proc_children(pid_t pid, struct ky_pids *pids)
{
	if (!tells_children())
		return -ENOTSUP;
	char path[64];
	struct ky_pids threads = {0};
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	int error = list_numbers(path, &threads);
	for (uint32_t i = 0; error == 0 && i < threads.count; i++)
		error = children_of_thread(pid, threads.at[i], pids);
	ky_pids_free(&threads);
	return error;
}

uint32_t ky_proc_newest(void)
{
	char text[128];
	if (read_file("/proc/loadavg", text, sizeof(text)) <= 0)
		return 0;
	const char *const last = strrchr(text, ' ');
	return last ? (uint32_t)strtoul(last, NULL, 10) : 0;
}

static int64_t folder_size(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 ? (int64_t)status.st_size : -1;
}

/* Since 6.2 the size of the folder is the number of descriptors; before, it was 0. */
int64_t ky_proc_descriptors(pid_t pid)
{
	static int tells = -1;
	char path[64];
	if (tells < 0)
		tells = folder_size("/proc/self/fd") > 0;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	return tells ? folder_size(path) : -1;
}

int ky_pidfd_open(pid_t pid)
{
	const int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	return fd < 0 ? -errno : fd;
}

bool ky_pidfd_ended(int pidfd)
{
	struct pollfd fd = {.fd = pidfd, .events = POLLIN};
	return poll(&fd, 1, 0) > 0;
}

bool ky_pidfd_reaped(int pidfd)
{
	return syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) != 0 && errno == ESRCH;
}

int ky_pidfd_status(int pidfd, pid_t pid)
{
	struct ky_proc_stat stat;
	if (ky_proc_stat(pid, &stat) == 0 && stat.state == 'Z' && !ky_pidfd_reaped(pidfd))
		return stat.exit_code;
	struct exit_info info = {.mask = EXIT_INFO_KNOWN};
	if (ioctl(pidfd, EXIT_INFO_GET, &info) == 0 && (info.mask & EXIT_INFO_KNOWN))
		return info.exit_code;
	return -1;
}
