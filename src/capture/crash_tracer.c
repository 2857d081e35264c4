/* SPDX-License-Identifier: MIT */
/*
 * crash_tracer.c: the tracing process of the crash watch: one loop over the socket and the stops of
 * its tracees.
 *
 *   stop                                   response
 *   a signal that is not fatal             PTRACE_CONT with it
 *   a signal that ends the process         report its stack; PTRACE_CONT with it
 *   a fault that its handler takes         PTRACE_CONT with it; look at the thread a moment later
 *   group-stop (SIGSTOP, SIGTSTP ...)      PTRACE_LISTEN: it stays stopped until SIGCONT
 *   new thread, fork, vfork, exec          PTRACE_CONT
 *   any of these, of a process to leave    PTRACE_DETACH, with the signal
 *
 * Of a process it only keeps whether its end is to be reported and whether its crash was; threads
 * need no memory here. The kernel attaches new threads and children, and detaches all when this
 * process ends.
 *
 * A fault that the program handles may be its daily work (virtual machines), or its end: many print a report and then die of the
 * same signal, which may take minutes. A handler that has run for a while, sleeps, or ends the process is the latter, and the
 * crash is the fault: its thread, time and stack. That a handler runs shows by its signal: the kernel blocks it until it returns, or took
 * the handler away (SA_RESETHAND). Of one with SA_NODEFER alone nothing shows; its end is reported.
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STOPS_AT_ONCE 1000 /* before the socket is looked at again */
#define STACK_S 15u        /* crash_stack.c is done by then, unless a file blocks it */
#define OPTIONS                                                                                    \
	(PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC)

/* A handler that has run for so long, or sleeps and is this old, does not come back. */
#define LOOK_MS 2
#define HANDLER_RAN_NS UINT64_C(2000000)
#define HANDLER_SLEEPS_NS UINT64_C(50000000)

/* A fault that the program's own handler took. */
struct caught {
	pid_t tid; /* 0: none */
	int signal;
	bool asked;    /* the thread was asked to stop */
	bool reported; /* as a crash */
	uint64_t address, time_ns;
	uint64_t ran_ns; /* time on a CPU of the thread, then */
	uint64_t pc;
};

struct process {
	pid_t pid;
	bool added;    /* kymo wants to know how it ends */
	bool reported; /* its crash was reported */
	struct caught caught;
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

/* Send a message. One that kymo does not take in time is dropped: the targets must not wait for it. */
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

/* Report whether the program has done something wrong: what others send is not a fault. */
static bool is_fault(int signal)
{
	return has_address(signal) || signal == SIGABRT || signal == SIGSYS;
}

static FILE *open_of_thread(pid_t pid, pid_t tid, const char *name)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	return fopen(path, "re");
}

/* Return the time on a CPU of a thread; 0 where the kernel does not count it. */
static uint64_t time_on_cpu(pid_t pid, pid_t tid)
{
	unsigned long long ran = 0;
	FILE *const file = open_of_thread(pid, tid, "schedstat");
	if (file && fscanf(file, "%llu", &ran) != 1)
		ran = 0;
	if (file)
		fclose(file);
	return ran;
}

/* Return where a stopped thread is, the last number of that file; 0: unknown. */
static uint64_t pc_of(pid_t pid, pid_t tid)
{
	char line[256] = "";
	FILE *const file = open_of_thread(pid, tid, "syscall");
	if (file && !fgets(line, sizeof(line), file))
		line[0] = '\0';
	if (file)
		fclose(file);
	const char *const last = strrchr(line, ' ');
	return last ? strtoull(last, NULL, 16) : 0;
}

/* ---- faults that are handled ---- */

static bool handler_runs(const struct process *process, char *state)
{
	struct ky_proc_status status;
	const struct caught *const caught = &process->caught;
	if (!caught->tid || ky_proc_status(process->pid, caught->tid, &status) != 0)
		return false;
	*state = status.state;
	return (status.blocked | ~status.caught) >> (caught->signal - 1) & 1;
}

