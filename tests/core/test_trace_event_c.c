/* SPDX-License-Identifier: MIT */
/*
 * test_trace_event_c.c: trace_event.h in C11. Compiled with KYMO_EMBEDDED, it needs no libkymo.
 */
#include "trace_event_cases.inc.h"

static void bools_are_bools(void **state)
{
	(void)state;
	assert_true(arg_is_bool(find(KYMO_KIND_INSTANT, "bool"), 0, "v", 1));
}

static void enums_are_their_number(void **state)
{
	(void)state;
	const struct seen *s = find(KYMO_KIND_INSTANT, "enum");
	assert_non_null(s);
	assert_int_equal(s->args[0].value.u, GREEN);
}

static void the_function_is_a_name(void **state)
{
	(void)state;
	assert_non_null(find(KYMO_KIND_INSTANT, "emit_what_is_of_c"));
}

static void emit_what_is_of_c(void)
{
	const enum colour colour = GREEN;
	TRACE_EVENT_INSTANT1("test", "bool", THREAD, "v", (_Bool)1);
	TRACE_EVENT_INSTANT1("test", "enum", THREAD, "v", colour);
	TRACE_EVENT_INSTANT0("test", __func__, THREAD);
}

static int record(void **state)
{
	(void)state;
	seen_start();
	emit_common();
	emit_what_is_of_c();
	seen_stop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		COMMON_TESTS,
		cmocka_unit_test(bools_are_bools),
		cmocka_unit_test(enums_are_their_number),
		cmocka_unit_test(the_function_is_a_name),
	};
	return cmocka_run_group_tests(tests, record, NULL);
}
