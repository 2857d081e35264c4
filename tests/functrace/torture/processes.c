/* SPDX-License-Identifier: MIT */
/*
 * processes.c: programs that become two, or another: fork in many ways, vfork, posix_spawn, system, exec of the same program;
 * children that may not read the CPU's counter any more.
 */
#include "torture.h"

#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

static NOINLINE uint64_t work(uint64_t value, int depth)
{
	if (depth > 0)
		value = work(value, depth - 1);
	KEEP(value);
	return mix(value, (uint64_t)depth);
}

static uint64_t ended(pid_t pid)
{
	int status = 0;
	must(pid > 0, "a child");
	must(waitpid(pid, &status, 0) == pid, "waitpid");
	return (uint64_t)status;
}

/* The child returns through the frames of its parent before it ends. */
static NOINLINE pid_t fork_deep(int depth)
{
	pid_t pid = depth == 0 ? fork() : fork_deep(depth - 1);
	KEEP(pid);
	return pid;
}

static uint64_t forks(void)
{
	uint64_t digest = 0;
	for (unsigned i = 0; i < 50 * torture_scale; i++) {
		const pid_t pid = fork_deep((int)i % 20);
		if (pid == 0)
			_exit((int)(work(i, 20) & 63));
		digest = mix(digest, ended(pid));
	}
	return digest;
}

static uint64_t forks_of_forks(void)
{
	uint64_t digest = 0;
	for (unsigned i = 0; i < 10 * torture_scale; i++) {
		const pid_t pid = fork_deep(3);
		if (pid == 0) {
			const pid_t inner = fork_deep(5);
			if (inner == 0)
				_exit((int)(work(i, 9) & 63));
			_exit((int)(ended(inner) >> 8 & 63));
		}
		digest = mix(digest, ended(pid));
	}
	return digest;
}

static void *works(void *arg)
{
	uint64_t *const value = arg;
	for (int i = 0; i < 200; i++)
		*value = work(*value, 10);
	return arg;
}

/* From one of many threads; the child makes threads of its own. */
static void *forks_in_thread(void *arg)
{
	uint64_t *const digest = arg;
	for (int i = 0; i < 10; i++) {
		const pid_t pid = fork_deep(4);
		if (pid == 0) {
			pthread_t thread;
			uint64_t value = (uint64_t)i;
			if (pthread_create(&thread, NULL, works, &value) ||
			    pthread_join(thread, NULL))
				_exit(64);
			_exit((int)(value & 63));
		}
		*digest = mix(*digest, ended(pid));
	}
	return arg;
}

static uint64_t forks_with_threads(void)
{
	pthread_t threads[6];
	uint64_t values[6] = {1, 2, 3, 4, 5, 6}, digest = 0;
	for (int i = 0; i < 6; i++)
		must(pthread_create(&threads[i], NULL, i % 2 ? works : forks_in_thread,
				    &values[i]) == 0,
		     "a thread");
	for (int i = 0; i < 6; i++) {
		pthread_join(threads[i], NULL);
		digest = mix(digest, values[i]);
	}
	return digest;
}

/* The last three are strict sandboxes: only read, write and exit are left. */
static NOINLINE long refuse_counter(unsigned how)
{
	switch (how) {
	case 0:
		return prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	case 1:
		return syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV);
	case 2:
		return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	case 3:
		return syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	default:
		return syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL);
	}
}

static NOINLINE pid_t fork_without_counter(int depth, unsigned how)
{
	pid_t pid = depth == 0 ? fork() : fork_without_counter(depth - 1, how);
	if (depth == 2 && pid == 0 && refuse_counter(how))
		_exit(64);
	KEEP(pid);
	return pid;
}

static uint64_t ended_well(pid_t pid)
{
	const uint64_t status = ended(pid);
	must(WIFEXITED((int)status) && WEXITSTATUS((int)status) < 64,
	     "a child without the counter");
	return status;
}

static uint64_t forks_without_counter(void)
{
	uint64_t digest = 0;
	for (unsigned i = 0; i < 20 * torture_scale; i++) {
		const pid_t pid = fork_without_counter(2 + (int)i % 9, i % 5);
		if (pid == 0)
			for (const uint64_t end = work(i, 20) & 63;;)
				syscall(SYS_exit, end);
		digest = mix(digest, ended_well(pid));
	}
	return digest;
}

