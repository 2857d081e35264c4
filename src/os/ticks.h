/* SPDX-License-Identifier: MIT */
/* ticks.h: the unit of time stamps. The numbers are part of the drum's layout. */
#ifndef KY_OS_TICKS_H
#define KY_OS_TICKS_H

enum ky_tick_source {
	KY_TICKS_NONE = 0,
	KY_TICKS_TSC = 1,      /* x86 */
	KY_TICKS_CNTVCT = 2,   /* arm64 */
	KY_TICKS_MONOTONIC = 3 /* CLOCK_MONOTONIC in nanoseconds */
};

#endif
