/* SPDX-License-Identifier: MIT */
/*
 * event.h: an event as the writers see it: decoded, checked, in nanoseconds, with its trace point and thread as objects
 * that a writer can key its own tables by (their index is dense and starts at 0). Sites and threads live as long as the
 * reader that made the events; args and strings of an event only until the next one.
 */
#ifndef KY_CORE_EVENT_H
#define KY_CORE_EVENT_H

#include <kymo/session.h>
#include <stdbool.h>
#include <stdint.h>

struct ky_text {
	const char *data; /* NUL-terminated as well */
	uint32_t bytes;
};

/* The last of enum kymo_kind. A kind that an emitter or reader does not know is an instant there. */
#define KY_EVENT_KIND_LAST KYMO_KIND_LOST

/* Report whether a trace point may have this kind; only readers make LOST. */
static inline bool ky_event_kind_is_recorded(uint8_t kind)
{
	return kind > KYMO_KIND_NONE && kind <= KY_EVENT_KIND_LAST && kind != KYMO_KIND_LOST;
}

/* A trace point. */
struct ky_site {
	uint32_t index;
	uint32_t category_index; /* dense, 0 and up: equal for equal categories */
	uint8_t kind;            /* enum kymo_kind */
	uint8_t flags;           /* KYMO_SITE_ */
	uint8_t items;           /* leading items and arguments */
	uint8_t args;            /* arguments alone */
	uint32_t line;
	uint64_t types;
	struct ky_text category;
	struct ky_text name; /* empty when each event has its own */
	struct ky_text file;
	struct ky_text function;
	struct ky_text keys[KYMO_ARGS_MAX];
};

struct ky_thread {
	uint32_t index;
	int32_t pid;
	int32_t tid;
	struct ky_text name;  /* when it changes, the writer's thread() is called again */
	uint64_t named_ticks; /* when the block began that the name is from */
	int32_t alias;        /* .kymo: what its pieces have instead of tid; 0: tid */
};

struct ky_event {
	uint8_t kind;    /* enum kymo_kind; a scope's second event has KYMO_KIND_END */
	bool begin_lost; /* BEGIN: made up, because the real one was overwritten */
	uint32_t args_count;
	uint64_t time_ns;           /* CLOCK_BOOTTIME */
	uint64_t id;                /* async, flow, object; LOST: how many events are missing */
	const struct ky_site *site; /* NULL for LOST */
	const struct ky_thread *thread;
	struct ky_text name; /* the site's or the event's own; PRINT: the formatted message */
	const struct kymo_arg *args;
};

/* The counter and all clocks at one moment, to tie them together. */
struct ky_tick_reading {
	uint64_t ticks;
	uint64_t boottime_ns;
	uint64_t monotonic_ns;
	uint64_t realtime_ns;
};

#endif
