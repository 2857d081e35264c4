/* SPDX-License-Identifier: MIT */
/*
 * notice.h: tell the person who set an environment variable that it cannot work. The program goes on without it; without a
 * word they would look for a trace that is nowhere.
 */
#ifndef KY_CORE_NOTICE_H
#define KY_CORE_NOTICE_H

#include <stdbool.h>

/* X(constant, variable): those that can be wrong. */
#define KY_NOTICE_VARIABLES(X)                                                                     \
	X(KY_NOTICE_TRACE, "KYMO_TRACE")                                                           \
	X(KY_NOTICE_CATEGORIES, "KYMO_CATEGORIES")                                                 \
	X(KY_NOTICE_MODE, "KYMO_MODE")                                                             \
	X(KY_NOTICE_BUFFER, "KYMO_BUFFER")                                                         \
	X(KY_NOTICE_LIMITS, "KYMO_LIMITS")                                                         \
	X(KY_NOTICE_DRUM_DIR, "KYMO_DRUM_DIR")

enum ky_notice_variable {
#define KY_NOTICE_ENUM(constant, variable) constant,
	KY_NOTICE_VARIABLES(KY_NOTICE_ENUM)
#undef KY_NOTICE_ENUM
		KY_NOTICE_VARIABLES_COUNT
};

/* Remember what standard error is now, and whether KYMO_QUIET wants silence. When the library is loaded. */
void ky_notice_prepare(void);

/*
 * Print "kymo: VARIABLE=value: cause: remedy" to standard error, once for each variable in a process. Do nothing if the program has made
 * something else of the descriptor, or if that would block. remedy may be NULL. Not for events: it makes system calls.
 */
__attribute__((cold)) void ky_notice(enum ky_notice_variable variable, const char *value,
				     const char *cause, const char *remedy);

/* Tell why there is no shared memory for events (ky_drum_error()), and what helps. dir: KYMO_DRUM_DIR is set. */
const char *ky_notice_drum_cause(int error);
const char *ky_notice_drum_remedy(int error, bool dir);

#endif
