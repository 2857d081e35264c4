/* SPDX-License-Identifier: MIT */
/* copy_plugin.c: a plugin with a copy of the library of its own, which it does not export. */
#include <kymo/kymo.h>

__attribute__((visibility("default"))) void plugin_work(unsigned from, unsigned count);

void plugin_work(unsigned from, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		KYMO_INSTANT("plugin", "work", "number", from + i);
}
