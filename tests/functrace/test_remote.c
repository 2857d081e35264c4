/* SPDX-License-Identifier: MIT */
/* test_remote.c: a process is stopped, makes system calls for us and goes on, and notices nothing. */
#include "functrace/remote.h"

#include "target_run.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define CYCLES 200

static int64_t call(struct ky_remote *remote, long number, uint64_t a, uint64_t b, uint64_t c,
		    uint64_t d, uint64_t e, uint64_t f)
{
	return ky_remote_call(remote, number, (const uint64_t[6]){a, b, c, d, e, f});
}

static uint64_t map_gadget(struct ky_remote *remote)
{
	const int64_t at = call(remote, SYS_mmap, 0, 4096, PROT_READ | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0);
	assert_true(at > 0);
	return (uint64_t)at;
}

static void threads_that_are_stopped_and_let_go_see_nothing_of_it(void **state)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct target target;
	struct ky_remote remote;
	uint64_t gadget = 0;
	(void)state;
	target_start(&target, getenv("KYMO_TARGET_BUSY"), NULL);
	assert_int_equal(ky_remote_open(&remote, target.pid, message), 0);
	for (int cycle = 0; cycle < CYCLES; cycle++) {
		const int error = ky_remote_stop(&remote, message);
		if (error)
			fail_msg("cycle %d: %s", cycle, message);
		assert_true(remote.count >= 10);
		assert_int_equal(call(&remote, SYS_getpid, 0, 0, 0, 0, 0, 0), target.pid);
		if (!gadget) {
			gadget = map_gadget(&remote);
			assert_int_equal(ky_remote_set_gadget(&remote, gadget), 0);
			assert_int_equal(call(&remote, SYS_getpid, 0, 0, 0, 0, 0, 0), target.pid);
		}
		assert_int_equal(call(&remote, SYS_close, 999, 0, 0, 0, 0, 0), -EBADF);
		/* Each of them does it once: those in system calls, too. */
		const struct ky_remote_thread first = remote.threads[0];
		const uint32_t other = (uint32_t)cycle % remote.count;
		remote.threads[0] = remote.threads[other];
		remote.threads[other] = first;
		assert_int_equal(call(&remote, SYS_gettid, 0, 0, 0, 0, 0, 0),
				 remote.threads[0].tid);
		ky_remote_go(&remote);
	}
	ky_remote_close(&remote);
	assert_int_equal(target_end(&target), 0);
}

static void a_process_that_is_stopped_by_a_signal_stays_so(void **state)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct target target;
	struct ky_remote remote;
	siginfo_t info = {0};
	(void)state;
	target_start(&target, getenv("KYMO_TARGET_BUSY"), NULL);
	kill(target.pid, SIGSTOP);
	assert_int_equal(waitid(P_PID, (id_t)target.pid, &info, WSTOPPED), 0);
	assert_int_equal(ky_remote_open(&remote, target.pid, message), 0);
	for (int cycle = 0; cycle < 5; cycle++) {
		if (ky_remote_stop(&remote, message))
			fail_msg("%s", message);
		assert_int_equal(call(&remote, SYS_getpid, 0, 0, 0, 0, 0, 0), target.pid);
		if (!remote.gadget)
			assert_int_equal(ky_remote_set_gadget(&remote, map_gadget(&remote)), 0);
		assert_int_equal(call(&remote, SYS_getpid, 0, 0, 0, 0, 0, 0), target.pid);
		ky_remote_go(&remote);
		while (target_state(target.pid) != 'T')
			usleep(1000);
	}
	ky_remote_close(&remote);
	kill(target.pid, SIGCONT);
	assert_int_equal(target_end(&target), 0);
}

/* If the caller dies in the middle of a call, the thread goes on by itself. */
static void a_call_whose_maker_is_killed_leaves_the_thread_as_it_was(void **state)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct target target;
	struct ky_remote remote;
	(void)state;
	target_start(&target, getenv("KYMO_TARGET_BUSY"), NULL);
	assert_int_equal(ky_remote_open(&remote, target.pid, message), 0);
	assert_int_equal(ky_remote_stop(&remote, message), 0);
	assert_int_equal(ky_remote_set_gadget(&remote, map_gadget(&remote)), 0);
	ky_remote_go(&remote);
	for (int cycle = 0; cycle < 50; cycle++) {
		const pid_t other = fork();
		if (other == 0) {
			while (!ky_remote_stop(&remote, message)) {
				const uint32_t turn = (uint32_t)cycle % remote.count;
				const struct ky_remote_thread first = remote.threads[0];
				remote.threads[0] = remote.threads[turn];
				remote.threads[turn] = first;
				for (int i = 0; i < 20; i++)
					call(&remote, SYS_getppid, 0, 0, 0, 0, 0, 0);
				ky_remote_go(&remote);
			}
			_exit(1);
		}
		usleep((useconds_t)(5000 + cycle * 37));
		kill(other, SIGKILL);
		assert_int_equal(waitpid(other, NULL, 0), other);
	}
	ky_remote_close(&remote);
	assert_int_equal(target_end(&target), 0);
}

