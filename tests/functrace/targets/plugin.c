/* SPDX-License-Identifier: MIT */
/* plugin.c: a library that loader.c loads and unloads. */
__attribute__((visibility("default"))) unsigned long plugin_work(unsigned long x);
__attribute__((visibility("default"))) unsigned long plugin_twice(unsigned long x);

__attribute__((noinline)) unsigned long plugin_twice(unsigned long x)
{
	__asm__ volatile("");
	return x * 2;
}

unsigned long plugin_work(unsigned long x)
{
	return plugin_twice(x) + 1;
}
