/* SPDX-License-Identifier: MIT */
/* capturing.c: see capturing.h. */
#include "cli/capturing.h"

#include "capture/signals.h"
#include "process/proc.h"

#include <stdio.h>
#include <sys/stat.h>

static bool is_same_program(pid_t pid)
{
	char path[64];
	struct stat own, other;
	snprintf(path, sizeof(path), "/proc/%ld/exe", (long)pid);
	return stat("/proc/self/exe", &own) == 0 && stat(path, &other) == 0 &&
	       own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

static bool blocks_snapshot(pid_t pid)
{
	struct ky_proc_status status;
	return ky_proc_status(pid, 0, &status) == 0 &&
	       (status.blocked >> (KY_SIGNAL_SNAPSHOT - 1) & 1);
}

bool ky_capturing(pid_t pid)
{
	return is_same_program(pid) && blocks_snapshot(pid);
}
