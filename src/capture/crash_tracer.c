/* SPDX-License-Identifier: MIT */
/*
 * crash_tracer.c: the tracing process of the crash watch: one loop over the socket and the stops of
 * its tracees.
 *
 *   stop                                   response
 *   a signal that is not fatal             PTRACE_CONT with it
 *   a signal that ends the process         report its stack; PTRACE_CONT with it
 *   group-stop (SIGSTOP, SIGTSTP ...)      PTRACE_LISTEN: it stays stopped until SIGCONT
 *   new thread, fork, vfork, exec          PTRACE_CONT
 *   any of these, of a process to leave    PTRACE_DETACH, with the signal
 *
 * Of a process it only keeps whether its end is to be reported and whether its crash was; threads
 * need no memory here. The kernel attaches new threads and children, and detaches all when this
 * process ends.
 *
 * A dying program's files may block their reader for ever (a debug file that is a pipe). Then this
 * process reports what it has and ends, which releases all targets.
 */
#include "capture/crash_tracer.h"

#include "base/array.h"
#include "os/os.h"
#include "process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STOPS_AT_ONCE 1000 /* before the socket is looked at again */
/* Time for all threads of a process to stop: one may be waiting for its vfork child. */
#define LEAVE_MS 500u
#define STACK_S 6u /* crash_stack.c is done by then, unless a file blocks it */
#define OPTIONS                                                                                    \
	(PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC)

struct process {
	pid_t pid;
	bool added;    /* kymo wants to know how it ends */
	bool reported; /* its crash was reported */
};

struct tracer {
	int socket;
	struct process *processes;
	uint32_t count;
	uint32_t room;
	struct ky_crash_message message;
};

bool ky_crash_tracer_counts(int signal)
{
	switch (signal) {
	case SIGHUP:
	case SIGINT:
	case SIGTERM:
		return false;
	default:
		return true;
	}
}

static ssize_t send_message(const struct tracer *t)
{
	const size_t bytes = offsetof(struct ky_crash_message, stack) +
			     strnlen(t->message.stack, sizeof(t->message.stack) - 1) + 1;
	return send(t->socket, &t->message, bytes, MSG_NOSIGNAL);
}

/*
 * Send a message. One that kymo does not take in time is dropped: the targets must not wait for it.
 */
static void send_or_drop(const struct tracer *t)
{
	while (send_message(t) < 0 && errno == EINTR)
		;
}

static struct tracer tracer;

static void give_up(int signal)
{
	(void)signal;
	send_message(&tracer);
	_exit(1);
}

/* give_up() runs when this takes too long. */
static void read_stack(struct tracer *t, pid_t pid, pid_t tid)
{
	sigset_t alarms;
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	alarm(STACK_S);
	(void)sigprocmask(SIG_UNBLOCK, &alarms, NULL);
	(void)ky_crash_stack(pid, tid, t->message.stack);
	alarm(0);
	(void)sigprocmask(SIG_BLOCK, &alarms, NULL);
}

static struct process *find(struct tracer *t, pid_t pid)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (t->processes[i].pid == pid)
			return &t->processes[i];
	return NULL;
}

/* Return the process, added if it is new; NULL without memory. */
static struct process *make(struct tracer *t, pid_t pid)
{
	struct process *known = find(t, pid);
	if (known)
		return known;
	struct process *const made = KY_ARRAY_NEW(t->processes, t->count, t->room);
	if (made)
		made->pid = pid;
	return made;
}

/* ---- /proc of a thread ---- */

/* Report whether the signal's default action is to end the process. */
static bool ends_by_default(int signal)
{
	switch (signal) {
	case SIGCHLD:
	case SIGCONT:
	case SIGURG:
	case SIGWINCH:
	case SIGSTOP:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
		return false;
	default:
		return true;
	}
}

static bool has_address(int signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL;
}

/* ---- stops ---- */

static void send_crash(struct tracer *t, pid_t pid, pid_t tid, int signal, const siginfo_t *info)
{
	struct ky_crash_message *m = &t->message;
	*m = (struct ky_crash_message){
		.kind = KY_CRASH_CRASHED,
		.pid = pid,
		.tid = tid,
		.status = signal,
		.time_ns = ky_os_boottime(),
	};
	if (info->si_code > 0 && has_address(signal))
		m->address = (uintptr_t)info->si_addr;
	(void)ky_proc_comm(pid, tid, m->thread, sizeof(m->thread));
	read_stack(t, pid, tid);
	send_or_drop(t);
}

/*
 * Handle a signal that is about to be delivered. Report the stack if it ends the process. Return
 * how the thread continues.
 *
 * The first process of a pid namespace does not die of signals without a handler, except faults,
 * and of these (force_sig() in the kernel) only when it is not traced: it would come back with the
 * same fault for ever. So it is released.
 */
