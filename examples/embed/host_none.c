/* SPDX-License-Identifier: MIT */
/* host_none.c: a program that knows nothing of kymo. The library works; its trace points are off. */
#include "greeter.h"

int main(void)
{
	return greeter_greet("world", 1) > 0 ? 0 : 1;
}
