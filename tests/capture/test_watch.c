/* SPDX-License-Identifier: MIT */
/*
 * test_watch.c: which events fire span:, gap:, counter: and api triggers, and when. Times are milliseconds; events are made
 * by hand, as a drum's reader gives them.
 */
#include "capture/watch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PID 77
#define MS UINT64_C(1000000)

struct scene {
	struct ky_watch *watch;
	struct ky_trigger triggers[8];
	uint32_t count;
	struct ky_thread threads[2];
	char fired[4096]; /* a line for each */
	uint32_t fires;
	struct ky_fired last;
};

static void note(void *context, const struct ky_fired *fired)
{
	struct scene *s = context;
	const size_t used = strlen(s->fired);
	snprintf(s->fired + used, sizeof(s->fired) - used, "%d: %s\n", (int)(fired->time_ns / MS),
		 fired->reason);
	s->fires++;
	s->last = *fired;
}

/* Opens the watch with the triggers, up to NULL. */
static void open_scene(struct scene *s, ...)
{
	char message[KY_MESSAGE_BYTES];
	va_list list;
	*s = (struct scene){.threads = {{.index = 0, .tid = 101}, {.index = 1, .tid = 102}}};
	va_start(list, s);
	for (const char *text = va_arg(list, const char *); text; text = va_arg(list, const char *))
		assert_int_equal(ky_trigger_parse(&s->triggers[s->count++], text, message), 0);
	va_end(list);
	assert_int_equal(ky_watch_open(&s->watch, s->triggers, s->count, note, s), 0);
}

static void close_scene(struct scene *s)
{
	ky_watch_close(&s->watch);
	for (uint32_t i = 0; i < s->count; i++)
		ky_trigger_free(&s->triggers[i]);
}

static struct ky_text text_of(const char *text)
{
	return (struct ky_text){text, (uint32_t)strlen(text)};
}

#define SITE(variable, site_kind, site_flags, site_category, site_name)                            \
	const struct ky_site variable = {.kind = (site_kind),                                      \
					 .flags = (site_flags),                                    \
					 .category = text_of(site_category),                       \
					 .name = text_of(site_name)}

static void pass_named(struct scene *s, uint32_t thread, const struct ky_site *site, uint8_t kind,
		       uint64_t ms, uint64_t id, const char *name)
{
	const struct ky_event event = {.kind = kind,
				       .time_ns = ms * MS,
				       .id = id,
				       .site = site,
				       .thread = &s->threads[thread],
				       .name = text_of(name)};
	ky_watch_event(s->watch, PID, &event);
}

static void pass(struct scene *s, uint32_t thread, const struct ky_site *site, uint8_t kind,
		 uint64_t ms)
{
	pass_named(s, thread, site, kind, ms, 0, site ? site->name.data : "");
}

static void count(struct scene *s, const struct ky_site *site, uint64_t ms, int64_t value)
{
	const struct kymo_arg arg = {.key = "value", .type = KYMO_TYPE_INT, .value = {.i = value}};
	const struct ky_event event = {.kind = KYMO_KIND_COUNTER,
				       .time_ns = ms * MS,
				       .site = site,
				       .thread = &s->threads[0],
				       .name = site->name,
				       .args_count = 1,
				       .args = &arg};
	ky_watch_event(s->watch, PID, &event);
}

static void a_long_span_fires_at_its_end(void **state)
{
	struct scene s;
	SITE(recv, KYMO_KIND_BEGIN, KYMO_SITE_SCOPE, "net", "recv");
	SITE(send, KYMO_KIND_BEGIN, KYMO_SITE_SCOPE, "net", "send");
	(void)state;
	open_scene(&s, "span:net/recv>5ms", NULL);
	pass(&s, 0, &recv, KYMO_KIND_BEGIN, 10);
	pass(&s, 0, &recv, KYMO_KIND_END, 15);
	pass(&s, 0, &send, KYMO_KIND_BEGIN, 20);
	pass(&s, 0, &recv, KYMO_KIND_BEGIN, 21);
	pass(&s, 0, &recv, KYMO_KIND_END, 28);
	pass(&s, 0, &send, KYMO_KIND_END, 50);
	assert_string_equal(s.fired, "28: net/recv took 7.00 ms\n");
	assert_int_equal(s.last.pid, PID);
	assert_int_equal(s.last.tid, 101);
	assert_ptr_equal(s.last.trigger, &s.triggers[0]);
	close_scene(&s);
}

