/* SPDX-License-Identifier: MIT */
/* proc.c: see proc.h. The layouts are those of proc_pid_stat(5) and proc_pid_status(5). */
#include "process/proc.h"

#include "base/array.h"
#include "base/file.h"

#include <ctype.h>
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
#include <sys/wait.h>
#include <unistd.h>

#define PATH_BYTES 96

/* "/proc/PID/FILE", or "/proc/PID/task/TID/FILE". */
static void make_path(char path[PATH_BYTES], pid_t pid, pid_t tid, const char *file)
{
	char who[16] = "self", task[32] = "";
	if (pid != KY_PROC_SELF)
		snprintf(who, sizeof(who), "%d", (int)pid);
	if (tid)
		snprintf(task, sizeof(task), "/task/%d", (int)tid);
	snprintf(path, PATH_BYTES, "/proc/%s%s/%.32s", who, task, file);
}

static int no_process(int error)
{
	return error == ENOENT ? ESRCH : error;
}

/* Read the beginning of a file, terminated. Its bytes or -errno. */
static int read_text(const char *path, char *text, size_t room)
{
	const int64_t bytes = ky_file_read_text(path, text, room);
	if (bytes < 0)
		text[0] = '\0';
	return bytes < 0 ? -no_process((int)-bytes) : (int)bytes;
}

/* ---- stat ---- */

static uint64_t ticks_to_ns(uint64_t ticks)
{
	const long per_second = sysconf(_SC_CLK_TCK);
	return ticks * (UINT64_C(1000000000) / (uint64_t)(per_second > 0 ? per_second : 100));
}

static void take_field(struct ky_proc_stat *stat, int field, const char *text)
{
	switch (field) {
	case 3:
		stat->state = *text;
		break;
	case 4:
		stat->parent = (pid_t)strtol(text, NULL, 10);
		break;
	case 22:
		stat->start_ticks = strtoull(text, NULL, 10);
		stat->started_ns = ticks_to_ns(stat->start_ticks);
		break;
	case 26:
		stat->code_start = strtoull(text, NULL, 10);
		break;
	case 28:
		stat->stack_start = strtoull(text, NULL, 10);
		break;
	case 47:
		stat->heap_start = strtoull(text, NULL, 10);
		break;
	case 52:
		stat->exit_code = (int)strtol(text, NULL, 10);
		break;
	default:
		break;
	}
}

