/* SPDX-License-Identifier: MIT */
/*
 * test_print.c: messages made of recorded values, compared with what the C library's printf makes
 * of the values themselves.
 */
#include "core/print.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROOM 4096

static struct kymo_arg int_arg(int64_t value)
{
	return (struct kymo_arg){.type = KYMO_TYPE_INT, .value.i = value};
}

static struct kymo_arg uint_arg(uint64_t value)
{
	return (struct kymo_arg){.type = KYMO_TYPE_UINT, .value.u = value};
}

static struct kymo_arg double_arg(double value)
{
	return (struct kymo_arg){.type = KYMO_TYPE_DOUBLE, .value.d = value};
}

static struct kymo_arg bool_arg(bool value)
{
	return (struct kymo_arg){.type = KYMO_TYPE_BOOL, .value.u = value};
}

static struct kymo_arg pointer_arg(uint64_t value)
{
	return (struct kymo_arg){.type = KYMO_TYPE_POINTER, .value.u = value};
}

static struct kymo_arg string_arg(const char *string)
{
	return (struct kymo_arg){.type = KYMO_TYPE_STRING,
				 .string = string,
				 .string_bytes = string ? (uint32_t)strlen(string) : 0};
}

static void expect(const char *expected, const char *fmt, const struct kymo_arg *args,
		   uint32_t count)
{
	char out[ROOM];

	const size_t bytes = ky_print(out, sizeof(out), fmt, args, count);
	assert_string_equal(out, expected);
	assert_int_equal(bytes, strlen(expected));
}

#define EXPECT(expected, fmt, ...)                                                                 \
	expect(expected, fmt, (const struct kymo_arg[]){__VA_ARGS__},                              \
	       sizeof((const struct kymo_arg[]){__VA_ARGS__}) / sizeof(struct kymo_arg))

#define FLAGS_COUNT 12
static const char *const flags[FLAGS_COUNT] = {"",   "-",  "+",  " ",  "#",  "0",
					       "-0", "+0", " #", "#0", "-+", "+ #0-"};
#define SIZES_COUNT 9
static const char *const sizes[SIZES_COUNT] = {"",    "1",   "12",   ".0",    ".3",
					       ".12", "8.3", "20.5", "300.40"};

static void make_format(char fmt[64], size_t combination, const char *modifier, char conversion)
{
	snprintf(fmt, 64, "<%%%s%s%s%c>", flags[combination / SIZES_COUNT],
		 sizes[combination % SIZES_COUNT], modifier, conversion);
}

/* Every flag with every size, for some conversions of one value of the C type given. */
#define COMPARE(ctype, modifier, conversions, arg, value)                                          \
	for (const char *c = (conversions); *c; c++)                                               \
		for (size_t each = 0; each < FLAGS_COUNT * SIZES_COUNT; each++) {                  \
			char fmt[64];                                                              \
			char expected[ROOM];                                                       \
			make_format(fmt, each, modifier, *c);                                      \
			snprintf(expected, sizeof(expected), fmt, (ctype)(value));                 \
			EXPECT(expected, fmt, arg);                                                \
		}

static void text_without_conversions_stays(void **state)
{
	(void)state;
	expect("", "", NULL, 0);
	expect("plain, with \xff bytes", "plain, with \xff bytes", NULL, 0);
	expect("100% of 5%", "100%% of 5%%", NULL, 0);
}

static void integers_look_as_printf_shows_them(void **state)
{
	(void)state;
	static const int64_t values[] = {
		0,      1,     -1,      42,      -42,      255,       256,       32767,
		-32768, 65536, INT_MAX, INT_MIN, UINT_MAX, INT64_MAX, INT64_MIN, 123456789012345};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		const int64_t v = values[i];
		COMPARE(int, "", "di", int_arg(v), v);
		COMPARE(unsigned, "", "uxXo", uint_arg((uint64_t)v), v);
		COMPARE(signed char, "hh", "d", int_arg(v), v);
		COMPARE(unsigned char, "hh", "ux", int_arg(v), v);
		COMPARE(short, "h", "i", int_arg(v), v);
		COMPARE(unsigned short, "h", "Xo", uint_arg((uint64_t)v), v);
		COMPARE(long, "l", "d", int_arg(v), v);
		COMPARE(long long, "ll", "d", int_arg(v), v);
		COMPARE(unsigned long long, "ll", "ux", uint_arg((uint64_t)v), v);
		COMPARE(intmax_t, "j", "d", int_arg(v), v);
		COMPARE(size_t, "z", "ux", uint_arg((uint64_t)v), v);
		COMPARE(ptrdiff_t, "t", "d", int_arg(v), v);
	}
}

