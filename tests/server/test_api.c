/* SPDX-License-Identifier: MIT */
/*
 * test_api.c: api/trace and api/event of a small trace that has one of each, value by value; bad requests are refused and do
 * no harm.
 */
#include "asking.h"
#include "model/intake.h"
#include "server/tile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Times in microseconds. */
static const char small[] =
	"{\"traceEvents\": ["
	"{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 5, \"args\": {\"name\": \"server\"}},"
	"{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 5, \"tid\": 6, \"args\": {\"name\": "
	"\"worker\"}},"
	"{\"ph\": \"X\", \"name\": \"outer\", \"cat\": \"net\", \"pid\": 5, \"tid\": 6, \"ts\": "
	"1000, \"dur\": 100,"
	" \"args\": {\"n\": -3, \"big\": 18446744073709551615, \"half\": 0.5, \"yes\": true, "
	"\"nothing\": null,"
	"  \"text\": \"a \\\"quote\\\"\\n\", \"deep\": {\"a\": [1, 2]}, \"src_file\": \"a.c\", "
	"\"src_func\": \"f\"}},"
	"{\"ph\": \"X\", \"name\": \"inner\", \"pid\": 5, \"tid\": 6, \"ts\": 1010, \"dur\": 20},"
	"{\"ph\": \"X\", \"name\": \"inner\", \"pid\": 5, \"tid\": 6, \"ts\": 1040, \"dur\": 30},"
	"{\"ph\": \"X\", \"name\": \"leaf\", \"pid\": 5, \"tid\": 6, \"ts\": 1045, \"dur\": 5},"
	"{\"ph\": \"i\", \"s\": \"t\", \"name\": \"now\", \"pid\": 5, \"tid\": 6, \"ts\": 1080},"
	"{\"ph\": \"X\", \"name\": \"there\", \"pid\": 5, \"tid\": 7, \"ts\": 1090, \"dur\": 50},"
	"{\"ph\": \"s\", \"name\": \"arrow\", \"cat\": \"f\", \"id\": 1, \"pid\": 5, \"tid\": 6, "
	"\"ts\": 1050},"
	"{\"ph\": \"f\", \"bp\": \"e\", \"name\": \"arrow\", \"cat\": \"f\", \"id\": 1, \"pid\": "
	"5, \"tid\": 7, \"ts\": 1100},"
	"{\"ph\": \"B\", \"name\": \"endless\", \"pid\": 5, \"tid\": 7, \"ts\": 1150},"
	"{\"ph\": \"C\", \"name\": \"load\", \"pid\": 5, \"ts\": 1000, \"args\": {\"v\": 1.5}},"
	"{\"ph\": \"C\", \"name\": \"load\", \"pid\": 5, \"ts\": 1060, \"args\": {\"v\": 4}},"
	"{\"ph\": \"X\", \"name\": \"\\u0001<script>\\ud83d\\ude00\", \"pid\": 5, \"tid\": 8, "
	"\"ts\": 1200, \"dur\": 1}"
	"]}";

/* Return the slice of that name, by SQL: ids are rows. */
static int64_t id_of(struct asking *asking, const char *name)
{
	char sql[160];
	struct reply reply;
	snprintf(sql, sizeof(sql), "select id from slice where name = '%s' order by id", name);
	ask(asking, "api/sql", "", sql, &reply);
	const int64_t id = reply_int(&reply, "rows.0.0");
	reply_free(&reply);
	return id;
}

static void ask_event(struct asking *asking, const char *kind, int64_t id, struct reply *reply)
{
	char query[64];
	snprintf(query, sizeof(query), "kind=%s&id=%lld", kind, (long long)id);
	ask(asking, "api/event", query, NULL, reply);
	assert_int_equal(reply->status, 200);
}

