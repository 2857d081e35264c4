/* SPDX-License-Identifier: MIT */
/*
 * kernel_instance.c: an instance of tracefs: a ring buffer and switches of our own, so that the
 * tracing of others is not changed, and removing it leaves nothing.
 *
 *   instances/kymo-PID-START[-N]     START is when that process began, in clock ticks since boot
 *
 * An instance whose process is gone, or whose number belongs to another process by now, was left by
 * a kymo that was killed, and the next kymo removes it. The kernel refuses to remove one that is in
 * use (a file of it is open), so a kymo in another pid namespace, whose number means nothing here,
 * does not lose its own.
 */
#include "capture/kernel_instance.h"

#include "capture/fail.h"
#include "process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <tracefs/tracefs.h>
#include <unistd.h>

#define PLACE "/sys/kernel/tracing"
#define INSTANCES_MAX 64

static const char remedy[] =
	"run as root, or give your group access: sudo mount -o remount,gid=$(id -g),mode=0770 " PLACE;

/*
 * Before 4.1 tracefs was in debugfs, and many still have it there. libtracefs would mount it, which
 * kymo must not.
 */
static const char *find_tracefs(void)
{
	static const char *const places[] = {PLACE, "/sys/kernel/debug/tracing"};
	struct statfs about;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (statfs(places[i], &about) == 0 && about.f_type == TRACEFS_MAGIC)
			return places[i];
	return NULL;
}

int ky_kernel_instance_tracefs(char message[KY_CAPTURE_MESSAGE_BYTES])
{
	const char *place = find_tracefs();
	char path[PATH_MAX];
	tracefs_set_loglevel(TEP_LOG_NONE);
	if (!place)
		return ky_capture_fail(
			message, -ENOENT,
			"tracefs is not mounted; mount it: sudo mount -t tracefs tracefs " PLACE);
	snprintf(path, sizeof(path), "%s/instances", place);
	if (access(path, W_OK | X_OK) != 0) {
		const int error = -errno;
		return ky_capture_fail(message, error, "cannot write to %s: %s; %s", path,
				       strerror(-error), remedy);
	}
	snprintf(path, sizeof(path), "%s", place);
	return tracefs_set_tracing_dir(path) == 0 ? 0 : -ENOMEM;
}

/* Return when the process began, in clock ticks since boot; 0 when it has ended. */
static unsigned long long start_of(pid_t pid)
{
	struct ky_proc_stat stat;
	return ky_proc_stat(pid, 0, &stat) == 0 && !ky_proc_state_ended(stat.state)
		       ? stat.start_ticks
		       : 0;
}

/* Report whether a kymo that has ended made the instance. */
static bool is_left_over(const char *name)
{
	int pid;
	unsigned long long start;
	int used = 0;
	if (sscanf(name, "kymo-%d-%llu%n", &pid, &start, &used) != 2 || pid <= 0 ||
	    (name[used] != '\0' && name[used] != '-'))
		return false;
	return start_of(pid) != start;
}

/* Call each() with the path of every instance; return the sum of its results. */
static uint32_t each_left_over(bool (*each)(const char *path))
{
	char path[PATH_MAX];
	uint32_t sum = 0;
	const char *place = find_tracefs();
	if (!place)
		return 0;
	snprintf(path, sizeof(path), "%s/instances", place);
	DIR *open = opendir(path);
	const struct dirent *entry;
	while (open && (entry = readdir(open)))
		if (is_left_over(entry->d_name) && snprintf(path, sizeof(path), "%s/instances/%s",
							    place, entry->d_name) < PATH_MAX)
			sum += each(path);
	if (open)
		closedir(open);
	return sum;
}

static bool remove_one(const char *path)
{
	return rmdir(path) == 0;
}

static bool count_one(const char *path)
{
	(void)path;
	return true;
}

uint32_t ky_kernel_instance_clean(void)
{
	return each_left_over(remove_one);
}

uint32_t ky_kernel_instance_left_over(void)
{
	return each_left_over(count_one);
}