static void a_process_that_another_traces_is_refused_with_its_name(void **state)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct target target;
	struct ky_remote remote;
	int pipes[2], done[2];
	char byte;
	(void)state;
	target_start(&target, getenv("KYMO_TARGET_BUSY"), NULL);
	assert_int_equal(pipe(pipes) | pipe(done), 0);
	const pid_t tracer = fork();
	if (tracer == 0) {
		if (ptrace(PTRACE_SEIZE, target.pid, 0, 0))
			_exit(1);
		(void)!write(pipes[1], "k", 1);
		(void)!read(done[0], &byte, 1);
		_exit(0);
	}
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	assert_int_equal(ky_remote_open(&remote, target.pid, message), 0);
	assert_int_equal(ky_remote_stop(&remote, message), -EPERM);
	assert_non_null(strstr(message, "traces it already"));
	assert_int_equal(write(done[1], "k", 1), 1);
	waitpid(tracer, NULL, 0);
	ky_remote_close(&remote);
	for (int i = 0; i < 2; i++) {
		close(pipes[i]);
		close(done[i]);
	}
	assert_int_equal(target_end(&target), 0);
}

static void what_is_no_process_is_said_so(void **state)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_remote remote;
	(void)state;
	const pid_t child = fork();
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	assert_int_equal(ky_remote_open(&remote, child, message), -ESRCH);
	assert_non_null(strstr(message, "has ended"));
	assert_int_equal(ky_remote_open(&remote, getpid(), message), -EINVAL);
}

static void room_is_free_and_within_reach(void **state)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct target target;
	struct ky_remote remote;
	(void)state;
	target_start(&target, getenv("KYMO_TARGET_BUSY"), NULL);
	assert_int_equal(ky_remote_open(&remote, target.pid, message), 0);
	assert_int_equal(ky_remote_stop(&remote, message), 0);
	const uint64_t from = remote.threads[0].registers.rip & ~UINT64_C(0xfff);
	for (uint64_t bytes = 4096; bytes <= 1u << 28; bytes *= 16) {
		const uint64_t at = ky_remote_find_room(&remote, from, from + 4096, bytes);
		assert_true(at != 0);
		assert_true(at > from ? at + bytes - from < INT32_MAX : from - at < INT32_MAX);
		assert_int_equal(
			call(&remote, SYS_mmap, at, bytes, PROT_READ,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE,
			     UINT64_MAX, 0),
			at);
	}
	ky_remote_go(&remote);
	ky_remote_close(&remote);
	assert_int_equal(target_end(&target), 0);
}

/* Start a process that is in vfork() until the pipe has no writer any more; then it ends with a code of its own. */
static pid_t start_in_vfork(int *writer)
{
	int ends[2];
	char byte;
	assert_int_equal(pipe(ends), 0);
	const pid_t pid = fork();
	if (pid == 0) {
		close(ends[1]);
		/* NOLINTBEGIN(clang-analyzer-*): it is what is tested. */
		if (vfork() == 0) {
			(void)!read(ends[0], &byte, 1);
			_exit(0);
		}
		/* NOLINTEND(clang-analyzer-*) */
		_exit(7);
	}
	close(ends[0]);
	*writer = ends[1];
	while (target_state(pid) != 'D')
		usleep(1000);
	return pid;
}

static void a_thread_that_waits_in_the_kernel_is_let_go_when_it_comes_out(void **state)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_remote remote;
	int writer, status = 0;
	(void)state;
	const pid_t pid = start_in_vfork(&writer);
	assert_int_equal(ky_remote_open(&remote, pid, message), 0);
	assert_int_equal(ky_remote_stop(&remote, message), -ETIMEDOUT);
	assert_non_null(strstr(message, "waits in the kernel"));
	assert_int_equal(ky_remote_release_late(), 1);
	/* It is still ours, and can be tried again. */
	assert_int_equal(ky_remote_stop(&remote, message), -ETIMEDOUT);
	close(writer);
	while (ky_remote_release_late())
		usleep(1000);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	ky_remote_close(&remote);
}

static void the_exit_code_of_a_child_is_left_for_who_waits_for_it(void **state)
{
	int ends[2], status = 0;
	char byte;
	(void)state;
	assert_int_equal(pipe(ends), 0);
	const pid_t pid = fork();
	if (pid == 0) {
		close(ends[1]);
		(void)!read(ends[0], &byte, 1);
		_exit(7);
	}
	assert_int_equal(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(ky_remote_wait(pid, UINT64_C(60000000000), &status), -ESRCH);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_that_are_stopped_and_let_go_see_nothing_of_it),
		cmocka_unit_test(a_process_that_is_stopped_by_a_signal_stays_so),
		cmocka_unit_test(a_call_whose_maker_is_killed_leaves_the_thread_as_it_was),
		cmocka_unit_test(a_process_that_another_traces_is_refused_with_its_name),
		cmocka_unit_test(what_is_no_process_is_said_so),
		cmocka_unit_test(room_is_free_and_within_reach),
		cmocka_unit_test(a_thread_that_waits_in_the_kernel_is_let_go_when_it_comes_out),
		cmocka_unit_test(the_exit_code_of_a_child_is_left_for_who_waits_for_it),
	};
	target_skip_without_ptrace();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
