/* SPDX-License-Identifier: MIT */
/*
 * probe_args.c: see probe_parts.h. A record has the registers in the order of their numbers. Where the CPU is
 * not known here, hits have no arguments.
 */
#include "capture/probe_parts.h"

#include <asm/perf_regs.h>

#if defined(__x86_64__)
const struct ky_probe_args ky_probe_args = {
	.mask = UINT64_C(1) << PERF_REG_X86_DI | UINT64_C(1) << PERF_REG_X86_SI,
	.first = PERF_REG_X86_DI > PERF_REG_X86_SI,
	.second = PERF_REG_X86_SI > PERF_REG_X86_DI,
};
#elif defined(__aarch64__)
const struct ky_probe_args ky_probe_args = {
	.mask = UINT64_C(1) << PERF_REG_ARM64_X0 | UINT64_C(1) << PERF_REG_ARM64_X1,
	.first = 0,
	.second = 1,
};
#else
const struct ky_probe_args ky_probe_args = {.mask = 0};
#endif
