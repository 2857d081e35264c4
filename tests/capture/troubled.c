/* SPDX-License-Identifier: MIT */
/*
 * troubled.c: a traced program that gets into trouble, for scenarios.py: troubled MODE [NUMBER].
 *
 *   spans N      N spans "work", then ends with 7
 *   kill N       N spans, then SIGKILL
 *   forks N      N children one after the other, each with a span "child"
 *   threads N    N threads that live at once, each with 100 spans "work"
 *   until        spans until standard input ends; prints "ready" when it has begun, at the end how many it recorded
 *   unshare N    N spans, then other namespaces and another user, then N more; prints "ready" between and waits for a line
 *   scribble N   for N milliseconds one thread records and another writes anything anywhere into the drum
 *   segv, abort  N spans, then a crash in a second thread
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/layout.h"

#include <kymo/kymo.h>
#include <kymo/session.h>

#define NOBODY 65534
#define THREAD_SPANS 100

static void work(uint64_t i)
{
	KYMO_SCOPE("target", "work", "i", i);
}

static int spans(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		work(i);
	return 7;
}

static int forks(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const pid_t pid = fork();
		if (pid == 0) {
			{
				KYMO_SCOPE("target", "child", "i", i);
			}
			_exit(0);
		}
		int status;
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			return 1;
	}
	return 0;
}

static pthread_barrier_t all_here;

static void *thread_spans(void *context)
{
	(void)context;
	pthread_barrier_wait(&all_here);
	for (uint32_t i = 0; i < THREAD_SPANS; i++)
		work(i);
	pthread_barrier_wait(&all_here);
	return NULL;
}

static int threads(uint32_t count)
{
	pthread_t *ids = calloc(count, sizeof(*ids));
	if (!ids || pthread_barrier_init(&all_here, NULL, count) != 0)
		return 1;
	for (uint32_t i = 0; i < count; i++)
		if (pthread_create(&ids[i], NULL, thread_spans, NULL) != 0)
			return 1;
	for (uint32_t i = 0; i < count; i++)
		pthread_join(ids[i], NULL);
	free(ids);
	return 0;
}

static void say(const char *line)
{
	puts(line);
	fflush(stdout);
}

static int until(void)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	uint64_t recorded = 0;
	char byte;
	work(recorded);
	say("ready");
	while (poll(&input, 1, 1) == 0 || read(STDIN_FILENO, &byte, 1) == 1) {
		if (KYMO_ENABLED("target"))
			recorded++;
		work(recorded);
	}
	printf("%llu\n", (unsigned long long)recorded);
	return 0;
}

/* What a sandboxed server does once it has opened all that it needs. */
static int leave(void)
{
	if (unshare(CLONE_NEWNS | CLONE_NEWPID) != 0)
		return errno == EPERM ? 77 : 1;
	return setgid(NOBODY) != 0 || setuid(NOBODY) != 0;
}

static int unshared(uint32_t count)
{
	spans(count);
	const int result = leave();
	if (result)
		return result;
	say("ready");
	if (getchar() == EOF)
		return 1;
	spans(count);
	const pid_t pid = fork(); /* the first in the new pid namespace */
	if (pid == 0) {
		spans(count);
		_exit(0);
	}
	int status;
	return pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
}

static uint8_t *own_drum(size_t *bytes)
{
	int fds[8];
	struct stat file;
	const int count = kymo_descriptors(fds, 8);
	for (int i = 0; i < count && i < 8; i++) {
		if (fstat(fds[i], &file) != 0 || file.st_size < 1 << 20)
			continue;
		void *const at = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE,
				      MAP_SHARED, fds[i], 0);
		*bytes = (size_t)file.st_size;
		return at == MAP_FAILED ? NULL : at;
	}
	return NULL;
}

static _Atomic bool over;

static void *keep_recording(void *context)
{
	(void)context;
	while (!atomic_load(&over))
		work(1);
	return NULL;
}

static uint64_t next_random(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

/* Eight bytes anywhere that readers look at: clocks, categories, directory of rings, heap, blocks; seldom the header. */
static void spoil(uint8_t *drum, uint64_t *random)
{
	const struct ky_drum_header *h = (const void *)drum;
	const struct {
		uint64_t at, bytes;
	} parts[] = {
		{h->clock_at, 4096},
		{h->categories_at, 4096},
		{h->rings_at, 4096},
		{h->heap_at, 4096},
		{h->space_at, 1 << 20},
		{h->space_at, 1 << 20},
		{0, next_random(random) % 64 ? 0 : KY_DRUM_HEADER_BYTES},
	};
	const size_t part = next_random(random) % (sizeof(parts) / sizeof(parts[0]));
	if (parts[part].bytes) {
		const uint64_t at = next_random(random) % (parts[part].bytes / 8) * 8;
		*(volatile uint64_t *)(void *)(drum + parts[part].at + at) = next_random(random);
	}
}

/* The program may become its own victim: that is a normal end for a capture. */
static int scribble(uint32_t ms)
{
	size_t bytes;
	spans(1000);
	uint8_t *const drum = own_drum(&bytes);
	const struct timespec pause = {0, 50000};
	pthread_t thread;
	uint64_t random = 88172645463325252u;
	if (!drum || pthread_create(&thread, NULL, keep_recording, NULL) != 0)
		return 1;
	for (uint32_t i = 0; i < ms * 10; i++) {
		spoil(drum, &random);
		nanosleep(&pause, NULL);
	}
	atomic_store(&over, true);
	_exit(0);
}

/* Not known to the compiler, which would warn. */
static volatile uintptr_t nowhere = 16;

static void *crash_now(void *context)
{
	const char *const how = context;
	pthread_setname_np(pthread_self(), "crasher");
	spans(10);
	if (strcmp(how, "abort") == 0)
		abort();
	*(volatile int *)nowhere = 1;
	return NULL;
}

static int crash(const char *how, uint32_t count)
{
	pthread_t thread;
	spans(count);
	if (pthread_create(&thread, NULL, crash_now, (void *)(uintptr_t)how) == 0)
		pthread_join(thread, NULL);
	return 1;
}

int main(int argc, char **argv)
{
	const char *const mode = argc > 1 ? argv[1] : "";
	const uint32_t number = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1000;
	if (strcmp(mode, "spans") == 0)
		return spans(number);
	if (strcmp(mode, "forks") == 0)
		return forks(number);
	if (strcmp(mode, "threads") == 0)
		return threads(number);
	if (strcmp(mode, "until") == 0)
		return until();
	if (strcmp(mode, "unshare") == 0)
		return unshared(number);
	if (strcmp(mode, "scribble") == 0)
		return scribble(number);
	if (strcmp(mode, "segv") == 0 || strcmp(mode, "abort") == 0)
		return crash(mode, number);
	if (strcmp(mode, "kill") == 0) {
		spans(number);
		return kill(getpid(), SIGKILL);
	}
	fprintf(stderr, "troubled: there is no mode '%s'\n", mode);
	return 2;
}
