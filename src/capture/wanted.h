/* SPDX-License-Identifier: MIT */
/*
 * wanted.h: the categories that a user names, in a list and in triggers: which of them a program has, and which names are
 * like those that none has.
 */
#ifndef KY_CAPTURE_WANTED_H
#define KY_CAPTURE_WANTED_H

#include "base/fail.h"
#include "capture/trigger.h"

struct ky_wanted;

/* categories: globs, or NULL; triggers stay the caller's. Return 0 or -ENOMEM. */
int ky_wanted_open(struct ky_wanted **wanted, const char *categories,
		   const struct ky_trigger *triggers, uint32_t count);
void ky_wanted_close(struct ky_wanted **wanted);
/* Report whether something is still missing. */
bool ky_wanted_misses(const struct ky_wanted *wanted);
/* Take a category that a program has. */
void ky_wanted_category(struct ky_wanted *wanted, const char *category);
/* Describe the next one from *at on that no program has; false: there are no more. */
bool ky_wanted_missing(const struct ky_wanted *wanted, uint32_t *at,
		       char message[KY_MESSAGE_BYTES]);

#endif
