/* SPDX-License-Identifier: MIT */
/* inline_scopes.cc: the other translation unit of test_inline_scopes.cc, with scopes before the header. */
#include <kymo/kymo.h>

static const int numbers_before[] = {__COUNTER__, __COUNTER__, __COUNTER__};

#include "inline_scopes.h"

void receive_elsewhere(const connection &c)
{
	KYMO_SCOPE("net", "elsewhere", "numbers", numbers_before[2]);
	c.receive();
}
