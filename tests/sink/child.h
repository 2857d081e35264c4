/* SPDX-License-Identifier: MIT */
/*
 * child.h: a process has one drum and reads its environment once, so a test's body runs in a
 * process of its own, in a folder of its own. The test program itself never records.
 */
#ifndef KY_TESTS_CHILD_H
#define KY_TESTS_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sanitizers make system calls of their own, and are slow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* The address sanitizer's allocator has locks that a child of fork() inherits as they are. */
#if defined(__SANITIZE_ADDRESS__)
#define FORKS_KEEP_LOCKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FORKS_KEEP_LOCKS 1
#endif
#endif
#ifndef FORKS_KEEP_LOCKS
#define FORKS_KEEP_LOCKS 0
#endif

/* Ends a child with a message and a failure unless the condition holds. */
#define MUST(condition) ((condition) ? (void)0 : child_fail(__FILE__, __LINE__, #condition))
_Noreturn void child_fail(const char *file, int line, const char *condition);

/* Forks, runs the body and then _exit(0). Returns the status as waitpid() gives it. */
int child_run(void (*body)(void));
/* The same, and the test fails when the child did. */
void child_expect(void (*body)(void));
/* Give a child mounts that nobody else sees. */
void child_own_mounts(void);
/* Report whether a child can have them: this takes root, and a root folder that is a mount point. */
bool child_may_own_mounts(void);
/* Run this program again with the body's name as its argument. */
int child_exec(const char *body, char *const environment[]);

struct child_body {
	const char *name;
	void (*run)(void);
};
/* For main(): when an argument names a body, runs it and exits. The list ends with a NULL name. */
void child_main(int argc, char **argv, const struct child_body *bodies);

/* cmocka's setup and teardown: an empty folder to be in, removed afterwards. */
int folder_setup(void **state);
int folder_teardown(void **state);
unsigned folder_files(void);

/*
 * A limit for what hangs, of a child and of a wait: a busy machine may be slow. Milliseconds, for
 * deadlines; and a wait between two looks.
 */
#define PATIENCE_S 300
#define PATIENCE_MS (PATIENCE_S * 1000)
int64_t now_ms(void);
void look_again(void);

/* Runs fn(argument) on a thread of its own and waits for it. */
void on_thread(void (*fn)(void *argument), void *argument);

#endif
