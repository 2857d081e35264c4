/* SPDX-License-Identifier: MIT */
/* test_buffer.c: what is written as JSON is JSON, whatever the text; a buffer without memory fails once, for good. */
#include "formats/json/json_tree.h"
#include "server/buffer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check_is(struct ky_buffer *buffer, const char *text)
{
	assert_false(buffer->failed);
	assert_int_equal(buffer->bytes, strlen(text));
	assert_memory_equal(buffer->data, text, buffer->bytes);
	ky_buffer_free(buffer);
	assert_null(buffer->data);
}

static void commas_are_where_json_wants_them(void **state)
{
	(void)state;
	struct ky_buffer b = {0};
	ky_json_begin(&b, '{');
	ky_json_key(&b, "a");
	ky_json_int(&b, -1);
	ky_json_key(&b, "b");
	ky_json_begin(&b, '[');
	ky_json_uint(&b, UINT64_MAX);
	ky_json_begin(&b, '[');
	ky_json_end(&b, ']');
	ky_json_begin(&b, '{');
	ky_json_end(&b, '}');
	ky_json_text(&b, "x:");
	ky_json_text(&b, "[");
	ky_json_bool(&b, true);
	ky_json_null(&b);
	ky_json_end(&b, ']');
	ky_json_key(&b, "c");
	ky_json_digits(&b, INT64_MIN);
	ky_json_end(&b, '}');
	check_is(&b, "{\"a\":-1,\"b\":[18446744073709551615,[],{},\"x:\",\"[\",true,null],"
		     "\"c\":\"-9223372036854775808\"}");
}

static void texts_are_escaped_and_made_utf8(void **state)
{
	(void)state;
	struct ky_buffer b = {0};
	ky_json_string(&b, "a\"\\\n\0\x7f", 6);
	check_is(&b, "\"a\\\"\\\\\\u000a\\u0000\\u007f\"");
	ky_json_text(&b, "\xc3\xa4\xff\xed\xa0\x80\xe2\x82");
	check_is(&b, "\"\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	ky_json_text(&b, NULL);
	check_is(&b, "null");
	ky_json_string(&b, "", 0);
	check_is(&b, "\"\"");
}

static void every_byte_survives_a_parser(void **state)
{
	(void)state;
	char text[128];
	struct ky_buffer b = {0};
	struct ky_json_text parsed;
	for (int i = 0; i < 128; i++)
		text[i] = (char)i;
	ky_json_string(&b, text, 128);
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
		ky_json_real(&b, values[i]);
		ky_buffer_add(&b, "", 1);
		assert_false(b.failed);
		assert_true(strtod(b.data, NULL) == values[i]);
		ky_buffer_free(&b);
	}
	struct ky_buffer b = {0};
	ky_json_begin(&b, '[');
	ky_json_real(&b, NAN);
	ky_json_real(&b, -INFINITY);
	ky_json_end(&b, ']');
	check_is(&b, "[null,null]");
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
	ky_json_text(&b, "c");
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
		cmocka_unit_test(commas_are_where_json_wants_them),
		cmocka_unit_test(texts_are_escaped_and_made_utf8),
		cmocka_unit_test(every_byte_survives_a_parser),
		cmocka_unit_test(reals_read_back_as_they_were),
		cmocka_unit_test(it_grows_and_formats),
		cmocka_unit_test(without_memory_it_fails_for_good),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
