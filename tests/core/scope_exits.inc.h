/* SPDX-License-Identifier: MIT */
/*
 * scope_exits.inc.h: every way out of a block ends its spans, innermost first. Included by
 * test_scope_exits.c and, with exceptions, by test_scope_exits.cc.
 */
#include <kymo/session.h>

#include <stdio.h>
#include <string.h>

static char seen[4096]; /* "(" and the name's first letter for a begin, ")" for an end */

static void on_events(const struct kymo_event *events, size_t count, void *context)
{
	(void)context;
	for (size_t i = 0; i < count; i++) {
		const size_t used = strlen(seen);
		if (events[i].kind == KYMO_KIND_BEGIN)
			snprintf(seen + used, sizeof(seen) - used, "(%c", events[i].name[0]);
		else if (events[i].kind == KYMO_KIND_END)
			snprintf(seen + used, sizeof(seen) - used, ")");
	}
}

static int leave_by_return(int n)
{
	KYMO_SCOPE("t", "return", "n", n);
	if (n) {
		KYMO_SCOPE("t", "inner", "text", "abc");
		return n;
	}
	return 0;
}

static void leave_by_goto(void)
{
	KYMO_SCOPE("t", "outer");
	{
		KYMO_SCOPE("t", "goto");
		{
			KYMO_SCOPE("t", "deep");
			goto out;
		}
	}
out:
	return;
}

static void leave_by_break_and_continue(void)
{
	for (int i = 0; i < 3; i++) {
		KYMO_SCOPE("t", "loop");
		if (i == 0)
			continue;
		break;
	}
}

/* What all of the above must look like, in this order. */
#define EXITS_EXPECTED "(r(i))(o(g(d)))(l)(l)"

static int check_seen(const char *expected)
{
	if (strcmp(seen, expected) == 0)
		return 0;
	printf("saw %s instead of %s\n", seen, expected);
	return 1;
}
