/* SPDX-License-Identifier: MIT */
/*
 * trigger.h: the triggers of a flight recorder. Each makes it keep what led up to it.
 *
 * KY_TRIGGER_KINDS is the only list of them: the enum, parsing, error texts, help, man page and completion follow from
 * it. To add a trigger, add a row here, its parser in trigger.c, and the detection in the part that finds it.
 *
 * CAT and NAME are globs. '>' may be '<' for counters. A span fires when it has lasted too long, not when it ends, so
 * that a hang is caught. A gap is the time from the end of one event of that name to the beginning of the next, in one
 * process, and fires when it is too long.
 */
#ifndef KY_CAPTURE_TRIGGER_H
#define KY_CAPTURE_TRIGGER_H

#include "capture/bundle.h"

#include <sys/types.h>

/* X(kind, head, argument, finder, parser, help): a head without an argument is the whole trigger. */
#define KY_TRIGGER_KINDS(X)                                                                        \
	X(EXIT, "exit", "", CAPTURE, nothing, "a process ends")                                    \
	X(CRASH, "crash", "", CRASH_WATCH, nothing,                                                \
	  "a signal ends a process; records which, in which thread and where")                     \
	X(INTERRUPT, "interrupt", "", CAPTURE, nothing, "Ctrl-C or SIGINT")                        \
	X(API, "api", "", WATCH, nothing,                                                          \
	  "the program calls kymo_snapshot(), or a KYMO_SCOPE_OVER took too long")                 \
	X(SIGNAL, "signal:", "USR1", CAPTURE, signal,                                              \
	  "this signal is sent to kymo, which does not pass it on")                                \
	X(SYMBOL, "symbol:", "NAME", PROBES, symbol,                                               \
	  "a function is called; symbol:? opens a list to choose from")                            \
	X(LINE, "line:", "FILE:LINE", PROBES, line, "a source line is reached")                    \
	X(SPAN, "span:", "CAT/NAME>5ms", WATCH, span,                                              \
	  "a span lasts longer than this; fires while it is still open")                           \
	X(GAP, "gap:", "CAT/NAME>20ms", WATCH, gap,                                                \
	  "after an event of that name ends, none begins for longer than this")                    \
	X(COUNTER, "counter:", "CAT/NAME>100", WATCH, counter,                                     \
	  "a counter rises above (with '<': falls below) the value")

#define KY_TRIGGER_ENUM(kind, head, argument, finder, parser, help) KY_TRIGGER_##kind,
enum ky_trigger_kind { KY_TRIGGER_KINDS(KY_TRIGGER_ENUM) KY_TRIGGER_KINDS_COUNT };
#undef KY_TRIGGER_ENUM

/* The part of a capture that finds a trigger; it is opened when one of its triggers is given. */
enum ky_trigger_finder {
	KY_TRIGGER_BY_CAPTURE,     /* the loop: signals, and processes that end */
	KY_TRIGGER_BY_CRASH_WATCH, /* crash_watch.h */
	KY_TRIGGER_BY_WATCH,       /* watch.h: looks at the events in the buffers */
	KY_TRIGGER_BY_PROBES       /* probe.h: the kernel reports when code is reached */
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

/* Report whether any of the triggers is found by this part. */
bool ky_trigger_needs(const struct ky_trigger *triggers, uint32_t count,
		      enum ky_trigger_finder finder);
/* Return the last of the triggers that is of this kind; NULL: none. */
const struct ky_trigger *ky_trigger_find(const struct ky_trigger *triggers, uint32_t count,
					 enum ky_trigger_kind kind);
/* Return 0, or -EINVAL with one line: what is wrong, and the correct form. */
int ky_trigger_parse(struct ky_trigger *trigger, const char *text, char message[KY_MESSAGE_BYTES]);
void ky_trigger_free(struct ky_trigger *trigger);

/* One firing of a trigger. */
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
