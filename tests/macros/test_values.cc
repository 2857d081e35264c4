/* SPDX-License-Identifier: MIT */
/*
 * test_values.cc: what events keep of values that only C++ has: enum classes, strings, views, lambdas' results, and names
 * from strings.
 */
#include "../core/trace_event_record.inc.h"

#include <atomic>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <string>

extern "C" {
#include <cmocka.h>
}

namespace
{

enum class color : unsigned char { red = 3, blue = 200 };
enum class deep : long { below = -5000000000 };
struct flags {
	unsigned low : 3;
	int signed_low : 5;
	color hue : 8;
};
/* As std::string_view: characters, and no NUL after them. */
struct view {
	const char *characters;
	size_t count;
	const char *data() const
	{
		return characters;
	}
	size_t size() const
	{
		return count;
	}
};
struct limits {
	static const int most = 12; /* has no address: it is never defined */
};

const seen_arg *arg_of(const seen *event, uint32_t at, uint32_t type)
{
	assert_true(event && at < event->args_count);
	assert_int_equal(event->args[at].type, type);
	return &event->args[at];
}

void enums_and_bit_fields(void **)
{
	const flags bits = {6, -7, color::red};
	seen_start();
	KYMO_INSTANT("test", "enums", "color", color::blue, "deep", deep::below, "low", bits.low,
		     "signed", bits.signed_low, "hue", bits.hue, "most", limits::most);
	seen_stop();
	const seen *event = find(KYMO_KIND_INSTANT, "enums");
	assert_int_equal(arg_of(event, 0, KYMO_TYPE_UINT)->value.u, 200);
	assert_int_equal(arg_of(event, 1, KYMO_TYPE_INT)->value.i, -5000000000);
	assert_int_equal(arg_of(event, 2, KYMO_TYPE_UINT)->value.u, 6);
	assert_int_equal(arg_of(event, 3, KYMO_TYPE_INT)->value.i, -7);
	assert_int_equal(arg_of(event, 4, KYMO_TYPE_UINT)->value.u, 3);
	assert_int_equal(arg_of(event, 5, KYMO_TYPE_INT)->value.i, 12);
}

void strings(void **)
{
	const std::string text(40, 'x');
	const std::string longer(KYMO_STRING_MAX + 10, 'y');
	const view part = {text.data() + 1, 3};
	const view none = {nullptr, 0};
	const view all = {longer.data(), longer.size()};
	seen_start();
	KYMO_SCOPE("test", "strings", "text", text, "made", text + "!", "view", part, "none", none,
		   "long", all);
	seen_stop();
	const seen *event = find(KYMO_KIND_BEGIN, "strings");
	assert_string_equal(arg_of(event, 0, KYMO_TYPE_STRING)->string, text.c_str());
	assert_string_equal(arg_of(event, 1, KYMO_TYPE_STRING)->string, (text + "!").c_str());
	assert_string_equal(arg_of(event, 2, KYMO_TYPE_STRING)->string, "xxx");
	assert_string_equal(arg_of(event, 3, KYMO_TYPE_STRING)->string, "");
	assert_string_equal(arg_of(event, 4, KYMO_TYPE_STRING)->string,
			    longer.substr(0, KYMO_STRING_MAX).c_str());
	assert_true(event->args[4].cut && !event->args[2].cut);
}

void names_and_objects(void **)
{
	const std::string name = "a name";
	const std::atomic<int> counter(5);
	int calls = 0;
	seen_start();
	KYMO_INSTANT_DYN("test", name, "counter", counter, "null", nullptr);
	KYMO_BEGIN_DYN("test", name + " made");
	KYMO_INSTANT("test", "lambda", "calls", [&calls] { return ++calls; }());
	KYMO_INSTANT("off", "lambda off", "calls", [&calls] { return ++calls; }());
	seen_stop();
	const seen *event = find(KYMO_KIND_INSTANT, "a name");
	assert_int_equal(arg_of(event, 0, KYMO_TYPE_INT)->value.i, 5);
	assert_int_equal(arg_of(event, 1, KYMO_TYPE_POINTER)->value.u, 0);
	assert_non_null(find(KYMO_KIND_BEGIN, "a name made"));
	assert_int_equal(arg_of(find(KYMO_KIND_INSTANT, "lambda"), 0, KYMO_TYPE_INT)->value.i, 1);
	assert_int_equal(calls, 1);
}

} /* namespace */

int main()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(enums_and_bit_fields),
		cmocka_unit_test(strings),
		cmocka_unit_test(names_and_objects),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
