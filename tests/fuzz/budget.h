/* SPDX-License-Identifier: MIT */
/* budget.h: how much memory an input may take; see budget.c. A target that needs more than the usual defines its own. */
#ifndef KY_FUZZ_BUDGET_H
#define KY_FUZZ_BUDGET_H

#include <stdint.h>

extern uint64_t fuzz_budget_bytes;    /* whatever the input */
extern uint64_t fuzz_budget_per_byte; /* and for each of its bytes */

#endif
