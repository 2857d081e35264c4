/* SPDX-License-Identifier: MIT */
/*
 * stack_spans_target.c: a program whose calls test_stack_spans.c knows, built as programs are: optimised, without
 * frame pointers. It writes a byte when it has started, and ends when its parent does.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define UNIT 200000u

static volatile uint64_t sum;
static volatile int stopped; /* never; a function without an end would need no frame */

/* The functions that it calls are inlined here. */
static inline __attribute__((always_inline)) void target_inlined(uint64_t turns)
{
	for (uint64_t i = 0; i < turns; i++)
		sum += i;
}

__attribute__((noinline)) static void target_a(void)
{
	target_inlined(3 * UNIT);
	__asm__ volatile("");
}

__attribute__((noinline)) static void target_c(void)
{
	target_inlined(7 * UNIT);
	__asm__ volatile("" : : : "rbx", "r12", "r13", "r14", "r15");
}

__attribute__((noinline)) static void target_b(uint64_t turns)
{
	volatile uint64_t room[100];
	room[turns % 100] = turns;
	target_c();
	sum += room[turns % 100];
}

__attribute__((noinline)) static void target_shares(void)
{
	for (uint64_t i = 0; !stopped; i++) {
		target_a();
		target_b(i);
	}
}

/* Each call takes about 300 bytes of stack. */
__attribute__((noinline)) static uint64_t target_recurse(uint64_t depth)
{
	volatile uint64_t room[32];
	room[depth % 32] = depth;
	if (depth == 0) {
		target_inlined(5 * UNIT);
		return sum;
	}
	return target_recurse(depth - 1) + room[depth % 32];
}

__attribute__((noinline)) static void target_deep(uint64_t depth)
{
	while (!stopped)
		sum += target_recurse(depth);
}

__attribute__((noinline)) static void target_nap(void)
{
	const struct timespec some = {0, 3000000};
	nanosleep(&some, NULL);
}

__attribute__((noinline)) static void target_sleepy(void)
{
	while (!stopped) {
		target_a();
		target_nap();
	}
}

static void say(void)
{
	if (write(STDOUT_FILENO, "x", 1) != 1)
		_exit(1);
}

__attribute__((noinline)) static void *target_thread(void *context)
{
	char name[16];
	snprintf(name, sizeof(name), "worker %d", (int)(intptr_t)context);
	prctl(PR_SET_NAME, name);
	while (!stopped)
		target_b(1);
	return NULL;
}

static void make_threads(int count)
{
	pthread_t thread;
	for (int i = 0; i < count; i++)
		if (pthread_create(&thread, NULL, target_thread, (void *)(intptr_t)i) != 0)
			_exit(1);
}

static void wait_for_signal(void)
{
	sigset_t set;
	int signal;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (sigwait(&set, &signal) != 0)
		_exit(1);
}

__attribute__((noinline)) static void target_child(void)
{
	while (!stopped)
		target_b(2);
}

static void make_child(void)
{
	wait_for_signal();
	const pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		target_child();
	}
	waitpid(child, NULL, 0);
}

__attribute__((noinline)) static void target_handler(int signal)
{
	(void)signal;
	while (!stopped)
		target_inlined(UNIT);
}

/* The rest of its life is in a handler. */
__attribute__((noinline)) static void target_signalled(void)
{
	signal(SIGUSR2, target_handler);
	say();
	raise(SIGUSR2);
}

#ifdef __x86_64__
/* A loop that the program generates, and describes in a perf map. It has a frame pointer, as JITs' code does. */
__attribute__((noinline)) static void target_made(void)
{
	/* push %rbp; mov %rsp,%rbp; dec %rdi; jnz back; pop %rbp; ret */
	static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff,
				       0xcf, 0x75, 0xfb, 0x5d, 0xc3};
	char path[64];
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		_exit(1);
	memcpy(memory, code, sizeof(code));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	FILE *map = fopen(path, "we");
	if (!map)
		_exit(1);
	fprintf(map, "%lx %zx made_at_run_time\n", (unsigned long)(uintptr_t)memory, sizeof(code));
	fclose(map);
	void (*made)(uint64_t);
	memcpy(&made, &memory, sizeof(made));
	say();
	while (!stopped)
		made(1000000);
}
#endif

int main(int count, char **words)
{
	const char *mode = count > 1 ? words[1] : "";
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (strcmp(mode, "signal") == 0)
		target_signalled();
#ifdef __x86_64__
	if (strcmp(mode, "made") == 0)
		target_made();
#endif
	if (strcmp(mode, "threads") == 0)
		make_threads(8);
	say();
	if (strcmp(mode, "shares") == 0)
		target_shares();
	else if (strcmp(mode, "deep") == 0)
		target_deep(100);
	else if (strcmp(mode, "deeper") == 0)
		target_deep(1000);
	else if (strcmp(mode, "sleep") == 0)
		target_sleepy();
	else if (strcmp(mode, "threads") == 0)
		pause();
	else if (strcmp(mode, "late") == 0) {
		wait_for_signal();
		make_threads(2);
		pause();
	} else if (strcmp(mode, "fork") == 0)
		make_child();
	else if (strcmp(mode, "exec") == 0) {
		wait_for_signal();
		execl(words[0], words[0], "shares", (char *)NULL);
	} else if (strcmp(mode, "end") == 0) {
		wait_for_signal();
		target_a();
		return 0;
	}
	return 2;
}