static void an_open_span_fires_once(void **state)
{
	struct scene s;
	SITE(recv, KYMO_KIND_BEGIN, KYMO_SITE_SCOPE, "net", "recv");
	(void)state;
	open_scene(&s, "span:net/re*>5ms", "span:*/recv>20ms", NULL);
	pass(&s, 1, &recv, KYMO_KIND_BEGIN, 10);
	ky_watch_tick(s.watch, 15 * MS);
	assert_int_equal(s.fires, 0);
	ky_watch_tick(s.watch, 16 * MS);
	ky_watch_tick(s.watch, 17 * MS);
	assert_int_equal(s.last.tid, 102);
	pass(&s, 1, &recv, KYMO_KIND_END, 40);
	ky_watch_tick(s.watch, 60 * MS);
	assert_string_equal(s.fired,
			    "16: net/recv lasts for over 6.00 ms\n40: net/recv took 30.0 ms\n");
	close_scene(&s);
}

static void ends_by_hand_end_the_innermost(void **state)
{
	struct scene s;
	SITE(recv, KYMO_KIND_BEGIN, 0, "net", "recv");
	SITE(other, KYMO_KIND_BEGIN, 0, "db", "query");
	SITE(end, KYMO_KIND_END, 0, "net", "");
	(void)state;
	open_scene(&s, "span:net/recv>5ms", NULL);
	pass(&s, 0, &recv, KYMO_KIND_BEGIN, 0);
	pass(&s, 0, &other, KYMO_KIND_BEGIN, 1);
	pass(&s, 0, &end, KYMO_KIND_END, 3);
	pass(&s, 0, &end, KYMO_KIND_END, 4);
	assert_int_equal(s.fires, 0);
	pass(&s, 0, &end, KYMO_KIND_END, 5); /* of nothing */
	pass(&s, 0, &recv, KYMO_KIND_BEGIN, 10);
	pass(&s, 0, &end, KYMO_KIND_END, 19);
	assert_string_equal(s.fired, "19: net/recv took 9.00 ms\n");
	close_scene(&s);
}

static void the_end_of_a_scope_ends_what_is_in_it(void **state)
{
	struct scene s;
	SITE(scope, KYMO_KIND_BEGIN, KYMO_SITE_SCOPE, "db", "query");
	SITE(recv, KYMO_KIND_BEGIN, 0, "net", "recv");
	(void)state;
	open_scene(&s, "span:net/recv>5ms", NULL);
	pass(&s, 0, &scope, KYMO_KIND_BEGIN, 0);
	pass(&s, 0, &recv, KYMO_KIND_BEGIN, 1);
	pass(&s, 0, &scope, KYMO_KIND_END, 3);
	ky_watch_tick(s.watch, 100 * MS);
	assert_int_equal(s.fires, 0);
	close_scene(&s);
}

static void a_loss_forgets_what_was_open(void **state)
{
	struct scene s;
	SITE(recv, KYMO_KIND_BEGIN, KYMO_SITE_SCOPE, "net", "recv");
	(void)state;
	open_scene(&s, "span:net/recv>5ms", NULL);
	pass(&s, 0, &recv, KYMO_KIND_BEGIN, 0);
	pass(&s, 1, &recv, KYMO_KIND_BEGIN, 0);
	pass(&s, 0, NULL, KYMO_KIND_LOST, 3);
	pass(&s, 0, &recv, KYMO_KIND_END, 50);
	assert_int_equal(s.fires, 0);
	ky_watch_tick(s.watch, 100 * MS);
	assert_int_equal(s.fires, 1); /* the other thread lost nothing */
	assert_int_equal(s.last.tid, 102);
	close_scene(&s);
}

