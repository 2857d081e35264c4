/* SPDX-License-Identifier: MIT */
/*
 * budget.c: a fuzz target may take only so much memory and CPU time for each byte of its input: a small file that claims to be
 * large must not cost what a large one does. It is linked with every target, under --wrap for the target's function and for
 * those that allocate; what libraries take for themselves is not counted.
 *
 * The memory is the most that was allocated at a time, which is the same in every run. Time depends on the machine: it is
 * checked only with FUZZ_CPU in the environment, as `make fuzz` sets it. FUZZ_BUDGET prints what each input takes.
 */
#include "budget.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define MIB (1u << 20)
#define CPU_MS 4000u /* for any input, with sanitizers, on a slow machine */
#define CPU_US_PER_BYTE 200u

/* A target may have its own. */
__attribute__((weak)) uint64_t fuzz_budget_bytes = 6 * MIB;
__attribute__((weak)) uint64_t fuzz_budget_per_byte = 1024;

int __real_LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void __real_free(void *old);
void *__real_mmap(void *at, size_t bytes, int allowed, int flags, int fd, off_t from);
void *__real_mremap(void *old, size_t had, size_t bytes, int flags);
int __real_munmap(void *old, size_t bytes);

int __wrap_LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void __wrap_free(void *old);
void *__wrap_mmap(void *at, size_t bytes, int allowed, int flags, int fd, off_t from);
void *__wrap_mremap(void *old, size_t had, size_t bytes, int flags);
int __wrap_munmap(void *old, size_t bytes);

static atomic_llong live, most;

static void count(long long bytes)
{
	const long long now = atomic_fetch_add(&live, bytes) + bytes;
	long long seen = atomic_load(&most);
	while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
		;
}

static long long bytes_of(void *memory)
{
	return memory ? (long long)malloc_usable_size(memory) : 0;
}

void *__wrap_malloc(size_t bytes)
{
	void *const memory = __real_malloc(bytes);
	count(bytes_of(memory));
	return memory;
}

void *__wrap_calloc(size_t number, size_t bytes)
{
	void *const memory = __real_calloc(number, bytes);
	count(bytes_of(memory));
	return memory;
}

void *__wrap_realloc(void *old, size_t bytes)
{
	const long long had = bytes_of(old);
	void *const memory = __real_realloc(old, bytes);
	if (memory || !bytes)
		count(bytes_of(memory) - had);
	return memory;
}

void __wrap_free(void *old)
{
	count(-bytes_of(old));
	__real_free(old);
}

void *__wrap_mmap(void *at, size_t bytes, int allowed, int flags, int fd, off_t from)
{
	void *const memory = __real_mmap(at, bytes, allowed, flags, fd, from);
	if (memory != MAP_FAILED && (flags & MAP_ANONYMOUS))
		count((long long)bytes);
	return memory;
}

void *__wrap_mremap(void *old, size_t had, size_t bytes, int flags)
{
	void *const memory = __real_mremap(old, had, bytes, flags);
	if (memory != MAP_FAILED)
		count((long long)bytes - (long long)had);
	return memory;
}

/* What is unmapped may be a file: then live is too small by so much, until the next input. */
int __wrap_munmap(void *old, size_t bytes)
{
	count(-(long long)bytes);
	return __real_munmap(old, bytes);
}

static uint64_t cpu_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static void judge(const char *what, uint64_t taken, uint64_t allowed, size_t bytes)
{
	if (taken <= allowed)
		return;
	fprintf(stderr, "fuzz: %llu %s for an input of %zu bytes, which may take %llu\n",
		(unsigned long long)taken, what, bytes, (unsigned long long)allowed);
	abort();
}

int __wrap_LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const uint64_t began = cpu_us();
	atomic_store(&live, 0);
	atomic_store(&most, 0);
	const int result = __real_LLVMFuzzerTestOneInput(data, bytes);
	const uint64_t us = cpu_us() - began;
	const uint64_t peak = (uint64_t)atomic_load(&most);
	if (getenv("FUZZ_BUDGET"))
		fprintf(stderr, "fuzz: input %zu bytes, memory %llu, cpu %llu us\n", bytes,
			(unsigned long long)peak, (unsigned long long)us);
	judge("bytes of memory", peak, fuzz_budget_bytes + fuzz_budget_per_byte * bytes, bytes);
	if (getenv("FUZZ_CPU"))
		judge("us of CPU time", us, CPU_MS * 1000u + (uint64_t)CPU_US_PER_BYTE * bytes,
		      bytes);
	return result;
}
