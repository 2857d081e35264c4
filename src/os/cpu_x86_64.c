/* SPDX-License-Identifier: MIT */
/*
 * The counter of x86-64: the TSC, if CPUID reports that it has one rate on all cores and in all power states, and if the
 * kernel uses it as its clock source (in a virtual machine CPUID alone is not enough).
 */
#ifdef __x86_64__
#include "os/os.h"

#include "os/ticks.h"

#include <cpuid.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static bool kernel_uses_tsc(void)
{
	const int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
			    O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true; /* nothing known against it: a sandbox without /sys */
	char name[16] = {0};
	const ssize_t n = read(fd, name, sizeof(name) - 1);
	close(fd);
	return n <= 0 || strncmp(name, "tsc", 3) == 0 || strncmp(name, "kvm", 3) == 0 ||
	       strncmp(name, "hyperv", 6) == 0;
}

int ky_cpu_tick_source(void)
{
	unsigned a, b, c, d;
	if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & 1u << 8))
		return KY_TICKS_NONE;
	return kernel_uses_tsc() ? KY_TICKS_TSC : KY_TICKS_NONE;
}

#define AVX512VL (1u << 31) /* of b, leaf 7 */
#define OSXSAVE (1u << 27)  /* of c, leaf 1 */
#define XSAVEC (1u << 1)    /* of a, leaf 13.1 */
#define WIDE_STATE 0xe0u    /* what the kernel saves of them */

bool ky_cpu_is_wide(void)
{
	unsigned a, b, c, d, state = 0;
	if (__get_cpuid_max(0, NULL) < 13)
		return false;
	__cpuid(1, a, b, c, d);
	if (!(c & OSXSAVE))
		return false;
	__asm__("xgetbv" : "=a"(state), "=d"(d) : "c"(0));
	__cpuid_count(7, 0, a, b, c, d);
	const bool has = b & AVX512VL;
	__cpuid_count(13, 1, a, b, c, d);
	return has && (a & XSAVEC) && (state & WIDE_STATE) == WIDE_STATE;
}

uint64_t ky_cpu_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

void ky_cpu_clear(uint64_t *words, size_t count)
{
	__asm__ volatile("rep stosq" : "+D"(words), "+c"(count) : "a"(0) : "memory");
}

void ky_cpu_relax(void)
{
	__builtin_ia32_pause();
}
#else
typedef int ky_cpu_x86_64_unused;
#endif