static void names_that_events_bring(void **state)
{
	struct scene s;
	SITE(any, KYMO_KIND_BEGIN, KYMO_SITE_SCOPE | KYMO_SITE_NAME, "net", "");
	(void)state;
	open_scene(&s, "span:net/recv-*>5ms", NULL);
	pass_named(&s, 0, &any, KYMO_KIND_BEGIN, 0, 0, "send-1");
	pass_named(&s, 0, &any, KYMO_KIND_END, 9, 0, "");
	pass_named(&s, 0, &any, KYMO_KIND_BEGIN, 10, 0, "recv-1");
	pass_named(&s, 0, &any, KYMO_KIND_END, 19, 0, "");
	pass_named(&s, 0, &any, KYMO_KIND_BEGIN, 20, 0, "recv-2"); /* open at the end: freed */
	assert_string_equal(s.fired, "19: net/recv-1 took 9.00 ms\n");
	close_scene(&s);
}

static void asynchronous_spans_go_by_their_id(void **state)
{
	struct scene s;
	SITE(begin, KYMO_KIND_ASYNC_BEGIN, KYMO_SITE_ID, "net", "request");
	SITE(end, KYMO_KIND_ASYNC_END, KYMO_SITE_ID, "net", "request");
	SITE(other, KYMO_KIND_ASYNC_END, KYMO_SITE_ID, "net", "connect");
	(void)state;
	open_scene(&s, "span:net/request>5ms", NULL);
	pass_named(&s, 0, &begin, KYMO_KIND_ASYNC_BEGIN, 0, 1, "request");
	pass_named(&s, 0, &begin, KYMO_KIND_ASYNC_BEGIN, 1, 2, "request");
	pass_named(&s, 0, &other, KYMO_KIND_ASYNC_END, 2, 1, "connect");
	pass_named(&s, 1, &end, KYMO_KIND_ASYNC_END, 3, 2, "request");
	pass_named(&s, 1, &end, KYMO_KIND_ASYNC_END, 7, 1, "request");
	pass_named(&s, 1, &end, KYMO_KIND_ASYNC_END, 8, 1, "request"); /* of nothing */
	assert_string_equal(s.fired, "7: net/request took 7.00 ms\n");
	pass_named(&s, 0, &begin, KYMO_KIND_ASYNC_BEGIN, 10, 3, "request");
	pass_named(&s, 0, &begin, KYMO_KIND_ASYNC_BEGIN, 12, 3, "request"); /* nests */
	pass_named(&s, 0, &end, KYMO_KIND_ASYNC_END, 13, 3, "request");
	ky_watch_tick(s.watch, 20 * MS);
	assert_int_equal(s.fires, 2);
	close_scene(&s);
}

static void what_is_tracked_is_bounded(void **state)
{
	struct scene s;
	SITE(async, KYMO_KIND_ASYNC_BEGIN, KYMO_SITE_ID, "net", "request");
	SITE(deep, KYMO_KIND_BEGIN, 0, "net", "deep");
	SITE(end, KYMO_KIND_END, 0, "net", "");
	(void)state;
	open_scene(&s, "span:net/*>5ms", NULL);
	for (uint64_t id = 0; id < 100000; id++)
		pass_named(&s, 0, &async, KYMO_KIND_ASYNC_BEGIN, 0, id, "request");
	for (uint32_t i = 0; i < 5000; i++)
		pass(&s, 0, &deep, KYMO_KIND_BEGIN, 0);
	for (uint32_t i = 0; i < 5000; i++)
		pass(&s, 0, &end, KYMO_KIND_END, 1);
	assert_int_equal(s.fires, 0);
	pass(&s, 0, &deep, KYMO_KIND_BEGIN, 2);
	pass(&s, 0, &end, KYMO_KIND_END, 10);
	assert_string_equal(s.fired, "10: net/deep took 8.00 ms\n");
	/* What was too much is counted. */
	assert_true(ky_watch_dropped(s.watch) > 100000 - 65536);
	close_scene(&s);
}

