/* SPDX-License-Identifier: MIT */
/*
 * remote_refusal.c: why the kernel does not let us trace a process, in words, with what to do about it. The kernel says only
 * EPERM: what it looked at is looked at again, in its order.
 */
#include "functrace/remote.h"
#include "process/proc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool ky_remote_sandboxed(pid_t tid)
{
	struct ky_proc_status theirs, ours;
	(void)ky_proc_status(tid, 0, &theirs);
	(void)ky_proc_status(KY_PROC_SELF, 0, &ours);
	return theirs.seccomp == 1 ||
	       (theirs.seccomp == 2 &&
		(theirs.seccomp_filters == 0 || theirs.seccomp_filters > ours.seccomp_filters));
}

static int read_yama(void)
{
	const int scope = ky_proc_setting("/proc/sys/kernel/yama/ptrace_scope");
	return scope == INT32_MAX ? 0 : scope;
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
	struct ky_proc_status status;
	char name[64];
	if (error == ENOENT || error == ESRCH) {
		snprintf(message, KY_FUNCTRACE_MESSAGE_BYTES,
			 "Cannot trace process %d: it has ended, or is a part of the kernel",
			 (int)pid);
		return;
	}
	if (ky_proc_status(pid, 0, &status) != 0)
		status.user = geteuid();
	if (status.tracer) {
		if (ky_proc_comm(status.tracer, 0, name, sizeof(name)) <= 0)
			snprintf(name, sizeof(name), "another program");
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
