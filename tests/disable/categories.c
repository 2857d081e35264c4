/* SPDX-License-Identifier: MIT */
/*
 * categories.c: trace points of a category that is kept and of one that is not, when the program is
 * compiled with KYMO_STATIC_CATEGORIES. The names of the former say kept_, of the latter gone_.
 */
#include <kymo/kymo.h>

void categories(int n);

void categories(int n)
{
	KYMO_SCOPE("kept", "kept_scope", "kept_key", n);
	KYMO_SCOPE("gone", "gone_scope", "gone_key", n);
	KYMO_SCOPE_OVER("gone", "gone_over", 1000, "gone_key", n);
	KYMO_BEGIN("kept", "kept_begin");
	KYMO_BEGIN("gone", "gone_begin");
	KYMO_INSTANT("kept", "kept_instant", "kept_string", "kept_value");
	KYMO_INSTANT("gone", "gone_instant", "gone_string", "gone_value");
	KYMO_COUNTER("kept", "kept_counter", n);
	KYMO_COUNTER("gone", "gone_counter", n);
	KYMO_ASYNC_BEGIN("kept", "kept_async", n);
	KYMO_ASYNC_BEGIN("gone", "gone_async", n);
	KYMO_FLOW_END("kept", "kept_flow", n);
	KYMO_FLOW_END("gone", "gone_flow", n);
	KYMO_PRINT("kept", "kept_print %d", n);
	KYMO_PRINT("gone", "gone_print %d", n);
	if (KYMO_ENABLED("kept"))
		KYMO_END("kept", "kept_end", n);
	if (KYMO_ENABLED("gone"))
		KYMO_END("gone", "gone_end", n);
}
