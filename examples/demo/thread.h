/* SPDX-License-Identifier: MIT */
/*
 * thread.h: starting a thread, which the demo cannot do without.
 *
 * The profiler's signal is blocked while a thread begins and ends. The thread sanitizer does not know a
 * thread at these moments, and a handler that runs then ends the program.
 */
#ifndef DEMO_THREAD_H
#define DEMO_THREAD_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct thread_call {
	void *(*run)(void *);
	void *context;
};

static inline void thread_signals(int how)
{
	sigset_t profile;
	sigemptyset(&profile);
	sigaddset(&profile, SIGPROF);
	pthread_sigmask(how, &profile, NULL);
}

static inline void *thread_main(void *call)
{
	const struct thread_call known = *(struct thread_call *)call;
	free(call);
	thread_signals(SIG_UNBLOCK);
	void *result = known.run(known.context);
	thread_signals(SIG_BLOCK);
	return result;
}

static inline void thread_start(pthread_t *thread, void *(*run)(void *), void *context)
{
	struct thread_call *call = malloc(sizeof(*call));
	int error = ENOMEM;
	if (call) {
		*call = (struct thread_call){run, context};
		thread_signals(SIG_BLOCK);
		error = pthread_create(thread, NULL, thread_main, call);
		thread_signals(SIG_UNBLOCK);
	}
	if (error) {
		fprintf(stderr, "demo: cannot start a thread: %s\n", strerror(error));
		exit(1);
	}
}

#endif /* DEMO_THREAD_H */
