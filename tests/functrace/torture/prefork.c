/* SPDX-License-Identifier: MIT */
/*
 * prefork.c: works; forks three children on command, reports it, and goes on with them until its standard input ends.
 */
#include "torture.h"

#include <signal.h>
#include <sys/wait.h>

#define CHILDREN 3

static NOINLINE uint64_t work(uint64_t digest)
{
	for (unsigned i = 0; i < 10; i++)
		digest = mix(digest, i);
	KEEP(digest);
	return digest;
}

static int go_on(uint64_t right)
{
	for (int i = 0; i < 100; i++)
		if (work(1) != right)
			return 0;
	usleep(1000);
	return 1;
}

int main(void)
{
	const uint64_t right = work(1);
	pid_t children[CHILDREN] = {0};
	struct pollfd input = {.fd = 0, .events = POLLIN};
	int status = 0;
	char byte = 0;
	while (poll(&input, 1, 0) == 0)
		must(go_on(right), "a result");
	must(read(0, &byte, 1) == 1, "no word to begin");
	for (int i = 0; i < CHILDREN; i++) {
		children[i] = fork();
		if (children[i])
			continue;
		while (getppid() != 1 && go_on(right))
			;
		_exit(1);
	}
	puts("forked");
	fflush(stdout);
	while (poll(&input, 1, 0) == 0)
		must(go_on(right), "a result");
	for (int i = 0; i < CHILDREN; i++) {
		must(waitpid(children[i], &status, WNOHANG) == 0, "a child has ended");
		kill(children[i], SIGKILL);
		waitpid(children[i], &status, 0);
	}
	return 0;
}