static void doubles_look_as_printf_shows_them(void **state)
{
	(void)state;
	static const double values[] = {0.0,      -0.0,     1.0,      -1.5,    3.14159265358979,
					1e-300,   1e22,     123456.5, DBL_MAX, DBL_MIN,
					INFINITY, -INFINITY};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		COMPARE(double, "", "fFeEgGaA", double_arg(values[i]), values[i]);
	COMPARE(double, "l", "f", double_arg(2.5), 2.5);
	EXPECT("nan", "%Lf", double_arg((double)NAN));
}

static void strings_and_characters_look_as_printf_shows_them(void **state)
{
	(void)state;
	static const char *const left_or_not[] = {"", "-"};

	for (size_t i = 0; i < 2 * SIZES_COUNT; i++) {
		char fmt[64];
		char expected[ROOM];
		snprintf(fmt, sizeof(fmt), "<%%%s%ss>", left_or_not[i & 1], sizes[i / 2]);
		snprintf(expected, sizeof(expected), fmt, "twelve chars");
		EXPECT(expected, fmt, string_arg("twelve chars"));
	}
	EXPECT("<x> <  x> <x  >", "<%c> <%3c> <%-3c>", int_arg('x'), int_arg('x'), int_arg('x'));
	EXPECT("\xe9", "%c", int_arg(0xe9));
	EXPECT("(null)", "%s", string_arg(NULL));
	EXPECT("a?", "%lc%lc", int_arg('a'), int_arg(0x20ac));
}

static void pointers_look_as_printf_shows_them(void **state)
{
	(void)state;
	int here;
	char expected[64];

	snprintf(expected, sizeof(expected), "%p %20p|%-20p|", (void *)&here, (void *)&here,
		 (void *)&here);
	EXPECT(expected, "%p %20p|%-20p|", pointer_arg((uintptr_t)&here),
	       pointer_arg((uintptr_t)&here), pointer_arg((uintptr_t)&here));
	EXPECT("(nil)|   (nil)", "%p|%8p", pointer_arg(0), pointer_arg(0));
	EXPECT("7f0012345678", "%x", pointer_arg(0x7f0012345678));
}

static void stars_take_their_numbers_from_the_values(void **state)
{
	(void)state;
	EXPECT("<   42>", "<%*d>", int_arg(5), int_arg(42));
	EXPECT("<42   >", "<%*d>", int_arg(-5), int_arg(42));
	EXPECT("<3.14>", "<%.*f>", int_arg(2), double_arg(3.14159));
	EXPECT("<  ab>", "<%*.*s>", int_arg(4), int_arg(2), string_arg("abcd"));
	EXPECT("<abcd>", "<%.*s>", int_arg(-1), string_arg("abcd"));
	EXPECT("<abcd>", "<%*s>", string_arg("no width"), string_arg("abcd"));
	EXPECT("<(missing)>", "<%*d>", int_arg(5 - 5));
}

static void a_value_of_another_type_is_shown_as_what_it_is(void **state)
{
	(void)state;
	EXPECT("2.5", "%d", double_arg(2.5));
	EXPECT("  0.1", "%5x", double_arg(0.1));
	EXPECT("text", "%d", string_arg("text"));
	EXPECT("text", "%f", string_arg("text"));
	EXPECT("text", "%c", string_arg("text"));
	EXPECT("text", "%p", string_arg("text"));
	EXPECT("-7", "%s", int_arg(-7));
	EXPECT("  -7", "%4.1s", int_arg(-7));
	EXPECT("18446744073709551615", "%s", uint_arg(UINT64_MAX));
	EXPECT("0.25", "%s", double_arg(0.25));
	EXPECT("true false", "%s %s", bool_arg(true), bool_arg(false));
	EXPECT("1", "%d", bool_arg(true));
	EXPECT("0xff", "%s", pointer_arg(0xff));
	EXPECT("-3.000000", "%f", int_arg(-3));
	EXPECT("1.8e+19", "%.1e", uint_arg(UINT64_MAX));
	EXPECT("(missing)", "%d", {.type = 99});
}

static void a_value_that_is_not_there_is_missing(void **state)
{
	(void)state;
	expect("(missing)", "%d", NULL, 0);
	expect("(missing) (missing)", "%s %.*f", NULL, 0);
	expect(" (missing)", "%10s", NULL, 0);
	EXPECT("1 (missing)", "%d %d", int_arg(1));
	EXPECT("1", "%d", int_arg(1), int_arg(2));
}

