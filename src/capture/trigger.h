/* SPDX-License-Identifier: MIT */
/*
 * trigger.h: what makes a flight recorder keep what led up to it.
 *
 *   exit  crash  interrupt  api  signal:USR1          by the capture itself
 *   symbol:NAME  line:FILE:LINE                       probe.h: the kernel tells when the code is reached
 *   span:CAT/NAME>5ms  gap:CAT/NAME>20ms
 *   counter:CAT/NAME>100                              watch.h: by looking at the events
 *
 * CAT and NAME are globs. '>' may be '<' for counters. A span fires when it has lasted too long, not when it ends:
 * so a hang is caught. A gap is the time from the end of one event of that name to the begin of the next, in one
 * process, and fires when it is too long.
 */
#ifndef KY_CAPTURE_TRIGGER_H
#define KY_CAPTURE_TRIGGER_H

#include "capture/bundle.h"

#include <sys/types.h>

enum ky_trigger_kind {
	KY_TRIGGER_EXIT,
	KY_TRIGGER_CRASH,
	KY_TRIGGER_INTERRUPT,
	KY_TRIGGER_API,
	KY_TRIGGER_SIGNAL,
	KY_TRIGGER_SYMBOL,
	KY_TRIGGER_LINE,
	KY_TRIGGER_SPAN,
	KY_TRIGGER_GAP,
	KY_TRIGGER_COUNTER
};

struct ky_trigger {
	enum ky_trigger_kind kind;
	char *text;   /* as given */
	int signal;   /* SIGNAL */
	char *symbol; /* SYMBOL: the name; "?" asks for it */
	char *file;   /* LINE: the end of a path */
	uint32_t line;
	char *category; /* SPAN, GAP, COUNTER: globs */
	char *name;
	int64_t limit_ns; /* SPAN, GAP */
	double limit;     /* COUNTER */
	bool below;       /* COUNTER: fires under the limit */
};

/* 0, or -EINVAL with one line: what is wrong, and how it is written. */
int ky_trigger_parse(struct ky_trigger *trigger, const char *text,
		     char message[KY_CAPTURE_MESSAGE_BYTES]);
void ky_trigger_free(struct ky_trigger *trigger);

/* What a trigger tells when it fires. */
struct ky_fired {
	const struct ky_trigger *trigger;
	uint64_t time_ns; /* CLOCK_BOOTTIME */
	int32_t pid;
	int32_t tid;
	uint32_t args_count;
	uint64_t args[2];
	const char *reason; /* until the call returns */
	const char *stack;  /* NULL: none */
};
typedef void (*ky_fired_fn)(void *context, const struct ky_fired *fired);

#endif
