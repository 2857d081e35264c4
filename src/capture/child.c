/* SPDX-License-Identifier: MIT */
/*
 * child.c: see child.h. Between fork and exec the child is a copy of kymo with one
 * thread: it only reads a pipe, changes its own environment and calls exec.
 */
#include "capture/child.h"

#include "base/fail.h"
#include "capture/capture.h"
#include "process/proc.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static int runnable(const char *path)
{
	struct stat status;
	if (stat(path, &status) != 0)
		return -errno;
	if (S_ISDIR(status.st_mode))
		return -EACCES;
	return access(path, X_OK) == 0 ? 0 : -errno;
}

int ky_child_find(const char *word, char *path, size_t room)
{
	const char *at = getenv("PATH");
	int error = -ENOENT;
	if (strchr(word, '/')) {
		snprintf(path, room, "%s", word);
		return runnable(path);
	}
	if (!*word)
		return -ENOENT;
	for (at = at ? at : "/bin:/usr/bin"; at; at = *at ? at + 1 : NULL) {
		const size_t bytes = strcspn(at, ":");
		snprintf(path, room, "%.*s%s%s", (int)bytes, at, bytes ? "/" : "./", word);
		const int found = runnable(path);
		if (found == 0)
			return 0;
		if (found == -EACCES)
			error = found;
		at += bytes;
	}
	return error;
}

/* ---- holding it at its entry point ---- */

/*
 * The breakpoint is an instruction written over the one at the entry point, in the process's own copy of the page, and
 * removed when it was hit. Signals that come on the way are passed on.
 */

#if defined(__x86_64__)
#define TRAP 0xccu
#define TRAP_MASK 0xffu
#define PC(regs) ((regs).rip)
#define PC_BEHIND 1u /* the PC is so far after the breakpoint when it was hit */
#elif defined(__aarch64__)
#define TRAP 0xd4200000u
#define TRAP_MASK 0xffffffffu
#define PC(regs) ((regs).pc)
#define PC_BEHIND 0u
#else
#define TRAP_MASK 0u /* programs cannot be held */
#endif

#define EXEC_STOP (SIGTRAP | PTRACE_EVENT_EXEC << 8)

int ky_child_hold_begin(pid_t pid)
{
	if (!TRAP_MASK)
		return -ENOTSUP;
	return ptrace(PTRACE_SEIZE, pid, NULL, (void *)(uintptr_t)PTRACE_O_TRACEEXEC) == 0 ? 0
											   : -errno;
}

static void detach(pid_t pid, int number)
{
	ptrace(PTRACE_DETACH, pid, NULL, (void *)(uintptr_t)number);
}

/* Wait until it stops with that (signal | event << 8) or after an exec. Return which, or -ECHILD with *status. */
static int run_to(pid_t pid, int stop, int *status)
{
	for (;;) {
		pid_t got;
		do {
			got = waitpid(pid, status, __WALL);
		} while (got < 0 && errno == EINTR);
		if (got < 0)
			*status = -1;
		if (got < 0 || WIFEXITED(*status) || WIFSIGNALED(*status))
			return -ECHILD;
		if (*status >> 8 == stop || *status >> 8 == EXEC_STOP)
			return *status >> 8;
		/* A stop of the whole process comes with an event: do not wait it out. */
		const int passed = *status >> 16 ? 0 : WSTOPSIG(*status);
		ptrace(PTRACE_CONT, pid, NULL, (void *)(uintptr_t)passed);
	}
}

static bool exchange(pid_t pid, uint64_t at, uint64_t word)
{
	return ptrace(PTRACE_POKETEXT, pid, (void *)(uintptr_t)at, (void *)(uintptr_t)word) == 0;
}

#if TRAP_MASK
#if defined(__x86_64__)
/* These have the 64-bit registers of a 32-bit program, too. */
static bool get_registers(pid_t pid, struct user_regs_struct *regs)
{
	return ptrace(PTRACE_GETREGS, pid, NULL, regs) == 0;
}

static bool set_registers(pid_t pid, struct user_regs_struct *regs)
{
	return ptrace(PTRACE_SETREGS, pid, NULL, regs) == 0;
}
#else
static bool get_registers(pid_t pid, struct user_regs_struct *regs)
{
	struct iovec all = {regs, sizeof(*regs)};
	return ptrace(PTRACE_GETREGSET, pid, (void *)(uintptr_t)NT_PRSTATUS, &all) == 0 &&
	       all.iov_len == sizeof(*regs);
}

