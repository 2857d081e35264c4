/* SPDX-License-Identifier: MIT */
/*
 * hooked_returns.h: the stack of a process whose calls are traced by the patch engine, as it would be without it: return
 * addresses lead to stubs there, and the agent's return slots have those that were replaced (agent_abi.h). x86-64 alone.
 */
#ifndef KY_FUNCTRACE_HOOKED_RETURNS_H
#define KY_FUNCTRACE_HOOKED_RETURNS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ky_hooked_returns {
	int memory;                    /* /proc/PID/mem; -1: not open */
	uint64_t stubs_from, stubs_to; /* both 0: the process has no stubs */
	uint64_t directory;
};

/* Open the memory of a process that may be read by ptrace. Return 0 or -errno. */
int ky_hooked_returns_open(struct ky_hooked_returns *returns, pid_t pid);
void ky_hooked_returns_close(struct ky_hooked_returns *returns);
/* Read a word of the stack; of a return address that was replaced, the one that was there. */
bool ky_hooked_returns_read(const struct ky_hooked_returns *returns, uint64_t address,
			    uint64_t *word);

#endif