/* Cut the frames of the handler, up to the one that the kernel made for it. */
static void cut_handler(char *stack)
{
	static const char *const made[] = {"__restore_rt", "__kernel_rt_sigreturn"};
	for (char *line = stack; *line; line += strspn(line, "\n")) {
		const char *const at = line;
		line += strcspn(line, "\n");
		for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
			if (strncmp(at, made[i], strlen(made[i])) == 0 && *line) {
				memmove(stack, line + 1, strlen(line + 1) + 1);
				return;
			}
	}
}

static void send_crash(struct tracer *t, pid_t pid, pid_t tid, const struct caught *what,
		       enum ky_crash_how how, pid_t stopped)
{
	struct ky_crash_message *m = &t->message;
	*m = (struct ky_crash_message){
		.kind = KY_CRASH_CRASHED,
		.pid = pid,
		.tid = tid,
		.status = what->signal,
		.other = (int32_t)how,
		.address = what->address,
		.time_ns = what->time_ns,
	};
	(void)ky_proc_comm(pid, tid, m->thread, sizeof(m->thread));
	read_stack(t, pid, stopped);
	if (how == KY_CRASH_HANDLED)
		cut_handler(m->stack);
	send_or_drop(t);
}

/* Report the fault, whose handler is still running in the stopped thread. */
static void send_caught(struct tracer *t, struct process *process, pid_t stopped)
{
	if (process->caught.reported)
		return;
	process->caught.reported = process->reported = true;
	send_crash(t, process->pid, process->caught.tid, &process->caught, KY_CRASH_HANDLED,
		   stopped);
}

static struct caught describe(pid_t pid, pid_t tid, int signal, const siginfo_t *info)
{
	return (struct caught){
		.tid = tid,
		.signal = signal,
		.address = info->si_code > 0 && has_address(signal) ? (uintptr_t)info->si_addr : 0,
		.time_ns = ky_os_boottime(),
		.ran_ns = time_on_cpu(pid, tid),
		.pc = pc_of(pid, tid),
	};
}

/* Remember a fault that the program will handle; not one in the handler of another. */
static void note_caught(struct tracer *t, pid_t pid, pid_t tid, int signal, const siginfo_t *info)
{
	char state;
	struct process *const process = make(t, pid);
	if (!process || handler_runs(process, &state))
		return;
	process->caught = describe(pid, tid, signal, info);
	ptrace(PTRACE_SETOPTIONS, tid, NULL, (void *)(uintptr_t)(OPTIONS | PTRACE_O_TRACEEXIT));
}

/* Ask the thread to stop if its handler does not come back; forget it if it did. Report whether to look again soon. */
static bool look_at_handler(struct process *process)
{
	struct caught *const caught = &process->caught;
	const uint64_t ran_ns = time_on_cpu(process->pid, caught->tid) - caught->ran_ns;
	const bool old = ky_os_boottime() - caught->time_ns >= HANDLER_SLEEPS_NS;
	char state = 0;
	if (!handler_runs(process, &state)) {
		/* It may not have run since then: the signal is blocked when the handler begins. */
		if (!state || ran_ns || (old && !caught->ran_ns))
			caught->tid = 0;
		return caught->tid != 0;
	}
	const bool sleeps = state == 'S' || state == 'D' || !caught->ran_ns;
	if (ran_ns >= HANDLER_RAN_NS || (old && sleeps))
		caught->asked = ptrace(PTRACE_INTERRUPT, caught->tid, NULL, NULL) == 0;
	return !caught->asked;
}

static bool look_at_handlers(struct tracer *t)
{
	bool again = false;
	for (uint32_t i = 0; i < t->count; i++) {
		const struct caught *const caught = &t->processes[i].caught;
		if (caught->tid && !caught->reported && !caught->asked)
			again |= look_at_handler(&t->processes[i]);
	}
	return again;
}

