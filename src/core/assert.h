/* SPDX-License-Identifier: MIT */
/*
 * assert.h: check an invariant that only a bug can break, in debug builds (meson -Db_ndebug=false). A release build
 * has no code for it: code inside a traced program never aborts it. Nor has the agent, which has no libc.
 */
#ifndef KY_CORE_ASSERT_H
#define KY_CORE_ASSERT_H

#if defined(NDEBUG) || !__STDC_HOSTED__
#define KY_ASSERT(condition) ((void)sizeof(!(condition)))
#else
#include <assert.h>
#define KY_ASSERT(condition) assert(condition)
#endif

#endif
