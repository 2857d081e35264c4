/* SPDX-License-Identifier: MIT */
/* capturing.h: which processes are a kymo that captures just now: what they block tells (signals.h). */
#ifndef KY_CLI_CAPTURING_H
#define KY_CLI_CAPTURING_H

#include <stdbool.h>
#include <sys/types.h>

bool ky_capturing(pid_t pid);

#endif
