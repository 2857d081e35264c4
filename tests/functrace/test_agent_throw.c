/* SPDX-License-Identifier: MIT */
/* Exceptions through functions whose return addresses are hooks: thrown, rethrown, in several threads; and backtraces. */
#include "harness.h"
#include "throwing.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define TIMES 20000

static struct harness harness;

static void *throw_in_thread(void *argument)
{
	(void)argument;
	return (void *)(intptr_t)throw_often(1000);
}

static void frames_that_are_left_end(void **state)
{
	(void)state;
	assert_int_equal(throw_often(1000), 1000);
	struct harness_events all = harness_read(&harness);
	harness_check_nesting(&all, 0);
	assert_int_equal(harness_begins(&all, "throw_at"), 1000 * (THROWING_DEPTH + 1));
	assert_int_equal(harness_begins(&all, "throw_again"), 1000);
	assert_int_equal(harness_begins(&all, "plain"), 1000);
	harness_free(&all);
}

static void exceptions_are_caught_every_time(void **state)
{
	(void)state;
	const char *asked = getenv("KYMO_TEST_THROWS");
	const int times = asked ? atoi(asked) : TIMES;
	assert_int_equal(throw_often(times), times);
}

static void exceptions_in_several_threads(void **state)
{
	(void)state;
	pthread_t threads[3];
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, throw_in_thread, NULL), 0);
	for (int i = 0; i < 3; i++) {
		void *result;
		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_int_equal((intptr_t)result, 1000);
	}
}

/* Each of the 21 frames, and its hook. */
static void backtraces_pass_hooks(void **state)
{
	(void)state;
	const int frames = count_frames(20);
	harness_hook(&harness, (function_fn *)count_frames, "count_frames", KY_STUB_CALL);
	assert_int_equal(count_frames(20), frames + 21);
}

int main(void)
{
	harness_open(&harness);
	harness_hook_unwinder(&harness);
	harness_hook(&harness, (function_fn *)throw_at, "throw_at", KY_STUB_CALL);
	harness_hook(&harness, (function_fn *)throw_again, "throw_again", KY_STUB_CALL);
	harness_hook(&harness, (function_fn *)plain, "plain", KY_STUB_CALL);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_that_are_left_end),
		cmocka_unit_test(exceptions_are_caught_every_time),
		cmocka_unit_test(exceptions_in_several_threads),
		cmocka_unit_test(backtraces_pass_hooks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
