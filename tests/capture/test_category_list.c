/* SPDX-License-Identifier: MIT */
/* test_category_list.c: lists of categories that are edited: what they select afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/category_list.h"
#include "core/glob.h"

#include <errno.h>

static void expect(const char *old, const char *entries, bool on, const char *list)
{
	char text[64];
	assert_int_equal(ky_category_list_edit(text, sizeof(text), old, entries, on), 0);
	assert_string_equal(text, list);
}

static void test_on_appends_and_off_excludes(void **state)
{
	(void)state;
	expect(NULL, "net", true, "net");
	expect("net", "db, io*", true, "net,db,io*");
	expect("net,db", "net", false, "db,-net");
	expect("*", "net", false, "*,-net");
	expect("*,-net", "net", true, "*,net");
	expect("*", NULL, false, "");
	expect("net", NULL, true, "*");
	expect("net", "", true, "*");
}

/* A list of exclusions alone would select everything else. */
static void test_nothing_is_not_everything(void **state)
{
	(void)state;
	expect(NULL, "net", false, "");
	expect("net", "net", false, "");
	expect("net,-net.x", "net", false, "");
	expect("net,-net.x,db", "net", false, "db,-net");
}

static void test_exclusions_first_select_the_rest(void **state)
{
	(void)state;
	expect("-gpu", "net", false, "*,-gpu,-net");
	expect("-gpu", "gpu", true, "*,gpu");
	char text[64];
	assert_int_equal(ky_category_list_edit(text, sizeof(text), "-gpu", "gpu.x", true), 0);
	assert_true(ky_glob_list_match(text, "gpu.x"));
	assert_true(ky_glob_list_match(text, "net"));
	assert_false(ky_glob_list_match(text, "gpu"));
}

static void test_switching_again_and_again_does_not_grow(void **state)
{
	(void)state;
	char text[64] = "*,-net", next[64];
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(ky_category_list_edit(next, sizeof(next), text, "net", i % 2), 0);
		assert_int_equal(ky_category_list_edit(text, sizeof(text), next, "db", i % 3), 0);
	}
}

static void test_a_list_that_has_no_room_is_refused(void **state)
{
	(void)state;
	char text[8];
	assert_int_equal(ky_category_list_edit(text, sizeof(text), "net", "database", true),
			 -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_on_appends_and_off_excludes),
		cmocka_unit_test(test_nothing_is_not_everything),
		cmocka_unit_test(test_exclusions_first_select_the_rest),
		cmocka_unit_test(test_switching_again_and_again_does_not_grow),
		cmocka_unit_test(test_a_list_that_has_no_room_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