static void the_trace_is_told(void **state)
{
	(void)state;
	struct asking asking;
	struct reply reply;
	char place[64];
	asking_open(&asking, small);
	ask(&asking, "api/trace", "", NULL, &reply);
	assert_int_equal(reply.status, 200);
	assert_int_equal(reply_int(&reply, "generation"), 7);
	reply_text_is(&reply, "name", "test");
	reply_text_is(&reply, "format", "json");
	reply_text_is(&reply, "base", "1000000");
	assert_int_equal(reply_int(&reply, "begin"), 0);
	assert_int_equal(reply_int(&reply, "end"), 201000);
	assert_false(reply_bool(&reply, "live"));
	assert_int_equal(reply_int(&reply, "counts.slices"), 7);
	assert_int_equal(reply_int(&reply, "counts.instants"), 1);
	assert_int_equal(reply_int(&reply, "counts.counters"), 2);
	assert_int_equal(reply_int(&reply, "counts.flows"), 1);
	assert_int_equal(reply_int(&reply, "counts.lost"), 0);
	assert_int_equal(reply_length(&reply, "tracks"), asking.view->tracks_count);
	for (uint32_t i = 0; i < asking.view->tracks_count; i++) {
		snprintf(place, sizeof(place), "tracks.%u.key", i);
		reply_text_is(&reply, place, asking.view->tracks[i].key);
		snprintf(place, sizeof(place), "tracks.%u.parent", i);
		assert_true(reply_int(&reply, place) < (int64_t)i);
	}
	snprintf(place, sizeof(place), "tracks.%u.max",
		 reply_find(&reply, "tracks", "kind", "counter"));
	assert_true(reply_real(&reply, place) == 4);
	reply_free(&reply);
	asking_close(&asking);
}

static void check_relatives(struct asking *asking, int64_t outer)
{
	struct reply reply;
	ask_event(asking, "slices", id_of(asking, "leaf"), &reply);
	assert_int_equal(reply_length(&reply, "parents"), 2);
	reply_text_is(&reply, "parents.0.name", "inner");
	assert_int_equal(reply_int(&reply, "parents.0.ts"), 40000);
	assert_int_equal(reply_int(&reply, "parents.0.row"), 1);
	assert_int_equal(reply_int(&reply, "parents.1.id"), outer);
	assert_int_equal(reply_int(&reply, "childrenCount"), 0);
	reply_free(&reply);
	ask_event(asking, "slices", outer, &reply);
	assert_int_equal(reply_int(&reply, "childrenCount"), 3);
	assert_int_equal(reply_length(&reply, "children"), 3);
	reply_text_is(&reply, "children.2.name", "now");
	assert_int_equal(reply_int(&reply, "self"), 50000);
	reply_free(&reply);
}

static void a_slice_has_all_its_details(void **state)
{
	(void)state;
	struct asking asking;
	struct reply reply;
	asking_open(&asking, small);
	const int64_t outer = id_of(&asking, "outer");
	ask_event(&asking, "slices", outer, &reply);
	reply_text_is(&reply, "kind", "slices");
	reply_text_is(&reply, "name", "outer");
	reply_text_is(&reply, "category", "net");
	reply_text_is(&reply, "process", "server 5");
	reply_text_is(&reply, "thread", "worker 6");
	reply_text_is(&reply, "absolute", "1000000");
	assert_true(reply_is_null(&reply, "wall"));
	assert_int_equal(reply_int(&reply, "ts"), 0);
	assert_int_equal(reply_int(&reply, "dur"), 100000);
	assert_false(reply_bool(&reply, "instant"));
	static const char *const args[][3] = {
		{"n", "int", "-3"},        {"half", "real", "0.5"},
		{"yes", "bool", "true"},   {"text", "string", "a \"quote\"\n"},
		{"deep.a[1]", "int", "2"},
	};
	for (size_t i = 0; i < sizeof(args) / sizeof(args[0]); i++) {
		char place[64];
		const uint32_t at = reply_find(&reply, "args", "key", args[i][0]);
		snprintf(place, sizeof(place), "args.%u.type", at);
		reply_text_is(&reply, place, args[i][1]);
		snprintf(place, sizeof(place), "args.%u.value", at);
		reply_text_is(&reply, place, args[i][2]);
	}
	reply_text_is(&reply, "source.file", "a.c");
	reply_text_is(&reply, "source.function", "f");
	reply_free(&reply);
	check_relatives(&asking, outer);
	asking_close(&asking);
}

