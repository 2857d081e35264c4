/* SPDX-License-Identifier: MIT */
/*
 * drum_find.c: see drum_find.h. The name of a descriptor is the other process's claim, and may change before it is opened:
 * so it is first taken without opening it (O_PATH), since opening a device or a pipe has effects. Opening has the rights of
 * the one who looks: a file to which the process cannot write is another's, and it is neither read as the process's nor written to.
 */
#include "process/drum_find.h"

#include "core/clock.h"
#include "core/layout.h"
#include "os/os.h"
#include "os/ticks.h"
#include "process/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

bool ky_drum_find_names(const char *link)
{
	static const char memfd[] = "/memfd:" KY_DRUM_NAME;
	static const char deleted[] = " (deleted)";
	if (strncmp(link, memfd, sizeof(memfd) - 1) == 0) {
		const char *rest = link + sizeof(memfd) - 1;
		return *rest == '\0' || strcmp(rest, deleted) == 0;
	}
	const char *base = strrchr(link, '/');
	if (!base || strncmp(base, "/kymo-", 6) != 0 || !isdigit((unsigned char)base[6]))
		return false;
	for (base += 6; isdigit((unsigned char)*base); base++)
		;
	return strcmp(base, ".drum") == 0 || strcmp(base, ".drum (deleted)") == 0;
}

static bool link_names_drum(int folder, const char *number)
{
	char link[4096];
	const ssize_t n = readlinkat(folder, number, link, sizeof(link) - 1);
	if (n <= 0)
		return false;
	link[n] = '\0';
	return ky_drum_find_names(link);
}

bool ky_drum_find_is_local(int fd)
{
	struct statfs status;
	return fstatfs(fd, &status) == 0 && status.f_type != FUSE_SUPER_MAGIC &&
	       status.f_type != HUGETLBFS_MAGIC;
}

/* Return the number after a key at the beginning of a line; ULONG_MAX: there is none. */
static unsigned long number_after(const char *text, const char *key, int base)
{
	const char *const at = strstr(text, key);
	return at ? strtoul(at + strlen(key), NULL, base) : ULONG_MAX;
}

/*
 * Report whether the process may write through its descriptor, which was opened as `held`. The descriptor may have
 * become another since: the file must be the same. Kernels before 5.14 do not name it.
 */
static bool is_writable_there(int folder, const char *number, const struct stat *held)
{
	char path[32], text[512];
	snprintf(path, sizeof(path), "../fdinfo/%s", number);
	const int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	const ssize_t bytes = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (bytes <= 0)
		return false;
	text[bytes] = '\0';
	const unsigned long flags = number_after(text, "flags:", 8);
	const unsigned long inode = number_after(text, "\nino:", 10);
	return flags != ULONG_MAX && (flags & O_ACCMODE) == O_RDWR &&
	       (inode == ULONG_MAX || inode == held->st_ino);
}

int ky_drum_find_open(int folder, const char *number, bool writable)
{
	const int held = openat(folder, number, O_PATH | O_CLOEXEC);
	struct stat status;
	char path[64];
	if (held < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", held);
	int fd = -EINVAL;
	if (fstat(held, &status) == 0 && S_ISREG(status.st_mode) && ky_drum_find_is_local(held) &&
	    is_writable_there(folder, number, &status)) {
		fd = writable ? open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK) : -1;
		if (fd < 0)
			fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		fd = fd < 0 ? -errno : fd;
	}
	close(held);
	return fd;
}

/* An incomplete drum has no magic yet: it is found later. */
static bool read_head(int fd, uint32_t *pid)
{
	struct ky_drum_header head;
	const size_t bytes = offsetof(struct ky_drum_header, made_boottime_ns);
	if (pread(fd, &head, bytes, 0) != (ssize_t)bytes || head.magic != KY_DRUM_MAGIC)
		return false;
	*pid = head.pid;
	return true;
}

bool ky_drum_find_check(int fd)
{
	char path[64];
	struct stat status;
	uint32_t pid;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	       link_names_drum(AT_FDCWD, path) && read_head(fd, &pid);
}

