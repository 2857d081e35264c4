/* SPDX-License-Identifier: MIT */
/* b.c: another plug-in with a libkymo of its own. */
#include "plugin.h"

#include <kymo/kymo.h>

int plugin_work(int amount)
{
	KYMO_SCOPE("plugin", "b works", "amount", amount);
	KYMO_INSTANT("plugin", "b says", "what", "the last word is mine");
	return amount * (amount + 1) / 2;
}
