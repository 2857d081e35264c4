/* SPDX-License-Identifier: MIT */
/* profile.h: a sampling profiler of a few lines; see profile.c. */
#ifndef DEMO_PROFILE_H
#define DEMO_PROFILE_H

#include <stdint.h>

/* From now on notes which verb is being run, at even steps of CPU time. */
void profile_start(void);

/* Returns how many samples there were. No more come after it. */
uint64_t profile_stop(void);

#endif /* DEMO_PROFILE_H */
