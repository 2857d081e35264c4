/* SPDX-License-Identifier: MIT */
/* process_identity.c: /proc/PID/stat and the namespaces of /proc/self/ns. In doubt a process lives. */
#include "capture/process_identity.h"

#include "process/proc.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t namespace_of(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 ? (uint32_t)status.st_ino : 0;
}

struct ky_recorder_life ky_recorder_life_own(void)
{
	struct ky_recorder_life own = {.pid = (uint32_t)getpid()};
	struct ky_proc_stat stat;
	if (ky_proc_stat(KY_PROC_SELF, 0, &stat) == 0)
		own.started_ns = stat.started_ns;
	const uint64_t pids = namespace_of("/proc/self/ns/pid");
	/* Kernels before 5.6 have none for time: then all are in the same one. */
	own.namespaces = pids ? pids | namespace_of("/proc/self/ns/time") << 32 : 0;
	return own;
}

bool ky_recorder_life_is_over(const struct ky_recorder_life *life,
			      const struct ky_recorder_life *own)
{
	if (life->namespaces == 0 || life->namespaces != own->namespaces || life->pid == 0 ||
	    life->pid > INT32_MAX)
		return false;
	/* Not /proc, where other users' processes may be hidden. */
	if (kill((pid_t)life->pid, 0) != 0)
		return errno == ESRCH;
	struct ky_proc_stat stat;
	if (ky_proc_stat((pid_t)life->pid, 0, &stat) != 0 || stat.started_ns == 0)
		return false;
	return ky_proc_state_ended(stat.state) ||
	       (life->started_ns != 0 && life->started_ns != stat.started_ns);
}
