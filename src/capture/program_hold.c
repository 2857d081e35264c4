/* SPDX-License-Identifier: MIT */
/*
 * program_hold.c: see program_hold.h. The breakpoint is an instruction written over the one at the
 * entry point, in the process's own copy of the page, and removed when it was hit. Signals that
 * come on the way are passed on.
 */
#include "capture/program_hold.h"

#include "process/proc.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

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

/*
 * Stop the child: the signal is kept over exec. If it is not held it does not notice, unless it has
 * a handler for this signal.
 */
void ky_program_hold_prepare(void)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGCONT);
}

int ky_program_hold_begin(pid_t pid)
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

/*
 * Wait until it stops with that (signal | event << 8) or after an exec. Return which, or -ECHILD
 * with *status.
 */
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
/* Go back to the breakpoint's address; return false when it is stopped elsewhere. */
static bool go_back(pid_t pid, uint64_t entry)
{
	struct user_regs_struct regs;
	struct iovec all = {&regs, sizeof(regs)};
	if (ptrace(PTRACE_GETREGSET, pid, (void *)(uintptr_t)NT_PRSTATUS, &all) != 0 ||
	    PC(regs) != entry + PC_BEHIND)
		return false;
	PC(regs) = entry;
	return ptrace(PTRACE_SETREGSET, pid, (void *)(uintptr_t)NT_PRSTATUS, &all) == 0;
}

/*
 * Run from exec to the entry point. There may be another exec on the way: constructors of libraries
 * run before the entry point, and some restart the program (sanitizers without the addresses that
 * they want).
 */
static int run_to_entry(pid_t pid, int *status)
{
	const uint64_t entry = ky_proc_aux_value(pid, AT_ENTRY);
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

int ky_program_hold_at_entry(pid_t pid, int *status)
{
	int at = run_to(pid, EXEC_STOP, status);
	while (at == EXEC_STOP)
		at = run_to_entry(pid, status);
	return at;
}

void ky_program_hold_end(pid_t pid)
{
	kill(pid, SIGCONT);
}
