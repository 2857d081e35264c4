/* SPDX-License-Identifier: MIT */
/* test_trigger.c: what --trigger takes, and what it says about the rest. */
#include "capture/trigger.h"

#include <errno.h>
#include <locale.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct ky_trigger parse(const char *text)
{
	struct ky_trigger trigger;
	char message[KY_MESSAGE_BYTES] = "";
	if (ky_trigger_parse(&trigger, text, message) != 0)
		fail_msg("%s", message);
	assert_string_equal(trigger.text, text);
	return trigger;
}

static void check_kind(const char *text, enum ky_trigger_kind kind)
{
	struct ky_trigger trigger = parse(text);
	assert_int_equal(trigger.kind, kind);
	ky_trigger_free(&trigger);
	assert_null(trigger.text);
}

static void single_words(void **state)
{
	(void)state;
	check_kind("exit", KY_TRIGGER_EXIT);
	check_kind("crash", KY_TRIGGER_CRASH);
	check_kind("interrupt", KY_TRIGGER_INTERRUPT);
	check_kind("api", KY_TRIGGER_API);
}

static void check_signal(const char *text, int signal)
{
	struct ky_trigger trigger = parse(text);
	assert_int_equal(trigger.kind, KY_TRIGGER_SIGNAL);
	assert_int_equal(trigger.signal, signal);
	ky_trigger_free(&trigger);
}

static void signals_by_name_and_number(void **state)
{
	(void)state;
	check_signal("signal:USR1", SIGUSR1);
	check_signal("signal:SIGUSR2", SIGUSR2);
	check_signal("signal:10", 10);
	check_signal("signal:RTMIN", SIGRTMIN);
	check_signal("signal:SIGRTMIN+2", SIGRTMIN + 2);
	check_signal("signal:RTMAX-1", SIGRTMAX - 1);
}

static void symbols_are_taken_as_they_are(void **state)
{
	(void)state;
	struct ky_trigger trigger = parse("symbol:std::map<int, a/b>::operator->(int)");
	assert_string_equal(trigger.symbol, "std::map<int, a/b>::operator->(int)");
	ky_trigger_free(&trigger);
	trigger = parse("symbol:?");
	assert_string_equal(trigger.symbol, "?");
	ky_trigger_free(&trigger);
}

static void lines_of_files(void **state)
{
	(void)state;
	struct ky_trigger trigger = parse("line:src/a:b.c:120");
	assert_int_equal(trigger.kind, KY_TRIGGER_LINE);
	assert_string_equal(trigger.file, "src/a:b.c");
	assert_int_equal(trigger.line, 120);
	ky_trigger_free(&trigger);
}

static void check_event(const char *text, const char *category, const char *name)
{
	struct ky_trigger trigger = parse(text);
	assert_string_equal(trigger.category, category);
	assert_string_equal(trigger.name, name);
	ky_trigger_free(&trigger);
}

static void categories_and_names(void **state)
{
	(void)state;
	check_event("span:net/recv>5ms", "net", "recv");
	check_event("span:net*/?ecv>5ms", "net*", "?ecv");
	check_event("span:net/a/b>5ms", "net", "a/b");
	check_event("span:net/a->b>5ms", "net", "a->b");
	check_event("span:a\\/b/c\\>d>5ms", "a/b", "c>d");
	check_event("gap:net/a\\\\b\\c>5ms", "net", "a\\b\\c");
	check_event("counter:net/a\\<b<5", "net", "a<b");
	check_event("span:net/recv all>5ms", "net", "recv all");
}

static void check_limit(const char *text, int64_t limit_ns)
{
	struct ky_trigger trigger = parse(text);
	assert_int_equal(trigger.limit_ns, limit_ns);
	ky_trigger_free(&trigger);
}

static void durations(void **state)
{
	(void)state;
	check_limit("span:net/recv>5ms", 5000000);
	check_limit("span:net/recv>1.5s", 1500000000);
	check_limit("gap:net/recv>200us", 200000);
	check_limit("gap:net/recv>200\u00b5s", 200000);
	check_limit("gap:net/recv>2min", 120000000000);
	check_limit("gap:net/recv>10ns", 10);
}

static void check_value(const char *text, double limit, bool below)
{
	struct ky_trigger trigger = parse(text);
	assert_int_equal(trigger.kind, KY_TRIGGER_COUNTER);
	assert_true(trigger.limit == limit);
	assert_int_equal(trigger.below, below);
	ky_trigger_free(&trigger);
}

static void values_in_any_locale(void **state)
{
	(void)state;
	setlocale(LC_ALL, "de_DE.UTF-8"); /* where it is installed: a comma there */
	check_value("counter:net/queue>100", 100, false);
	check_value("counter:net/queue<-0.5", -0.5, true);
	check_value("counter:net/queue>1e6", 1e6, false);
	setlocale(LC_ALL, "C");
}

static void check_refused(const char *text, const char *part)
{
	struct ky_trigger trigger;
	char message[KY_MESSAGE_BYTES] = "";
	assert_int_equal(ky_trigger_parse(&trigger, text, message), -EINVAL);
	assert_null(trigger.text);
	assert_null(strchr(message, '\n'));
	if (!strstr(message, part))
		fail_msg("'%s' is not in '%s'", part, message);
}

static void what_is_wrong_is_said_with_what_is_right(void **state)
{
	(void)state;
	check_refused("", "use exit, crash");
	check_refused("exits", "use exit, crash");
	check_refused("signal:", "no such signal");
	check_refused("signal:NOPE", "signal:USR1");
	check_refused("signal:0", "no such signal");
	check_refused("signal:99", "no such signal");
	check_refused("signal:KILL", "USR1");
	check_refused("signal:RTMIN+99", "no such signal");
	check_refused("symbol:", "symbol:?");
	check_refused("line:a.c", "line:FILE:LINE");
	check_refused("line:a.c:0", "line:FILE:LINE");
	check_refused("line::3", "line:FILE:LINE");
	check_refused("span:net/recv", "span:net/recv>5ms");
	check_refused("span:recv>5ms", "category, '/', name");
	check_refused("span:/recv>5ms", "category, '/', name");
	check_refused("span:net/>5ms", "category, '/', name");
	check_refused("span:net\\/recv>5ms", "category, '/', name");
	check_refused("span:net/recv>", "not a duration");
	check_refused("span:net/recv>5parsecs", "not a duration");
	check_refused("span:net/recv>0", "above zero");
	check_refused("gap:net/recv>10", "has no unit: try 10ms");
	check_refused("span:net/recv>-5ms", "above zero");
	check_refused("span:net/recv<5ms", "'>'");
	check_refused("span:net,db/recv>5ms", "one category");
	check_refused("span:-net/recv>5ms", "one category");
	check_refused("counter:net/queue>", "not a number");
	check_refused("counter:net/queue>nan", "not a number");
	check_refused("counter:net/queue>0x10", "not a number");
	check_refused("counter:net/queue>1e999", "not a number");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(single_words),
		cmocka_unit_test(signals_by_name_and_number),
		cmocka_unit_test(symbols_are_taken_as_they_are),
		cmocka_unit_test(lines_of_files),
		cmocka_unit_test(categories_and_names),
		cmocka_unit_test(durations),
		cmocka_unit_test(values_in_any_locale),
		cmocka_unit_test(what_is_wrong_is_said_with_what_is_right),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
