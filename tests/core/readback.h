/* SPDX-License-Identifier: MIT */
/*
 * readback.h: for the tests of the recorder. There is one drum in a process, so a test that wants a
 * fresh one runs in a child; what it recorded is read back there, through the same code as everywhere.
 */
#ifndef KY_TESTS_READBACK_H
#define KY_TESTS_READBACK_H

#include "core/drum.h"
#include "core/stream.h"

/* In a child cmocka's own assertions would go back to the parent's test. */
#define CHECK(condition) ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition))
_Noreturn void check_failed(const char *file, int line, const char *condition);

/* Runs body in a child; 0 when every check held, else what it ended with. */
int in_child(void (*body)(void));

/* Whether the address or thread sanitizer is in this program: it has its own idea of some limits. */
bool sanitized(void);
/* The latter: it holds signals back and runs the handlers when it thinks fit. */
bool thread_sanitized(void);

struct readback {
	uint64_t events;
	uint64_t lost; /* all together: overwritten, without a ring, nested too deep */
	uint64_t overwritten;
	uint64_t damaged;
};
typedef void readback_fn(void *context, const struct ky_event *event);
/* All that this process's drum holds. */
struct readback readback(readback_fn *on_event, void *context);

/* The value of the event's argument of that name; fails when there is none. */
const struct kymo_arg *readback_arg(const struct ky_event *event, const char *key);

#endif
