/* SPDX-License-Identifier: MIT */
/*
 * test_patch_kills.c: kymo may be killed between any two of its calls that change a process, which goes on unharmed.
 *
 * This program traces a kymo that patches a target and restores it, and kills it (SIGKILL) when its first, second ... such
 * call returns, until one comes to its end.
 */
#include "functrace/patch.h"

#include "target_run.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ALL_UNTIL 70
#define ONE_OF 23
#define CALLS_MAX 10000
#define PATIENCE_MS 60000

/* Patch and restore, once. */
static void be_kymo(pid_t pid)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_selection *selection = NULL;
	struct ky_patch *patch = NULL;
	int error = ky_selection_parse(&selection, "module:counter*", 0, message);
	const struct ky_functrace_options options = {
		.selection = selection, .ring_bytes = 1u << 20, .total_bytes = 8u << 20};
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	if (!error)
		error = ky_patch_open(&patch, pid, &options, message);
	if (error)
		fprintf(stderr, "%s\n", message);
	else
		ky_patch_close(&patch, false, NULL);
	_exit(error ? 1 : 0);
}

/* Report whether a stopped kymo comes back from a call that changes the process, or that has seen a stop of a thread. */
static bool has_changed(pid_t kymo, int status)
{
	struct user_regs_struct registers;
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != (SIGTRAP | 0x80) ||
	    ptrace(PTRACE_GETREGS, kymo, 0, &registers))
		return false;
	/* At its entry, the call has no result yet. */
	if ((int64_t)registers.rax == -ENOSYS)
		return false;
	/* The third argument is a siginfo_t, which has a signal when there was something to wait for. */
	if (registers.orig_rax == SYS_waitid)
		return (int)ptrace(PTRACE_PEEKDATA, kymo, registers.rdx, 0) == SIGCHLD;
	return registers.orig_rax == SYS_ptrace || registers.orig_rax == SYS_pwrite64;
}

/* Kill a kymo when so many calls have returned. Report whether it came to its end before that. */
static bool kill_after(pid_t pid, int calls)
{
	int status = 0;
	const pid_t kymo = fork();
	if (kymo == 0)
		be_kymo(pid);
	assert_int_equal(waitpid(kymo, &status, 0), kymo);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, kymo, 0, PTRACE_O_TRACESYSGOOD), 0);
	for (int made = 0; made < calls;) {
		const int signal = WSTOPSIG(status) & 0x80 || WSTOPSIG(status) == SIGSTOP
					   ? 0
					   : WSTOPSIG(status);
		assert_int_equal(ptrace(PTRACE_SYSCALL, kymo, 0, signal), 0);
		assert_int_equal(waitpid(kymo, &status, 0), kymo);
		/* On a busy machine a call may take too long: then kymo gives up, and the target goes on, too. */
		if (!WIFSTOPPED(status))
			return status == 0;
		made += has_changed(kymo, status);
	}
	kill(kymo, SIGKILL);
	while (waitpid(kymo, &status, 0) == kymo && !WIFSIGNALED(status))
		;
	return false;
}

/* Report whether no thread has blocked a signal: the target never does. */
static bool takes_signals(pid_t pid)
{
	char path[300], line[256];
	bool all = true;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *tasks = opendir(path);
	for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
		snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)pid, entry->d_name);
		FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "re");
		while (file && fgets(line, sizeof(line), file))
			all &= strncmp(line, "SigBlk:", 7) != 0 ||
			       strtoull(line + 7, NULL, 16) == 0;
		if (file)
			fclose(file);
	}
	if (tasks)
		closedir(tasks);
	return all;
}

/* Kill a kymo after so many calls; then undo what it left. Report whether there were fewer calls. */
static bool survives(const char *path, int calls)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct target target;
	target_start(&target, path, "-");
	const bool fewer = kill_after(target.pid, calls);
	const int undone = ky_patch_recover(target.pid, message);
	/* A thread that was about to make a call goes on first. */
	bool takes = takes_signals(target.pid);
	for (int i = 0; !takes && i < PATIENCE_MS; i++) {
		usleep(1000);
		takes = takes_signals(target.pid);
	}
	const int code = target_end(&target);
	if (undone < 0 || !takes || code)
		fail_msg("killed after %d calls: recovered %d (%s); signals are %s; exit code %d",
			 calls, undone, message, takes ? "taken" : "blocked", code);
	return fewer;
}

/* All calls of the first stop, and some of the others; with an argument, all. */
static void kymo_may_be_killed_at_any_call(void **state)
{
	const char *const target = getenv("KYMO_TARGET_COUNTER");
	int calls = 1;
	while (calls < CALLS_MAX && !survives(target, calls))
		calls += *state || calls < ALL_UNTIL ? 1 : ONE_OF;
	assert_in_range(calls, ALL_UNTIL, CALLS_MAX - 1);
}

int main(int count, char **arguments)
{
	(void)arguments;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(kymo_may_be_killed_at_any_call,
					  count > 1 ? arguments : NULL),
	};
	target_skip_without_ptrace();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
