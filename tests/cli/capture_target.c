/* SPDX-License-Identifier: MIT */
/*
 * capture_target.c: a program with trace points that does one thing that captures have to cope
 * with.
 *
 *	capture_target children N   so many children one after the other, an event in each
 *	capture_target fill N       so many instants with arguments that do not compress well
 *	capture_target threads N    so many threads at once, an event in each
 *	capture_target left-open    a thread that ends within a span, and an event after that
 *	capture_target obey         for each line of input: "left-open", as above; "across": a span around so many events that they
 *	                            do not fit into a block; and a line of output when it is ready, and after each
 *	capture_target leave        its child leaves namespaces and user, until SIGTERM
 *	capture_target api          a mark, an event before it and one behind it, kymo_snapshot()
 *	capture_target hang         left-open, then a span in another that do not end until SIGTERM
 *	capture_target crash        dies of SIGSEGV, deep in functions
 *	capture_target report       the same, after its own handler has recorded until SIGTERM
 *	capture_target call         calls a function again and again
 *	capture_target beat         a beat every 2 ms, which fails for 150 ms in between
 *	capture_target rise         a counter that rises from 0 to 150, one every 2 ms
 */
#include <kymo/kymo.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void target_function(long first, long second);

static void pause_ms(long ms)
{
	const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&time, NULL);
}

static int children(long count)
{
	for (long i = 0; i < count; i++) {
		const pid_t pid = fork();
		if (pid == 0) {
			KYMO_INSTANT("target", "child", "number", i);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			return 1;
	}
	return 0;
}

static int fill(long count)
{
	uint64_t random = 1;
	for (long i = 0; i < count; i++) {
		random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		KYMO_INSTANT("target", "fill", "random", random);
		if (i % 1000 == 0)
			pause_ms(1);
	}
	return 0;
}

static pthread_barrier_t all_there;

static void *thread(void *context)
{
	KYMO_INSTANT("target", "thread");
	pthread_barrier_wait(&all_there);
	return context;
}

static int threads(long count)
{
	pthread_t *const ids = calloc((size_t)count, sizeof(*ids));
	if (!ids || pthread_barrier_init(&all_there, NULL, (unsigned)count))
		return 1;
	for (long i = 0; i < count; i++) {
		if (pthread_create(&ids[i], NULL, thread, NULL))
			return 1;
	}
	for (long i = 0; i < count; i++)
		pthread_join(ids[i], NULL);
	free(ids);
	return 0;
}

static void *begin_and_end(void *context)
{
	KYMO_BEGIN("target", "left open");
	return context;
}

static int left_open(void)
{
	pthread_t id;
	if (pthread_create(&id, NULL, begin_and_end, NULL))
		return 1;
	pthread_join(id, NULL);
	KYMO_INSTANT("target", "after the thread");
	return 0;
}

static int obey(void)
{
	char line[64];
	KYMO_INSTANT("target", "ready");
	puts("ready");
	for (fflush(stdout); fgets(line, sizeof(line), stdin); fflush(stdout)) {
		if (strcmp(line, "left-open\n") == 0 && left_open() != 0)
			return 1;
		if (strcmp(line, "across\n") == 0) {
			KYMO_BEGIN("target", "across");
			for (int i = 0; i < 5000; i++)
				KYMO_INSTANT("target", "inside", "number", i);
			KYMO_END("target");
		}
		puts("done");
	}
	return 0;
}

static volatile sig_atomic_t ended;

static void on_end(int number)
{
	(void)number;
	ended = 1;
}

static void leave_user(void)
{
	if (setgid(65534) != 0 || setuid(65534) != 0)
		_exit(77);
	for (;;) {
		KYMO_INSTANT("target", "inside");
		pause_ms(1);
	}
}

static int leave(void)
{
	signal(SIGTERM, on_end);
	KYMO_INSTANT("target", "before");
	if (unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET) != 0)
		return 77;
	const pid_t pid = fork();
	if (pid == 0)
		leave_user();
	KYMO_INSTANT("target", "outside");
	while (!ended)
		pause_ms(10);
	kill(pid, SIGKILL);
	int status = 0;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

static int api(void)
{
	KYMO_INSTANT("target", "too early");
	pause_ms(5);
	kymo_mark_start();
	KYMO_INSTANT("target", "led up to it");
	kymo_snapshot("asked for", 42);
	/* Long enough to be noticed while the process is there. */
	pause_ms(300);
	return 0;
}

static int hang(void)
{
	signal(SIGTERM, on_end);
	if (left_open())
		return 1;
	KYMO_SCOPE("target", "around", "what", "a hang");
	KYMO_SCOPE("target", "hang");
	while (!ended)
		pause_ms(10);
	return 0;
}

/* Not known to the compiler, which would warn. */
static volatile uintptr_t nowhere = 8;

static __attribute__((noinline)) void store(volatile int *place)
{
	*place = 1;
}

static int crash(void)
{
	KYMO_INSTANT("target", "last words");
	store((volatile int *)nowhere);
	return 0;
}

static void report_crash(int number)
{
	while (!ended) {
		KYMO_INSTANT("target", "report");
		pause_ms(1);
	}
	signal(number, SIG_DFL);
	raise(number);
}

static int report(void)
{
	signal(SIGTERM, on_end);
	signal(SIGSEGV, report_crash);
	return crash();
}

__attribute__((noinline, used, visibility("default"))) void target_function(long first, long second)
{
	KYMO_INSTANT("target", "called", "first", first, "second", second);
}

static int call(void)
{
	for (long i = 0; i < 200; i++) {
		target_function(i, 7); /* line: is here */
		pause_ms(5);
	}
	return 0;
}

static int beat(void)
{
	for (int i = 0; i < 100; i++) {
		KYMO_INSTANT("target", "beat");
		pause_ms(i == 50 ? 150 : 2);
	}
	return 0;
}

static int rise(void)
{
	for (int i = 0; i <= 150; i++) {
		KYMO_COUNTER("target", "level", i);
		pause_ms(2);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *const what = argc > 1 ? argv[1] : "";
	const long count = argc > 2 ? atol(argv[2]) : 1;
	if (strcmp(what, "children") == 0)
		return children(count);
	if (strcmp(what, "fill") == 0)
		return fill(count);
	if (strcmp(what, "threads") == 0)
		return threads(count);
	if (strcmp(what, "left-open") == 0)
		return left_open();
	if (strcmp(what, "obey") == 0)
		return obey();
	if (strcmp(what, "leave") == 0)
		return leave();
	if (strcmp(what, "api") == 0)
		return api();
	if (strcmp(what, "hang") == 0)
		return hang();
	if (strcmp(what, "crash") == 0)
		return crash();
	if (strcmp(what, "report") == 0)
		return report();
	if (strcmp(what, "call") == 0)
		return call();
	if (strcmp(what, "beat") == 0)
		return beat();
	if (strcmp(what, "rise") == 0)
		return rise();
	fprintf(stderr, "capture_target: what?\n");
	return 2;
}
