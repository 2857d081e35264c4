/* SPDX-License-Identifier: MIT */
/* agent_none.c: there is no agent for this CPU. */
#include "functrace/agent.h"

const uint8_t ky_agent_code[1] = {0};
const size_t ky_agent_code_bytes = 0;