/*
 * A process may have a million descriptors, all with the name of a drum; most are listed in order of their numbers, and
 * drums are made early. A drum of a process that it comes from is an open descriptor, too, as long as it runs no other program.
 */
#define DESCRIPTORS_MAX 65536
#define OTHERS_MAX 64

struct search {
	pid_t pid;
	int others;   /* descriptors with the name of a drum that are no drum of the process */
	uint32_t own; /* its pid in its own namespace; 0: not asked yet */
	ky_drum_find_fn visit;
	void *context;
	bool stop;
	int found;
};

static void visit_entry(struct search *search, int folder, int descriptor)
{
	char number[16];
	snprintf(number, sizeof(number), "%d", descriptor);
	if (!link_names_drum(folder, number))
		return;
	const int fd = ky_drum_find_open(folder, number, true);
	uint32_t maker = 0;
	search->stop = ++search->others > OTHERS_MAX;
	if (fd < 0)
		return;
	if (search->own == 0)
		search->own = (uint32_t)ky_proc_inner_pid(search->pid);
	if (read_head(fd, &maker) && maker == search->own) {
		search->found++;
		search->others--;
		search->stop = search->visit(search->context, fd) != 0;
	}
	close(fd);
}

/* Return how many descriptors there are; -errno when they may not be listed. */
static int search_list(struct search *search, pid_t tid)
{
	DIR *const list = ky_proc_fds(search->pid, tid);
	if (!list)
		return -errno;
	int count = 0;
	for (int fd; !search->stop && count < DESCRIPTORS_MAX && (fd = ky_proc_next(list)) >= 0;
	     count++)
		visit_entry(search, dirfd(list), fd);
	ky_proc_close(list);
	return count;
}

/* The main thread ended and others go on: the process's descriptors are only listed with those. */
static void search_threads(struct search *search)
{
	DIR *const tasks = ky_proc_tasks(search->pid);
	int count = 0;
	for (pid_t tid; count <= 0 && (tid = ky_proc_next(tasks)) > 0;)
		if (tid != search->pid)
			count = search_list(search, tid);
	ky_proc_close(tasks);
}

int ky_drum_find(pid_t pid, ky_drum_find_fn visit, void *context)
{
	struct search search = {.pid = pid, .visit = visit, .context = context};
	const int count = search_list(&search, 0);
	if (count == 0)
		search_threads(&search);
	return count < 0 ? count : search.found;
}

/* ---- the counter: clock readings as a process takes them for its own drum ---- */

/* Two readings of one boot agree on the wall-clock time of that boot up to this, since time is adjusted. */
#define SAME_BOOT_NS UINT64_C(5000000000)

static struct ky_drum drum_here(uint32_t tick_source)
{
	return (struct ky_drum){.ticks_inline = tick_source != KY_TICKS_MONOTONIC};
}

bool ky_tick_source_is_here(uint32_t tick_source)
{
	return tick_source == KY_TICKS_MONOTONIC ||
	       (tick_source != KY_TICKS_NONE && (int)tick_source == ky_cpu_tick_source());
}

uint64_t ky_tick_source_ticks(uint32_t tick_source)
{
	const struct ky_drum here = drum_here(tick_source);
	return ky_drum_ticks(&here);
}

struct ky_tick_reading ky_tick_source_now(uint32_t tick_source)
{
	const struct ky_drum here = drum_here(tick_source);
	const struct ky_drum_reading now = ky_clock_read(&here);
	return (struct ky_tick_reading){now.ticks, now.boottime_ns, now.monotonic_ns,
					now.realtime_ns};
}

bool ky_tick_source_same_boot(const struct ky_tick_reading *then, const struct ky_tick_reading *now)
{
	const uint64_t apart = (now->realtime_ns - now->boottime_ns) -
			       (then->realtime_ns - then->boottime_ns) + SAME_BOOT_NS;
	return now->ticks > then->ticks && now->boottime_ns > then->boottime_ns &&
	       apart < 2 * SAME_BOOT_NS;
}