static void a_gap_fires_while_it_goes_on_or_at_its_end(void **state)
{
	struct scene s;
	SITE(frame, KYMO_KIND_BEGIN, KYMO_SITE_SCOPE, "video", "frame");
	(void)state;
	open_scene(&s, "gap:video/frame>20ms", NULL);
	ky_watch_tick(s.watch, 100 * MS); /* there was none yet: no gap */
	pass(&s, 0, &frame, KYMO_KIND_BEGIN, 100);
	ky_watch_tick(s.watch, 190 * MS); /* one is open: no gap */
	pass(&s, 0, &frame, KYMO_KIND_END, 200);
	pass(&s, 0, &frame, KYMO_KIND_BEGIN, 215);
	pass(&s, 1, &frame, KYMO_KIND_BEGIN, 216);
	pass(&s, 0, &frame, KYMO_KIND_END, 217);
	ky_watch_tick(s.watch, 250 * MS); /* the other thread's is open */
	pass(&s, 1, &frame, KYMO_KIND_END, 260);
	assert_int_equal(s.fires, 0);
	ky_watch_tick(s.watch, 285 * MS);
	ky_watch_tick(s.watch, 290 * MS);
	pass(&s, 0, &frame, KYMO_KIND_BEGIN, 300);
	pass(&s, 0, &frame, KYMO_KIND_END, 310);
	pass(&s, 0, &frame, KYMO_KIND_BEGIN, 350);
	assert_string_equal(s.fired, "285: no video/frame for 25.0 ms\n"
				     "350: no video/frame for 40.0 ms\n");
	close_scene(&s);
}

static void points_have_gaps_too(void **state)
{
	struct scene s;
	SITE(beat, KYMO_KIND_INSTANT, 0, "main", "heartbeat");
	(void)state;
	open_scene(&s, "gap:main/heartbeat>20ms", NULL);
	pass(&s, 0, &beat, KYMO_KIND_INSTANT, 10);
	pass(&s, 0, &beat, KYMO_KIND_INSTANT, 25);
	pass(&s, 0, &beat, KYMO_KIND_INSTANT, 50);
	assert_string_equal(s.fired, "50: no main/heartbeat for 25.0 ms\n");
	pass(&s, 0, NULL, KYMO_KIND_LOST, 65); /* who knows what was lost: a gap from here on */
	ky_watch_tick(s.watch, 80 * MS);
	assert_int_equal(s.fires, 1);
	ky_watch_ended(s.watch, PID);
	ky_watch_tick(s.watch, 900 * MS);
	assert_int_equal(s.fires, 1);
	close_scene(&s);
}

static void a_counter_fires_when_it_crosses(void **state)
{
	struct scene s;
	SITE(here, KYMO_KIND_COUNTER, 0, "net", "queue");
	SITE(there, KYMO_KIND_COUNTER, 0, "net", "queue");
	SITE(other, KYMO_KIND_COUNTER, 0, "net", "queued");
	(void)state;
	open_scene(&s, "counter:net/queue>100", "counter:net/queue<0", NULL);
	count(&s, &here, 1, 100);
	count(&s, &here, 2, 120);
	count(&s, &there, 3, 130); /* the same counter */
	count(&s, &other, 4, 999);
	count(&s, &there, 5, 90);
	count(&s, &here, 6, 101);
	count(&s, &here, 7, -1);
	assert_string_equal(s.fired,
			    "2: net/queue is 120\n6: net/queue is 101\n7: net/queue is -1\n");
	close_scene(&s);
}

