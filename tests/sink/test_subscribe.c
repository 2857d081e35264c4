/* SPDX-License-Identifier: MIT */
/* test_subscribe.c: what callbacks get, in which order, and what they may do themselves. */
#include "child.h"
#include "core/heap.h"
#include "core/layout.h"
#include "core/losses.h"
#include "core/writer.h"
#include "json_trace.h"

#include <errno.h>
#include <kymo/session.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void wait_until(const _Atomic uint64_t *value, uint64_t least)
{
	const int64_t deadline = now_ms() + PATIENCE_MS;
	while (*value < least) {
		MUST(now_ms() < deadline);
		look_again();
	}
}

static const struct kymo_event *next(const struct kymo_event *event)
{
	return (const struct kymo_event *)(const void *)((const char *)event + event->size);
}

/* What a counting callback saw. */
struct tally {
	_Atomic uint64_t events;
	_Atomic uint64_t lost;
	_Atomic uint64_t batches;
	_Atomic uint64_t backwards; /* events earlier than the one before */
	uint64_t last_ns;
	uint64_t batch_max;
};

static void count_events(const struct kymo_event *events, size_t count, void *context)
{
	struct tally *tally = context;
	const struct kymo_event *event = events;
	for (size_t i = 0; i < count; i++, event = next(event)) {
		if (event->time_ns < tally->last_ns)
			tally->backwards++;
		tally->last_ns = event->time_ns;
		if (event->kind == KYMO_KIND_LOST)
			tally->lost += event->id;
		else
			tally->events++;
	}
	tally->batches++;
	if (count > tally->batch_max)
		tally->batch_max = count;
}

static void *record_thousands(void *argument)
{
	(void)argument;
	for (int i = 0; i < 20000; i++) {
		KYMO_INSTANT("a", "event", "i", i);
		if (i % 1000 == 0)
			look_again();
	}
	return NULL;
}

