/* SPDX-License-Identifier: MIT */
/*
 * remote.c: the process, its memory, and its threads, which are stopped and resumed: see remote.h.
 *
 *   pass   SEIZE, INTERRUPT each thread of /proc/PID/task that is not ours yet; wait for these; until a pass finds none: threads
 *          that are stopped make no new ones
 *   park   a thread may stop for another reason before it sees the interrupt: a signal is given to it and it is interrupted
 *          again, so that it stops at the first instruction of its handler. A group-stop (SIGSTOP) is a stop like any other:
 *          the kernel puts the thread back into it when we let go
 */
#include "functrace/remote.h"
#include "base/file.h"

#include "base/array.h"
#include "base/clock.h"
#include "process/proc.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CODE_SCAN_BYTES 65536u

/* ---- reasons of a refusal ---- */

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
		return "it belongs to another user; run kymo as that user or with sudo";
	if (scope == 2 && geteuid() != 0)
		return "kernel.yama.ptrace_scope is 2: only root may; run kymo with sudo";
	if (scope == 1 && geteuid() != 0)
		return "kernel.yama.ptrace_scope is 1; start it with kymo run, run kymo with sudo, "
		       "or allow it: sudo sysctl kernel.yama.ptrace_scope=0";
	if (geteuid() != 0)
		return "it changed its rights (setuid) or forbids it (PR_SET_DUMPABLE); run kymo "
		       "with sudo";
	return "the kernel forbids it (a container without CAP_SYS_PTRACE?); use --engine sample";
}

void ky_remote_refusal(pid_t pid, int error, char message[KY_MESSAGE_BYTES])
{
	struct ky_proc_status status;
	char name[64];
	if (error == ENOENT || error == ESRCH) {
		snprintf(message, KY_MESSAGE_BYTES,
			 "Cannot trace process %d: it has ended, or is a kernel thread", (int)pid);
		return;
	}
	if (ky_proc_status(pid, 0, &status) != 0)
		status.user = geteuid();
	if (status.tracer) {
		if (ky_proc_comm(status.tracer, 0, name, sizeof(name)) <= 0)
			snprintf(name, sizeof(name), "another program");
		snprintf(message, KY_MESSAGE_BYTES,
			 "Cannot trace process %d: %s (pid %d) traces it already; end that first",
			 (int)pid, name, status.tracer);
		return;
	}
	if (error == EPERM || error == EACCES)
		snprintf(message, KY_MESSAGE_BYTES, "Cannot trace process %d: %s", (int)pid,
			 why_forbidden(status.user));
	else
		snprintf(message, KY_MESSAGE_BYTES, "Cannot trace process %d: %s", (int)pid,
			 strerror(error));
}

/* ---- the process and its memory ---- */

/* Return 0 when its program is for this kind of CPU. */
static int check_class(pid_t pid, char message[KY_MESSAGE_BYTES])
{
	Elf64_Ehdr head;
	const int fd = ky_proc_open(pid, "exe", O_RDONLY);
	if (fd < 0) {
		ky_remote_refusal(pid, -fd, message);
		return fd == -EACCES ? -EPERM : fd;
	}
	const ssize_t got = pread(fd, &head, sizeof(head), 0);
	close(fd);
	if (got == (ssize_t)sizeof(head) && head.e_ident[EI_CLASS] == ELFCLASS64 &&
	    head.e_machine == EM_X86_64)
		return 0;
	return ky_fail(
		message, -ENOEXEC,
		"Cannot patch process %d: it is not a 64-bit x86 program; use --engine sample",
		(int)pid);
}

int ky_remote_open(struct ky_remote *remote, pid_t pid, char message[KY_MESSAGE_BYTES])
{
	*remote = (struct ky_remote){.pid = pid, .memory = -1};
	if (pid <= 0 || pid == getpid())
		return ky_fail(message, -EINVAL, "Cannot patch process %d: %s", (int)pid,
			       pid <= 0 ? "no such process" : "it is kymo itself");
	const int error = check_class(pid, message);
	if (error)
		return error;
	const int memory = ky_proc_open(pid, "mem", O_RDWR);
	if (memory >= 0) {
		remote->memory = memory;
		return 0;
	}
	ky_remote_refusal(pid, -memory, message);
	return memory == -EACCES ? -EPERM : memory;
}