static void a_program_may_ask_itself(void **state)
{
	struct scene s;
	SITE(ask, KYMO_KIND_SNAPSHOT, KYMO_SITE_NAME, "kymo", "");
	const struct kymo_arg arg = {.key = "arg", .type = KYMO_TYPE_UINT, .value = {.u = 42}};
	const struct ky_event event = {.kind = KYMO_KIND_SNAPSHOT,
				       .time_ns = 5 * MS,
				       .site = &ask,
				       .thread = &s.threads[1],
				       .name = text_of("queue full"),
				       .args_count = 1,
				       .args = &arg};
	(void)state;
	open_scene(&s, "api", NULL);
	ky_watch_event(s.watch, PID, &event);
	assert_string_equal(s.fired, "5: queue full\n");
	assert_int_equal(s.last.args_count, 1);
	assert_int_equal(s.last.args[0], 42);
	assert_int_equal(s.last.tid, 102);
	assert_null(ky_watch_categories(s.watch));
	close_scene(&s);
	open_scene(&s, "span:net/recv>5ms", NULL);
	ky_watch_event(s.watch, PID, &event);
	assert_int_equal(s.fires, 0);
	close_scene(&s);
}

static void a_site_that_lies_where_another_was(void **state)
{
	struct scene s;
	struct ky_site site = {.kind = KYMO_KIND_BEGIN,
			       .flags = KYMO_SITE_SCOPE,
			       .category = text_of("db"),
			       .name = text_of("query")};
	(void)state;
	open_scene(&s, "span:net/recv>5ms", NULL);
	pass(&s, 0, &site, KYMO_KIND_BEGIN, 0);
	pass(&s, 0, &site, KYMO_KIND_END, 10);
	site.category = text_of("net");
	site.name = text_of("recv");
	pass(&s, 0, &site, KYMO_KIND_BEGIN, 20);
	pass(&s, 0, &site, KYMO_KIND_END, 30);
	assert_string_equal(s.fired, "30: net/recv took 10.0 ms\n");
	close_scene(&s);
}

static void categories_to_switch_on(void **state)
{
	struct scene s;
	(void)state;
	open_scene(&s, "span:net/recv>5ms", "exit", "gap:v*/frame>5ms", "counter:db/queue>5", NULL);
	assert_string_equal(ky_watch_categories(s.watch), "net,v*,db");
	close_scene(&s);
}

static void too_many_triggers_are_refused(void **state)
{
	struct ky_trigger triggers[65];
	struct ky_watch *watch;
	char message[KY_MESSAGE_BYTES];
	(void)state;
	for (uint32_t i = 0; i < 65; i++)
		assert_int_equal(ky_trigger_parse(&triggers[i], "span:net/recv>5ms", message), 0);
	assert_int_equal(ky_watch_open(&watch, triggers, 65, note, NULL), -E2BIG);
	assert_null(watch);
	for (uint32_t i = 0; i < 65; i++)
		ky_trigger_free(&triggers[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_span_fires_at_its_end),
		cmocka_unit_test(an_open_span_fires_once),
		cmocka_unit_test(ends_by_hand_end_the_innermost),
		cmocka_unit_test(the_end_of_a_scope_ends_what_is_in_it),
		cmocka_unit_test(a_loss_forgets_what_was_open),
		cmocka_unit_test(names_that_events_bring),
		cmocka_unit_test(asynchronous_spans_go_by_their_id),
		cmocka_unit_test(what_is_tracked_is_bounded),
		cmocka_unit_test(a_gap_fires_while_it_goes_on_or_at_its_end),
		cmocka_unit_test(points_have_gaps_too),
		cmocka_unit_test(a_counter_fires_when_it_crosses),
		cmocka_unit_test(a_program_may_ask_itself),
		cmocka_unit_test(a_site_that_lies_where_another_was),
		cmocka_unit_test(categories_to_switch_on),
		cmocka_unit_test(too_many_triggers_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
