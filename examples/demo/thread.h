/* SPDX-License-Identifier: MIT */
/* thread.h: starting a thread, which the demo cannot do without. */
#ifndef DEMO_THREAD_H
#define DEMO_THREAD_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void thread_start(pthread_t *thread, void *(*run)(void *), void *context)
{
	const int error = pthread_create(thread, NULL, run, context);
	if (error) {
		fprintf(stderr, "demo: cannot start a thread: %s\n", strerror(error));
		exit(1);
	}
}

#endif /* DEMO_THREAD_H */