/* Some threads may, others may no longer, and those that these make neither. */
static void *works_without_counter(void *arg)
{
	pthread_t thread;
	if (refuse_counter(0) || !works(arg) || pthread_create(&thread, NULL, works, arg) ||
	    pthread_join(thread, NULL))
		_exit(64);
	return arg;
}

static uint64_t threads_without_counter(void)
{
	uint64_t digest = 0;
	for (unsigned i = 0; i < 10 * torture_scale; i++) {
		const pid_t pid = fork_deep(3);
		if (pid == 0) {
			pthread_t threads[6];
			uint64_t values[6] = {i, 1, 2, 3, 4, 5}, sum = 0;
			for (int j = 0; j < 6; j++)
				if (pthread_create(&threads[j], NULL,
						   j % 2 ? works : works_without_counter,
						   &values[j]))
					_exit(64);
			for (int j = 0; j < 6; j++) {
				pthread_join(threads[j], NULL);
				sum = mix(sum, values[j]);
			}
			_exit((int)(sum & 63));
		}
		digest = mix(digest, ended_well(pid));
	}
	return digest;
}

static char *const true_words[] = {(char *)"true", NULL};

static NOINLINE pid_t start_by_vfork(int depth)
{
	if (depth > 0) {
		pid_t pid = start_by_vfork(depth - 1);
		KEEP(pid);
		return pid;
	}
	const pid_t pid = vfork();
	if (pid == 0) {
		execve("/bin/true", true_words, environ);
		_exit(9);
	}
	return pid;
}

static uint64_t vforks(void)
{
	uint64_t digest = 0;
	for (unsigned i = 0; i < 30 * torture_scale; i++) {
		digest = mix(digest, ended(start_by_vfork((int)i % 5)));
		digest = work(digest, 5);
	}
	return digest;
}

static uint64_t spawns(void)
{
	uint64_t digest = 0;
	for (unsigned i = 0; i < 20 * torture_scale; i++) {
		pid_t pid = 0;
		must(posix_spawn(&pid, "/bin/true", NULL, NULL, true_words, environ) == 0,
		     "posix_spawn");
		digest = mix(digest, ended(pid));
		digest = mix(digest, (uint64_t)system("exit 5"));
		FILE *const pipe = popen("echo 42", "r");
		int number = 0;
		must(pipe && fscanf(pipe, "%d", &number) == 1 && number == 42, "popen");
		digest = mix(digest, (uint64_t)pclose(pipe));
	}
	return digest;
}

/* Shares the memory, with a stack of its own, as some runtimes start programs. */
static int shares_memory(void *arg)
{
	*(uint64_t *)arg = work(*(uint64_t *)arg, 15);
	return 11;
}

static uint64_t clones(void)
{
	uint64_t digest = 0;
	char *const stack =
		mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(stack != MAP_FAILED, "a stack");
	for (uint64_t i = 0; i < 50; i++) {
		uint64_t value = i;
		const pid_t pid = clone(shares_memory, stack + 65536,
					CLONE_VM | CLONE_VFORK | SIGCHLD, &value);
		digest = mix(mix(digest, ended(pid)), value);
	}
	munmap(stack, 65536);
	return digest;
}

/* Execute itself, some times in a row, and then end; in a child, so that it goes on here. */
static uint64_t execs(void)
{
	uint64_t digest = 0;
	for (int i = 0; i < 5; i++) {
		const pid_t pid = fork();
		if (pid == 0) {
			execl("/proc/self/exe", "processes", "--again", "3", NULL);
			_exit(99);
		}
		digest = mix(digest, ended(pid));
	}
	return digest;
}

static int again(const char *left)
{
	const int count = atoi(left);
	char text[16];
	if (count == 0)
		return (int)(work(1, 20) & 63);
	snprintf(text, sizeof(text), "%d", count - 1);
	execl("/proc/self/exe", "processes", "--again", text, NULL);
	return 99;
}

int main(int argc, char **argv)
{
	static const struct torture cases[] = {
		{"forks", forks},
		{"forks_of_forks", forks_of_forks},
		{"forks_with_threads", forks_with_threads},
		{"forks_without_counter", forks_without_counter},
		{"threads_without_counter", threads_without_counter},
		{"vforks", vforks},
		{"spawns", spawns},
		{"clones", clones},
		{"execs", execs},
		{NULL, NULL},
	};
	if (argc == 3 && strcmp(argv[1], "--again") == 0)
		return again(argv[2]);
	return argc ? torture_main(cases, argv) : 2;
}