static enum __ptrace_request look_at_signal(struct tracer *t, pid_t tid, int signal)
{
	struct ky_proc_status status;
	siginfo_t info = {0};
	if (!ends_by_default(signal) || !ky_crash_tracer_counts(signal) ||
	    ky_proc_status(tid, 0, &status) != 0)
		return PTRACE_CONT;
	const uint64_t bit = UINT64_C(1) << (signal - 1);
	(void)ptrace(PTRACE_GETSIGINFO, tid, NULL, &info);
	const bool first = status.inner_tgid == 1; /* the init of its pid namespace */
	if (((status.ignored | status.caught) & bit) || (first && info.si_code <= 0))
		return PTRACE_CONT;
	struct process *process = make(t, status.tgid);
	if (process && !process->reported) {
		process->reported = true;
		send_crash(t, status.tgid, tid, signal, &info);
	}
	if (!first)
		return PTRACE_CONT;
	if (process && tid == status.tgid)
		*process = t->processes[--t->count]; /* its end will not be seen */
	return PTRACE_DETACH;
}

static bool is_stop(int signal)
{
	return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

/* Handle a new child or thread, which is traced too. */
static void take_new(struct tracer *t, pid_t parent)
{
	unsigned long number = 0;
	if (ptrace(PTRACE_GETEVENTMSG, parent, NULL, &number) != 0)
		return;
	const pid_t tid = (pid_t)number;
	if (syscall(SYS_tgkill, tid, tid, 0) == 0) /* a process's first thread */
		(void)make(t, tid);
}

static void answer(struct tracer *t, pid_t tid, int status)
{
	const int event = status >> 16;
	const int signal = WSTOPSIG(status);
	switch (event) {
	case 0:
		ptrace(look_at_signal(t, tid, signal), tid, NULL, (void *)(uintptr_t)signal);
		return;
	case PTRACE_EVENT_STOP:
		ptrace(is_stop(signal) ? PTRACE_LISTEN : PTRACE_CONT, tid, NULL, NULL);
		return;
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		take_new(t, tid);
		break;
	default:
		break;
	}
	ptrace(PTRACE_CONT, tid, NULL, NULL);
}

/* Handle the end of a thread, or with the last of its threads of a process. */
static void take_end(struct tracer *t, pid_t tid, int status)
{
	struct process *process = find(t, tid);
	if (!process)
		return;
	const bool wanted = process->added || WIFSIGNALED(status);
	*process = t->processes[--t->count];
	if (!wanted)
		return;
	t->message = (struct ky_crash_message){
		.kind = KY_CRASH_ENDED, .pid = tid, .status = status, .time_ns = ky_os_boottime()};
	send_or_drop(t);
}

/* Return false when there may be more. */
static bool take_stops(struct tracer *t)
{
	for (int i = 0; i < STOPS_AT_ONCE; i++) {
		int status = 0;
		const pid_t tid = waitpid(-1, &status, __WALL | WNOHANG);
		if (tid <= 0)
			return true;
		if (WIFSTOPPED(status))
			answer(t, tid, status);
		else
			take_end(t, tid, status);
	}
	return false;
}

/* ---- processes to trace ---- */

/* Seize the threads that are not traced yet. Return how many; *error is why others could not be. */
static uint32_t seize_threads(pid_t pid, int *error)
{
	uint32_t count = 0;
	DIR *const tasks = ky_proc_tasks(pid);
	*error = tasks ? -ESRCH : -errno;
	for (pid_t tid; (tid = ky_proc_next(tasks)) > 0;) {
		if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)(uintptr_t)OPTIONS) == 0)
			count++;
		else if (errno != ESRCH)
			*error = -errno;
	}
	ky_proc_close(tasks);
	return count;
}

/*
 * Threads that others made in the meantime are found in the next pass; those of a seized thread are
 * traced from the start.
 */
static int seize(pid_t pid, int32_t *other)
{
	int error;
	struct ky_proc_status status;
	uint32_t count = 0, more;
	while ((more = seize_threads(pid, &error)) != 0)
		count += more;
	if (count)
		return 0;
	if (ky_proc_status(pid, 0, &status) != 0 || ky_proc_state_ended(status.state))
		return -ESRCH;
	if (status.tracer == getpid())
		return 0; /* a child of a traced process */
	*other = status.tracer;
	return status.tracer ? -EBUSY : error;
}

