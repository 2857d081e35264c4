/* SPDX-License-Identifier: MIT */
/* test_bytes.c: the byte reader never reads beyond its end, and stays bad once it has tried. */
#include "base/array.h"
#include "base/bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t data[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0xe5, 0x8e, 0x26};

static void numbers_are_little_endian(void **state)
{
	(void)state;
	struct ky_bytes bytes = ky_bytes_of(data, sizeof(data));
	assert_int_equal(ky_bytes_u8(&bytes), 1);
	assert_int_equal(ky_bytes_u16(&bytes), 0x0302);
	assert_int_equal(ky_bytes_u32(&bytes), 0x07060504);
	assert_int_equal(ky_bytes_u64(&bytes), UINT64_C(0x0f0e0d0c0b0a0908));
	assert_int_equal(ky_bytes_uleb(&bytes), 624485);
	assert_false(bytes.bad);
	assert_int_equal(ky_bytes_left(&bytes), 0);
	assert_int_equal(ky_bytes_u8(&bytes), 0);
	assert_true(bytes.bad);
}

static void a_read_beyond_the_end_is_bad_for_good(void **state)
{
	(void)state;
	for (size_t length = 0; length < 8; length++) {
		struct ky_bytes bytes = ky_bytes_of(data, length);
		assert_int_equal(ky_bytes_u64(&bytes), 0);
		assert_true(bytes.bad);
		assert_int_equal(ky_bytes_u8(&bytes), 0);
		assert_null(ky_bytes_take(&bytes, 0));
	}
	struct ky_bytes bytes = ky_bytes_of(data, 4);
	ky_bytes_skip(&bytes, UINT64_MAX);
	assert_true(bytes.bad);
}

static void a_part_has_an_end_of_its_own(void **state)
{
	(void)state;
	struct ky_bytes bytes = ky_bytes_of(data, 8);
	struct ky_bytes part = ky_bytes_part(&bytes, 2);
	assert_int_equal(ky_bytes_u16(&part), 0x0201);
	assert_int_equal(ky_bytes_u8(&part), 0);
	assert_true(part.bad);
	assert_int_equal(ky_bytes_u8(&bytes), 3);
	part = ky_bytes_part(&bytes, 6);
	assert_true(part.bad && bytes.bad);
}

static void comparisons_have_three_ways(void **state)
{
	(void)state;
	assert_int_equal(KY_COMPARE(1u, 2u), -1);
	assert_int_equal(KY_COMPARE(INT64_MIN, INT64_MAX), -1);
	assert_int_equal(KY_COMPARE(2, 2), 0);
	assert_int_equal(KY_COMPARE_THEN(2, 2, KY_COMPARE(3, 1)), 1);
	assert_int_equal(KY_COMPARE_THEN(1, 2, KY_COMPARE(3, 1)), -1);
	int64_t values[] = {3, INT64_MAX, INT64_MIN, 1};
	qsort(values, 4, sizeof(*values), ky_compare_i64);
	assert_int_equal(values[0], INT64_MIN);
	assert_int_equal(values[3], INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_little_endian),
		cmocka_unit_test(a_read_beyond_the_end_is_bad_for_good),
		cmocka_unit_test(a_part_has_an_end_of_its_own),
		cmocka_unit_test(comparisons_have_three_ways),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
