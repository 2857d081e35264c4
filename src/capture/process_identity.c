/* SPDX-License-Identifier: MIT */
/* process_identity.c: /proc/PID/stat and the namespaces of /proc/self/ns. In doubt a process lives. */
#include "capture/process_identity.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* In /proc/PID/stat, counted from the state, which is the first behind the name. */
#define FIELD_STARTED 19

/* The state's letter, 0 when it cannot be read, and when the process began. */
static char read_stat(const char *path, uint64_t *started_ns)
{
	char line[1024];
	FILE *file = fopen(path, "re");
	const size_t bytes = file ? fread(line, 1, sizeof(line) - 1, file) : 0;
	if (file)
		fclose(file);
	line[bytes] = '\0';
	*started_ns = 0;
	const char *at = strrchr(line, ')'); /* the name may have anything in it */
	if (!at || at[1] != ' ')
		return 0;
	const char state = at[2];
	at += 2;
	for (int i = 0; at && i < FIELD_STARTED; i++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	const long per_s = sysconf(_SC_CLK_TCK);
	if (at && per_s > 0)
		*started_ns = strtoull(at, NULL, 10) * (UINT64_C(1000000000) / (uint64_t)per_s);
	return state;
}

static uint64_t namespace_of(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 ? (uint32_t)status.st_ino : 0;
}

struct ky_recorder_life ky_recorder_life_own(void)
{
	struct ky_recorder_life own = {.pid = (uint32_t)getpid()};
	(void)read_stat("/proc/self/stat", &own.started_ns);
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
	char path[64];
	uint64_t started_ns;
	snprintf(path, sizeof(path), "/proc/%u/stat", life->pid);
	const char state = read_stat(path, &started_ns);
	if (state == 0 || started_ns == 0)
		return false;
	return state == 'Z' || state == 'X' ||
	       (life->started_ns != 0 && life->started_ns != started_ns);
}
