/* SPDX-License-Identifier: MIT */
/*
 * remote_refusal.c: why the kernel does not let us trace a process, in words, with what to do about it. The kernel says only
 * EPERM: what it looked at is looked at again, in its order.
 */
#include "functrace/remote.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct status {
	int tracer;
	unsigned user;
};

static void read_status(pid_t pid, struct status *status)
{
	char line[256];
	snprintf(line, sizeof(line), "/proc/%d/status", (int)pid);
	*status = (struct status){.user = geteuid()};
	FILE *file = fopen(line, "re");
	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "TracerPid: %d", &status->tracer) != 1)
			(void)!sscanf(line, "Uid: %u", &status->user);
	}
	fclose(file);
}

static int seccomp_of(const char *who, int *filters)
{
	char line[256];
	int mode = 0;
	snprintf(line, sizeof(line), "/proc/%s/status", who);
	*filters = 0;
	FILE *file = fopen(line, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Seccomp: %d", &mode) != 1)
			(void)!sscanf(line, "Seccomp_filters: %d", filters);
	if (file)
		fclose(file);
	return mode;
}

bool ky_remote_sandboxed(pid_t tid)
{
	char who[24];
	int theirs, ours;
	snprintf(who, sizeof(who), "%d", (int)tid);
	const int mode = seccomp_of(who, &theirs);
	seccomp_of("self", &ours);
	return mode == 1 || (mode == 2 && (theirs == 0 || theirs > ours));
}

static int read_yama(void)
{
	int scope = 0;
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	if (!file)
		return 0;
	if (fscanf(file, "%d", &scope) != 1)
		scope = 0;
	fclose(file);
	return scope;
}

static void read_name(int pid, char *name, size_t room)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	snprintf(name, room, "another program");
	FILE *file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(name, (int)room, file))
		name[strcspn(name, "\n")] = '\0';
	fclose(file);
}

static const char *why_forbidden(unsigned user)
{
	const int scope = read_yama();
	if (scope >= 3)
		return "kernel.yama.ptrace_scope is 3, which forbids it until the next boot; use "
		       "--engine sample";
	if (geteuid() != 0 && user != geteuid())
		return "it is another user's; run kymo as that user or with sudo";
	if (scope == 2 && geteuid() != 0)
		return "kernel.yama.ptrace_scope is 2: only root may; run kymo with sudo";
	if (scope == 1 && geteuid() != 0)
		return "kernel.yama.ptrace_scope is 1; start it with kymo run, run kymo with sudo, "
		       "or "
		       "allow it: sudo sysctl kernel.yama.ptrace_scope=0";
	if (geteuid() != 0)
		return "it changed its rights (setuid) or forbids it (PR_SET_DUMPABLE); run kymo "
		       "with sudo";
	return "the kernel forbids it (a container without CAP_SYS_PTRACE?); use --engine sample";
}

void ky_remote_refusal(pid_t pid, int error, char message[KY_FUNCTRACE_MESSAGE_BYTES])
{
	struct status status;
	char name[64];
	if (error == ENOENT || error == ESRCH) {
		snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES,
			 "Cannot trace process %d: it has ended, or is a part of the kernel",
			 (int)pid);
		return;
	}
	read_status(pid, &status);
	if (status.tracer) {
		read_name(status.tracer, name, sizeof(name));
		snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES,
			 "Cannot trace process %d: %s (pid %d) traces it already; end that first",
			 (int)pid, name, status.tracer);
		return;
	}
	if (error == EPERM || error == EACCES)
		snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES, "Cannot trace process %d: %s",
			 (int)pid, why_forbidden(status.user));
	else
		snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES, "Cannot trace process %d: %s",
			 (int)pid, strerror(error));
}