static void flows_lead_to_the_other_end(void **state)
{
	(void)state;
	struct asking asking;
	struct reply reply;
	asking_open(&asking, small);
	const int64_t there = id_of(&asking, "there");
	ask_event(&asking, "slices", there, &reply);
	assert_int_equal(reply_length(&reply, "flowsIn"), 1);
	assert_int_equal(reply_length(&reply, "flowsOut"), 0);
	reply_text_is(&reply, "flowsIn.0.name", "arrow");
	const int64_t from = reply_int(&reply, "flowsIn.0.from.id");
	reply_free(&reply);
	ask_event(&asking, "slices", from, &reply);
	assert_int_equal(reply_length(&reply, "flowsOut"), 1);
	assert_int_equal(reply_int(&reply, "flowsOut.0.to.id"), there);
	reply_text_is(&reply, "flowsOut.0.to.name", "there");
	assert_true(reply_int(&reply, "flowsOut.0.to.track") >= 0);
	reply_free(&reply);
	asking_close(&asking);
}

static void odd_slices_are_what_they_are(void **state)
{
	(void)state;
	struct asking asking;
	struct reply reply;
	asking_open(&asking, small);
	ask_event(&asking, "slices", id_of(&asking, "endless"), &reply);
	assert_int_equal(reply_int(&reply, "dur"), -1);
	assert_int_equal(reply_int(&reply, "self"), 51000);
	reply_text_is(&reply, "facts.0.key", "end");
	reply_free(&reply);
	ask_event(&asking, "slices", id_of(&asking, "now"), &reply);
	assert_true(reply_bool(&reply, "instant"));
	assert_true(reply_is_null(&reply, "self"));
	assert_true(reply_is_null(&reply, "source"));
	reply_free(&reply);
	ask_event(&asking, "slices", asking.view->trace->slices.rows.count - 1, &reply);
	reply_text_is(&reply, "name", "\1<script>\xf0\x9f\x98\x80");
	reply_free(&reply);
	asking_close(&asking);
}

static void a_counter_has_its_value_and_change(void **state)
{
	(void)state;
	struct asking asking;
	struct reply reply;
	asking_open(&asking, small);
	ask_event(&asking, "counter", 0, &reply);
	reply_text_is(&reply, "facts.0.value", "1.5");
	assert_int_equal(reply_length(&reply, "facts"), 1);
	assert_int_equal(reply_int(&reply, "dur"), 60000);
	reply_free(&reply);
	ask_event(&asking, "counter", 1, &reply);
	reply_text_is(&reply, "facts.0.value", "4");
	reply_text_is(&reply, "facts.1.key", "change");
	reply_text_is(&reply, "facts.1.value", "+2.5");
	assert_int_equal(reply_int(&reply, "dur"), 141000);
	assert_true(reply_int(&reply, "track") >= 0);
	reply_free(&reply);
	asking_close(&asking);
}

