/* SPDX-License-Identifier: MIT */
/* hookable.h: functions for harness_hook(), in C and C++: not inlined, not cloned, with room for a jump. */
#ifndef KY_TESTS_HOOKABLE_H
#define KY_TESTS_HOOKABLE_H

#if defined(__clang__)
/*
 * The sanitizer of functions' types puts bytes of its own first. Without optnone the compiler sees what they do, and
 * omits calls.
 */
#define HOOKABLE                                                                                   \
	__attribute__((noinline, optnone, patchable_function_entry(5), aligned(16),                \
		       no_sanitize("function")))
#else
#define HOOKABLE __attribute__((noinline, noclone, patchable_function_entry(5), aligned(16), noipa))
#endif

#endif