int ky_kernel_instance_make(struct tracefs_instance **out, char message[KY_CAPTURE_MESSAGE_BYTES])
{
	const unsigned long long start = start_of(getpid());
	struct tracefs_instance *instance = NULL;
	char name[64];
	*out = NULL;
	for (int i = 0; i < INSTANCES_MAX && !*out; i++) {
		int used = snprintf(name, sizeof(name), "kymo-%d-%llu", (int)getpid(), start);
		if (i)
			snprintf(name + used, sizeof(name) - (size_t)used, "-%d", i);
		errno = 0;
		instance = tracefs_instance_create(name);
		/* An instance that exists already belongs to another capture of this process. */
		if (instance && tracefs_instance_is_new(instance))
			*out = instance;
		else if (instance)
			tracefs_instance_free(instance);
		else
			break;
	}
	if (!*out) {
		const int error = errno ? -errno : -EBUSY;
		return ky_capture_fail(message, error,
				       "cannot create tracefs's instances/%s: %s; %s", name,
				       strerror(-error), remedy);
	}
	return ky_kernel_instance_set(*out, "tracing_on", "0", message);
}

void ky_kernel_instance_remove(struct tracefs_instance **instance)
{
	if (!*instance)
		return;
	(void)tracefs_instance_destroy(*instance);
	tracefs_instance_free(*instance);
	*instance = NULL;
}

int ky_kernel_instance_set(struct tracefs_instance *instance, const char *file, const char *value,
			   char message[KY_CAPTURE_MESSAGE_BYTES])
{
	errno = 0;
	if (tracefs_instance_file_write(instance, file, value) >= 0)
		return 0;
	const int error = errno ? -errno : -EIO;
	return ky_capture_fail(message, error, "cannot write \"%s\" to %s: %s%s", value, file,
			       strerror(-error),
			       error == -ENOMEM ? "; use a smaller buffer (--kernel-buffer)" : "");
}

/*
 * ---- the guard ----
 *
 * An instance keeps recording when the process that made it is killed. The guard is a process that waits at a pipe which
 * only kymo can write to; when that ends, it removes the instance.
 *
 *   kymo ── pipe, never written to ──▶ guard: read() ends ─▶ rmdir, until kymo's files are closed
 *
 * It keeps nothing of kymo's open and is in no terminal's session. If it is killed too, the next kymo cleans up.
 */

#define TRIES 1000
#define PAUSE_NS 10000000

static _Noreturn void guard(const int ends[2], const char *path)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	sigset_t all;
	char none;
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setsid();
	(void)prctl(PR_SET_NAME, "kymo-guard");
	close(ends[1]);
	(void)dup2(ends[0], STDIN_FILENO);
	(void)close_range(STDIN_FILENO + 1, ~0U, 0);
	while (read(STDIN_FILENO, &none, 1) < 0 && errno == EINTR)
		;
	for (int i = 0; i < TRIES && rmdir(path) != 0 && errno == EBUSY; i++)
		(void)nanosleep(&pause, NULL);
	_exit(0);
}

void ky_kernel_instance_guard_start(struct ky_kernel_instance_guard *out,
				    struct tracefs_instance *instance)
{
	int ends[2];
	*out = (struct ky_kernel_instance_guard){.fd = -1};
	char *path = tracefs_instance_get_dir(instance);
	if (path && pipe2(ends, O_CLOEXEC) == 0) {
		const pid_t pid = fork();
		if (pid == 0)
			guard(ends, path);
		close(ends[0]);
		if (pid > 0)
			*out = (struct ky_kernel_instance_guard){.pid = pid, .fd = ends[1]};
		else
			close(ends[1]);
	}
	tracefs_put_tracing_file(path);
}

void ky_kernel_instance_guard_end(struct ky_kernel_instance_guard *guard)
{
	if (guard->pid <= 0)
		return;
	close(guard->fd);
	while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*guard = (struct ky_kernel_instance_guard){.fd = -1};
}
