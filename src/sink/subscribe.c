/* SPDX-License-Identifier: MIT */
/*
 * subscribe.c: deliver events to a callback, in batches.
 *
 * Each subscription has a thread and cursors of its own: a slow one is overtaken by the rings, gets an event of kind LOST,
 * and holds up nothing. A batch copies its events, because an event's strings last only until the next.
 *
 * A callback does not get the events that it records itself: with a trace point per event it would never end.
 *
 * Invariants of the table, under table_lock: table[number % SUBSCRIPTIONS_MAX] is the subscription of that number or
 * another; the thread that takes a subscription out of the table is the one that ends and frees it.
 */
#include "core/assert.h"
#include "core/heap.h"
#include "core/init.h"
#include "core/losses.h"
#include "core/slots.h"
#include "core/stream.h"
#include "os/os.h"

#include "sink/drain.h"

#include <errno.h>
#include <kymo/session.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH_EVENTS 256u
#define BATCH_ARGS (BATCH_EVENTS * 2)
#define BATCH_TEXT (64u << 10)
#define SUBSCRIPTIONS_MAX 64u
/* How long to wait for a thread in the middle of an event, and how full a ring ends the wait. */
#define SETTLE_NS UINT64_C(200000000)
#define SETTLE_LOOK_NS 50000
#define SETTLE_PERCENT 50u

struct event_batch {
	struct kymo_event events[BATCH_EVENTS];
	struct kymo_arg args[BATCH_ARGS];
	char text[BATCH_TEXT];
	uint32_t events_count, args_count, text_used;
};

