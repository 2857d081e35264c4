/* SPDX-License-Identifier: MIT */
/*
 * feed_events.c: the streams of events that the writers' tests feed. What readers must make of them
 * is worked out elsewhere, from the notes; here is only what happens.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "feed.h"

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define ARGS(...) ((const struct kymo_arg[]){__VA_ARGS__})

struct cast {
	struct ky_thread *main;
	struct ky_thread *worker;
	struct ky_thread *odd;
};

static const char *const nasty[] = {
	"",
	"plain",
	"quote \" backslash \\ slash / </script>",
	"controls \x01\x02\x1f\t\r\n\b\f\x7f",
	"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 two three four bytes",
	"overlong \xc0\xaf \xe0\x80\xaf \xf0\x80\x80\xaf",
	"surrogate \xed\xa0\x80\xed\xb0\x80",
	"beyond \xf4\x90\x80\x80 \xf5\x80\x80\x80 \xff\xfe",
	"lone \x80 \xbf \xe2\x82 \xf0\x9f\x98 end \xe2",
	"{\"json\":[1,2]} %s %n ${x}",
};
#define NASTY (sizeof(nasty) / sizeof(nasty[0]))

static void spans(struct feed *f, const struct cast *c)
{
	const struct ky_site *outer = feed_site(f, KYMO_KIND_BEGIN, KYMO_SITE_SCOPE, "net", "outer",
						KEYS("bytes", "peer"));
	const struct ky_site *inner =
		feed_site(f, KYMO_KIND_BEGIN, KYMO_SITE_SCOPE, "db", "inner", NULL);
	const struct ky_site *end = feed_site(f, KYMO_KIND_END, 0, "net", "", KEYS("result"));
	feed_now(f, outer, c->main, 0, ARGS(feed_int(-5), feed_string("10.0.0.1")));
	feed_now(f, inner, c->main, 0, NULL);
	feed_now(f, inner, c->worker, 0, NULL);
	feed_end(f, inner, c->main);
	feed_now(f, inner, c->main, 0, NULL);
	feed_end(f, inner, c->main);
	feed_end(f, outer, c->main);
	feed_end(f, inner, c->worker);
	feed_now(f, outer, c->odd, 0, ARGS(feed_int(1), feed_string("x")));
	feed_now(f, end, c->odd, 0, ARGS(feed_double(0.25)));
	/* At one and the same time: begin after begin, end after end. */
	const uint64_t now = f->now_ns;
	feed_now(f, inner, c->odd, 0, NULL);
	f->now_ns = now;
	feed_now(f, inner, c->odd, 0, NULL);
	f->now_ns = now + 50;
	feed_end(f, inner, c->odd);
	f->now_ns = now + 50;
	feed_end(f, inner, c->odd);
}

static void values(struct feed *f, const struct cast *c)
{
	const struct ky_site *ints = feed_site(f, KYMO_KIND_INSTANT, 0, "values", "integers",
					       KEYS("min", "max", "umax", "half", "safe", "zero"));
	feed_now(f, ints, c->main, 0,
		 ARGS(feed_int(INT64_MIN), feed_int(INT64_MAX), feed_uint(UINT64_MAX),
		      feed_uint(UINT64_C(1) << 63), feed_uint((UINT64_C(1) << 53) + 1),
		      feed_uint(0)));
	const struct ky_site *doubles = feed_site(
		f, KYMO_KIND_INSTANT, 0, "values", "doubles",
		KEYS("third", "tiny", "huge", "negzero", "whole", "tenth", "small", "pi"));
	feed_now(f, doubles, c->main, 0,
		 ARGS(feed_double(1.0 / 3), feed_double(DBL_TRUE_MIN), feed_double(-DBL_MAX),
		      feed_double(-0.0), feed_double(1e6), feed_double(0.1), feed_double(1.5e-7),
		      feed_double(-3.141592653589793)));
	const struct ky_site *others =
		feed_site(f, KYMO_KIND_INSTANT, 0, "values", "others",
			  KEYS("nan", "inf", "ninf", "yes", "no", "ptr", "null", "big"));
	feed_now(f, others, c->main, 0,
		 ARGS(feed_double((double)NAN), feed_double(HUGE_VAL), feed_double(-HUGE_VAL),
		      feed_bool(1), feed_bool(0), feed_pointer(UINT64_C(0x7ffc12345678)),
		      feed_pointer(0), feed_pointer(UINT64_MAX)));
}