static struct process *find_asked(struct tracer *t, pid_t tid)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (t->processes[i].caught.tid == tid)
			return &t->processes[i];
	return NULL;
}

/* The thread of a handled fault stopped, because it was asked to or because it ends. */
static void handler_stopped(struct tracer *t, pid_t tid, bool ends)
{
	char state;
	struct process *const process = find_asked(t, tid);
	if (!process || !(ends || process->caught.asked))
		return;
	if (handler_runs(process, &state))
		send_caught(t, process, tid);
	else
		process->caught.tid = 0;
}

/* ---- stops ---- */

/* Report whether a signal that ends the process is the end of a fault that it handled. */
static bool ends_handling(const struct process *process, pid_t tid)
{
	char state;
	const struct caught *const caught = &process->caught;
	return caught->tid &&
	       (handler_runs(process, &state) ||
		(tid == caught->tid && caught->pc && pc_of(process->pid, tid) == caught->pc));
}

static void take_fatal(struct tracer *t, struct process *process, pid_t tid, int signal,
		       const siginfo_t *info)
{
	if (ends_handling(process, tid)) {
		send_caught(t, process, tid);
		return;
	}
	/* One that handled a fault and went on has crashed now. */
	if (process->reported && !process->caught.reported)
		return;
	const struct caught fatal = describe(process->pid, tid, signal, info);
	send_crash(t, process->pid, tid, &fatal,
		   process->reported ? KY_CRASH_AGAIN : KY_CRASH_FATAL, tid);
	process->reported = true;
	process->caught = (struct caught){0};
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
	if ((status.caught & bit) && is_fault(signal))
		note_caught(t, status.tgid, tid, signal, &info);
	if (((status.ignored | status.caught) & bit) || (first && info.si_code <= 0))
		return PTRACE_CONT;
	struct process *process = make(t, status.tgid);
	if (process)
		take_fatal(t, process, tid, signal, &info);
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
		handler_stopped(t, tid, false);
		ptrace(is_stop(signal) ? PTRACE_LISTEN : PTRACE_CONT, tid, NULL, NULL);
		return;
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		take_new(t, tid);
		break;
	case PTRACE_EVENT_EXIT:
		handler_stopped(t, tid, true);
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
		const pid_t tid = ky_proc_next_stop(0, NULL, &status);
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
		const pid_t got = ky_proc_next_stop(tid, NULL, &status);
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

/* Ask all threads to stop, before the first is waited for. */
static void interrupt_threads(pid_t pid)
{
	DIR *const tasks = ky_proc_tasks(pid);
	for (pid_t tid; (tid = ky_proc_next(tasks)) > 0;)
		(void)ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	ky_proc_close(tasks);
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

/* Release a process, but not its children. Threads that others made in the meantime are found in the next pass. */
static void leave(struct tracer *t, pid_t pid)
{
	const uint64_t until_ns = ky_os_boottime() + KY_CRASH_LEAVE_MS * UINT64_C(1000000);
	int error = 0;
	interrupt_threads(pid);
	while (!error && leave_threads(t, pid, until_ns, &error) != 0)
		;
	struct process *process = find(t, pid);
	/* Of one that handles a fault it is remembered: it comes back, or its thread is gone at the next look. */
	if (process && !error && process->caught.tid)
		process->caught.asked = false;
	else if (process && !error)
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
	for (bool done = true, soon = false; polls[1].fd >= 0;) {
		struct signalfd_siginfo drop;
		(void)poll(polls, 2, !done ? 0 : soon ? LOOK_MS : -1);
		/* Read the signal first, then what it reports: a change in between is seen the next time. */
		while (read(polls[1].fd, &drop, sizeof(drop)) > 0)
			;
		done = take_stops(&tracer);
		soon = look_at_handlers(&tracer);
		if (polls[0].revents && !take_message(&tracer))
			break;
	}
	_exit(0);
}