struct subscription {
	struct ky_drain drain;
	struct ky_stream stream;
	struct ky_drum *drum;
	int slot;
	int number;
	int32_t tid; /* of the thread that calls fn */
	kymo_event_fn fn;
	void *context;
	uint64_t settle_until_ns;
	struct ky_lost_counts reported; /* of the drum's losses */
	bool cancelled;                 /* from inside the callback: call it no more */
	struct event_batch batch;
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct subscription *table[SUBSCRIPTIONS_MAX];
static struct subscription *forgotten[SUBSCRIPTIONS_MAX]; /* in a child; for leak checkers */
static unsigned generation;

static void lock_table(void)
{
	pthread_mutex_lock(&table_lock);
}

static void unlock_table(void)
{
	pthread_mutex_unlock(&table_lock);
}

/* Empty the table in a forked child: the threads are the parent's. */
static void forget_table(void)
{
	pthread_mutex_init(&table_lock, NULL);
	memcpy(forgotten, table, sizeof(forgotten));
	memset(table, 0, sizeof(table));
}

__attribute__((constructor(102))) static void prepare(void)
{
	ky_init_on_fork(forget_table);
}

static void deliver(struct subscription *s)
{
	struct event_batch *b = &s->batch;
	if (b->events_count && !s->cancelled)
		s->fn(b->events, b->events_count, s->context);
	b->events_count = b->args_count = b->text_used = 0;
}

static const char *keep(struct event_batch *b, const char *text, uint32_t bytes)
{
	KY_ASSERT(b->text_used + bytes + 1 <= BATCH_TEXT);
	char *copy = b->text + b->text_used;
	memcpy(copy, text, bytes);
	copy[bytes] = '\0';
	b->text_used += bytes + 1;
	return copy;
}

static const struct kymo_arg *keep_args(struct event_batch *b, const struct ky_event *event)
{
	KY_ASSERT(b->args_count + event->args_count <= BATCH_ARGS);
	struct kymo_arg *args = &b->args[b->args_count];
	for (uint32_t i = 0; i < event->args_count; i++) {
		args[i] = event->args[i];
		if (args[i].string)
			args[i].string = keep(b, args[i].string, args[i].string_bytes);
	}
	b->args_count += event->args_count;
	return args;
}

static bool has_room(const struct event_batch *b, const struct ky_event *event)
{
	uint32_t text = event->name.bytes + 1;
	for (uint32_t i = 0; i < event->args_count; i++)
		text += event->args[i].string_bytes + 1;
	return b->events_count < BATCH_EVENTS && b->args_count + event->args_count <= BATCH_ARGS &&
	       b->text_used + text <= BATCH_TEXT;
}

static void on_event(void *context, const struct ky_event *event)
{
	struct subscription *s = context;
	struct event_batch *b = &s->batch;
	if (event->thread->tid == s->tid)
		return;
	if (!has_room(b, event))
		deliver(s);
	const struct ky_site *site = event->site;
	KY_ASSERT(has_room(b, event));
	const bool own_name = !site || event->name.data != site->name.data;
	b->events[b->events_count++] = (struct kymo_event){
		.size = sizeof(struct kymo_event),
		.kind = event->kind,
		.time_ns = event->time_ns,
		.pid = event->thread->pid,
		.tid = event->thread->tid,
		.thread = event->thread->name.data,
		.category = site ? site->category.data : "",
		.name = own_name ? keep(b, event->name.data, event->name.bytes) : site->name.data,
		.id = event->id,
		.args = keep_args(b, event),
		.args_count = event->args_count,
		.line = site ? site->line : 0,
		.file = site ? site->file.data : "",
		.function = site ? site->function.data : "",
		.flags = site ? site->flags : 0,
	};
}

/* Deliver what the drum counts as lost, an event for each cause. */
static void report_losses(struct subscription *s)
{
	const struct ky_lost_counts now = ky_losses_read(s->drum->header, s->stream.damaged);
	for (uint32_t i = 0; i < KY_LOST_CAUSES; i++) {
		const uint64_t count = now.count[i] - s->reported.count[i];
		if (count == 0)
			continue;
		if (s->batch.events_count == BATCH_EVENTS || s->batch.args_count == BATCH_ARGS)
			deliver(s);
		struct kymo_arg *arg = &s->batch.args[s->batch.args_count++];
		*arg = (struct kymo_arg){
			.key = "count", .type = KYMO_TYPE_UINT, .value = {.u = count}};
		s->batch.events[s->batch.events_count++] = (struct kymo_event){
			.size = sizeof(struct kymo_event),
			.kind = KYMO_KIND_LOST,
			.time_ns = ky_clock_map_ns(&s->stream.clock, ky_drum_ticks(s->drum)),
			.pid = getpid(),
			.thread = "",
			.category = "",
			.name = ky_losses_text((enum ky_lost_cause)i),
			.id = i < KY_LOST_EVENTS ? count : 0,
			.args = arg,
			.args_count = 1,
			.file = "",
			.function = "",
		};
	}
	s->reported = now;
}

static void on_thread(void *context, const struct ky_thread *thread)
{
	(void)context;
	(void)thread;
}

static bool wait_for_event(void *context)
{
	struct subscription *s = context;
	if (ky_drain_now_ns() > s->settle_until_ns ||
	    ky_stream_pressure(&s->stream) > SETTLE_PERCENT)
		return false;
	ky_os_nap(SETTLE_LOOK_NS);
	return true;
}

/*
 * The scheduler may suspend a thread in the middle of an event for longer than the lag: the others' later events wait for
 * it, or they would come out of order.
 */
static void read_news(struct subscription *s)
{
	ky_drain_read_clock(s->drum, &s->stream);
	s->settle_until_ns = ky_drain_now_ns() + SETTLE_NS;
	ky_slots_settle(wait_for_event, s);
	ky_drain_read_news(&s->stream);
}

static void stop_recording(struct subscription *s)
{
	if (s->slot >= 0)
		ky_heap_recorder_release(s->drum, (uint32_t)s->slot);
	s->slot = -1;
}

static enum ky_drain_wish read_round(void *self, bool flush, bool last)
{
	(void)flush;
	struct subscription *s = self;
	s->tid = ky_os_tid();
	if (last)
		stop_recording(s);
	if (last) {
		s->stream.damaged += ky_drain_read_all(s->drum, &s->stream) != 0;
		ky_stream_read_rest(&s->stream);
	} else if (ky_stream_pending(&s->stream)) {
		read_news(s);
	}
	report_losses(s);
	deliver(s);
	if (s->cancelled)
		return KY_DRAIN_END;
	return ky_drain_read_hurry(&s->stream) ? KY_DRAIN_MORE : KY_DRAIN_REST;
}

static void free_subscription(struct subscription *s)
{
	stop_recording(s);
	ky_stream_close(&s->stream);
	free(s);
}

static void free_self(void *self)
{
	free_subscription(self);
}

static int begin(struct subscription *s, const char *categories)
{
	const char *what;
	ky_drum_grow(s->drum, KY_DRAIN_RING_BYTES, KY_DRAIN_TOTAL_BYTES);
	int error = ky_stream_open(&s->stream, s->drum->base, s->drum->bytes, categories, true, 0,
				   &what);
	if (error)
		return error;
	s->stream.sink =
		(struct ky_stream_sink){.thread = on_thread, .event = on_event, .context = s};
	s->reported = ky_losses_read(s->drum->header, 0);
	s->slot = ky_heap_recorder_take(s->drum);
	if (s->slot < 0)
		return KYMO_ESLOTS;
	error = ky_heap_recorder_set(s->drum, (uint32_t)s->slot, categories ? categories : "*");
	return error ? error : ky_drain_start(&s->drain, s, read_round);
}

/* Take a place in the table. Return the number that the caller gets. Called with the lock. */
static int take_number(struct subscription *s)
{
	for (uint32_t i = 0; i < SUBSCRIPTIONS_MAX; i++)
		if (!table[i]) {
			table[i] = s;
			return (int)((generation++ & 0xffffffu) * SUBSCRIPTIONS_MAX + i);
		}
	return KYMO_ESLOTS;
}

/* Keep the lock throughout: fn may unsubscribe before kymo_subscribe() returns. */
static int enter(struct subscription *s, const char *categories)
{
	lock_table();
	s->number = take_number(s);
	const int error = s->number < 0 ? s->number : begin(s, categories);
	if (error && s->number >= 0)
		table[s->number % (int)SUBSCRIPTIONS_MAX] = NULL;
	const int number = s->number;
	unlock_table();
	return error ? error : number;
}

int kymo_subscribe(kymo_event_fn fn, void *context, const char *categories)
{
	struct ky_drum *drum = ky_drum_get();
	if (!fn || !drum)
		return fn ? KYMO_EDRUM : KYMO_EOPTIONS;
	struct subscription *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->drum = drum;
	s->slot = -1;
	s->fn = fn;
	s->context = context;
	const int cancel = ky_drain_cancel_hold();
	const int number = enter(s, categories);
	if (number < 0)
		free_subscription(s);
	ky_drain_cancel_restore(cancel);
	return number;
}

/* Take the subscription out of the table. The caller ends it. */
static struct subscription *leave(int number)
{
	const int place = number % (int)SUBSCRIPTIONS_MAX;
	lock_table();
	struct subscription *s = table[place];
	if (s && s->number == number)
		table[place] = NULL;
	else
		s = NULL;
	unlock_table();
	return s;
}

int kymo_unsubscribe(int subscription)
{
	struct subscription *s = subscription < 0 ? NULL : leave(subscription);
	if (!s)
		return -ENOENT;
	if (ky_drain_is_self(&s->drain)) {
		s->cancelled = true;
		ky_drain_leave(&s->drain, free_self);
		return 0;
	}
	const int cancel = ky_drain_cancel_hold();
	ky_drain_stop(&s->drain);
	free_subscription(s);
	ky_drain_cancel_restore(cancel);
	return 0;
}