void ky_remote_close(struct ky_remote *remote)
{
	if (remote->stopped)
		ky_remote_go(remote);
	if (remote->memory >= 0)
		close(remote->memory);
	KY_ARRAY_FREE(remote->threads, remote->room);
	*remote = (struct ky_remote){.memory = -1};
}

int ky_remote_read(const struct ky_remote *remote, uint64_t address, void *data, size_t bytes)
{
	const int64_t got = ky_file_pread_all(remote->memory, data, bytes, address);
	/* The rest is missing: the process has ended, or runs another program. */
	return got < 0 ? (int)got : (uint64_t)got == bytes ? 0 : -ESRCH;
}

int ky_remote_write(const struct ky_remote *remote, uint64_t address, const void *data,
		    size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		const ssize_t put = pwrite(remote->memory, (const char *)data + done, bytes - done,
					   (off_t)(address + done));
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put ? -errno : -ESRCH;
		done += (size_t)put;
	}
	return 0;
}

/* ---- stopping and resuming ---- */

#define STOP_TIMEOUT_NS UINT64_C(3000000000)
/*
 * The other threads are stopped while we wait: wait less long for one that waits in the kernel (a disk; vfork, for
 * its child).
 */
#define KERNEL_TIMEOUT_NS UINT64_C(300000000)
#define SPINS 200
#define LATE_MAX 256u
#define THREADS_MAX 65536u
#define SIGNALS_MAX 1000
#define FIRST (-20)

static bool is_event_stop(int status)
{
	return WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_STOP;
}

/* Return the letter of its state in /proc; '?' when it is gone. */
static char thread_state(pid_t pid, pid_t tid)
{
	struct ky_proc_stat stat;
	return ky_proc_stat(pid, tid, &stat) == 0 ? stat.state : '?';
}

static bool has_ended(char state)
{
	return ky_proc_state_ended(state) || state == '?';
}

/* Report whether it is a process, not a mere thread, that kymo has started: its exit code is waited for elsewhere. */
static bool is_child(pid_t pid)
{
	struct ky_proc_stat stat;
	return syscall(SYS_tgkill, pid, pid, 0) == 0 && ky_proc_stat(pid, 0, &stat) == 0 &&
	       stat.parent == getpid();
}

int ky_remote_wait(pid_t tid, uint64_t timeout_ns, int *status)
{
	const uint64_t began = (uint64_t)ky_clock_monotonic();
	/* A call that kymo makes may wait in the kernel for memory: it ends. */
	const bool called = timeout_ns > STOP_TIMEOUT_NS;
	for (uint32_t turn = 0;; turn++) {
		const pid_t got = ky_proc_next_stop(tid, is_child, status);
		if (got == tid)
			return WIFSTOPPED(*status) ? 0 : -ESRCH;
		if (got < 0 && errno != EINTR)
			return -ESRCH;
		if (turn < SPINS) {
			sched_yield();
			continue;
		}
		/* The kernel reports the end of a leader that ended before its threads only when they have ended. */
		const uint64_t waited = (uint64_t)ky_clock_monotonic() - began;
		const char state = turn % 64 == 0 ? thread_state(tid, tid) : 'R';
		if (has_ended(state))
			return -ESRCH;
		if (waited > timeout_ns || (!called && state == 'D' && waited > KERNEL_TIMEOUT_NS))
			return -ETIMEDOUT;
		nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
	}
}

