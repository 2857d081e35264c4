/* SPDX-License-Identifier: MIT */
/* test_scope_exits.cc: the same in C++, and exceptions: through scopes, and out of an argument. */
#include "scope_exits.inc.h"

static int fails()
{
	throw 1;
}

static void leave_by_exception(bool in_argument)
{
	KYMO_SCOPE("t", "exception");
	KYMO_SCOPE_OVER("t", "slow", 1000000000);
	if (in_argument) {
		KYMO_SCOPE("t", "never", "value", fails());
	}
	throw 2;
}

static void catch_it(bool in_argument)
{
	KYMO_SCOPE("t", "try");
	try {
		leave_by_exception(in_argument);
	} catch (int) {
		KYMO_SCOPE("t", "catch");
	}
}

int main()
{
	const int subscription = kymo_subscribe(on_events, nullptr, "t");
	if (subscription < 0 || leave_by_return(1) != 1)
		return 1;
	leave_by_goto();
	leave_by_break_and_continue();
	catch_it(false);
	catch_it(true);
	kymo_unsubscribe(subscription);
	return check_seen(EXITS_EXPECTED "(t(e(s))(c))(t(e(s))(c))");
}
