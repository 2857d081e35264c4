/* SPDX-License-Identifier: MIT */
/* The counter of arm64: the virtual timer's count, which the architecture makes constant. */
#ifdef __aarch64__
#include "os/os.h"

#include "os/ticks.h"

int ky_cpu_tick_source(void)
{
	return KY_TICKS_CNTVCT;
}

uint64_t ky_cpu_ticks(void)
{
	uint64_t ticks;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}

void ky_cpu_clear(uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		__atomic_store_n(&words[i], 0, __ATOMIC_RELAXED);
}

void ky_cpu_relax(void)
{
	__asm__ volatile("yield");
}
#else
typedef int ky_cpu_aarch64_unused;
#endif
