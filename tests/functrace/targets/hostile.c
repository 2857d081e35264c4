/* SPDX-License-Identifier: MIT */
/*
 * hostile.c: a program that does its worst while kymo traces its functions.
 *
 *	hostile KIND [FILE]
 *
 *   scribble      a process that shares its memory, and that nobody stops, writes anything over kymo's
 *   unmap         a thread unmaps kymo's memory, or takes the access away
 *   threads       threads come and go all the time
 *   exec          it executes itself again and again
 *   descriptors   a process that shares its descriptors puts FILE, which it may only read, in the place of all new ones
 *   traced        a process of its own traces it
 *
 * Prints its pid when it has begun.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES (1u << 18)

static volatile unsigned sum;
static const char *file;

unsigned work(unsigned n);
unsigned more(unsigned n);

__attribute__((noinline)) unsigned work(unsigned n)
{
	sum += n;
	return sum;
}

__attribute__((noinline)) unsigned more(unsigned n)
{
	for (unsigned i = 0; i < n % 7; i++)
		sum += work(i);
	return sum;
}

static void *go_on(void *context)
{
	for (unsigned i = 0;; i++) {
		more(i);
		if (i % 1000 == 0)
			usleep(1000);
	}
	return context;
}

static void *end_soon(void *context)
{
	more(3);
	return context;
}

/* Call back for each mapping that kymo made. */
static void each_mapping(void (*one)(uint64_t from, uint64_t to))
{
	char line[512];
	FILE *const maps = fopen("/proc/self/maps", "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long from, to;
		if (strstr(line, "memfd:kymo") && sscanf(line, "%lx-%lx", &from, &to) == 2)
			one(from, to);
	}
	if (maps)
		fclose(maps);
}

static uint64_t next_random(void)
{
	static uint64_t seed = 1;
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return seed >> 16;
}

/* Half of the words are in the first pages, where home is. */
static void scribble_on(uint64_t from, uint64_t to)
{
	const int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	for (unsigned i = 0; i < 200; i++) {
		const uint64_t word = next_random() % 3 ? next_random() : UINT64_MAX;
		const uint64_t bytes = i % 2 && to - from > 65536 ? 65536 : to - from;
		if (pwrite(memory, &word, sizeof(word),
			   (off_t)(from + next_random() % (bytes / 8) * 8)) < 0)
			break;
	}
	close(memory);
}

static int scribble(void *context)
{
	(void)context;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		each_mapping(scribble_on);
		usleep(500);
	}
	return 0;
}

static void unmap_one(uint64_t from, uint64_t to)
{
	if (next_random() % 2)
		mprotect((void *)(uintptr_t)from, to - from, PROT_NONE);
	else
		munmap((void *)(uintptr_t)from, to - from);
}

static int swap_descriptors(void *context)
{
	(void)context;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	const int victim = open(file, O_RDONLY);
	for (;;) {
		for (int fd = victim + 1; fd < victim + 8; fd++)
			dup2(victim, fd);
		for (int fd = victim + 1; fd < victim + 8; fd++)
			close(fd);
		usleep(20);
	}
	return 0;
}

static int trace_parent(void *context)
{
	int status;
	const pid_t parent = getppid();
	(void)context;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ptrace(PTRACE_SEIZE, parent, 0, 0) != 0)
		return 1;
	for (;;)
		if (waitpid(parent, &status, __WALL) == parent && WIFSTOPPED(status))
			ptrace(PTRACE_CONT, parent, 0, status >> 16 ? 0 : WSTOPSIG(status));
	return 0;
}

static bool is_traced(void)
{
	char line[256];
	int tracer = 0;
	FILE *const status = fopen("/proc/self/status", "re");
	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "TracerPid: %d", &tracer) == 1)
			break;
	if (status)
		fclose(status);
	return tracer != 0;
}

/* Ends when it cannot be: ptrace is forbidden here. */
static void await_tracer(void)
{
	while (!is_traced()) {
		if (waitpid(-1, NULL, WNOHANG) != 0)
			exit(77);
		usleep(1000);
	}
}

static void start(int (*body)(void *), int flags)
{
	char *const stack =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack == MAP_FAILED || clone(body, stack + STACK_BYTES, flags | SIGCHLD, NULL) < 0)
		exit(1);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	const char *const kind = argc > 1 ? argv[1] : "";
	const bool again = getenv("KYMO_TEST_AGAIN") != NULL;
	file = argc > 2 ? argv[2] : "/dev/null";
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	if (strcmp(kind, "scribble") == 0) {
		start(scribble, CLONE_VM);
	} else if (strcmp(kind, "descriptors") == 0) {
		start(swap_descriptors, CLONE_FILES);
	} else if (strcmp(kind, "traced") == 0) {
		start(trace_parent, 0);
		await_tracer();
	}
	if (!again) {
		printf("%d\n", (int)getpid());
		fflush(stdout);
	}
	if (strcmp(kind, "exec") == 0) {
		setenv("KYMO_TEST_AGAIN", "1", 1);
		more(7);
		usleep(2000);
		execv("/proc/self/exe", argv);
		return 1;
	}
	if (strcmp(kind, "threads") != 0 && strcmp(kind, "unmap") != 0)
		go_on(NULL);
	if (pthread_create(&thread, NULL, go_on, NULL) != 0)
		return 1;
	while (strcmp(kind, "unmap") == 0) {
		each_mapping(unmap_one);
		usleep(1000);
	}
	for (;;)
		if (pthread_create(&thread, NULL, end_soon, NULL) == 0)
			pthread_join(thread, NULL);
}
