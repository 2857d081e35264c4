/* SPDX-License-Identifier: MIT */
#include "crash_programs.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, used))
/* Names as compilers of C++ and Rust make them: net::recv(int), server::explode. */
KEEP void crash_here(void) __asm__("_ZN3net4recvEi");
KEEP void crash_caller(void) __asm__("_RNvC6server7explode");

static void say(int32_t number)
{
	if (write(STDOUT_FILENO, &number, sizeof(number)) != sizeof(number))
		_exit(3);
}

/* A byte, or the end of input. */
static void wait_for_go(void)
{
	char byte;
	(void)!read(STDIN_FILENO, &byte, 1);
}

static int32_t own_tid(void)
{
	return (int32_t)syscall(SYS_gettid);
}

/* Not known to the compiler, which would warn. */
static volatile uintptr_t nowhere = 0x10;

static inline __attribute__((always_inline)) void store(uintptr_t address)
{
	*(volatile int *)address = 1;
}

void crash_here(void)
{
	store(nowhere);
	__asm__ volatile("" ::: "memory");
}

void crash_caller(void)
{
	crash_here();
	__asm__ volatile("" ::: "memory");
}

static void *crash_in_thread(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "worker");
	say(own_tid());
	wait_for_go();
	crash_caller();
	return NULL;
}

static int run_segv_thread(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, crash_in_thread, NULL);
	pthread_join(thread, NULL);
	return 4;
}

static int run_abort(void)
{
	say(own_tid());
	wait_for_go();
	abort();
}

static int run_wait(void)
{
	say(own_tid());
	wait_for_go();
	return 7;
}

static sigjmp_buf back;

static void jump_back(int signal)
{
	(void)signal;
	siglongjmp(back, 1);
}

/* Handles its faults itself, as virtual machines do. */
static int run_handles(void)
{
	const struct sigaction action = {.sa_handler = jump_back};
	sigaction(SIGSEGV, &action, NULL);
	say(own_tid());
	wait_for_go();
	for (int i = 0; i < 100; i++)
		if (sigsetjmp(back, 1) == 0)
			crash_here();
	return 7;
}

static volatile bool quick; /* the handler makes its report at once */

/* What servers do: they report, which takes long, and then die of the same signal. */
static void report_and_die(int signal)
{
	say(signal);
	if (!quick)
		wait_for_go();
	const struct sigaction usual = {.sa_handler = SIG_DFL};
	sigaction(signal, &usual, NULL);
	raise(signal);
}

static void report_and_exit(int signal)
{
	say(signal);
	_exit(7);
}

/* how: "waits" in the handler, is "quick", or "exits". */
static int run_reports(const char *how)
{
	quick = strcmp(how, "quick") == 0;
	const struct sigaction action = {.sa_handler = strcmp(how, "exits") == 0 ? report_and_exit
										 : report_and_die};
	sigaction(SIGSEGV, &action, NULL);
	say(own_tid());
	wait_for_go();
	crash_caller();
	return 5;
}

static _Atomic int signals_seen;

static void count_signal(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	if (info->si_value.sival_int == signals_seen)
		signals_seen++;
}

static int signals_wanted;

static void end_with_count(int signal)
{
	(void)signal;
	_exit(signals_seen == signals_wanted ? 7 : 8);
}

/* Ends well when so many signals came, each with its number, in order; or badly with the next one. */
static int run_signals(int count)
{
	struct sigaction action = {.sa_flags = SA_SIGINFO};
	sigset_t none;
	signals_wanted = count;
	(void)signal(SIGRTMIN + 1, end_with_count);
	action.sa_sigaction = count_signal;
	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, SIGRTMIN + 1);
	sigemptyset(&none);
	sigaction(SIGRTMIN, &action, NULL);
	sigset_t blocked;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGRTMIN);
	sigaddset(&blocked, SIGRTMIN + 1);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	say(own_tid());
	while (signals_seen < count)
		sigsuspend(&none);
	return 7;
}

static void *exec_in_thread(void *unused)
{
	wait_for_go();
	execl("/proc/self/exe", "test_crash_watch", "abort", NULL);
	return unused;
}

/* Another thread than the first runs another program, which aborts. */
static int run_exec(void)
{
	pthread_t thread;
	say(own_tid());
	pthread_create(&thread, NULL, exec_in_thread, NULL);
	pthread_join(thread, NULL);
	return 4;
}

static void *wait_in_thread(void *unused)
{
	(void)unused;
	wait_for_go();
	crash_caller();
	return NULL;
}

/* The thread that reads the byte crashes. */
static int run_threads(int count)
{
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 128 << 10);
	for (int i = 0; i < count; i++) {
		pthread_t thread;
		if (pthread_create(&thread, &attributes, wait_in_thread, NULL) != 0)
			return 5;
	}
	say(own_tid());
	for (;;)
		pause();
}

static _Atomic bool stop;

static void *nothing(void *unused)
{
	return unused;
}

static void *churn(void *unused)
{
	while (!stop) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, nothing, NULL) == 0)
			pthread_join(thread, NULL);
	}
	return unused;
}

/* Threads and children come and go, until a byte ends it. */
static int run_churn(void)
{
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, churn, NULL);
	say(own_tid());
	wait_for_go();
	stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 20; i++) {
		const pid_t child = fork();
		int status;
		if (child == 0)
			_exit(9);
		if (waitpid(child, &status, 0) != child || status != 9 << 8)
			return 5;
	}
	return 7;
}

static int run_child(void)
{
	int status;
	say(own_tid());
	wait_for_go();
	const pid_t child = fork();
	if (child == 0) {
		crash_caller();
		_exit(0);
	}
	return waitpid(child, &status, 0) == child && WIFSIGNALED(status) ? 7 : 5;
}

/*
 * The first process of a pid namespace does not die of signals, but of faults. Its user may not
 * make one: 6.
 */
static int run_init(void)
{
	int status;
	say(own_tid());
	wait_for_go();
	if (unshare(CLONE_NEWPID) != 0)
		return 6;
	const pid_t child = fork();
	if (child == 0) {
		kill(getpid(), SIGUSR2);
		kill(getpid(), SIGABRT);
		crash_caller();
		_exit(0);
	}
	return waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
			       WTERMSIG(status) == SIGSEGV
		       ? 7
		       : 5;
}

/* Takes so many MiB. */
static int run_eat(int count)
{
	say(own_tid());
	wait_for_go();
	for (int i = 0; i < count; i++) {
		char *part = malloc(1 << 20);
		if (part)
			memset(part, 1, 1 << 20);
		__asm__ volatile("" ::"r"(part) : "memory");
	}
	return 7;
}

int crash_program(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	const int count = argc > 2 ? atoi(argv[2]) : 0;
	if (strcmp(name, "segv-thread") == 0)
		return run_segv_thread();
	if (strcmp(name, "abort") == 0)
		return run_abort();
	if (strcmp(name, "wait") == 0)
		return run_wait();
	if (strcmp(name, "handles") == 0)
		return run_handles();
	if (strcmp(name, "reports") == 0)
		return run_reports(argc > 2 ? argv[2] : "");
	if (strcmp(name, "signals") == 0)
		return run_signals(count);
	if (strcmp(name, "exec") == 0)
		return run_exec();
	if (strcmp(name, "threads") == 0)
		return run_threads(count);
	if (strcmp(name, "churn") == 0)
		return run_churn();
	if (strcmp(name, "child") == 0)
		return run_child();
	if (strcmp(name, "init") == 0)
		return run_init();
	if (strcmp(name, "eat") == 0)
		return run_eat(count);
	fprintf(stderr, "no such program: %s\n", name);
	return 2;
}
