/* SPDX-License-Identifier: MIT */
/*
 * effects.c: compiled out, no argument is evaluated, and a macro is one statement wherever a
 * statement may stand. Valid C11 and C++11. Exits with the number of calls that should not be.
 */
#include <kymo/kymo.h>

int touch(void);
const char *name_of(void);
static int calls;

int touch(void)
{
	return ++calls;
}

const char *name_of(void)
{
	calls++;
	return "name";
}

int main(void)
{
	KYMO_SCOPE("test", "scope", "value", touch());
	KYMO_SCOPE_DYN("test", name_of(), "value", touch());
	KYMO_SCOPE_OVER("test", "over", (uint64_t)touch(), "value", touch());
	if (calls)
		KYMO_BEGIN("test", "begin", "value", touch());
	else
		KYMO_BEGIN_DYN("test", name_of(), "value", calls++);
	KYMO_END("test", "value", touch());
	for (int i = 0; i < 2; i++)
		KYMO_INSTANT("test", "instant", "value", touch(), "string", name_of());
	KYMO_INSTANT_DYN("test", name_of());
	KYMO_COUNTER("test", "counter", touch());
	KYMO_COUNTER_DYN("test", name_of(), touch());
	KYMO_ASYNC_BEGIN("test", "async", touch(), "value", touch());
	KYMO_ASYNC_INSTANT("test", "async", touch());
	KYMO_ASYNC_END("test", "async", touch());
	KYMO_ASYNC_BEGIN_DYN("test", name_of(), touch());
	KYMO_FLOW_BEGIN("test", "flow", touch());
	KYMO_FLOW_STEP("test", "flow", touch());
	KYMO_FLOW_END("test", "flow", touch());
	KYMO_PRINT("test", "%d %s", touch(), name_of());
	if (KYMO_ENABLED("test"))
		touch();
	return calls;
}