/* Scheduling, states, samples, losses, clocks, snapshots: what JSON lacks. */
static struct ky_trace *full_trace(void)
{
	struct ky_trace *trace = NULL;
	assert_int_equal(ky_trace_open(&trace), 0);
	const struct ky_clock_reading clocks[] = {{KY_CLOCK_BOOTTIME, 1000},
						  {KY_CLOCK_REALTIME, 1700000000000000001}};
	trace->clock = KY_CLOCK_BOOTTIME;
	ky_put_clocks(trace, 1000, clocks, 2);
	const uint32_t thread = ky_thread(trace, 5, 6);
	ky_thread_name(trace, thread, ky_string_z(trace, "worker"), KY_NAME_TRACE);
	const struct ky_mapping_spec module = {.name = ky_string_z(trace, "/bin/app"), .end = 4096};
	const uint32_t mapping = ky_mapping(trace, &module);
	const uint32_t outer = ky_frame(trace, mapping, 16, ky_string_z(trace, "main"),
					ky_string_z(trace, "main.c"), 12);
	const uint32_t inner = ky_frame(trace, mapping, 32, ky_string_z(trace, "work"), 0, 0);
	const uint32_t site = ky_callsite(trace, ky_callsite(trace, KY_NONE, outer), inner);
	for (int i = 0; i < 3; i++)
		ky_put_sample(trace, 1000 + i * 100, thread, site, 0, KY_CPU_MODE_USER, 1,
			      ky_string_z(trace, "cycles"));
	const uint32_t snapshots = ky_track_global(trace, ky_string_z(trace, "snapshots"));
	ky_args_begin(trace);
	ky_arg_string(trace, ky_string_z(trace, "trigger"), ky_string_z(trace, "slow > 1ms"));
	ky_arg_string(trace, ky_string_z(trace, "stack"),
		      ky_string_z(trace, "store (a.c:31, inlined)\nf(int (*)(int)) (a.c:7)\n"
					 "0x7f31c2029d90 (libc.so.6)\n"));
	ky_put_instant(trace, 1500, snapshots, ky_string_z(trace, "kymo"),
		       ky_string_z(trace, "too slow"), ky_args_end(trace));
	ky_put_lost(trace, 1600, thread, KY_NONE, 42, KY_LOSS_RING);
	ky_put_lost_text(trace, KY_TIME_NONE, KY_NONE, 3, 0, "kernel");
	ky_problem(trace, "odd", KY_DATA_LOSS, 77, "what was %s", "odd");
	assert_int_equal(ky_trace_finish(trace, NULL, NULL), 0);
	return trace;
}

static void what_surrounds_events_is_told(void **state)
{
	(void)state;
	struct asking asking;
	struct reply reply;
	asking_open_trace(&asking, full_trace());
	ask(&asking, "api/trace", "", NULL, &reply);
	reply_text_is(&reply, "clock", "BOOTTIME");
	reply_text_is(&reply, "wall", "1700000000000000001");
	assert_int_equal(reply_length(&reply, "snapshots"), 1);
	assert_int_equal(reply_int(&reply, "snapshots.0.ts"), 500);
	reply_text_is(&reply, "snapshots.0.trigger", "slow > 1ms");
	reply_text_is(&reply, "snapshots.0.reason", "too slow");
	assert_int_equal(reply_length(&reply, "losses"), 2);
	assert_int_equal(reply_int(&reply, "losses.0.ts"), 600);
	assert_int_equal(reply_int(&reply, "losses.0.events"), 42);
	assert_true(reply_is_null(&reply, "losses.1.ts"));
	assert_int_equal(reply_int(&reply, "counts.lost"), 42);
	reply_text_is(&reply, "problems.0.severity", "data loss");
	reply_text_is(&reply, "problems.0.first", "at byte 77: what was odd");
	reply_free(&reply);
	ask_event(&asking, "slices", 0, &reply);
	reply_text_is(&reply, "wall", "2023-11-14T22:13:20.000000501Z");
	assert_int_equal(reply_length(&reply, "stack"), 3);
	reply_text_is(&reply, "stack.0.name", "store");
	reply_text_is(&reply, "stack.0.file", "a.c");
	assert_int_equal(reply_int(&reply, "stack.0.line"), 31);
	reply_text_is(&reply, "stack.1.name", "f(int (*)(int))");
	reply_text_is(&reply, "stack.2.name", "0x7f31c2029d90");
	reply_text_is(&reply, "stack.2.module", "libc.so.6");
	reply_free(&reply);
	ask_event(&asking, "loss", 0, &reply);
	reply_text_is(&reply, "name", "ring overwritten");
	reply_text_is(&reply, "thread", "worker 6");
	reply_text_is(&reply, "facts.0.value", "42");
	reply_free(&reply);
	asking_close(&asking);
}