static void record_from_threads(void)
{
	static struct tally tally;
	const int subscription = kymo_subscribe(count_events, &tally, "a");
	pthread_t threads[3];
	MUST(subscription >= 0);
	for (int i = 0; i < 3; i++)
		MUST(pthread_create(&threads[i], NULL, record_thousands, NULL) == 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	MUST(kymo_unsubscribe(subscription) == 0);
	MUST(tally.events == 60000 && tally.lost == 0);
	MUST(tally.backwards == 0);
	MUST(tally.batches < 6000 && tally.batch_max > 10);
}

static void events_of_all_threads_come_in_time_order_in_batches(void **state)
{
	(void)state;
	child_expect(record_from_threads);
}

static _Atomic bool begun, others_done;

/* An event that is begun, and whose thread is then held up for longer than any lag. */
static void *record_slowly(void *argument)
{
	static const struct kymo_site_info info = {
		.abi = KYMO_I_ABI, .kind = KYMO_KIND_INSTANT, .category = "a", .name = "slow"};
	(void)argument;
	struct kymo_reservation reservation;
	const uint64_t site = (uint64_t)ky_heap_site(ky_drum_peek(), &info, 0)
			      << KY_WORD_SITE_SHIFT;
	MUST(ky_writer_reserve(site, 0, 0x7fff0000u, &reservation));
	begun = true;
	while (!others_done)
		look_again();
	ky_writer_commit(&reservation, false);
	return NULL;
}

static void hold_up_a_thread(void)
{
	static struct tally tally;
	pthread_t thread;
	const int subscription = kymo_subscribe(count_events, &tally, NULL);
	MUST(pthread_create(&thread, NULL, record_slowly, NULL) == 0);
	while (!begun)
		look_again();
	const int64_t until = now_ms() + 30;
	uint64_t written = 1;
	for (; now_ms() < until; written++) {
		KYMO_INSTANT("a", "event");
		look_again();
	}
	others_done = true;
	pthread_join(thread, NULL);
	MUST(kymo_unsubscribe(subscription) == 0);
	MUST(tally.events == written && tally.backwards == 0);
}

static void an_event_that_took_long_to_write_still_comes_in_order(void **state)
{
	(void)state;
	child_expect(hold_up_a_thread);
}

static void subscribe_several(void)
{
	static struct tally all, some, other;
	const int first = kymo_subscribe(count_events, &all, NULL);
	const int second = kymo_subscribe(count_events, &some, "net*,-net.debug");
	const int third = kymo_subscribe(count_events, &other, "db");
	MUST(first >= 0 && second >= 0 && third >= 0 && first != second && second != third);
	for (int i = 0; i < 100; i++) {
		KYMO_INSTANT("net.io", "x");
		KYMO_INSTANT("net.debug", "x");
		KYMO_INSTANT("db", "x");
	}
	MUST(kymo_unsubscribe(second) == 0);
	KYMO_INSTANT("net.io", "x");
	MUST(kymo_unsubscribe(third) == 0);
	MUST(kymo_unsubscribe(first) == 0);
	MUST(all.events == 301 && some.events == 100 && other.events == 100);
	MUST(kymo_unsubscribe(first) == -ENOENT && kymo_unsubscribe(-1) == -ENOENT);
	MUST(kymo_unsubscribe(1 << 20) == -ENOENT);
	MUST(!KYMO_ENABLED("db"));
	MUST(kymo_subscribe(NULL, NULL, NULL) == KYMO_EOPTIONS);
}

static void subscribers_at_once_get_exactly_their_categories(void **state)
{
	(void)state;
	child_expect(subscribe_several);
}

#define MILLION 1000000

static _Atomic bool hold;
static _Atomic uint64_t held;

static void count_slowly(const struct kymo_event *events, size_t count, void *context)
{
	count_events(events, count, context);
	held = 1;
	while (hold)
		look_again();
}

static void overtake_a_subscriber(void)
{
	static struct tally slow, other;
	hold = true;
	const int first = kymo_subscribe(count_slowly, &slow, NULL);
	const int second = kymo_subscribe(count_events, &other, NULL);
	KYMO_INSTANT("a", "event");
	wait_until(&held, 1);
	wait_until(&other.events, 1);
	for (int i = 0; i < MILLION; i++)
		KYMO_INSTANT("a", "event", "i", i);
	/* It is nobody's business but its own. */
	const int64_t deadline = now_ms() + PATIENCE_MS;
	while (other.events + other.lost <= MILLION) {
		MUST(now_ms() < deadline);
		look_again();
	}
	hold = false;
	MUST(kymo_unsubscribe(first) == 0 && kymo_unsubscribe(second) == 0);
	MUST(slow.lost > 0 && slow.events + slow.lost == MILLION + 1);
	MUST(other.events + other.lost == MILLION + 1);
}

static void a_slow_subscriber_is_told_exactly_what_it_missed(void **state)
{
	(void)state;
	child_expect(overtake_a_subscriber);
}

static _Atomic int own_number = -1;
static _Atomic uint64_t calls;

static void unsubscribe_inside(const struct kymo_event *events, size_t count, void *context)
{
	(void)events;
	(void)count;
	(void)context;
	while (own_number < 0)
		look_again();
	MUST(kymo_unsubscribe(own_number) == 0);
	MUST(kymo_unsubscribe(own_number) == -ENOENT);
	calls++;
}

static void leave_from_inside(void)
{
	/* More often than there are places. */
	for (uint64_t i = 1; i <= 150; i++) {
		own_number = -1;
		own_number = kymo_subscribe(unsubscribe_inside, NULL, NULL);
		MUST(own_number >= 0);
		KYMO_INSTANT("a", "event");
		wait_until(&calls, i);
		for (int n = 0; n < 300; n++)
			KYMO_INSTANT("a", "event");
	}
	const int64_t deadline = now_ms() + PATIENCE_MS;
	while (KYMO_ENABLED("a")) { /* nobody wants it any more */
		MUST(now_ms() < deadline);
		look_again();
	}
	MUST(calls == 150);
}

static void unsubscribing_inside_the_callback_ends_the_calls(void **state)
{
	(void)state;
	child_expect(leave_from_inside);
}

static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tally second_tally;
static _Atomic int second_number = -1;

static void leave_then_lock(const struct kymo_event *events, size_t count, void *context)
{
	unsubscribe_inside(events, count, context);
	while (!hold)
		look_again();
	pthread_mutex_lock(&users_lock);
	second_number = kymo_subscribe(count_events, &second_tally, NULL);
	pthread_mutex_unlock(&users_lock);
}

static void subscribe_with_a_lock_held(void)
{
	own_number = kymo_subscribe(leave_then_lock, NULL, NULL);
	KYMO_INSTANT("a", "event");
	wait_until(&calls, 1);
	pthread_mutex_lock(&users_lock);
	hold = true;
	/* Waits for nobody, least of all for a callback that wants the lock. */
	const int number = kymo_subscribe(count_events, &second_tally, NULL);
	MUST(kymo_unsubscribe(number) == 0);
	pthread_mutex_unlock(&users_lock);
	while (second_number < 0)
		look_again();
	MUST(kymo_unsubscribe(second_number) == 0);
}

static void a_callback_that_left_holds_up_no_other_subscriber(void **state)
{
	(void)state;
	child_expect(subscribe_with_a_lock_held);
}

static struct kymo_event got;
static struct kymo_arg got_args[KYMO_ARGS_MAX];

static void check_event(const struct kymo_event *event)
{
	if (strcmp(event->name, "everything") != 0)
		return;
	MUST(event->kind == KYMO_KIND_INSTANT && event->pid == getpid() && event->tid != 0);
	MUST(strcmp(event->thread, "the worker") == 0 && strcmp(event->category, "a") == 0);
	MUST(strstr(event->file, "test_subscribe.c") && event->line > 0);
	MUST(strcmp(event->function, "record_everything") == 0);
	MUST(event->args_count == 7);
	const struct kymo_arg *args = event->args;
	MUST(strcmp(args[0].key, "int") == 0 && args[0].value.i == -5);
	MUST(args[1].type == KYMO_TYPE_UINT && args[1].value.u == UINT64_MAX);
	MUST(args[2].type == KYMO_TYPE_DOUBLE && args[2].value.d == 0.25);
	MUST(args[3].type == KYMO_TYPE_BOOL && args[3].value.u == 1);
	MUST(args[4].type == KYMO_TYPE_POINTER && args[4].value.u == 16);
	MUST(args[5].type == KYMO_TYPE_STRING && strcmp(args[5].string, "text") == 0);
	MUST(args[5].string_bytes == 4 && !args[5].cut);
	MUST(args[6].cut && args[6].string_bytes == KYMO_STRING_MAX);
	got = *event;
	got_args[0] = args[0];
}

static void check_events(const struct kymo_event *events, size_t count, void *context)
{
	_Atomic uint64_t *kinds = context;
	const struct kymo_event *event = events;
	for (size_t i = 0; i < count; i++, event = next(event)) {
		check_event(event);
		kinds[event->kind]++;
		MUST(event->kind != KYMO_KIND_PRINT || strcmp(event->name, "1 and two") == 0);
		MUST(event->kind != KYMO_KIND_ASYNC_BEGIN || event->id == 77);
	}
}

static void record_everything(void *argument)
{
	(void)argument;
	char large[400];
	memset(large, 'x', sizeof(large));
	large[399] = '\0';
	kymo_thread_name("the worker");
	KYMO_INSTANT("a", "everything", "int", -5, "uint", UINT64_MAX, "double", 0.25, "bool",
		     (_Bool)1, "pointer", (void *)16, "string", "text", "large", large);
	KYMO_PRINT("a", "%d and %s", 1, "two");
	KYMO_ASYNC_BEGIN("a", "async", 77);
	KYMO_BEGIN("a", "span");
	KYMO_END("a");
	KYMO_COUNTER("a", "counter", 3);
}

static void subscribe_to_everything(void)
{
	static _Atomic uint64_t kinds[32];
	const int subscription = kymo_subscribe(check_events, kinds, NULL);
	on_thread(record_everything, NULL);
	MUST(kymo_unsubscribe(subscription) == 0);
	MUST(got.size == sizeof(got) && got_args[0].value.i == -5);
	MUST(kinds[KYMO_KIND_INSTANT] == 1 && kinds[KYMO_KIND_PRINT] == 1);
	MUST(kinds[KYMO_KIND_BEGIN] == 1 && kinds[KYMO_KIND_END] == 1);
	MUST(kinds[KYMO_KIND_COUNTER] == 1 && kinds[KYMO_KIND_ASYNC_BEGIN] == 1);
}

static void events_have_their_names_arguments_and_threads(void **state)
{
	(void)state;
	child_expect(subscribe_to_everything);
}

static void record_inside(const struct kymo_event *events, size_t count, void *context)
{
	for (size_t i = 0; i < count; i++)
		KYMO_INSTANT("a", "inside");
	KYMO_INSTANT("a", "inside");
	count_events(events, count, context);
}

static void subscribe_and_record_inside(void)
{
	static struct tally tally;
	struct kymo_session *session;
	const struct kymo_options options = {.size = sizeof(options), .path = "out.json"};
	MUST(kymo_session_start(&session, &options) == 0);
	const int subscription = kymo_subscribe(record_inside, &tally, NULL);
	for (int i = 0; i < 100; i++)
		KYMO_INSTANT("a", "outside");
	wait_until(&tally.events, 100);
	for (int i = 0; i < 20; i++)
		look_again();
	MUST(kymo_unsubscribe(subscription) == 0);
	MUST(tally.events == 100);
	MUST(kymo_session_stop(&session) == 0);
	MUST(json_file_count("out.json", 'i', "outside") == 100);
	MUST(json_file_count("out.json", 'i', "inside") == 100 + tally.batches);
}

static void a_callback_does_not_get_what_it_records_itself(void **state)
{
	(void)state;
	child_expect(subscribe_and_record_inside);
}

static struct kymo_session *to_stop;

static void stop_and_fork(const struct kymo_event *events, size_t count, void *context)
{
	(void)events;
	(void)count;
	(void)context;
	if (!to_stop)
		return;
	MUST(kymo_session_flush(to_stop) == 0);
	MUST(kymo_session_stop(&to_stop) == 0);
	const pid_t pid = fork();
	if (pid == 0)
		_exit(kymo_unsubscribe(own_number) == -ENOENT ? 0 : 1);
	int status = -1;
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	calls++;
}

static void use_the_library_inside(void)
{
	const struct kymo_options options = {.size = sizeof(options), .path = "out.json"};
	MUST(kymo_session_start(&to_stop, &options) == 0);
	own_number = kymo_subscribe(stop_and_fork, NULL, NULL);
	KYMO_INSTANT("a", "event");
	wait_until(&calls, 1);
	MUST(kymo_unsubscribe(own_number) == 0);
	MUST(json_file_count("out.json", 'i', "event") == 1);
}

static void a_callback_may_stop_sessions_and_fork(void **state)
{
	(void)state;
	child_expect(use_the_library_inside);
}

static void exit_inside(const struct kymo_event *events, size_t count, void *context)
{
	(void)events;
	(void)count;
	(void)context;
	exit(0);
}

static void subscribe_and_be_exited(void)
{
	struct kymo_session *session;
	const struct kymo_options options = {.size = sizeof(options), .path = "out.json"};
	MUST(kymo_session_start(&session, &options) == 0);
	MUST(kymo_subscribe(exit_inside, NULL, NULL) >= 0);
	KYMO_INSTANT("a", "event");
	for (;;)
		look_again();
}

static void a_callback_may_end_the_program(void **state)
{
	(void)state;
	child_expect(subscribe_and_be_exited);
	struct json_trace trace;
	json_trace_read(&trace, "out.json");
	assert_true(trace.whole);
	json_trace_free(&trace);
}

static void subscribe_too_often(void)
{
	static struct tally tally;
	int numbers[100], count = 0;
	while (count < 100 && (numbers[count] = kymo_subscribe(count_events, &tally, NULL)) >= 0)
		count++;
	MUST(count >= 16 && count < 100 && numbers[count] == KYMO_ESLOTS);
	while (count--)
		MUST(kymo_unsubscribe(numbers[count]) == 0);
	const int again = kymo_subscribe(count_events, &tally, NULL);
	MUST(again >= 0 && kymo_unsubscribe(again) == 0);
}

static void too_many_subscribers_are_refused(void **state)
{
	(void)state;
	child_expect(subscribe_too_often);
}

/* Losses that are in no ring: how many of each cause came. */
static _Atomic uint64_t causes[KY_LOST_CAUSES];

/* Only what counts events has their number as its id, too. */
static void count_cause(uint32_t cause, const struct kymo_event *event)
{
	MUST(event->args_count == 1);
	const uint64_t count = event->args[0].value.u;
	MUST(event->id == (cause < KY_LOST_EVENTS ? count : 0));
	causes[cause] += count;
}

static void note_causes(const struct kymo_event *events, size_t count, void *context)
{
	(void)context;
	for (size_t i = 0; i < count; i++)
		for (uint32_t cause = 0; cause < KY_LOST_CAUSES; cause++)
			if (events[i].kind == KYMO_KIND_LOST &&
			    strcmp(events[i].name, ky_losses_text((enum ky_lost_cause)cause)) == 0)
				count_cause(cause, &events[i]);
}

static void lose_by_every_cause(void)
{
	struct ky_drum_header *h = ky_drum_get()->header;
	h->lost_nested = 100; /* before: not the subscriber's */
	const int number = kymo_subscribe(note_causes, NULL, NULL);
	MUST(number >= 0);
	uint64_t *const counters[KY_LOST_CAUSES] = {
		[KY_LOST_RINGLESS] = &h->lost_ringless,        [KY_LOST_NESTED] = &h->lost_nested,
		[KY_LOST_UNFINISHED] = &h->lost_unfinished,    [KY_LOST_SITES] = &h->refused_sites,
		[KY_LOST_STRINGS] = &h->refused_strings,       [KY_LOST_NAMES] = &h->refused_names,
		[KY_LOST_CATEGORIES] = &h->refused_categories,
	};
	for (uint32_t i = 0; i < KY_LOST_CAUSES; i++)
		if (counters[i])
			__atomic_fetch_add(counters[i], i + 1, __ATOMIC_RELAXED);
	MUST(kymo_unsubscribe(number) == 0);
	for (uint32_t i = 0; i < KY_LOST_CAUSES; i++)
		MUST(causes[i] == (counters[i] ? i + 1 : 0));
}

static void a_subscriber_gets_losses_with_their_causes(void **state)
{
	(void)state;
	child_expect(lose_by_every_cause);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(events_of_all_threads_come_in_time_order_in_batches),
		TEST(an_event_that_took_long_to_write_still_comes_in_order),
		TEST(subscribers_at_once_get_exactly_their_categories),
		TEST(a_slow_subscriber_is_told_exactly_what_it_missed),
		TEST(unsubscribing_inside_the_callback_ends_the_calls),
		TEST(a_callback_that_left_holds_up_no_other_subscriber),
		TEST(events_have_their_names_arguments_and_threads),
		TEST(a_callback_does_not_get_what_it_records_itself),
		TEST(a_callback_may_stop_sessions_and_fork),
		TEST(a_callback_may_end_the_program),
		TEST(too_many_subscribers_are_refused),
		TEST(a_subscriber_gets_losses_with_their_causes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