static void texts(struct feed *f, const struct cast *c)
{
	static char long_text[KYMO_STRING_MAX + 1];
	static char split_text[KYMO_STRING_MAX + 1];
	memset(long_text, 'x', KYMO_STRING_MAX);
	memset(split_text, 'y', KYMO_STRING_MAX);
	memcpy(split_text + KYMO_STRING_MAX - 2, "\xe2\x82", 2); /* a character cut in two */
	const struct ky_site *text =
		feed_site(f, KYMO_KIND_INSTANT, 0, "text", "text", KEYS("value"));
	const struct ky_site *dynamic =
		feed_site(f, KYMO_KIND_INSTANT, KYMO_SITE_NAME, "text", "", NULL);
	const struct ky_site *scope = feed_site(
		f, KYMO_KIND_BEGIN, KYMO_SITE_NAME | KYMO_SITE_SCOPE, "text", "", KEYS("n"));
	for (size_t i = 0; i < NASTY; i++) {
		feed_now(f, text, c->worker, 0, ARGS(feed_string(nasty[i])));
		if (i == 0)
			continue;
		const struct ky_site *named =
			feed_site(f, KYMO_KIND_INSTANT, 0, nasty[i], nasty[i], NULL);
		feed_now(f, named, c->worker, 0, NULL);
		struct ky_event e = {.kind = KYMO_KIND_INSTANT,
				     .time_ns = f->now_ns++,
				     .site = dynamic,
				     .thread = c->worker,
				     .name = {nasty[i], (uint32_t)strlen(nasty[i])}};
		feed_event(f, &e);
		struct kymo_arg n = feed_int((int64_t)i);
		n.key = scope->keys[0].data;
		e.kind = KYMO_KIND_BEGIN;
		e.site = scope;
		e.args = &n;
		e.args_count = 1;
		e.time_ns = f->now_ns++;
		feed_event(f, &e);
		feed_end(f, scope, c->worker);
	}
	feed_now(f, text, c->worker, 0, ARGS(feed_cut_string(long_text)));
	feed_now(f, text, c->worker, 0, ARGS(feed_cut_string(split_text)));
}

static void counters(struct feed *f, const struct cast *c)
{
	const struct ky_site *queue =
		feed_site(f, KYMO_KIND_COUNTER, 0, "db", "queue", KEYS("value"));
	const struct ky_site *load =
		feed_site(f, KYMO_KIND_COUNTER, 0, "db", "load", KEYS("value"));
	const struct ky_site *again =
		feed_site(f, KYMO_KIND_COUNTER, 0, "db", "queue", KEYS("value"));
	const struct ky_site *pair =
		feed_site(f, KYMO_KIND_COUNTER, 0, "db", "memory", KEYS("used", "free"));
	feed_now(f, queue, c->main, 0, ARGS(feed_int(3)));
	feed_now(f, queue, c->worker, 0, ARGS(feed_int(-4)));
	feed_now(f, again, c->main, 0, ARGS(feed_uint(UINT64_C(1) << 63)));
	feed_now(f, load, c->main, 0, ARGS(feed_double(0.75)));
	feed_now(f, load, c->main, 0, ARGS(feed_double(-1e300)));
	feed_now(f, pair, c->main, 0, ARGS(feed_uint(10), feed_uint(20)));
}

static void asyncs(struct feed *f, const struct cast *c)
{
	const uint64_t pointer = UINT64_C(0x7fff00000010);
	const struct ky_site *request =
		feed_site(f, KYMO_KIND_ASYNC_BEGIN, KYMO_SITE_ID, "http", "request", KEYS("url"));
	const struct ky_site *phase =
		feed_site(f, KYMO_KIND_ASYNC_BEGIN, KYMO_SITE_ID, "http", "phase", NULL);
	const struct ky_site *phase_end =
		feed_site(f, KYMO_KIND_ASYNC_END, KYMO_SITE_ID, "http", "phase", NULL);
	const struct ky_site *note =
		feed_site(f, KYMO_KIND_ASYNC_INSTANT, KYMO_SITE_ID | KYMO_SITE_LOCAL_ID, "http",
			  "note", NULL);
	const struct ky_site *request_end =
		feed_site(f, KYMO_KIND_ASYNC_END, KYMO_SITE_ID, "http", "request", KEYS("status"));
	const struct ky_site *job =
		feed_site(f, KYMO_KIND_ASYNC_BEGIN, KYMO_SITE_ID, "jobs", "request", KEYS("url"));
	const struct ky_site *job_end =
		feed_site(f, KYMO_KIND_ASYNC_END, KYMO_SITE_ID, "jobs", "request", NULL);
	feed_now(f, request, c->main, 1, ARGS(feed_string("/a")));
	feed_now(f, request, c->main, 2, ARGS(feed_string("/b")));
	feed_now(f, request, c->main, pointer, ARGS(feed_string("/c")));
	feed_now(f, phase, c->worker, 1, NULL);
	feed_now(f, note, c->worker, 1, NULL);
	feed_now(f, phase_end, c->odd, 1, NULL);
	feed_now(f, request_end, c->worker, 1, ARGS(feed_int(200)));
	feed_now(f, request_end, c->worker, pointer, ARGS(feed_int(404)));
	feed_now(f, request_end, c->main, 2, ARGS(feed_int(500)));
	/* The same id in another category is another span. */
	feed_now(f, job, c->main, UINT64_MAX, ARGS(feed_string("/d")));
	feed_now(f, request, c->main, UINT64_MAX, ARGS(feed_string("/e")));
	feed_now(f, job_end, c->main, UINT64_MAX, NULL);
	feed_now(f, request_end, c->main, UINT64_MAX, ARGS(feed_int(1)));
}