bool ky_proc_stat_parse(const char *text, struct ky_proc_stat *stat)
{
	*stat = (struct ky_proc_stat){.exit_code = -1};
	/* The name may have parentheses in it; nothing behind it has. */
	const char *const open = strchr(text, '('), *const close = strrchr(text, ')');
	if (!open || !close || close < open || close[1] != ' ')
		return false;
	snprintf(stat->name, sizeof(stat->name), "%.*s", (int)(close - open - 1), open + 1);
	const char *at = close + 2;
	for (int field = 3; at && *at; field++) {
		take_field(stat, field, at);
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	return true;
}

int ky_proc_stat(pid_t pid, pid_t tid, struct ky_proc_stat *stat)
{
	char path[PATH_BYTES], text[1024];
	make_path(path, pid, tid, "stat");
	const int bytes = read_text(path, text, sizeof(text));
	const bool parsed = ky_proc_stat_parse(text, stat);
	return bytes < 0 ? bytes : parsed ? 0 : -ESRCH;
}

/* ---- status ---- */

/* Return what follows the key in a line; NULL when it has another key. */
static const char *value_of(const char *line, const char *key)
{
	const size_t bytes = strlen(key);
	return strncmp(line, key, bytes) == 0 && line[bytes] == ':' ? line + bytes + 1 : NULL;
}

/* "\t4711\t1\n": the innermost namespace comes last. */
static pid_t last_number(const char *text)
{
	const char *const tab = strrchr(text, '\t');
	return (pid_t)strtol(tab ? tab : text, NULL, 10);
}

void ky_proc_status_line(struct ky_proc_status *status, const char *line)
{
	const char *value;
	if ((value = value_of(line, "State")))
		status->state = value[strspn(value, "\t ")];
	else if ((value = value_of(line, "Tgid")))
		status->tgid = (pid_t)strtol(value, NULL, 10);
	else if ((value = value_of(line, "PPid")))
		status->parent = (pid_t)strtol(value, NULL, 10);
	else if ((value = value_of(line, "TracerPid")))
		status->tracer = (pid_t)strtol(value, NULL, 10);
	else if ((value = value_of(line, "Uid")))
		status->user = (uint32_t)strtoul(value, NULL, 10);
	else if ((value = value_of(line, "NSpid")))
		status->inner_pid = last_number(value);
	else if ((value = value_of(line, "NStgid")))
		status->inner_tgid = last_number(value);
	else if ((value = value_of(line, "SigBlk")))
		status->blocked = strtoull(value, NULL, 16);
	else if ((value = value_of(line, "SigIgn")))
		status->ignored = strtoull(value, NULL, 16);
	else if ((value = value_of(line, "SigCgt")))
		status->caught = strtoull(value, NULL, 16);
	else if ((value = value_of(line, "CapEff")))
		status->capabilities = strtoull(value, NULL, 16);
	else if ((value = value_of(line, "VmLck")))
		status->locked_kb = strtoull(value, NULL, 10);
	else if ((value = value_of(line, "Seccomp")))
		status->seccomp = (int)strtol(value, NULL, 10);
	else if ((value = value_of(line, "Seccomp_filters")))
		status->seccomp_filters = (int)strtol(value, NULL, 10);
}

int ky_proc_status(pid_t pid, pid_t tid, struct ky_proc_status *status)
{
	char path[PATH_BYTES], line[256];
	*status = (struct ky_proc_status){0};
	make_path(path, pid, tid, "status");
	FILE *const file = fopen(path, "re");
	if (!file)
		return -no_process(errno);
	while (fgets(line, sizeof(line), file))
		ky_proc_status_line(status, line);
	fclose(file);
	return 0;
}

pid_t ky_proc_inner_pid(pid_t pid)
{
	struct ky_proc_status status;
	return ky_proc_status(pid, 0, &status) == 0 && status.inner_pid > 0 ? status.inner_pid
									    : pid;
}

/* ---- other files ---- */

int ky_proc_comm(pid_t pid, pid_t tid, char *name, size_t room)
{
	char path[PATH_BYTES], text[64];
	make_path(path, pid, tid, "comm");
	const int bytes = read_text(path, text, sizeof(text));
	size_t end = strlen(text);
	if (end && text[end - 1] == '\n')
		text[--end] = '\0';
	for (size_t i = 0; i < end; i++)
		if (text[i] == '\n')
			text[i] = ' ';
	snprintf(name, room, "%.*s", (int)room - 1, text);
	return bytes < 0 ? bytes : (int)strlen(name);
}

uint64_t ky_proc_cpu_ns(pid_t pid, pid_t tid)
{
	char path[PATH_BYTES], text[96];
	make_path(path, pid, tid, "schedstat");
	return read_text(path, text, sizeof(text)) > 0 ? strtoull(text, NULL, 10) : 0;
}

int ky_proc_exe(pid_t pid, char *path, size_t room)
{
	char link[PATH_BYTES];
	make_path(link, pid, 0, "exe");
	const ssize_t bytes = readlink(link, path, room - 1);
	path[bytes > 0 ? bytes : 0] = '\0';
	return bytes < 0 ? -no_process(errno) : (int)bytes;
}

int ky_proc_open(pid_t pid, const char *file, int flags)
{
	char path[PATH_BYTES];
	make_path(path, pid, 0, file);
	const int fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -no_process(errno) : fd;
}

int ky_proc_setting(const char *path)
{
	char text[32];
	return read_text(path, text, sizeof(text)) > 0 ? atoi(text) : INT32_MAX;
}

/* Widen the vector of a 32-bit program, whose pairs are half as large, in place. Return the number of pairs. */
static uint32_t widen(struct ky_proc_aux vector[KY_PROC_AUX_MAX], size_t bytes)
{
	uint32_t narrow[KY_PROC_AUX_MAX * 2] = {0};
	uint32_t count = (uint32_t)(bytes / (2 * sizeof(narrow[0])));
	count = count < KY_PROC_AUX_MAX ? count : KY_PROC_AUX_MAX;
	memcpy(narrow, vector, count * 2 * sizeof(narrow[0]));
	for (uint32_t i = 0; i < count; i++)
		vector[i] = (struct ky_proc_aux){narrow[i * 2], narrow[i * 2 + 1]};
	return count;
}

uint32_t ky_proc_auxv(pid_t pid, struct ky_proc_aux vector[KY_PROC_AUX_MAX])
{
	const int fd = ky_proc_open(pid, "auxv", O_RDONLY);
	if (fd < 0)
		return 0;
	const ssize_t got = read(fd, vector, KY_PROC_AUX_MAX * sizeof(*vector));
	close(fd);
	if (got < (ssize_t)sizeof(*vector))
		return 0;
	/* Keys are small: a large one is a pair of a 32-bit program, and the first of these has a value. */
	return vector[0].key >> 32 ? widen(vector, (size_t)got)
				   : (uint32_t)((size_t)got / sizeof(*vector));
}

uint64_t ky_proc_aux_value(pid_t pid, uint64_t key)
{
	struct ky_proc_aux vector[KY_PROC_AUX_MAX];
	const uint32_t count = ky_proc_auxv(pid, vector);
	for (uint32_t i = 0; i < count; i++)
		if (vector[i].key == key)
			return vector[i].value;
	return 0;
}

/* ---- lists ---- */

static DIR *open_list(const char *path)
{
	DIR *const list = opendir(path);
	if (!list)
		errno = no_process(errno);
	return list;
}

DIR *ky_proc_processes(void)
{
	return open_list("/proc");
}

DIR *ky_proc_tasks(pid_t pid)
{
	char path[PATH_BYTES];
	make_path(path, pid, 0, "task");
	return open_list(path);
}

DIR *ky_proc_fds(pid_t pid, pid_t tid)
{
	char path[PATH_BYTES];
	make_path(path, pid, tid, "fd");
	return open_list(path);
}

int ky_proc_next(DIR *list)
{
	const struct dirent *entry;
	while (list && (entry = readdir(list)))
		if (isdigit((unsigned char)entry->d_name[0]))
			return (int)strtol(entry->d_name, NULL, 10);
	return -1;
}

void ky_proc_close(DIR *list)
{
	if (list)
		closedir(list);
}

int ky_pids_add(struct ky_pids *pids, pid_t pid)
{
	return KY_ARRAY_ADD(pids->at, pids->count, pids->room, pid) ? 0 : -ENOMEM;
}

void ky_pids_free(struct ky_pids *pids)
{
	KY_ARRAY_FREE(pids->at, pids->room);
	pids->count = 0;
}

static int ascending(const void *a, const void *b)
{
	return KY_COMPARE(*(const pid_t *)a, *(const pid_t *)b);
}

int ky_proc_all(struct ky_pids *pids)
{
	const uint32_t before = pids->count;
	int error = 0;
	DIR *const list = ky_proc_processes();
	if (!list)
		return -errno;
	for (int pid; error == 0 && (pid = ky_proc_next(list)) >= 0;)
		error = ky_pids_add(pids, pid);
	ky_proc_close(list);
	if (pids->count > before)
		qsort(pids->at + before, pids->count - before, sizeof(pid_t), ascending);
	return error;
}

/* A thread that has just ended has none. */
static int children_of_thread(pid_t pid, pid_t tid, struct ky_pids *pids)
{
	char path[PATH_BYTES];
	long child;
	int error = 0;
	make_path(path, pid, tid, "children");
	FILE *const file = fopen(path, "re");
	while (file && error == 0 && fscanf(file, "%ld", &child) == 1)
		error = ky_pids_add(pids, (pid_t)child);
	if (file)
		fclose(file);
	return error;
}

static bool has_children_lists(void)
{
	static int known = -1;
	char path[PATH_BYTES];
	make_path(path, KY_PROC_SELF, getpid(), "children");
	if (known < 0)
		known = access(path, R_OK) == 0;
	return known;
}

int ky_proc_children(pid_t pid, struct ky_pids *pids)
{
	if (!has_children_lists())
		return -ENOTSUP;
	int error = 0;
	DIR *const tasks = ky_proc_tasks(pid);
	if (!tasks)
		return -errno;
	for (int tid; error == 0 && (tid = ky_proc_next(tasks)) >= 0;)
		error = children_of_thread(pid, tid, pids);
	ky_proc_close(tasks);
	return error;
}

uint32_t ky_proc_newest(void)
{
	char text[128];
	if (read_text("/proc/loadavg", text, sizeof(text)) <= 0)
		return 0;
	const char *const last = strrchr(text, ' ');
	return last ? (uint32_t)strtoul(last, NULL, 10) : 0;
}

static int64_t folder_size(pid_t pid)
{
	char path[PATH_BYTES];
	struct stat status;
	make_path(path, pid, 0, "fd");
	return stat(path, &status) == 0 ? (int64_t)status.st_size : -1;
}

/* Since 6.2 the size of the folder is the number of descriptors; before, it was 0. */
int64_t ky_proc_descriptors(pid_t pid)
{
	static int known = -1;
	if (known < 0)
		known = folder_size(KY_PROC_SELF) > 0;
	return known ? folder_size(pid) : -1;
}

/* ---- pidfds ---- */

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

int ky_proc_pidfd(pid_t pid)
{
	const int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	return fd < 0 ? -errno : fd;
}

bool ky_proc_pidfd_ended(int pidfd)
{
	struct pollfd fd = {.fd = pidfd, .events = POLLIN};
	return poll(&fd, 1, 0) > 0;
}

bool ky_proc_pidfd_reaped(int pidfd)
{
	return syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) != 0 && errno == ESRCH;
}

