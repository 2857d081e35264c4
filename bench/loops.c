/* SPDX-License-Identifier: MIT */
#include "loops.h"

#include <string.h>
#include <time.h>

#include <kymo/kymo.h>
#include <kymo/trace_event.h>

/* Nothing is known of i or of memory after this. */
#define BARRIER(i) __asm__ volatile("" : "+r"(i) : : "memory")
/* Functions begin and loops are entered at the same place in a cache line. */
#define LOOP_FUNCTION static __attribute__((noinline, aligned(64))) void

#define BARE_WORDS 512u

#if defined(__x86_64__) || defined(__aarch64__)
static inline uint64_t read_counter(void)
{
	uint64_t low, high;
	KYMO_I_READ_COUNTER(low, high);
	return high << 32 | low;
}
#else
static inline uint64_t read_counter(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
#endif

__attribute__((noinline, aligned(64))) void loop_bare(uint32_t iterations)
{
	static __thread uint64_t words[BARE_WORDS];
	volatile uint64_t *const to = words;
	for (uint32_t i = 0; i < iterations; i++) {
		to[2 * i % BARE_WORDS] = read_counter();
		to[2 * i % BARE_WORDS + 1] = i;
		BARRIER(i);
	}
}

__attribute__((noinline, aligned(64))) void loop_empty(uint32_t iterations)
{
	for (uint32_t i = 0; i < iterations; i++)
		BARRIER(i);
}

static const char *volatile text = "hello world"; /* 11 bytes that the compiler does not know */
static uint64_t enabled_count;

/* name, label, events and trace points in an iteration, what an iteration does */
#define POINTS(X, cat)                                                                             \
	X(scope, "scope", 2, 1, KYMO_SCOPE(cat, "scope"))                                          \
	X(begin_end, "begin and end", 2, 2, KYMO_BEGIN(cat, "begin"); KYMO_END(cat))               \
	X(instant, "instant", 1, 1, KYMO_INSTANT(cat, "instant"))                                  \
	X(int1, "instant, 1 integer", 1, 1, KYMO_INSTANT(cat, "int1", "a", i))                     \
	X(int2, "instant, 2 integers", 1, 1, KYMO_INSTANT(cat, "int2", "a", i, "b", iterations))   \
	X(int8, "instant, 8 integers", 1, 1,                                                       \
	  KYMO_INSTANT(cat, "int8", "a", i, "b", i, "c", i, "d", i, "e", i, "f", i, "g", i, "h",   \
		       i))                                                                         \
	X(scope_int2, "scope, 2 integers", 2, 1,                                                   \
	  KYMO_SCOPE(cat, "scope_int2", "a", i, "b", iterations))                                  \
	X(string, "instant, 11-byte string", 1, 1, KYMO_INSTANT(cat, "string", "s", text))         \
	X(int2_string, "instant, 2 integers and string", 1, 1,                                     \
	  KYMO_INSTANT(cat, "int2_string", "a", i, "b", iterations, "s", text))                    \
	X(dynamic, "instant, name from a variable", 1, 1, KYMO_INSTANT_DYN(cat, text))             \
	X(counter, "counter, integer", 1, 1, KYMO_COUNTER(cat, "counter", i))                      \
	X(counter_double, "counter, double", 1, 1, KYMO_COUNTER(cat, "double", (double)i))         \
	X(async, "async begin", 1, 1, KYMO_ASYNC_BEGIN(cat, "async", i))                           \
	X(flow, "flow begin", 1, 1, KYMO_FLOW_BEGIN(cat, "flow", i))                               \
	X(print, "print, 2 integers", 1, 1, KYMO_PRINT(cat, "%u of %u", i, iterations))            \
	X(enabled, "KYMO_ENABLED", 0, 1, if (KYMO_ENABLED(cat)) enabled_count++)                   \
	X(trace_event0, "TRACE_EVENT0", 2, 1, TRACE_EVENT0(cat, "event0"))                         \
	X(trace_event2, "TRACE_EVENT2, 2 integers", 2, 1,                                          \
	  TRACE_EVENT2(cat, "event2", "a", i, "b", iterations))

#define LOOP(function, ...)                                                                        \
	LOOP_FUNCTION function(uint32_t iterations)                                                \
	{                                                                                          \
		for (uint32_t i = 0; i < iterations; i++) {                                        \
			__VA_ARGS__;                                                               \
			BARRIER(i);                                                                \
		}                                                                                  \
	}
#define LOOP_ON(name, label, events, points, ...) LOOP(on_##name, __VA_ARGS__)
#define LOOP_OFF(name, label, events, points, ...) LOOP(off_##name, __VA_ARGS__)
POINTS(LOOP_ON, LOOPS_CATEGORY)
POINTS(LOOP_OFF, "bench-off")

#define LOOP_ENTRY(name, label, events, points, ...)                                               \
	{#name, label, events, points, on_##name, off_##name},
const struct loop loops[] = {POINTS(LOOP_ENTRY, "")};
const size_t loops_count = sizeof(loops) / sizeof(loops[0]);

const struct loop *loop_find(const char *name)
{
	for (size_t i = 0; i < loops_count; i++)
		if (strcmp(loops[i].name, name) == 0)
			return &loops[i];
	return NULL;
}
