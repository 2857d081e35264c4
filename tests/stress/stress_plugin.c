/* SPDX-License-Identifier: MIT */
/* stress_plugin.c: a plugin with a copy of the library of its own, which records as the program does. */
#include <kymo/kymo.h>

__attribute__((visibility("default"))) void plugin_record(uint32_t stream, uint64_t number,
							  uint32_t check);

void plugin_record(uint32_t stream, uint64_t number, uint32_t check)
{
	KYMO_INSTANT("stress", "plugin", "stream", stream, "number", number, "check", check);
}
