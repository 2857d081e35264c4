/* SPDX-License-Identifier: MIT */
/* memory.c: see memory.h. */
#include "base/memory.h"

#include <stdatomic.h>

static atomic_uint failures;

void ky_memory_missing(void)
{
	atomic_fetch_add_explicit(&failures, 1, memory_order_relaxed);
}

unsigned ky_memory_failures(void)
{
	return atomic_load_explicit(&failures, memory_order_relaxed);
}
