/* SPDX-License-Identifier: MIT */
/* plugin.c: a library that libraries.c loads and unloads again and again. */
#include "torture.h"

static uint64_t begun;

__attribute__((constructor)) static void begin(void)
{
	begun = 5;
}

static NOINLINE uint64_t plugin_work(uint64_t value, int depth)
{
	if (depth > 0)
		value = plugin_work(value, depth - 1);
	KEEP(value);
	return mix(value, (uint64_t)depth + begun);
}

uint64_t plugin_run(uint64_t value, uint64_t (*back)(uint64_t));
uint64_t plugin_run(uint64_t value, uint64_t (*back)(uint64_t))
{
	for (int i = 0; i < 10; i++)
		value = back(plugin_work(value, i));
	return value;
}

__attribute__((destructor)) static void end(void)
{
	begun = plugin_work(begun, 3);
}
