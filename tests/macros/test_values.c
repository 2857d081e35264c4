/* SPDX-License-Identifier: MIT */
/*
 * test_values.c: what events keep of values of all kinds, in C: types that _Generic does not list, bit-fields above all.
 */
#include "../core/trace_event_record.inc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

enum color { COLOR_RED = -3, COLOR_BLUE = 7 };

struct flags {
	unsigned low : 3;
	int signed_low : 5;
	unsigned long wide : 40;
	long signed_wide : 40;
	bool on : 1;
	enum color color : 8;
};

static void check_int(const struct seen *event, uint32_t at, int64_t value)
{
	assert_true(event && at < event->args_count);
	assert_true(event->args[at].type == KYMO_TYPE_INT ||
		    event->args[at].type == KYMO_TYPE_UINT ||
		    event->args[at].type == KYMO_TYPE_BOOL);
	assert_int_equal(event->args[at].value.i, value);
}

static void bit_fields_are_numbers(void **state)
{
	(void)state;
	const struct flags flags = {5, -6, 0x8123456789u, -0x7123456789, true, COLOR_RED};
	seen_start();
	KYMO_INSTANT("test", "bit-fields", "low", flags.low, "signed", flags.signed_low, "wide",
		     flags.wide, "signed wide", flags.signed_wide, "on", flags.on, "color",
		     flags.color);
	KYMO_COUNTER("test", "bit-field counter", flags.low);
	seen_stop();
	const struct seen *event = find(KYMO_KIND_INSTANT, "bit-fields");
	check_int(event, 0, 5);
	check_int(event, 1, -6);
	check_int(event, 2, 0x8123456789);
	check_int(event, 3, -0x7123456789);
	check_int(event, 4, 1);
	check_int(event, 5, COLOR_RED);
	check_int(find(KYMO_KIND_COUNTER, "bit-field counter"), 0, 5);
}

static void other_values_are_what_they_were(void **state)
{
	(void)state;
	const char buffer[8] = "buffer";
	const volatile int number = -1;
	const enum color color = COLOR_BLUE;
	seen_start();
	KYMO_INSTANT("test", "values", "array", buffer, "volatile", number, "pointer", &number,
		     "enum", color, "float", 0.5f, "bool", number < 0, "long", 1UL << 63, "literal",
		     "text");
	seen_stop();
	const struct seen *event = find(KYMO_KIND_INSTANT, "values");
	assert_true(event && event->args_count == 8);
	assert_int_equal(event->args[0].type, KYMO_TYPE_STRING);
	assert_string_equal(event->args[0].string, "buffer");
	check_int(event, 1, -1);
	assert_int_equal(event->args[2].type, KYMO_TYPE_POINTER);
	assert_int_equal(event->args[2].value.u, (uintptr_t)&number);
	check_int(event, 3, COLOR_BLUE);
	assert_int_equal(event->args[4].type, KYMO_TYPE_DOUBLE);
	assert_true(event->args[4].value.d == 0.5);
	check_int(event, 5, 1);
	assert_int_equal(event->args[6].type, KYMO_TYPE_UINT);
	assert_true(event->args[6].value.u == 1UL << 63);
	assert_string_equal(event->args[7].string, "text");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bit_fields_are_numbers),
		cmocka_unit_test(other_values_are_what_they_were),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
