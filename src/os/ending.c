/* SPDX-License-Identifier: MIT */
/*
 * ending.c: tell the end of the process from dlclose(). Both run a library's destructors, but at exit() other threads go on
 * recording, and nothing that they use may be freed. An exit handler of ours would be unmapped code after dlclose(); a
 * function of the C library is not: exit() posts a semaphore, before it runs destructors.
 */
#include "os/os.h"

#include <semaphore.h>
#include <stdlib.h>

/* In every C library for Itanium's C++ ABI. Handlers of no library run at exit() alone. */
__attribute__((visibility("default"))) extern int __cxa_atexit(void (*handler)(void *),
							       void *argument, void *library);

static sem_t *exiting; /* outlives the library; NULL: not known */

/* The thread sanitizer runs exit handlers in a way that a semaphore's function does not survive. */
#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#endif
#endif
#ifndef THREAD_SANITIZER
#define THREAD_SANITIZER 0
#endif

void ky_os_ending_prepare(void)
{
	if (THREAD_SANITIZER)
		return;
	sem_t *made = malloc(sizeof(*made));
	union {
		int (*post)(sem_t *);
		void (*handler)(void *);
	} call = {.post = sem_post};
	if (made && sem_init(made, 0, 0) == 0 && __cxa_atexit(call.handler, made, NULL) == 0)
		exiting = made;
	else
		free(made);
}

bool ky_os_ending(void)
{
	int posts = 1;
	return !exiting || sem_getvalue(exiting, &posts) != 0 || posts > 0;
}