static void add(struct tracer *t, pid_t pid)
{
	int32_t other = 0;
	int error = seize(pid, &other);
	struct process *process = error ? NULL : make(t, pid);
	if (process)
		process->added = true;
	else if (error == 0)
		error = -ENOMEM;
	t->message = (struct ky_crash_message){
		.kind = KY_CRASH_ADDED, .pid = pid, .status = error, .other = other};
	send_or_drop(t);
}

/* ---- leaving a process ---- */

/* Release a stopped thread, so that it continues as it would have with us. */
static void let_go(struct tracer *t, pid_t tid, int status)
{
	const int event = status >> 16;
	const int signal = event ? 0 : WSTOPSIG(status);
	if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
	    event == PTRACE_EVENT_CLONE)
		take_new(t, tid);
	if (signal)
		(void)look_at_signal(t, tid, signal);
	ptrace(PTRACE_DETACH, tid, NULL, (void *)(uintptr_t)signal);
}

/* Return false when the thread does not stop in time. */
static bool leave_thread(struct tracer *t, pid_t tid, uint64_t until_ns)
{
	int status;
	for (;;) {
		const pid_t got = waitpid(tid, &status, __WALL | WNOHANG);
		if (got == tid && WIFSTOPPED(status))
			let_go(t, tid, status);
		else if (got == tid)
			take_end(t, tid, status);
		if (got != 0)
			return true;
		if (ky_os_boottime() > until_ns)
			return false;
		(void)poll(NULL, 0, 1);
	}
}

/* Release the threads that are traced. Return how many were. */
static uint32_t leave_threads(struct tracer *t, pid_t pid, uint64_t until_ns, int *error)
{
	uint32_t count = 0;
	DIR *const tasks = ky_proc_tasks(pid);
	for (pid_t tid; !*error && (tid = ky_proc_next(tasks)) > 0;) {
		if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0)
			continue;
		count++;
		if (!leave_thread(t, tid, until_ns))
			*error = -EBUSY;
	}
	ky_proc_close(tasks);
	return count;
}

/*
 * Release a process, but not its children. Threads that others made in the meantime are found in
 * the next pass.
 */
static void leave(struct tracer *t, pid_t pid)
{
	const uint64_t until_ns = ky_os_boottime() + LEAVE_MS * UINT64_C(1000000);
	int error = 0;
	while (!error && leave_threads(t, pid, until_ns, &error) != 0)
		;
	struct process *process = find(t, pid);
	if (process && !error)
		*process = t->processes[--t->count];
	t->message = (struct ky_crash_message){.kind = KY_CRASH_LEFT, .pid = pid, .status = error};
	send_or_drop(t);
}

/* Return false when kymo is gone. */
static bool take_message(struct tracer *t)
{
	struct ky_crash_message message;
	const ssize_t bytes = recv(t->socket, &message, sizeof(message), MSG_DONTWAIT);
	if (bytes < 0)
		return errno == EAGAIN || errno == EINTR;
	const bool whole = bytes >= (ssize_t)offsetof(struct ky_crash_message, stack);
	if (whole && message.kind == KY_CRASH_ADD)
		add(t, message.pid);
	else if (whole && message.kind == KY_CRASH_LEAVE)
		leave(t, message.pid);
	return bytes > 0;
}

/* Keep nothing of kymo's open, and let no key on the terminal reach this process. */
static void leave_kymo(int *socket)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
		(void)dup2(null, fd);
	const int own = fcntl(*socket, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	*socket = dup2(own, STDERR_FILENO + 1);
	(void)close_range(STDERR_FILENO + 2, ~0U, 0);
	(void)setsid();
	(void)prctl(PR_SET_NAME, "kymo-crash");
	(void)unsetenv("DEBUGINFOD_URLS"); /* do not make a dying program wait for the network */
	for (int i = 1; i < NSIG; i++)
		(void)signal(i, SIG_DFL);
}

_Noreturn void ky_crash_tracer(int socket)
{
	const struct timeval patience = {.tv_sec = 1};
	sigset_t all, children;
	sigfillset(&all);
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	leave_kymo(&socket);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)signal(SIGALRM, give_up);
	(void)setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	tracer.socket = socket;
	struct pollfd polls[] = {
		{.fd = socket, .events = POLLIN},
		{.fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK), .events = POLLIN}};
	for (bool done = true; polls[1].fd >= 0;) {
		struct signalfd_siginfo drop;
		(void)poll(polls, 2, done ? -1 : 0);
		/*
		 * Read the signal first, then what it reports: a change in between is seen the next
		 * time.
		 */
		while (read(polls[1].fd, &drop, sizeof(drop)) > 0)
			;
		done = take_stops(&tracer);
		if (polls[0].revents && !take_message(&tracer))
			break;
	}
	_exit(0);
}
