/* SPDX-License-Identifier: MIT */
/* dlopen_plugin.c: an instrumented library that test_dlopen.c loads and unloads. */
#include <kymo/kymo.h>

void plugin_trace(uint32_t number);
uint32_t plugin_calls(void);

static uint32_t calls; /* 0 again when the library was really unloaded */

void plugin_trace(uint32_t number)
{
	KYMO_SCOPE("plugin", "work", "number", number);
	KYMO_INSTANT("plugin", "point", "text", "from the plugin", "number", number);
	calls++;
}

uint32_t plugin_calls(void)
{
	return calls;
}
