/* SPDX-License-Identifier: MIT */
/* test_quantity.c: quantities for people, and the size of regular expressions. */
#include "model/quantity.h"
#include "model/regexp_size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void durations_have_three_digits(void **state)
{
	(void)state;
	char text[KY_QUANTITY_BYTES];
	assert_string_equal(ky_quantity_duration(text, 0), "0 ns");
	assert_string_equal(ky_quantity_duration(text, 999), "999 ns");
	assert_string_equal(ky_quantity_duration(text, 1250000), "1.25 ms");
	assert_string_equal(ky_quantity_duration(text, 12300), "12.3 µs");
	assert_true(strlen(ky_quantity_duration(text, INT64_MIN)) > 0);
	assert_true(strlen(ky_quantity_duration(text, INT64_MAX)) > 0);
	assert_string_equal(ky_quantity_count(text, 123), "123");
	assert_string_equal(ky_quantity_count(text, 12300000), "12.3 M");
	assert_true(strlen(ky_quantity_count(text, UINT64_MAX)) > 0);
	assert_true(strlen(ky_quantity_bytes(text, UINT64_MAX)) > 0);
}

static void durations_are_parsed_exactly(void **state)
{
	(void)state;
	int64_t ns;
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = {{"+10ns", 10},     {"10ns", 10},       {"1.5ms", 1500000},
		    {"200us", 200000}, {"3s", 3000000000}, {"0", 0}};
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_true(ky_quantity_parse_duration(good[i].text, &ns));
		assert_int_equal(ns, good[i].ns);
	}
	static const char *const bad[] = {
		"", "x", "1,5ms", "inf", "0x10", "5 parsecs", "99999999999999999999s"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(ky_quantity_parse_duration(bad[i], &ns));
}

static void a_time_needs_a_unit(void **state)
{
	(void)state;
	int64_t ns;
	static const char *const bare[] = {"10", "-10", "1.5", "5."};
	for (size_t i = 0; i < sizeof(bare) / sizeof(*bare); i++) {
		assert_false(ky_quantity_parse_duration(bare[i], &ns));
		assert_true(ky_quantity_lacks_unit(bare[i]));
	}
	static const char *const other[] = {"0", "-0", "0.0", "10ns", "x", "", "1x"};
	for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++)
		assert_false(ky_quantity_lacks_unit(other[i]));
	assert_true(ky_quantity_parse_ns("10", &ns));
	assert_int_equal(ns, 10);
}

static void repetitions_multiply(void **state)
{
	(void)state;
	assert_true(ky_regexp_size("abc") < 10);
	assert_true(ky_regexp_size("a{100}") > 90);
	assert_true(ky_regexp_size("(a{100}){100}") > 9000);
	assert_true(ky_regexp_size("[]a{9}]b") < 10);
	assert_true(ky_regexp_size("\\(\\)") < 10);
	assert_true(ky_regexp_size("(((a{200}){200}){200}){200}") == KY_REGEXP_ENDLESS);
	assert_true(ky_regexp_size("(a)\\1") == KY_REGEXP_ENDLESS);
	assert_true(ky_regexp_size("(abc)*[a-z]*") < 20);
	assert_true(ky_regexp_size("(((((((((((((a)+)*)+)*)+)*)+)*)+)*)+)*)+") > 4000);
	assert_true(ky_regexp_size("(((((((((((((a)?)+)?)+)?)+)?)+)?)+)?)+)?") > 4000);
	char deep[5001];
	memset(deep, '(', 5000);
	deep[5000] = '\0';
	assert_true(ky_regexp_size(deep) == KY_REGEXP_ENDLESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_have_three_digits),
		cmocka_unit_test(durations_are_parsed_exactly),
		cmocka_unit_test(a_time_needs_a_unit),
		cmocka_unit_test(repetitions_multiply),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