int ky_remote_park(struct ky_remote_thread *thread, int signal)
{
	int status = 0;
	for (int turn = 0; turn < SIGNALS_MAX; turn++) {
		/* Any stop takes back the interrupt that was asked for. */
		if (ptrace(PTRACE_INTERRUPT, thread->tid, 0, 0) ||
		    ptrace(PTRACE_CONT, thread->tid, 0, signal))
			return -errno;
		const int error = ky_remote_wait(thread->tid, STOP_TIMEOUT_NS, &status);
		if (error)
			return error;
		if (is_event_stop(status))
			return ptrace(PTRACE_GETREGS, thread->tid, 0, &thread->registers) ? -errno
											  : 0;
		signal =
			status >> 16 || WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
	}
	return -EBUSY;
}

/* Wait for the first stop of a thread that was seized. Return -ESTALE: it has become another program. */
static int await_first(struct ky_remote_thread *thread)
{
	int status = 0;
	const int error = ky_remote_wait(thread->tid, STOP_TIMEOUT_NS, &status);
	if (error)
		return error;
	if (status >> 16 == PTRACE_EVENT_EXEC)
		return -ESTALE;
	if (!is_event_stop(status))
		return ky_remote_park(thread, WSTOPSIG(status));
	return ptrace(PTRACE_GETREGS, thread->tid, 0, &thread->registers) ? -errno : 0;
}

/* ---- threads that did not stop in time ---- */

/* They are still ours, because only a stopped thread can be let go; each stops once it comes out of the kernel. */
static pid_t late[LATE_MAX];
static uint32_t late_count;

/* Report whether it was among them, and remove it. */
static bool take_late(pid_t tid)
{
	for (uint32_t i = 0; i < late_count; i++) {
		if (late[i] != tid)
			continue;
		late[i] = late[--late_count];
		return true;
	}
	return false;
}

uint32_t ky_remote_release_late(void)
{
	for (uint32_t i = late_count; i-- > 0;) {
		int status = 0;
		const pid_t tid = late[i], got = ky_proc_next_stop(tid, is_child, &status);
		/* Its stop may have been reported to another waiter already. */
		if (got == 0 && ptrace(PTRACE_DETACH, tid, 0, 0))
			continue;
		if (got == tid && WIFSTOPPED(status))
			ptrace(PTRACE_DETACH, tid, 0, status >> 16 ? 0 : WSTOPSIG(status));
		(void)take_late(tid);
	}
	return late_count;
}

/*
 * Report whether a thread is known. /proc lists threads in the same order each time: look for each behind the one
 * before.
 */
static bool is_known(const struct ky_remote *remote, pid_t tid, uint32_t *hint)
{
	for (uint32_t i = 0; i < remote->count; i++) {
		const uint32_t at = (*hint + i) % remote->count;
		if (remote->threads[at].tid == tid) {
			*hint = at + 1;
			return true;
		}
	}
	return false;
}

static int seize(struct ky_remote *remote, pid_t tid)
{
	if (remote->count >= THREADS_MAX)
		return -E2BIG;
	if (!KY_ARRAY_GROW(remote->threads, remote->room, remote->count + 1))
		return -ENOMEM;
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC;
	if (!take_late(tid) && ptrace(PTRACE_SEIZE, tid, 0, options)) {
		const int error = errno;
		return has_ended(thread_state(remote->pid, tid)) ? 0 : -error;
	}
	remote->threads[remote->count++] = (struct ky_remote_thread){.tid = tid};
	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	return 0;
}

/* Seize new threads. Return 0, or -errno of a thread that cannot be traced. */
static int seize_new(struct ky_remote *remote)
{
	int error = 0;
	uint32_t hint = 0;
	const bool first = remote->count == 0;
	DIR *const tasks = ky_proc_tasks(remote->pid);
	if (!tasks)
		return -errno;
	for (pid_t tid; !error && (tid = ky_proc_next(tasks)) > 0;)
		if (first || !is_known(remote, tid, &hint))
			error = seize(remote, tid);
	ky_proc_close(tasks);
	return error;
}

