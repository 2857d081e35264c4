/* SPDX-License-Identifier: MIT */
/* test_json_out.c: JSON in lines for people, in one line for programs; a buffer without memory fails once, for good. */
#include "base/json_out.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void write_all_kinds(struct ky_json_out *json)
{
	ky_json_out_begin(json, NULL, '{');
	ky_json_out_int(json, "a", -1);
	ky_json_out_begin(json, "b", '[');
	ky_json_out_uint(json, NULL, UINT64_MAX);
	ky_json_out_begin(json, NULL, '[');
	ky_json_out_end(json, ']');
	ky_json_out_begin(json, NULL, '{');
	ky_json_out_text(json, "x:", "[");
	ky_json_out_raw(json, "y", "[1]", 3);
	ky_json_out_end(json, '}');
	ky_json_out_bool(json, NULL, true);
	ky_json_out_null(json, NULL);
	ky_json_out_end(json, ']');
	ky_json_out_digits(json, "c", INT64_MIN);
	ky_json_out_real(json, "d", 0.5);
	ky_json_out_real(json, "e", NAN);
	ky_json_out_text(json, "f", NULL);
	ky_json_out_begin(json, "g", '{');
	ky_json_out_end(json, '}');
	ky_json_out_end(json, '}');
}

static void check_file(void (*write)(struct ky_json_out *), unsigned lines, const char *want)
{
	char *text = NULL;
	size_t bytes = 0;
	struct ky_json_out json = {.file = open_memstream(&text, &bytes), .lines = lines};
	assert_non_null(json.file);
	write(&json);
	assert_int_equal(fclose(json.file), 0);
	assert_string_equal(text, want);
	free(text);
}

static void check_buffer(void (*write)(struct ky_json_out *), const char *want)
{
	struct ky_buffer buffer = {0};
	struct ky_json_out json = {.buffer = &buffer};
	write(&json);
	assert_false(buffer.failed);
	assert_int_equal(buffer.bytes, strlen(want));
	assert_memory_equal(buffer.data, want, buffer.bytes);
	ky_buffer_free(&buffer);
	assert_null(buffer.data);
}

static void commas_and_lines_are_where_they_belong(void **state)
{
	(void)state;
	check_buffer(write_all_kinds,
		     "{\"a\":-1,\"b\":[18446744073709551615,[],{\"x:\":\"[\",\"y\":[1]},true,null],"
		     "\"c\":\"-9223372036854775808\",\"d\":0.5,\"e\":null,\"f\":null,\"g\":{}}");
	check_file(write_all_kinds, 1,
		   "{\n  \"a\": -1,\n  \"b\": [18446744073709551615, [], {\"x:\": \"[\", \"y\": "
		   "[1]}, true, null],\n"
		   "  \"c\": \"-9223372036854775808\",\n  \"d\": 0.5,\n  \"e\": null,\n  \"f\": "
		   "null,\n"
		   "  \"g\": {}\n}\n");
	check_file(write_all_kinds, 2,
		   "{\n  \"a\": -1,\n  \"b\": [\n    18446744073709551615,\n    [],\n"
		   "    {\"x:\": \"[\", \"y\": [1]},\n    true,\n    null\n  ],\n"
		   "  \"c\": \"-9223372036854775808\",\n  \"d\": 0.5,\n  \"e\": null,\n  \"f\": "
		   "null,\n"
		   "  \"g\": {}\n}\n");
}

static void write_texts(struct ky_json_out *json)
{
	ky_json_out_begin(json, NULL, '[');
	ky_json_out_string(json, NULL, "a\"\\\n\t\0\x7f", 7);
	ky_json_out_text(json, NULL, "\xc3\xa4\xff\xe2\x82");
	ky_json_out_string(json, NULL, "", 0);
	ky_json_out_end(json, ']');
}

static void texts_are_escaped_and_made_utf8(void **state)
{
	(void)state;
	check_buffer(write_texts, "[\"a\\\"\\\\\\u000a\\u0009\\u0000\\u007f\","
				  "\"\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\",\"\"]");
	check_file(write_texts, 0,
		   "[\"a\\\"\\\\\\n\\t\\u0000\\u007f\", "
		   "\"\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\", \"\"]\n");
}

static void write_controls(struct ky_json_out *json)
{
	/* U+0080, U+009B, U+009F, U+00A0; U+2028, U+202E, U+202F; U+2066, U+2069, U+206A */
	ky_json_out_text(json, NULL,
			 "\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0\xe2\x80\xa8\xe2\x80\xae\xe2\x80\xaf"
			 "\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa");
}

static void what_controls_a_terminal_is_escaped(void **state)
{
	(void)state;
	check_buffer(write_controls, "\"\\u0080\\u009b\\u009f\xc2\xa0\\u2028\\u202e\xe2\x80\xaf"
				     "\\u2066\\u2069\xe2\x81\xaa\"");
}

static void write_reals(struct ky_json_out *json)
{
	ky_json_out_begin(json, NULL, '[');
	ky_json_out_real(json, NULL, 0.1);
	ky_json_out_real(json, NULL, 1.0 / 3);
	ky_json_out_real(json, NULL, -INFINITY);
	ky_json_out_end(json, ']');
}

static void reals_read_back_the_same(void **state)
{
	(void)state;
	check_buffer(write_reals, "[0.1,0.3333333333333333,null]");
	check_file(write_reals, 0, "[0.10000000000000001, 0.33333333333333331, null]\n");
}

static void a_failed_buffer_stays_failed(void **state)
{
	(void)state;
	struct ky_buffer buffer = {0};
	struct ky_json_out json = {.buffer = &buffer};
	ky_json_out_text(&json, NULL, "x");
	assert_null(ky_buffer_reserve(&buffer, SIZE_MAX / 2));
	assert_true(buffer.failed);
	const size_t bytes = buffer.bytes;
	ky_json_out_text(&json, NULL, "y");
	ky_buffer_format(&buffer, "%d", 1);
	assert_int_equal(buffer.bytes, bytes);
	ky_buffer_free(&buffer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commas_and_lines_are_where_they_belong),
		cmocka_unit_test(texts_are_escaped_and_made_utf8),
		cmocka_unit_test(what_controls_a_terminal_is_escaped),
		cmocka_unit_test(reals_read_back_the_same),
		cmocka_unit_test(a_failed_buffer_stays_failed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