static bool set_registers(pid_t pid, struct user_regs_struct *regs)
{
	struct iovec all = {regs, sizeof(*regs)};
	return ptrace(PTRACE_SETREGSET, pid, (void *)(uintptr_t)NT_PRSTATUS, &all) == 0;
}
#endif

/* Go back to the breakpoint's address; return false when it is stopped elsewhere. */
static bool go_back(pid_t pid, uint64_t entry)
{
	struct user_regs_struct regs;
	if (!get_registers(pid, &regs) || PC(regs) != entry + PC_BEHIND)
		return false;
	PC(regs) = entry;
	return set_registers(pid, &regs);
}

/*
 * Run from exec to the entry point. There may be another exec on the way: constructors of libraries run before the
 * entry point, and some restart the program (sanitizers without the addresses that they want).
 */
static int run_to_entry(pid_t pid, int *status)
{
	struct user_regs_struct regs;
	/* A program of another kind, whose registers are not these, has another breakpoint. */
	const uint64_t entry = get_registers(pid, &regs) ? ky_proc_aux_value(pid, AT_ENTRY) : 0;
	errno = 0;
	const uint64_t word =
		entry ? (uint64_t)ptrace(PTRACE_PEEKTEXT, pid, (void *)(uintptr_t)entry, NULL) : 0;
	if (!entry || errno || !exchange(pid, entry, (word & ~(uint64_t)TRAP_MASK) | TRAP)) {
		detach(pid, 0);
		return 0;
	}
	ptrace(PTRACE_CONT, pid, NULL, NULL);
	const int at = run_to(pid, SIGTRAP, status);
	if (at != SIGTRAP)
		return at;
	const bool here = go_back(pid, entry);
	exchange(pid, entry, word);
	detach(pid, here ? SIGSTOP : SIGTRAP);
	return here;
}
#else
static int run_to_entry(pid_t pid, int *status)
{
	(void)status;
	detach(pid, 0);
	return 0;
}
#endif

int ky_child_hold_at_entry(pid_t pid, int *status)
{
	int at = run_to(pid, EXEC_STOP, status);
	while (at == EXEC_STOP)
		at = run_to_entry(pid, status);
	return at;
}

void ky_child_hold_end(pid_t pid)
{
	kill(pid, SIGCONT);
}

/* ---- in the child ---- */

static void set_environment(const struct ky_child_options *options)
{
	char number[32];
	if (options->mailbox)
		setenv("KYMO_DRUM_MAIL", options->mailbox, 1);
	if (options->categories)
		setenv("KYMO_CATEGORIES", options->categories, 1);
	/* Keep what the user has set. */
	const bool is_given = options->ring_bytes != 0;
	snprintf(number, sizeof(number), "%" PRIu64,
		 is_given ? options->ring_bytes : KY_CAPTURE_RING_BYTES);
	setenv("KYMO_BUFFER", number, is_given);
	snprintf(number, sizeof(number), "total=%" PRIu64, KY_CAPTURE_TOTAL_BYTES);
	setenv("KYMO_LIMITS", number, 0);
}

static void set_signals(const struct ky_child_options *options)
{
	const struct sigaction usual = {.sa_handler = SIG_DFL};
	sigaction(SIGPIPE, &usual, NULL);
	sigaction(SIGCHLD, options->child_action, NULL);
	sigprocmask(SIG_SETMASK, options->mask, NULL);
}

/*
 * Let the kernel continue the program if kymo dies while it is held: the signal is kept over exec. If it is not held it
 * does not notice, unless it has a handler for this signal.
 */
static void prepare_to_hold(void)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGCONT);
}

static _Noreturn void become_program(const struct ky_child_options *options, int go, int failed)
{
	char word;
	ssize_t got;
	do {
		got = read(go, &word, 1);
	} while (got < 0 && errno == EINTR);
	if (got != 1)
		_exit(127);
	if (options->output != STDOUT_FILENO)
		dup2(options->output, STDOUT_FILENO);
	if (options->tracer)
		prctl(PR_SET_PTRACER, (unsigned long)options->tracer);
	if (options->hold)
		prepare_to_hold();
	set_environment(options);
	set_signals(options);
	execvp(options->command[0], options->command);
	const int error = errno;
	/* If this fails, the exit code says the same. */
	const ssize_t written = write(failed, &error, sizeof(error));
	(void)written;
	_exit(error == ENOENT ? 127 : 126);
}

