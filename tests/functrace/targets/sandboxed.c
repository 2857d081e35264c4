/* SPDX-License-Identifier: MIT */
/*
 * sandboxed.c: a program that puts itself into a sandbox after a byte of input has come: the kernel kills it for any
 * system call except those that it makes itself. Then it calls functions, in batches, with a byte of output for each,
 * until its input ends.
 *
 *   strict     a strict sandbox instead: the CPU's counter may not be read in it
 *   counter    no sandbox, but the counter may not be read either
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOINLINE static __attribute__((noinline, used))
#define CALLS 200000 /* more than the memory made at once */
#define ALLOW(number, skipped) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, skipped, 0)

NOINLINE unsigned leaf(unsigned x)
{
	__asm__ volatile("");
	return x * 3 + 1;
}

static int seal(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_read, 3),
		ALLOW(SYS_write, 2),
		ALLOW(SYS_exit_group, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	const struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
}

/* Its hook is on the stack. */
NOINLINE int seal_by(const char *how)
{
	int result = 1;
	if (!how)
		result = seal();
	else if (strcmp(how, "strict") == 0)
		result = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
	else if (strcmp(how, "counter") == 0)
		result = prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
	__asm__ volatile("" : "+r"(result));
	return result;
}

int main(int argc, char **argv)
{
	char byte;
	unsigned sum = 0;
	(void)argc;
	if (write(STDOUT_FILENO, "ready\n", 6) != 6 || read(STDIN_FILENO, &byte, 1) != 1 ||
	    seal_by(argv[1]))
		_exit(1);
	do {
		for (unsigned i = 0; i < CALLS; i++)
			sum += leaf(i);
		if (write(STDOUT_FILENO, sum ? "k" : "0", 1) != 1)
			_exit(1);
	} while (read(STDIN_FILENO, &byte, 1) == 1);
	/* the only way to end in a strict sandbox */
	if (argv[1])
		syscall(SYS_exit, 0);
	_exit(0);
}