static void a_sample_has_its_stack(void **state)
{
	(void)state;
	struct asking asking;
	struct reply reply;
	asking_open_trace(&asking, full_trace());
	const struct ky_sample_spans *const spans = &asking.view->sample_spans;
	uint32_t work = 0;
	while (work < spans->count && spans->frame[work] != 1)
		work++;
	assert_true(work < spans->count);
	ask_event(&asking, "samples", work, &reply);
	reply_text_is(&reply, "name", "work");
	reply_text_is(&reply, "thread", "worker 6");
	assert_int_equal(reply_length(&reply, "stack"), 2);
	reply_text_is(&reply, "stack.0.name", "work");
	reply_text_is(&reply, "stack.1.name", "main");
	reply_text_is(&reply, "stack.1.file", "main.c");
	assert_int_equal(reply_int(&reply, "stack.1.line"), 12);
	reply_text_is(&reply, "stack.1.module", "/bin/app");
	reply_text_is(&reply, "facts.0.value", "3");
	reply_free(&reply);
	ask(&asking, "api/flame", "of=samples&from=0&to=150", NULL, &reply);
	reply_text_is(&reply, "unit", "samples");
	reply_text_is(&reply, "nodes.1.name", "work");
	assert_int_equal(reply_int(&reply, "nodes.1.parent"), 0);
	assert_int_equal(reply_int(&reply, "nodes.1.total"), 2);
	assert_int_equal(reply_int(&reply, "nodes.0.self"), 0);
	reply_free(&reply);
	asking_close(&asking);
}

static const char kernel[] = "# tracer: nop\n"
			     "          <idle>-0     [001] d...     1.000000: sched_switch: "
			     "prev_comm=swapper/1 prev_pid=0 prev_prio=120 "
			     "prev_state=R ==> next_comm=worker next_pid=6 next_prio=110\n"
			     "          worker-6     [001] d...     1.000100: sched_switch: "
			     "prev_comm=worker prev_pid=6 prev_prio=110 "
			     "prev_state=S ==> next_comm=other next_pid=7 next_prio=120\n"
			     "           other-7     [001] d...     1.000150: sched_waking: "
			     "comm=worker pid=6 prio=110 target_cpu=001\n"
			     "           other-7     [001] d...     1.000300: sched_switch: "
			     "prev_comm=other prev_pid=7 prev_prio=120 "
			     "prev_state=D ==> next_comm=worker next_pid=6 next_prio=110\n"
			     "          worker-6     [001] d...     1.000400: sched_switch: "
			     "prev_comm=worker prev_pid=6 prev_prio=110 "
			     "prev_state=R+ ==> next_comm=swapper/1 next_pid=0 next_prio=120\n";

static void what_a_cpu_runs_says_who_woke_it(void **state)
{
	(void)state;
	struct asking asking;
	struct reply reply;
	asking_open(&asking, kernel);
	ask(&asking, "api/sql", "",
	    "select id from sched where ts = 1000300000 union all "
	    "select id from thread_state where ts = 1000100000 and state = 'S'",
	    &reply);
	const int64_t sched = reply_int(&reply, "rows.0.0"), slept = reply_int(&reply, "rows.1.0");
	reply_free(&reply);
	ask_event(&asking, "sched", sched, &reply);
	reply_text_is(&reply, "name", "worker 6");
	assert_int_equal(reply_int(&reply, "dur"), 100000);
	char place[64];
	snprintf(place, sizeof(place), "facts.%u.value",
		 reply_find(&reply, "facts", "key", "woken by"));
	reply_text_is(&reply, place, "other 7");
	snprintf(place, sizeof(place), "facts.%u.value", reply_find(&reply, "facts", "key", "CPU"));
	reply_text_is(&reply, place, "1");
	reply_free(&reply);
	ask_event(&asking, "state", slept, &reply);
	reply_text_is(&reply, "name", "S");
	reply_text_is(&reply, "facts.0.value", "sleeping (S)");
	reply_free(&reply);
	asking_close(&asking);
}

