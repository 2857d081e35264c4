/* SPDX-License-Identifier: MIT */
/* test_buffer.c: a buffer grows, and fails once and for all; its JSON survives a parser. */
#include "base/json_out.h"
#include "formats/json/json_scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void every_byte_survives_a_parser(void **state)
{
	(void)state;
	char text[128];
	struct ky_buffer b = {0};
	struct ky_json_text parsed;
	for (int i = 0; i < 128; i++)
		text[i] = (char)i;
	ky_json_out_string(&(struct ky_json_out){.buffer = &b}, NULL, text, 128);
	ky_buffer_add(&b, "", 1);
	const uint8_t *const json = (const uint8_t *)b.data;
	assert_non_null(ky_json_scan_string(json + 1, json + b.bytes - 1, &parsed));
	char *const room = malloc(parsed.bytes);
	assert_non_null(room);
	assert_int_equal(ky_json_unescape(&parsed, room), 128);
	assert_memory_equal(room, text, 128);
	free(room);
	ky_buffer_free(&b);
}

static void reals_read_back_as_they_were(void **state)
{
	(void)state;
	const double values[] = {0, -1.5, 0.1, 1.0 / 3, 1e300, 5e-324, 9007199254740993.0, 1e21};
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct ky_buffer b = {0};
		ky_json_out_real(&(struct ky_json_out){.buffer = &b}, NULL, values[i]);
		ky_buffer_add(&b, "", 1);
		assert_false(b.failed);
		assert_true(strtod(b.data, NULL) == values[i]);
		ky_buffer_free(&b);
	}
}

static void it_grows_and_formats(void **state)
{
	(void)state;
	struct ky_buffer b = {0};
	for (int i = 0; i < 10000; i++)
		ky_buffer_format(&b, "%04d", i);
	assert_int_equal(b.bytes, 40000);
	assert_memory_equal(b.data + 4 * 1234, "12341235", 8);
	char *const at = ky_buffer_reserve(&b, 100000);
	assert_non_null(at);
	memset(at, 'x', 100000);
	assert_int_equal(b.bytes, 140000);
	ky_buffer_text(&b, "end");
	assert_memory_equal(b.data + 139999, "xend", 4);
	ky_buffer_free(&b);
}

static void without_memory_it_fails_for_good(void **state)
{
	(void)state;
	struct ky_buffer b = {0};
	ky_buffer_text(&b, "ab");
	assert_null(ky_buffer_reserve(&b, SIZE_MAX / 2));
	assert_true(b.failed);
	ky_buffer_text(&b, "c");
	ky_buffer_format(&b, "%d", 1);
	assert_null(ky_buffer_reserve(&b, 1));
	assert_true(b.failed);
	assert_int_equal(b.bytes, 2);
	ky_buffer_free(&b);
	assert_false(b.failed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_survives_a_parser),
		cmocka_unit_test(reals_read_back_as_they_were),
		cmocka_unit_test(it_grows_and_formats),
		cmocka_unit_test(without_memory_it_fails_for_good),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
