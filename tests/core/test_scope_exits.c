/* SPDX-License-Identifier: MIT */
/* test_scope_exits.c: return, goto, break and continue end the spans of a block, in C. */
#include "scope_exits.inc.h"

int main(void)
{
	const int subscription = kymo_subscribe(on_events, NULL, "t");
	if (subscription < 0 || leave_by_return(1) != 1)
		return 1;
	leave_by_goto();
	leave_by_break_and_continue();
	kymo_unsubscribe(subscription);
	return check_seen(EXITS_EXPECTED);
}