bool ky_proc_pidfd_differs(int pidfd, int other)
{
	struct stat one, two;
	return fstat(pidfd, &one) == 0 && fstat(other, &two) == 0 && one.st_ino != two.st_ino;
}

int ky_proc_pidfd_status(int pidfd, pid_t pid)
{
	struct ky_proc_stat stat;
	if (ky_proc_stat(pid, 0, &stat) == 0 && stat.state == 'Z' && !ky_proc_pidfd_reaped(pidfd))
		return stat.exit_code;
	struct exit_info info = {.mask = EXIT_INFO_KNOWN};
	if (ioctl(pidfd, EXIT_INFO_GET, &info) == 0 && (info.mask & EXIT_INFO_KNOWN))
		return info.exit_code;
	return -1;
}

pid_t ky_proc_next_stop(pid_t tid, bool (*leaves_end)(pid_t tid), int *status)
{
	siginfo_t seen = {0};
	const int all = WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL;
	if (waitid(tid ? P_PID : P_ALL, (id_t)tid, &seen, all) != 0)
		return -1;
	if (seen.si_pid == 0)
		return 0;
	const bool stopped = seen.si_code == CLD_TRAPPED || seen.si_code == CLD_STOPPED;
	const bool looks = stopped && seen.si_status < NSIG;
	*status = looks ? (int)((unsigned)seen.si_status << 8 | 0x7f) : 0; /* as waitpid() has it */
	if (looks || (!stopped && leaves_end && leaves_end(seen.si_pid)))
		return seen.si_pid;
	return waitpid(seen.si_pid, status, __WALL | WNOHANG);
}
