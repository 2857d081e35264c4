/* SPDX-License-Identifier: MIT */
/*
 * agent.h: the agent as bytes: src/functrace/agent/, compiled without libc for general registers only, linked flat
 * and position independent, with its read-only data inside and no writable data (all state is in the home and the
 * states).
 */
#ifndef KY_FUNCTRACE_AGENT_H
#define KY_FUNCTRACE_AGENT_H

#include <stddef.h>
#include <stdint.h>

extern const uint8_t ky_agent_code[];
extern const size_t ky_agent_code_bytes;
/*
 * The code begins with a table of offsets from its own start; kymo puts the home's address into the word at `home`
 * before it copies the code into a program.
 */
struct ky_agent_table {
	uint64_t home;                  /* filled by kymo: address of struct ky_agent_home */
	uint32_t slow_entry, slow_exit; /* targets of the stubs' slow paths */
	uint32_t find_fde, loader, cyg_enter, cyg_exit;
	uint32_t sandbox; /* of prctl() and syscall() */
	uint32_t pad;
};

#endif
