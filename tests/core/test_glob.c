/* SPDX-License-Identifier: MIT */
/*
 * test_glob.c: what a list of category globs selects, and that no list takes long to match.
 */
#include "core/glob.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool match(const char *glob, const char *text)
{
	return ky_glob_match(glob, strlen(glob), text, strlen(text));
}

/* The definition, slow and plain, to compare with. */
static bool match_by_definition(const char *glob, const char *text)
{
	if (*glob == '*')
		return match_by_definition(glob + 1, text) ||
		       (*text && match_by_definition(glob, text + 1));
	if (!*glob || !*text)
		return !*glob && !*text;
	return (*glob == '?' || *glob == *text) && match_by_definition(glob + 1, text + 1);
}

static void a_glob_matches_the_whole_text(void **state)
{
	(void)state;
	assert_true(match("net", "net"));
	assert_false(match("net", "network"));
	assert_false(match("network", "net"));
	assert_true(match("", ""));
	assert_false(match("", "a"));
	assert_false(match("a", ""));
}

static void a_star_is_any_run_and_a_question_mark_any_byte(void **state)
{
	(void)state;
	assert_true(match("*", ""));
	assert_true(match("net*", "net"));
	assert_true(match("*.io", "net.io"));
	assert_true(match("n*t*.*", "net.tcp.io"));
	assert_true(match("a*b*c", "aXbbYcc"));
	assert_false(match("a*b*c", "aXbbYcd"));
	assert_true(match("n?t", "net"));
	assert_false(match("n?t", "nt"));
	assert_false(match("?", ""));
}

static void every_short_glob_agrees_with_the_definition(void **state)
{
	(void)state;
	static const char glob_letters[] = "ab*?";
	char glob[6] = "";
	char text[6] = "";

	for (unsigned g = 0; g < 1024; g++) {
		for (unsigned i = 0; i < 5; i++)
			glob[i] = glob_letters[g >> (2 * i) & 3];
		for (unsigned t = 0; t < 64; t++) {
			const unsigned length = t & 1 ? 5 : t % 5;
			memset(text, 0, sizeof(text));
			for (unsigned i = 0; i < length; i++)
				text[i] = t >> (i + 1) & 1 ? 'a' : 'b';
			assert_int_equal(match(glob, text), match_by_definition(glob, text));
		}
	}
}

static void many_stars_do_not_take_exponential_time(void **state)
{
	(void)state;
	char glob[201];
	char text[4001];

	for (size_t i = 0; i < 200; i++)
		glob[i] = i % 2 ? 'a' : '*';
	glob[200] = '\0';
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 2] = 'b';
	text[sizeof(text) - 1] = '\0';
	assert_false(match(glob, text));
}

static void no_list_selects_everything(void **state)
{
	(void)state;
	assert_true(ky_glob_list_match(NULL, "net"));
	assert_true(ky_glob_list_match("", "net"));
	assert_true(ky_glob_list_match(" , ,", "net"));
	assert_true(ky_glob_list_match(NULL, ""));
	assert_true(ky_glob_list_match("*", NULL));
}

static void a_list_selects_what_one_of_its_globs_matches(void **state)
{
	(void)state;
	assert_true(ky_glob_list_match("net,db*", "net"));
	assert_true(ky_glob_list_match("net,db*", "db.query"));
	assert_true(ky_glob_list_match(" net , db* ", "db"));
	assert_false(ky_glob_list_match("net,db*", "gpu"));
	assert_false(ky_glob_list_match("net", "network"));
}

static void the_last_matching_entry_decides(void **state)
{
	(void)state;
	assert_false(ky_glob_list_match("db*,-db.debug", "db.debug"));
	assert_true(ky_glob_list_match("db*,-db.debug", "db.query"));
	assert_true(ky_glob_list_match("-db.*,db.debug", "db.debug"));
	assert_true(ky_glob_list_match("*,-db.*,db.debug", "db.debug"));
	assert_false(ky_glob_list_match("net,-*", "net"));
	assert_true(ky_glob_list_match("-*,net", "net"));
	assert_false(ky_glob_list_match("-*,net", "db"));
}

static void a_list_that_begins_with_an_exclusion_starts_from_all(void **state)
{
	(void)state;
	assert_true(ky_glob_list_match("-gpu", "net"));
	assert_false(ky_glob_list_match("-gpu", "gpu"));
	assert_true(ky_glob_list_match(",-gpu", "net"));
	assert_false(ky_glob_list_match("net,-gpu", "db"));
}

static void a_category_of_several_is_selected_by_any_member(void **state)
{
	(void)state;
	assert_true(ky_glob_list_match("net", "db,net"));
	assert_true(ky_glob_list_match("net", "db, net"));
	assert_false(ky_glob_list_match("net", "db,gpu"));
	assert_true(ky_glob_list_match("-net", "db,net"));
	assert_false(ky_glob_list_match("-net,-db", "db,net"));
	assert_false(ky_glob_list_match("d*t", "db,net"));
}

static void costly_categories_are_selected_only_by_name(void **state)
{
	(void)state;
	const char *costly = "disabled-by-default-v8.stack";

	assert_false(ky_glob_list_match(NULL, costly));
	assert_false(ky_glob_list_match("*", costly));
	assert_false(ky_glob_list_match("-net", costly));
	assert_false(ky_glob_list_match("d*,*v8*,?isabled-by-default-v8.stack", costly));
	assert_true(ky_glob_list_match("disabled-by-default-v8.stack", costly));
	assert_true(ky_glob_list_match("disabled-by-default-*", costly));
	assert_true(ky_glob_list_match("disabled-by-default*", costly));
	assert_false(ky_glob_list_match("disabled-by-default-*,-disabled-by-default-v8*", costly));
	assert_true(ky_glob_list_match("-net,disabled-by-default-v8*", costly));
	assert_true(ky_glob_list_match(NULL, "v8,disabled-by-default-v8.stack"));
	assert_true(ky_glob_list_match("*", "disabled-by-defaults"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_glob_matches_the_whole_text),
		cmocka_unit_test(a_star_is_any_run_and_a_question_mark_any_byte),
		cmocka_unit_test(every_short_glob_agrees_with_the_definition),
		cmocka_unit_test(many_stars_do_not_take_exponential_time),
		cmocka_unit_test(no_list_selects_everything),
		cmocka_unit_test(a_list_selects_what_one_of_its_globs_matches),
		cmocka_unit_test(the_last_matching_entry_decides),
		cmocka_unit_test(a_list_that_begins_with_an_exclusion_starts_from_all),
		cmocka_unit_test(a_category_of_several_is_selected_by_any_member),
		cmocka_unit_test(costly_categories_are_selected_only_by_name),
	};
	return cmocka_run_group_tests_name("glob", tests, NULL, NULL);
}
