/* SPDX-License-Identifier: MIT */
/* test_strings.c: every text once, by number. */
#include "base/strings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint32_t add(struct ky_strings *strings, const char *text)
{
	return ky_strings_add(strings, text, strlen(text));
}

static void equal_texts_have_one_number(void **state)
{
	(void)state;
	struct ky_strings strings;
	char text[32];
	assert_int_equal(ky_strings_init(&strings), 0);
	assert_int_equal(ky_strings_find(&strings, "text 1", 6), 0);
	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t i = 1; i <= 20000; i++) {
			snprintf(text, sizeof(text), "text %u", i);
			assert_int_equal(add(&strings, text), i);
		}
	assert_int_equal(strings.count, 20001);
	for (uint32_t i = 1; i <= 20000; i++) {
		const int bytes = snprintf(text, sizeof(text), "text %u", i);
		assert_string_equal(ky_strings_text(&strings, i), text);
		assert_int_equal(ky_strings_bytes(&strings, i), bytes);
		assert_int_equal(ky_strings_find(&strings, text, (size_t)bytes), i);
	}
	assert_true(ky_strings_memory(&strings) > 20000 * 11);
	ky_strings_free(&strings);
}

static void no_text_is_not_the_empty_text(void **state)
{
	(void)state;
	struct ky_strings strings;
	assert_int_equal(ky_strings_init(&strings), 0);
	const uint32_t empty = add(&strings, "");
	assert_int_not_equal(empty, 0);
	assert_string_equal(ky_strings_text(&strings, empty), "");
	assert_null(ky_strings_text(&strings, 0));
	assert_int_equal(ky_strings_bytes(&strings, 0), 0);
	/* A NUL inside is a byte as any other. */
	assert_int_not_equal(ky_strings_add(&strings, "a\0b", 3), ky_strings_add(&strings, "a", 1));
	assert_int_equal(ky_strings_bytes(&strings, ky_strings_find(&strings, "a\0b", 3)), 3);
	ky_strings_free(&strings);
}

static void broken_utf8_is_replaced(void **state)
{
	(void)state;
	struct ky_strings strings;
	assert_int_equal(ky_strings_init(&strings), 0);
	const uint32_t broken = ky_strings_add_utf8(&strings,
						    "a\xff"
						    "b\xe2\x82",
						    5);
	assert_string_equal(ky_strings_text(&strings, broken), "a\xef\xbf\xbd"
							       "b\xef\xbf\xbd");
	assert_int_equal(add(&strings, "a\xef\xbf\xbd"
				       "b\xef\xbf\xbd"),
			 broken);
	const uint32_t whole = ky_strings_add_utf8(&strings, "\xc3\xa4", 2);
	assert_string_equal(ky_strings_text(&strings, whole), "\xc3\xa4");
	assert_int_equal(ky_strings_add_utf8(&strings, "\xc3\xa4", 2), whole);
	ky_strings_free(&strings);
}

static uint32_t apart(const char *a, const char *b)
{
	assert_int_equal(ky_strings_distance(a, strlen(a), b, strlen(b)),
			 ky_strings_distance(b, strlen(b), a, strlen(a)));
	return ky_strings_distance(a, strlen(a), b, strlen(b));
}

static void words_are_as_far_apart_as_their_letters(void **state)
{
	char longest[KY_STRINGS_WORD_BYTES_MAX + 1];
	(void)state;
	assert_int_equal(apart("", ""), 0);
	assert_int_equal(apart("", "view"), 4);
	assert_int_equal(apart("report", "report"), 0);
	assert_int_equal(apart("rport", "report"), 1);
	assert_int_equal(apart("rebort", "report"), 1);
	assert_int_equal(apart("rpeort", "report"), 1);
	assert_int_equal(apart("veiw", "list"), 4);
	assert_int_equal(apart("kitten", "sitting"), 3);
	memset(longest, 'x', sizeof(longest));
	assert_int_equal(ky_strings_distance("x", 1, longest, sizeof(longest) - 1),
			 sizeof(longest) - 2);
	assert_int_equal(ky_strings_distance("x", 1, longest, sizeof(longest)), UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_texts_have_one_number),
		cmocka_unit_test(no_text_is_not_the_empty_text),
		cmocka_unit_test(broken_utf8_is_replaced),
		cmocka_unit_test(words_are_as_far_apart_as_their_letters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