/* ---- in kymo ---- */

static void close_pipe(int ends[2])
{
	for (int i = 0; i < 2; i++) {
		if (ends[i] >= 0)
			close(ends[i]);
		ends[i] = -1;
	}
}

int ky_child_fork(struct ky_child *child, const struct ky_child_options *options,
		  char message[KY_MESSAGE_BYTES])
{
	int go[2] = {-1, -1}, failed[2] = {-1, -1};
	*child = (struct ky_child){.go = -1, .failed = -1};
	const bool piped = pipe2(go, O_CLOEXEC) == 0 && pipe2(failed, O_CLOEXEC) == 0;
	const pid_t pid = piped ? fork() : -1;
	if (pid < 0) {
		const int error = errno;
		close_pipe(go);
		close_pipe(failed);
		return ky_fail(message, -error, "cannot start a process: %s", strerror(error));
	}
	if (pid == 0) {
		close(go[1]);
		close(failed[0]);
		become_program(options, go[0], failed[1]);
	}
	close(go[0]);
	close(failed[1]);
	*child = (struct ky_child){.pid = pid, .go = go[1], .failed = failed[0], .running = true};
	return 0;
}

static void forget_pipes(struct ky_child *child)
{
	if (child->go >= 0)
		close(child->go);
	if (child->failed >= 0)
		close(child->failed);
	child->go = child->failed = -1;
}

static void wait_for(struct ky_child *child)
{
	int status = 0;
	pid_t pid;
	do {
		pid = waitpid(child->pid, &status, 0);
	} while ((pid < 0 && errno == EINTR) || (pid == child->pid && WIFSTOPPED(status)));
	ky_child_ended(child, pid == child->pid ? status : -1);
}

static void hold_at_entry(struct ky_child *child)
{
	int status;
	const int at = ky_child_hold_at_entry(child->pid, &status);
	child->held = at == 1;
	if (at < 0)
		ky_child_ended(child, status);
}

int ky_child_hold(struct ky_child *child)
{
	const int error = child->traced ? 0 : ky_child_hold_begin(child->pid);
	child->traced = !error;
	return error;
}

int ky_child_exec(struct ky_child *child, const char *word, bool hold,
		  char message[KY_MESSAGE_BYTES])
{
	int error = 0;
	ssize_t got;
	const bool traced = hold && ky_child_hold(child) == 0;
	const ssize_t let = write(child->go, "", 1);
	if (traced && let == 1)
		hold_at_entry(child);
	do {
		got = let == 1 ? read(child->failed, &error, sizeof(error)) : 0;
	} while (got < 0 && errno == EINTR);
	forget_pipes(child);
	if (got == 0)
		return 0;
	if (child->running)
		wait_for(child);
	if (got != sizeof(error) || error <= 0)
		error = EIO;
	return ky_fail(message, -error, "cannot run %s: %s", word, strerror(error));
}

void ky_child_release(struct ky_child *child)
{
	if (child->held)
		ky_child_hold_end(child->pid);
	child->held = false;
}

bool ky_child_reap(struct ky_child *child)
{
	int status;
	if (!child->running)
		return child->pid != 0;
	const pid_t pid = waitpid(child->pid, &status, WNOHANG);
	/* A stop belongs to the tracing of it. */
	if (pid == child->pid && !WIFSTOPPED(status))
		ky_child_ended(child, status);
	else if (pid < 0 && errno == ECHILD)
		ky_child_ended(child, -1);
	return !child->running;
}

void ky_child_ended(struct ky_child *child, int status)
{
	if (!child->running)
		return;
	child->running = false;
	child->status = status;
}

void ky_child_pass(const struct ky_child *child, int number)
{
	if (child->running)
		kill(child->pid, number);
}

void ky_child_end(struct ky_child *child)
{
	ky_child_pass(child, SIGKILL);
	if (child->running)
		wait_for(child);
	child->held = false;
}

void ky_child_close(struct ky_child *child)
{
	const bool waits = child->go >= 0;
	forget_pipes(child);
	if (child->running && waits)
		wait_for(child);
}