static void what_is_no_conversion_is_copied(void **state)
{
	(void)state;
	expect("%", "%", NULL, 0);
	expect("%-+5.3ll", "%-+5.3ll", NULL, 0);
	EXPECT("%k 1", "%k %d", int_arg(1));
	EXPECT("%*k 1", "%*k %d", int_arg(1));
	EXPECT("%m %1$d", "%m %1$d", int_arg(1));
	EXPECT("%1", "% %%d", int_arg(1));
}

static void percent_n_takes_its_value_and_does_nothing(void **state)
{
	(void)state;
	int target = 5;

	EXPECT("ab 7", "a%nb %d", pointer_arg((uintptr_t)&target), int_arg(7));
	EXPECT("", "%100hhn", pointer_arg(1));
	assert_int_equal(target, 5);
}

static void width_and_precision_are_clamped(void **state)
{
	(void)state;
	char out[ROOM];
	const struct kymo_arg args[] = {int_arg(INT_MIN), int_arg(INT_MAX), double_arg(DBL_MAX)};

	assert_int_equal(ky_print(out, sizeof(out), "%999999999999999999999d", args, 1),
			 KY_PRINT_WIDTH_MAX);
	assert_int_equal(ky_print(out, sizeof(out), "%.2147483648x", args, 1), KY_PRINT_WIDTH_MAX);
	assert_int_equal(ky_print(out, sizeof(out), "%*.*f", args, 3),
			 309 + 1 + KY_PRINT_WIDTH_MAX);
	assert_int_equal(ky_print(out, sizeof(out), "%-*s", args, 2), KY_PRINT_WIDTH_MAX);
}

static void strings_that_were_cut_say_so(void **state)
{
	(void)state;
	struct kymo_arg cut = string_arg("begin");

	cut.cut = 1;
	EXPECT("begin…", "%s", cut);
	EXPECT("beg", "%.3s", cut);
	EXPECT("begin…", "%.100s", cut);
	EXPECT("begin…", "%d", cut);
}

static void strings_end_where_their_length_or_a_nul_says(void **state)
{
	(void)state;
	struct kymo_arg bounded = string_arg("abcdef");

	bounded.string_bytes = 3;
	EXPECT("abc", "%s", bounded);
	bounded.string = "a\0b";
	EXPECT("a!", "%s!", bounded);
	EXPECT("<>", "<%c>", int_arg(0));
}

static void a_message_without_room_ends_with_an_ellipsis(void **state)
{
	(void)state;
	char out[12];
	const struct kymo_arg args[] = {string_arg("0123456789€€€")};

	assert_int_equal(ky_print(out, 11, "%.10s", args, 1), 10);
	assert_string_equal(out, "0123456789");
	assert_int_equal(ky_print(out, 10, "%.10s", args, 1), 9);
	assert_string_equal(out, "012345…");
	assert_int_equal(ky_print(out, 12, "0123456€€€", NULL, 0), 10);
	assert_string_equal(out, "0123456…");
	assert_int_equal(ky_print(out, 3, "%s", args, 1), 2);
	assert_string_equal(out, "01");
	assert_int_equal(ky_print(out, 1, "%s", args, 1), 0);
	assert_string_equal(out, "");
	out[0] = 'x';
	assert_int_equal(ky_print(out, 0, "%s", args, 1), 0);
	assert_int_equal(out[0], 'x');
	assert_int_equal(ky_print(NULL, 0, "%s", args, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_without_conversions_stays),
		cmocka_unit_test(integers_look_as_printf_shows_them),
		cmocka_unit_test(doubles_look_as_printf_shows_them),
		cmocka_unit_test(strings_and_characters_look_as_printf_shows_them),
		cmocka_unit_test(pointers_look_as_printf_shows_them),
		cmocka_unit_test(stars_take_their_numbers_from_the_values),
		cmocka_unit_test(a_value_of_another_type_is_shown_as_what_it_is),
		cmocka_unit_test(a_value_that_is_not_there_is_missing),
		cmocka_unit_test(what_is_no_conversion_is_copied),
		cmocka_unit_test(percent_n_takes_its_value_and_does_nothing),
		cmocka_unit_test(width_and_precision_are_clamped),
		cmocka_unit_test(strings_that_were_cut_say_so),
		cmocka_unit_test(strings_end_where_their_length_or_a_nul_says),
		cmocka_unit_test(a_message_without_room_ends_with_an_ellipsis),
	};
	return cmocka_run_group_tests_name("print", tests, NULL, NULL);
}