/* A slice with many children, a long name and a long argument. */
static char *wide_trace(size_t name_bytes, unsigned children)
{
	struct ky_buffer text = {0};
	ky_buffer_text(&text,
		       "{\"traceEvents\": [{\"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": 0, "
		       "\"dur\": 100000, \"name\": \"");
	memset(ky_buffer_reserve(&text, name_bytes), 'n', name_bytes);
	ky_buffer_text(&text, "\", \"args\": {\"a\": \"");
	memset(ky_buffer_reserve(&text, name_bytes * 20), 'v', name_bytes * 20);
	ky_buffer_text(&text, "\"}}");
	for (unsigned i = 0; i < children; i++)
		ky_buffer_format(
			&text,
			", {\"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": %u, \"dur\": 2, "
			"\"name\": \"child\"}",
			10 + i * 3);
	ky_buffer_text(&text, "]}");
	ky_buffer_add(&text, "", 1);
	assert_false(text.failed);
	return text.data;
}

static void what_is_large_is_cut(void **state)
{
	(void)state;
	struct asking asking;
	struct reply reply;
	struct ky_json_text text;
	char *const wide = wide_trace(10000, 300);
	asking_open(&asking, wide);
	free(wide);
	ask_event(&asking, "slices", 0, &reply);
	assert_int_equal(reply_int(&reply, "childrenCount"), 300);
	assert_int_equal(reply_length(&reply, "children"), 200);
	assert_int_equal(reply_int(&reply, "self"), 100000000 - 300 * 2000);
	assert_true(ky_json_tree_text(&reply.tree, reply_node(&reply, "name"), &text));
	assert_int_equal(text.bytes, 4096);
	assert_true(ky_json_tree_text(&reply.tree, reply_node(&reply, "args.0.value"), &text));
	assert_int_equal(text.bytes, 65536);
	reply_free(&reply);
	asking_close(&asking);
}

static void tiles_are_bytes_of_this_generation(void **state)
{
	(void)state;
	struct asking asking;
	struct reply reply;
	char query[96];
	uint32_t track = 0;
	asking_open(&asking, small);
	while (asking.view->tracks[track].kind != KY_VIEW_SLICES)
		track++;
	snprintf(query, sizeof(query), "g=7&level=10&first=0&count=2&tracks=%u", track);
	ask(&asking, "api/tiles", query, NULL, &reply);
	assert_int_equal(reply.status, 200);
	assert_string_equal(reply.type, "application/octet-stream");
	struct ky_wire_header header;
	assert_true(reply.body.bytes >= sizeof(header));
	memcpy(&header, reply.body.data, sizeof(header));
	assert_int_equal(header.magic, KY_WIRE_MAGIC);
	assert_int_equal(header.sections, 2);
	reply_free(&reply);
	snprintf(query, sizeof(query), "g=6&level=10&first=0&count=2&tracks=%u", track);
	refuses(&asking, "api/tiles", query, NULL, 409);
	refuses(&asking, "api/event", "kind=slices&id=0&g=6", NULL, 409);
	ask(&asking, "api/event", "kind=slices&id=0&g=7", NULL, &reply);
	assert_int_equal(reply.status, 200);
	reply_free(&reply);
	asking_close(&asking);
}