static void flow_in_span(struct feed *f, const struct ky_site *flow, const struct ky_thread *thread,
			 uint64_t id)
{
	const struct ky_site *span =
		feed_site(f, KYMO_KIND_BEGIN, KYMO_SITE_SCOPE, "flow", "handler", NULL);
	feed_now(f, span, thread, 0, NULL);
	feed_now(f, flow, thread, id, NULL);
	feed_end(f, span, thread);
}

static void flows(struct feed *f, const struct cast *c)
{
	const struct ky_site *begin =
		feed_site(f, KYMO_KIND_FLOW_BEGIN, KYMO_SITE_ID, "flow", "packet", NULL);
	const struct ky_site *step =
		feed_site(f, KYMO_KIND_FLOW_STEP, KYMO_SITE_ID, "flow", "packet", NULL);
	const struct ky_site *end =
		feed_site(f, KYMO_KIND_FLOW_END, KYMO_SITE_ID, "flow", "packet", NULL);
	const struct ky_site *other = feed_site(
		f, KYMO_KIND_FLOW_BEGIN, KYMO_SITE_ID | KYMO_SITE_LOCAL_ID, "flow", "other", NULL);
	const struct ky_site *other_end = feed_site(
		f, KYMO_KIND_FLOW_END, KYMO_SITE_ID | KYMO_SITE_LOCAL_ID, "flow", "other", NULL);
	const uint64_t id = UINT64_C(0xfedcba9876543210);
	flow_in_span(f, begin, c->main, 7);
	flow_in_span(f, step, c->worker, 7);
	flow_in_span(f, begin, c->main, id);
	flow_in_span(f, end, c->odd, 7);
	flow_in_span(f, end, c->worker, id);
	/* Another name with an id that was used: another flow. */
	flow_in_span(f, other, c->worker, 7);
	flow_in_span(f, other_end, c->main, 7);
}

static void prints(struct feed *f, const struct cast *c)
{
	const struct ky_site *print =
		feed_site(f, KYMO_KIND_PRINT, 0, "log", "%d of %s", KEYS("", ""));
	struct kymo_arg args[] = {feed_int(3), feed_string("five")};
	args[0].key = args[1].key = print->keys[0].data;
	feed_event(f, &(struct ky_event){.kind = KYMO_KIND_PRINT,
					 .args_count = 2,
					 .time_ns = f->now_ns++,
					 .site = print,
					 .thread = c->main,
					 .name = {"3 of \"five\"", 11},
					 .args = args});
}

static void scopes(struct feed *f, const struct cast *c)
{
	const struct ky_site *process = feed_site(f, KYMO_KIND_INSTANT, KYMO_SITE_PROCESS, "scope",
						  "of process", KEYS("n"));
	const struct ky_site *global =
		feed_site(f, KYMO_KIND_INSTANT, KYMO_SITE_GLOBAL, "scope", "of machine", NULL);
	feed_now(f, process, c->worker, 0, ARGS(feed_int(1)));
	feed_now(f, global, c->worker, 0, NULL);
}

static void chromium_kinds(struct feed *f, const struct cast *c)
{
	static const uint8_t kinds[] = {KYMO_KIND_OBJECT_NEW, KYMO_KIND_OBJECT_SNAPSHOT,
					KYMO_KIND_OBJECT_SNAPSHOT, KYMO_KIND_OBJECT_DELETE};
	for (size_t i = 0; i < sizeof(kinds); i++) {
		const bool state = kinds[i] == KYMO_KIND_OBJECT_SNAPSHOT;
		const struct ky_site *site =
			feed_site(f, kinds[i], KYMO_SITE_ID, "objects", "Layer",
				  state ? KEYS(i == 1 ? "snapshot" : "width") : NULL);
		feed_now(f, site, c->main, 0xabc, ARGS(feed_int(640)));
	}
	const struct ky_site *metadata =
		feed_site(f, KYMO_KIND_METADATA, 0, "__metadata", "num_cpus", KEYS("number"));
	feed_now(f, metadata, c->main, 0, ARGS(feed_int(2)));
	const struct ky_site *sync =
		feed_site(f, KYMO_KIND_CLOCK_SYNC, 0, "sync", "clock_sync", KEYS("sync_id"));
	feed_now(f, sync, c->main, 0, ARGS(feed_string("sync-1")));
	const struct ky_site *sample =
		feed_site(f, KYMO_KIND_SAMPLE, 0, "sample", "heap", KEYS("bytes"));
	feed_now(f, sample, c->main, 0, ARGS(feed_int(4096)));
}

