/* SPDX-License-Identifier: MIT */
/* No usable counter: the recorder uses CLOCK_MONOTONIC. */
#if !defined(__x86_64__) && !defined(__aarch64__)
#include "os/os.h"

#include "os/ticks.h"

int ky_cpu_tick_source(void)
{
	return KY_TICKS_NONE;
}

uint64_t ky_cpu_ticks(void)
{
	return 0;
}

void ky_cpu_clear(uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		__atomic_store_n(&words[i], 0, __ATOMIC_RELAXED);
}

void ky_cpu_relax(void)
{
}
#else
typedef int ky_cpu_other_unused;
#endif
