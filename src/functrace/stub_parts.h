/* SPDX-License-Identifier: MIT */
/*
 * stub_parts.h: how far apart the parts of a stub of kind CALL are, for those who find them from one another: the agent.
 * See stub.c for the parts.
 */
#ifndef KY_FUNCTRACE_STUB_PARTS_H
#define KY_FUNCTRACE_STUB_PARTS_H

#include "functrace/agent_abi.h"

#define KY_STUB_HOOK_BYTES 5u  /* jmp exit */
#define KY_STUB_SLOW_BYTES 13u /* lea data, jmp */
#define KY_STUB_GO_BYTES 24u   /* from "go" to the hook: three loads, lea, call */
#define KY_STUB_PLAIN_BYTES 3u /* three pops */
#define KY_STUB_DATA_AFTER_HOOK (KY_STUB_HOOK_BYTES + KY_STUB_SLOW_BYTES)
#define KY_STUB_BODY_AFTER_HOOK                                                                    \
	(KY_STUB_DATA_AFTER_HOOK + (uint32_t)sizeof(struct ky_agent_stub) + KY_STUB_PLAIN_BYTES)

#endif
