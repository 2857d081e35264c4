/* SPDX-License-Identifier: MIT */
/*
 * watch_state.h: the state of a watch, for watch*.c.
 *
 *   watch ─ processes ─┬─ sites      which triggers each trace point concerns, decided once
 *                      ├─ threads    a stack of all open spans, those with triggers marked
 *                      ├─ asyncs     open asynchronous spans with triggers
 *                      ├─ gaps       one for each gap: trigger
 *                      └─ series     counters with triggers
 *
 * A set of triggers is a word with a bit for each. Stacks hold the spans without triggers too, because KYMO_END ends the
 * innermost span; they cost a push and a pop.
 *
 * Everything that a program can make grow is bounded; what exceeds a bound is counted in dropped and not watched.
 */
#ifndef KY_CAPTURE_WATCH_STATE_H
#define KY_CAPTURE_WATCH_STATE_H

#include "base/map.h"
#include "base/nearest.h"
#include "capture/watch.h"
#include "core/span_stack.h"

#define KY_WATCH_TRIGGERS_MAX 64u
#define KY_WATCH_DEPTH_MAX 1024u
#define KY_WATCH_ASYNCS_MAX 65536u
#define KY_WATCH_THREADS_MAX 65536u
#define KY_WATCH_SERIES_MAX 65536u
#define KY_WATCH_SITES_MAX 1048576u
#define KY_WATCH_RECENT 256u /* a power of two */

struct ky_watch_series {
	uint64_t beyond; /* triggers whose limit it exceeds */
};

struct ky_watch_site {
	const struct ky_site *site;
	/* To recognise it: a site of a later drum may have the same address. */
	const char *category;
	const char *name;
	uint32_t line;
	bool named;        /* each event brings its name: triggers is by category only */
	uint64_t triggers; /* that it concerns */
	struct ky_watch_series *series; /* COUNTER with a name of its own, once seen */
};

struct ky_watch_span {
	const struct ky_site *site; /* first: an item of a span stack */
	uint64_t begin_ns;
	uint64_t triggers; /* that it concerns */
	uint64_t fired;    /* of these */
	char *name;        /* copy of the name that the event brought, else NULL */
	int32_t tid;
};

struct ky_watch_thread {
	struct ky_span_stack stack; /* of struct ky_watch_span */
	uint32_t watched;           /* open spans with triggers */
};

struct ky_watch_async {
	struct ky_watch_span span; /* site is NULL: free */
	uint64_t key, id;
	uint32_t
		below; /* 1 + the one of the same key that was opened before; or the next free one */
};

struct ky_watch_gap {
	uint64_t last_end_ns;
	uint32_t open;
	bool known; /* last_end_ns is */
	bool fired; /* in this gap */
};

struct ky_watch_process {
	pid_t pid;
	struct ky_watch_site *recent[KY_WATCH_RECENT];
	struct ky_pair_map sites;   /* address → struct ky_watch_site * */
	struct ky_pair_map threads; /* address → struct ky_watch_thread * */
	const struct ky_thread *last_thread;
	struct ky_watch_thread *last;
	struct ky_watch_async *asyncs;
	uint32_t asyncs_count, asyncs_room;
	uint32_t asyncs_free;        /* 1 + the first free one */
	struct ky_pair_map async_of; /* name and category, id → 1 + the innermost */
	struct ky_pair_map series;   /* name and category, id → struct ky_watch_series * */
	struct ky_watch_gap gaps[KY_WATCH_TRIGGERS_MAX]; /* by trigger */
};

struct ky_watch {
	const struct ky_trigger *triggers[KY_WATCH_TRIGGERS_MAX];
	uint32_t count;
	uint64_t of_kind[KY_TRIGGER_KINDS_COUNT]; /* which of them are of each kind */
	const struct ky_trigger *api;
	char *categories;
	ky_fired_fn fired;
	void *context;
	struct ky_pair_map processes; /* pid → struct ky_watch_process * */
	struct ky_watch_process *last;
	uint64_t dropped;
	uint64_t near_seen, seen; /* triggers whose category an event had, and whose name, too */
	struct ky_nearest nearest[KY_WATCH_TRIGGERS_MAX];
};

/* Take the lowest trigger out of a set that is not empty. */
static inline uint32_t ky_watch_take(uint64_t *set)
{
	const uint32_t lowest = (uint32_t)__builtin_ctzll(*set);
	*set &= *set - 1;
	return lowest;
}

/* Report that a trigger fired. */
void ky_watch_fire(struct ky_watch *watch, const struct ky_trigger *trigger, pid_t pid, int32_t tid,
		   uint64_t time_ns, const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Return a key for the category and name of an event. */
uint64_t ky_watch_key(const struct ky_event *event);

/* ---- watch_spans.c: handle an event, for spans and gaps ---- */

void ky_watch_spans_begin(struct ky_watch *watch, struct ky_watch_process *process,
			  const struct ky_event *event, uint64_t triggers);
void ky_watch_spans_end(struct ky_watch *watch, struct ky_watch_process *process,
			const struct ky_event *event);
void ky_watch_spans_lost(struct ky_watch *watch, struct ky_watch_process *process,
			 const struct ky_event *event);
void ky_watch_spans_async_begin(struct ky_watch *watch, struct ky_watch_process *process,
				const struct ky_event *event, uint64_t triggers);
void ky_watch_spans_async_end(struct ky_watch *watch, struct ky_watch_process *process,
			      const struct ky_event *event);
void ky_watch_spans_point(struct ky_watch *watch, struct ky_watch_process *process,
			  const struct ky_event *event, uint64_t triggers);
/* Fire for spans and gaps that are too long by now. */
void ky_watch_spans_tick(struct ky_watch *watch, struct ky_watch_process *process, uint64_t now_ns);
void ky_watch_spans_free(struct ky_watch_process *process);

#endif
