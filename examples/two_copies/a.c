/* SPDX-License-Identifier: MIT */
/* a.c: a plug-in with a libkymo of its own, linked statically. */
#include "plugin.h"

#include <kymo/kymo.h>

int plugin_work(int amount)
{
	KYMO_SCOPE("plugin", "a works", "amount", amount);
	int sum = 0;
	for (int i = 1; i <= amount; i++) {
		KYMO_COUNTER("plugin", "a", i);
		sum += i;
	}
	return sum;
}
