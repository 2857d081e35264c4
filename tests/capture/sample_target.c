/* SPDX-License-Identifier: MIT */
/*
 * sample_target.c: a program to take call stacks of. It does one thing until it is killed, in functions that test_stack_samples.c
 * knows; it writes a byte when it has begun, and another when it was sent SIGUSR1 and has done what that asks for. It
 * ends when its parent does.
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
#include <unistd.h>

static volatile uint64_t sum;
static volatile int stopped; /* never; a function without an end would need no frame */

static inline __attribute__((always_inline)) void target_inlined(uint64_t turns)
{
	/* Compilers leave the frame pointer out of a leaf function, whatever their options. */
	__asm__ volatile("" : : "r"(__builtin_frame_address(0)));
	for (uint64_t i = 0; i < turns; i++)
		sum += i;
}

__attribute__((noinline)) static void target_inner(void)
{
	target_inlined(100000);
	__asm__ volatile("");
}

__attribute__((noinline)) static void target_outer(void)
{
	while (!stopped)
		target_inner();
}

/* What compilers of C++ and Rust call functions. No two functions here are the same: they would be made one. */
__attribute__((noinline)) void target_cpp(void) __asm__("_ZN5space6Holder4workEi");
__attribute__((noinline)) void target_rust(void) __asm__("_ZN7mycrate4spin17h0123456789abcdefE");
__attribute__((noinline)) void target_rust_v0(void) __asm__("_RNvCs1234_7mycrate5whirl");

void target_cpp(void)
{
	target_inlined(100001);
	__asm__ volatile("");
}

void target_rust(void)
{
	target_inlined(100002);
	__asm__ volatile("");
}

void target_rust_v0(void)
{
	target_inlined(100003);
	__asm__ volatile("");
}

__attribute__((noinline)) static void target_languages(void)
{
	while (!stopped) {
		target_cpp();
		target_rust();
		target_rust_v0();
	}
}

__attribute__((noinline)) static void target_kernel(void)
{
	static char zeros[1 << 20];
	FILE *file = fopen("/dev/zero", "re");
	while (file && read(fileno(file), zeros, sizeof(zeros)) > 0)
		;
}

static void say(void)
{
	if (write(STDOUT_FILENO, "x", 1) != 1)
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

__attribute__((noinline)) static void target_late_thread(void)
{
	while (!stopped)
		target_inlined(100000);
}

static void *thread(void *context)
{
	(void)context;
	prctl(PR_SET_NAME, "late");
	target_late_thread();
	return NULL;
}

static void make_thread(void)
{
	pthread_t other;
	wait_for_signal();
	if (pthread_create(&other, NULL, thread, NULL) != 0)
		_exit(1);
	say();
	pthread_join(other, NULL);
}

__attribute__((noinline)) static void target_child(void)
{
	while (!stopped)
		target_inlined(100004);
}

static void make_child(void)
{
	wait_for_signal();
	const pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		target_child();
	}
	say();
	waitpid(child, NULL, 0);
}

static void *sleeper(void *context)
{
	(void)context;
	for (;;)
		pause();
	return NULL;
}

static void make_many_threads(void)
{
	pthread_attr_t attr;
	pthread_t other;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (int i = 0; i < 500; i++)
		if (pthread_create(&other, &attr, sleeper, NULL) != 0)
			_exit(1);
	say();
	target_outer();
}

#ifdef __x86_64__
/* A loop that a program generates, and describes in a perf map. */
static void make_code(void)
{
	/* dec %rdi; jnz back; ret */
	static const uint8_t code[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3};
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
	if (strcmp(mode, "many") == 0)
		make_many_threads();
#ifdef __x86_64__
	if (strcmp(mode, "made") == 0)
		make_code();
#endif
	say();
	if (strcmp(mode, "spin") == 0)
		target_outer();
	else if (strcmp(mode, "languages") == 0)
		target_languages();
	else if (strcmp(mode, "kernel") == 0)
		target_kernel();
	else if (strcmp(mode, "thread") == 0)
		make_thread();
	else if (strcmp(mode, "fork") == 0)
		make_child();
	return 2;
}
