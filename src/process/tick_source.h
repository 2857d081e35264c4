/* SPDX-License-Identifier: MIT */
/*
 * tick_source.h: the counter of another process's drum, read here. Processes of one machine share it,
 * so a reader of a drum can read the clocks for it.
 */
#ifndef KY_PROCESS_TICK_SOURCE_H
#define KY_PROCESS_TICK_SOURCE_H

#include "core/event.h"

/* Report whether this machine has the counter (enum ky_tick_source). */
bool ky_tick_source_is_here(uint32_t tick_source);
/* Read the counter, and with it the system's clocks. It must be here. */
uint64_t ky_tick_source_ticks(uint32_t tick_source);
struct ky_tick_reading ky_tick_source_now(uint32_t tick_source);

/* Report whether both readings are of one boot of one machine, and in one time namespace. */
bool ky_tick_source_same_boot(const struct ky_tick_reading *then,
			      const struct ky_tick_reading *now);

#endif
