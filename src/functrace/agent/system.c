/* SPDX-License-Identifier: MIT */
/* system.c: the agent's own libc, and the few functions of os/ that ring.c and heap.c use. */
#include "core/clock.h"
#include "functrace/agent/parts.h"

#include "os/os.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

extern const uint64_t ky_agent_table[] __attribute__((visibility("hidden")));

static bool is_sealed(void)
{
	const struct ky_agent_home *home =
		(const struct ky_agent_home *)(uintptr_t)ky_agent_table[0];
	return __atomic_load_n(&home->sealed, __ATOMIC_RELAXED) != 0;
}

int64_t ky_agent_system(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
			uint64_t f)
{
	register uint64_t r10 __asm__("r10") = d;
	register uint64_t r8 __asm__("r8") = e;
	register uint64_t r9 __asm__("r9") = f;
	int64_t result;
	if (is_sealed())
		return -EPERM;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

uint32_t ky_agent_pid(void)
{
	return (uint32_t)ky_agent_system(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

#define SIG_SETMASK_NUMBER 2

uint64_t ky_agent_block_signals(void)
{
	const uint64_t all = UINT64_MAX;
	uint64_t before = 0;
	ky_agent_system(SYS_rt_sigprocmask, SIG_SETMASK_NUMBER, (uintptr_t)&all, (uintptr_t)&before,
			sizeof(all), 0, 0);
	return before;
}

void ky_agent_unblock_signals(uint64_t mask)
{
	ky_agent_system(SYS_rt_sigprocmask, SIG_SETMASK_NUMBER, (uintptr_t)&mask, 0, sizeof(mask),
			0, 0);
}

/* The kernel reads the set before it finds that it has nothing to do with it. */
bool ky_agent_readable(uint64_t address)
{
	const uint64_t nothing = UINT64_MAX;
	return ky_agent_system(SYS_rt_sigprocmask, nothing, address & ~(sizeof(nothing) - 1), 0,
			       sizeof(nothing), 0, 0) == -EINVAL;
}

bool ky_os_thread_alive(int32_t pid, int32_t tid)
{
	const int64_t result =
		pid == KY_OS_ANY_PROCESS
			? ky_agent_system(SYS_tkill, (uint32_t)tid, 0, 0, 0, 0, 0)
			: ky_agent_system(SYS_tgkill, (uint32_t)pid, (uint32_t)tid, 0, 0, 0, 0);
	return result != -ESRCH;
}

uint64_t ky_drum_ticks(const struct ky_drum *drum)
{
	(void)drum;
	return __builtin_ia32_rdtsc();
}

/* Do nothing: kymo takes its own clock readings. */
void ky_clock_take(struct ky_drum *drum, bool force)
{
	(void)drum;
	(void)force;
}

void ky_cpu_clear(uint64_t *words, size_t count)
{
	__asm__ volatile("rep stosq" : "+D"(words), "+c"(count) : "a"(0) : "memory");
}

/* Compilers call these on their own; they must not be made of one another. */
void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
	void *const result = to;
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
	return result;
}

void *memset(void *to, int byte, size_t bytes)
{
	void *const result = to;
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(byte) : "memory");
	return result;
}

int memcmp(const void *a, const void *b, size_t bytes)
{
	const volatile uint8_t *x = a, *y = b;
	for (size_t i = 0; i < bytes; i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}
