/* SPDX-License-Identifier: MIT */
/* capturing.h: recognizes a kymo that captures, by the signal that it blocks (capture/signals.h). */
#ifndef KY_CLI_CAPTURING_H
#define KY_CLI_CAPTURING_H

#include <stdbool.h>
#include <sys/types.h>

bool ky_capturing(pid_t pid);

#endif