static void kymo_kinds(struct feed *f, const struct cast *c)
{
	const struct ky_site *snapshot =
		feed_site(f, KYMO_KIND_SNAPSHOT, KYMO_SITE_NAME, "kymo", "", KEYS("arg"));
	const struct ky_site *mark = feed_site(f, KYMO_KIND_MARK, 0, "kymo", "", NULL);
	struct kymo_arg arg = feed_uint(77);
	arg.key = snapshot->keys[0].data;
	feed_now(f, mark, c->main, 0, NULL);
	feed_event(f, &(struct ky_event){.kind = KYMO_KIND_SNAPSHOT,
					 .args_count = 1,
					 .time_ns = f->now_ns++,
					 .site = snapshot,
					 .thread = c->main,
					 .name = {"too slow", 8},
					 .args = &arg});
	feed_event(f, &(struct ky_event){.kind = KYMO_KIND_LOST,
					 .time_ns = f->now_ns++,
					 .id = 123456,
					 .thread = c->worker});
	const struct ky_site *lost =
		feed_site(f, KYMO_KIND_BEGIN, KYMO_SITE_SCOPE, "net", "lost begin", NULL);
	feed_event(f, &(struct ky_event){.kind = KYMO_KIND_BEGIN,
					 .begin_lost = true,
					 .time_ns = f->now_ns++,
					 .site = lost,
					 .thread = c->worker,
					 .name = lost->name});
	feed_end(f, lost, c->worker);
}

static void times(struct feed *f, const struct cast *c)
{
	const struct ky_site *late =
		feed_site(f, KYMO_KIND_INSTANT, KYMO_SITE_TIME, "time", "late", NULL);
	const uint64_t now = f->now_ns;
	f->now_ns = FEED_START_NS + 7; /* before everything else there */
	feed_now(f, late, c->odd, 0, NULL);
	f->now_ns = FEED_START_NS + 1000000000;
	feed_now(f, late, c->odd, 0, NULL);
	f->now_ns = FEED_START_NS + 999999999;
	feed_now(f, late, c->odd, 0, NULL);
	f->now_ns = now;
	feed_now(f, late, c->odd, 0, NULL);
}

void feed_everything(struct feed *f)
{
	struct cast c;
	c.main = feed_thread(f, FEED_PID, "main");
	c.worker = feed_thread(f, FEED_PID + 1, "worker");
	c.odd = feed_thread(f, FEED_PID + 2, "odd \"\xff\" \x01 \xe2\x82\xac");
	spans(f, &c);
	values(f, &c);
	texts(f, &c);
	counters(f, &c);
	asyncs(f, &c);
	flows(f, &c);
	prints(f, &c);
	scopes(f, &c);
	chromium_kinds(f, &c);
	kymo_kinds(f, &c);
	times(f, &c);
	feed_rename(f, c.worker, "worker renamed");
	const struct ky_site *open =
		feed_site(f, KYMO_KIND_BEGIN, KYMO_SITE_SCOPE, "open", "open", NULL);
	feed_now(f, open, c.main, 0, NULL);
	feed_now(f, open, c.main, 0, NULL);
	feed_now(f, open, c.worker, 0, NULL);
}

void feed_threads(struct feed *f, uint32_t count)
{
	static char names[1024][32];
	const struct ky_site *span =
		feed_site(f, KYMO_KIND_BEGIN, KYMO_SITE_SCOPE, "threads", "work", NULL);
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < count; i++) {
			snprintf(names[i], sizeof(names[i]), "thread %u", i);
			struct ky_thread *thread =
				round ? f->threads[f->threads_count - count + i]
				      : feed_thread(f, (int32_t)(10000 + i), names[i]);
			feed_now(f, span, thread, 0, NULL);
			feed_end(f, span, thread);
		}
	}
}

void feed_names(struct feed *f, uint32_t count)
{
	struct ky_thread *thread = feed_thread(f, FEED_PID, "main");
	char(*names)[16] = calloc(count, sizeof(*names));
	f->names = names;
	const uint32_t first = f->sites_count;
	for (uint32_t i = 0; i < count; i++) {
		snprintf(names[i], sizeof(names[i]), "name %u", i);
		feed_site(f, KYMO_KIND_BEGIN, KYMO_SITE_SCOPE, "names", names[i], NULL);
	}
	for (uint32_t i = 0; i < count * 2; i++) {
		const struct ky_site *site = f->sites[first + i % count];
		feed_now(f, site, thread, 0, NULL);
		feed_end(f, site, thread);
	}
}