/* Wait for those from `first` on; drop those that have ended. */
static int await_new(struct ky_remote *remote, uint32_t first, pid_t *stuck)
{
	uint32_t kept = first;
	int error = 0;
	for (uint32_t i = first; i < remote->count; i++) {
		const int one = error ? 0 : await_first(&remote->threads[i]);
		if (one == -ESRCH)
			continue;
		if (one && !error) {
			error = one;
			*stuck = remote->threads[i].tid;
		}
		remote->threads[kept++] = remote->threads[i];
	}
	remote->count = kept;
	return error;
}

static int fail(struct ky_remote *remote, int error, pid_t stuck, char message[KY_MESSAGE_BYTES])
{
	const int pid = (int)remote->pid;
	ky_remote_go(remote);
	if (error == -ETIMEDOUT)
		snprintf(message, KY_MESSAGE_BYTES,
			 "Cannot stop thread %d of process %d: it waits in the kernel (state %c); "
			 "try again later",
			 (int)stuck, pid, thread_state(remote->pid, stuck));
	else if (error == -ESTALE)
		snprintf(message, KY_MESSAGE_BYTES,
			 "Process %d executed another program; try again", pid);
	else
		ky_remote_refusal(remote->pid, -error, message);
	return error == -EACCES ? -EPERM : error;
}

/* Raise our priority, where that is allowed, because others wait for us. */
static void hurry(struct ky_remote *remote)
{
	remote->nice = getpriority(PRIO_PROCESS, 0);
	remote->hurries = setpriority(PRIO_PROCESS, 0, FIRST) == 0;
}

static void hurry_no_more(struct ky_remote *remote)
{
	if (remote->hurries)
		setpriority(PRIO_PROCESS, 0, remote->nice);
	remote->hurries = false;
}

int ky_remote_stop(struct ky_remote *remote, char message[KY_MESSAGE_BYTES])
{
	pid_t stuck = 0;
	remote->began_ns = (uint64_t)ky_clock_monotonic();
	remote->count = 0;
	remote->stopped = true;
	hurry(remote);
	for (;;) {
		const uint32_t before = remote->count;
		int error = seize_new(remote);
		const uint32_t seized = remote->count;
		if (!error)
			error = await_new(remote, before, &stuck);
		if (error)
			return fail(remote, error, stuck, message);
		if (seized == before)
			break;
	}
	if (!remote->count)
		return fail(remote, -ESRCH, 0, message);
	remote->sealed = ky_remote_sandboxed(remote->threads[0].tid);
	return 0;
}

int ky_remote_apply(struct ky_remote *remote)
{
	for (uint32_t i = 0; i < remote->count; i++) {
		struct ky_remote_thread *thread = &remote->threads[i];
		/* A thread that was killed in between does not matter. */
		if (thread->changed && ptrace(PTRACE_SETREGS, thread->tid, 0, &thread->registers) &&
		    errno != ESRCH)
			return -errno;
		thread->changed = false;
	}
	return 0;
}

static void let_go(struct ky_remote_thread *thread)
{
	int status;
	if (ptrace(PTRACE_DETACH, thread->tid, 0, 0) == 0 || errno != ESRCH)
		return;
	/* Only a stopped thread can be let go: give one that did not stop in time a last chance. */
	const int error = ky_remote_wait(thread->tid, STOP_TIMEOUT_NS / 30, &status);
	if (error == 0)
		ptrace(PTRACE_DETACH, thread->tid, 0, status >> 16 ? 0 : WSTOPSIG(status));
	else if (error == -ETIMEDOUT && late_count < LATE_MAX)
		late[late_count++] = thread->tid;
}

void ky_remote_go(struct ky_remote *remote)
{
	(void)ky_remote_apply(remote);
	for (uint32_t i = 0; i < remote->count; i++)
		let_go(&remote->threads[i]);
	remote->count = 0;
	remote->stopped = false;
	remote->stopped_ns = (uint64_t)ky_clock_monotonic() - remote->began_ns;
	hurry_no_more(remote);
}