static void what_is_asked_wrongly_is_refused(void **state)
{
	(void)state;
	struct asking asking;
	asking_open(&asking, small);
	static const struct {
		const char *path, *query;
		int status;
	} wrong[] = {
		{"", "", 404},
		{"api", "", 404},
		{"api/../etc/passwd", "", 404},
		{"api/trace/", "", 404},
		{"api/event", "", 400},
		{"api/event", "kind=slices", 400},
		{"api/event", "kind=group&id=0", 400},
		{"api/event", "kind=\xff&id=0", 400},
		{"api/event", "kind=slices&id=", 400},
		{"api/event", "kind=slices&id=x", 400},
		{"api/event", "kind=slices&id=nan", 400},
		{"api/event", "kind=slices&id=0x1", 400},
		{"api/event", "kind=slices&id=-inf", 400},
		{"api/event", "kind=slices&id=-1", 404},
		{"api/event", "kind=slices&id=8", 404},
		{"api/event", "kind=slices&id=4294967296", 404},
		{"api/event", "kind=slices&id=99999999999999999999", 404},
		{"api/event", "kind=samples&id=0", 404},
		{"api/range", "", 400},
		{"api/range", "from=0", 400},
		{"api/range", "from=a&to=b", 400},
		{"api/range", "from=0&to=1e999", 400},
		{"api/range", "from=0&to=1&tracks=x", 400},
		{"api/range", "from=0&to=1&tracks=-1", 400},
		{"api/range", "from=0&to=1&tracks=1,,2", 400},
		{"api/range", "from=0&to=1&tracks=4294967297", 400},
		{"api/range", "from=0&to=1&tracks=0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0",
		 400},
		{"api/flame", "from=0&to=1", 400},
		{"api/flame", "from=0&to=1&of=\xc3\x28", 400},
		{"api/search", "", 400},
		{"api/search", "q=x&at=\xff", 400},
		{"api/search", "q=x&at=-2", 400},
		{"api/search", "q=x&near=", 400},
		{"api/search", "q=x&near=0&forward=2", 400},
		{"api/neighbour", "", 400},
		{"api/neighbour", "g=7&ts=0", 400},
		{"api/neighbour", "g=6&ts=0&track=0", 409},
		{"api/neighbour", "g=7&ts=0&track=-1", 404},
		{"api/neighbour", "g=7&ts=0&track=99999", 404},
		{"api/neighbour", "g=7&ts=0&track=0&row=65536", 400},
		{"api/neighbour", "g=7&ts=0&track=0&id=-2", 400},
		{"api/tiles", "", 400},
		{"api/tiles", "g=7&level=10&first=0", 400},
		{"api/tiles", "g=7&level=-1&first=0&tracks=0", 400},
		{"api/tiles", "g=7&level=1e18&first=0&tracks=0", 400},
		{"api/tiles", "g=7&level=10&first=0&count=0&tracks=0", 400},
		{"api/tiles", "g=7&level=10&first=0&count=1e9&tracks=0", 400},
		{"api/sql", "", 405},
		{"api/cancel", "", 405},
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		refuses(&asking, wrong[i].path, wrong[i].query, NULL, wrong[i].status);
	refuses(&asking, "api/trace", "", "body", 405);
	refuses(&asking, "api/sql", "limit=0", "select 1", 400);
	refuses(&asking, "api/sql", "limit=1e12", "select 1", 400);
	asking_close(&asking);
}

static void an_empty_trace_has_answers_too(void **state)
{
	(void)state;
	struct asking asking;
	struct reply reply;
	static const char *const asked[][2] = {
		{"api/trace", ""},
		{"api/range", "from=-1e30&to=1e30"},
		{"api/flame", "from=0&to=1&of=slices"},
		{"api/flame", "from=0&to=1&of=samples"},
		{"api/search", "q=x&at=0"},
		{"api/search", "q=&near=5&forward=0"},
		{"api/tables", ""},
	};
	asking_open(&asking, "{\"traceEvents\": []}");
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		ask(&asking, asked[i][0], asked[i][1], NULL, &reply);
		assert_int_equal(reply.status, 200);
		reply_free(&reply);
	}
	asking_close(&asking);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_trace_is_told),
		cmocka_unit_test(a_slice_has_all_its_details),
		cmocka_unit_test(flows_lead_to_the_other_end),
		cmocka_unit_test(odd_slices_are_what_they_are),
		cmocka_unit_test(a_counter_has_its_value_and_change),
		cmocka_unit_test(what_surrounds_events_is_told),
		cmocka_unit_test(a_sample_has_its_stack),
		cmocka_unit_test(what_a_cpu_runs_says_who_woke_it),
		cmocka_unit_test(what_is_large_is_cut),
		cmocka_unit_test(tiles_are_bytes_of_this_generation),
		cmocka_unit_test(what_is_asked_wrongly_is_refused),
		cmocka_unit_test(an_empty_trace_has_answers_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
