/* SPDX-License-Identifier: MIT */
/*
 * cmocka.h: the part of cmocka that the recorder's tests use, for C libraries and CPUs that have no cmocka installed. A test
 * that fails ends its program; tests that skip() go on with the next.
 */
#ifndef TESTS_CROSS_CMOCKA_H
#define TESTS_CROSS_CMOCKA_H

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*cmocka_test_fn)(void **state);
typedef int (*cmocka_fixture_fn)(void **state);

struct CMUnitTest {
	const char *name;
	cmocka_test_fn test;
	cmocka_fixture_fn setup, teardown;
};

static jmp_buf cmocka_skipped __attribute__((unused));

#define cmocka_unit_test(f)                                                                        \
	{                                                                                          \
#f, f, NULL, NULL                                                                  \
	}
#define cmocka_unit_test_setup_teardown(f, setup, teardown)                                        \
	{                                                                                          \
#f, f, setup, teardown                                                             \
	}

#define cmocka_must(condition, ...)                                                                \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                            \
			fprintf(stderr, __VA_ARGS__);                                              \
			fputc('\n', stderr);                                                       \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)
#define assert_true(x) cmocka_must(x, "%s", #x)
#define assert_false(x) cmocka_must(!(x), "not: %s", #x)
#define assert_null(x) cmocka_must((x) == NULL, "%s is not NULL", #x)
#define assert_non_null(x) cmocka_must((x) != NULL, "%s is NULL", #x)
#define assert_int_equal(a, b)                                                                     \
	do {                                                                                       \
		const uintmax_t cmocka_a = (uintmax_t)(a), cmocka_b = (uintmax_t)(b);              \
		cmocka_must(cmocka_a == cmocka_b, "%s is %#jx, %s is %#jx", #a, cmocka_a, #b,      \
			    cmocka_b);                                                             \
	} while (0)
#define assert_in_range(x, least, most)                                                            \
	assert_true((uintmax_t)(x) >= (uintmax_t)(least) && (uintmax_t)(x) <= (uintmax_t)(most))
#define assert_string_equal(a, b) assert_true(strcmp(a, b) == 0)
#define assert_string_not_equal(a, b) assert_true(strcmp(a, b) != 0)
#define assert_memory_equal(a, b, bytes) assert_true(memcmp(a, b, bytes) == 0)
#define fail_msg(...) cmocka_must(0, __VA_ARGS__)
#define fail() cmocka_must(0, "failed")
#define print_message(...) fprintf(stderr, __VA_ARGS__)
#define skip() longjmp(cmocka_skipped, 1)

/* Away from the loop, whose variables a longjmp() would make uncertain. */
static __attribute__((noinline, unused)) void cmocka_run_one(const struct CMUnitTest *test,
							     void **state)
{
	if (setjmp(cmocka_skipped) == 0)
		test->test(state);
	else
		fprintf(stderr, "skipped\n");
}

static inline int cmocka_run(const struct CMUnitTest *tests, size_t count, cmocka_fixture_fn setup,
			     cmocka_fixture_fn teardown)
{
	void *group = NULL;
	if (setup && setup(&group) != 0)
		exit(1);
	for (const struct CMUnitTest *t = tests; t < tests + count; t++) {
		void *state = group;
		fprintf(stderr, "%s\n", t->name);
		if (t->setup && t->setup(&state) != 0)
			exit(1);
		cmocka_run_one(t, &state);
		if (t->teardown && t->teardown(&state) != 0)
			exit(1);
	}
	return teardown ? teardown(&group) : 0;
}
#define cmocka_run_group_tests(tests, setup, teardown)                                             \
	cmocka_run(tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)
#define cmocka_run_group_tests_name(name, tests, setup, teardown)                                  \
	cmocka_run_group_tests(tests, setup, teardown)

#endif
