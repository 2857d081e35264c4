/* SPDX-License-Identifier: MIT */
/*
 * cmd_tail.c: kymo tail: print events as they come, a line each:
 *
 *   13:28:01.123456 worker           22793  > net/request number=5 path="/index"
 *   13:28:01.124518 worker           22793  | > db/query
 *   13:28:01.125580 worker           22793  | < db/query 1.06 ms
 *
 * A line is indented by the spans that are open around it. JSON has an object for each event.
 */
#include "base/clock.h"
#include "base/json_out.h"
#include "cli/cli.h"
#include "cli/live.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREAD_COLUMNS 16u

struct tail_command {
	struct ky_capture_command capture; /* first */
	bool json;
	uint32_t count; /* end after so many; 0: no limit */
	uint64_t printed;
	struct ky_live_spans spans;
	int64_t wall_ns; /* of the wall clock minus BOOTTIME */
	time_t second;   /* whose text is below */
	char clock[16];  /* "13:28:01" */
};

/* What each kind is called, and the sign in front of it. */
static const struct {
	const char *name, *sign;
} kinds[] = {
	[KYMO_KIND_NONE] = {"none", "?"},
	[KYMO_KIND_BEGIN] = {"begin", ">"},
	[KYMO_KIND_END] = {"end", "<"},
	[KYMO_KIND_INSTANT] = {"instant", "."},
	[KYMO_KIND_COUNTER] = {"counter", "="},
	[KYMO_KIND_ASYNC_BEGIN] = {"async_begin", ">>"},
	[KYMO_KIND_ASYNC_INSTANT] = {"async_instant", ".."},
	[KYMO_KIND_ASYNC_END] = {"async_end", "<<"},
	[KYMO_KIND_FLOW_BEGIN] = {"flow_begin", "~>"},
	[KYMO_KIND_FLOW_STEP] = {"flow_step", "~~"},
	[KYMO_KIND_FLOW_END] = {"flow_end", ">~"},
	[KYMO_KIND_PRINT] = {"print", "\""},
	[KYMO_KIND_OBJECT_NEW] = {"object_new", "+"},
	[KYMO_KIND_OBJECT_SNAPSHOT] = {"object_snapshot", "@"},
	[KYMO_KIND_OBJECT_DELETE] = {"object_delete", "-"},
	[KYMO_KIND_METADATA] = {"metadata", "#"},
	[KYMO_KIND_CLOCK_SYNC] = {"clock_sync", "#"},
	[KYMO_KIND_SAMPLE] = {"sample", "."},
	[KYMO_KIND_SNAPSHOT] = {"snapshot", "!"},
	[KYMO_KIND_MARK] = {"mark", "!"},
	[KYMO_KIND_LOST] = {"lost", "!"},
};

static uint8_t known_kind(uint8_t kind)
{
	return kind < sizeof(kinds) / sizeof(kinds[0]) ? kind : KYMO_KIND_INSTANT;
}

/* ---- text ---- */

static void print_time(struct tail_command *tail, uint64_t time_ns)
{
	const int64_t wall = (int64_t)time_ns + tail->wall_ns;
	const time_t second = (time_t)(wall / 1000000000);
	struct tm parts;
	if (second != tail->second && localtime_r(&second, &parts))
		strftime(tail->clock, sizeof(tail->clock), "%H:%M:%S", &parts);
	tail->second = second;
	printf("%s.%06d ", tail->clock, (int)(wall % 1000000000 / 1000));
}

static void print_thread(const struct ky_thread *thread)
{
	const size_t bytes = ky_cli_text_fit(thread->name.data, thread->name.bytes, THREAD_COLUMNS);
	const unsigned used = ky_cli_text_columns(thread->name.data, bytes);
	ky_cli_text(stdout, thread->name.data, bytes);
	printf("%*s %7d  ", (int)(THREAD_COLUMNS - used), "", thread->tid);
}

static void print_value(const struct kymo_arg *arg)
{
	switch (arg->type) {
	case KYMO_TYPE_INT:
		printf("%" PRId64, arg->value.i);
		break;
	case KYMO_TYPE_UINT:
		printf("%" PRIu64, arg->value.u);
		break;
	case KYMO_TYPE_DOUBLE:
		printf("%.9g", arg->value.d);
		break;
	case KYMO_TYPE_BOOL:
		fputs(arg->value.u ? "true" : "false", stdout);
		break;
	case KYMO_TYPE_POINTER:
		printf("0x%" PRIx64, arg->value.u);
		break;
	case KYMO_TYPE_STRING:
		putchar('"');
		if (arg->string)
			ky_cli_text(stdout, arg->string, arg->string_bytes);
		fputs(arg->cut ? ky_cli_sign("\u2026\"", "...\"") : "\"", stdout);
		break;
	default:
		fputs("null", stdout);
	}
}

static void print_args(const struct ky_event *event)
{
	for (uint32_t i = 0; i < event->args_count; i++) {
		const char *const key = event->args[i].key;
		putchar(' ');
		if (key && *key && event->kind != KYMO_KIND_COUNTER) {
			ky_cli_text(stdout, key, strlen(key));
			putchar('=');
		}
		print_value(&event->args[i]);
	}
}

/* Return the category of an event, or of the span that it ends: the end of a function's call does not name it. */
static struct ky_text category_of(const struct ky_event *event, const struct ky_live_span *span)
{
	if (span && span->name)
		return (struct ky_text){span->category, (uint32_t)strlen(span->category)};
	return event->site ? event->site->category : (struct ky_text){"", 0};
}

static void print_name(const struct ky_event *event, const struct ky_live_span *span)
{
	const struct ky_text category = category_of(event, span);
	const char *const name = span ? span->name : NULL;
	if (category.bytes) {
		printf("%s", ky_cli_style("2"));
		ky_cli_text(stdout, category.data, category.bytes);
		printf("/%s", ky_cli_plain());
	}
	printf("%s", ky_cli_style("1"));
	if (name)
		ky_cli_text(stdout, name, strlen(name));
	else if (event->kind == KYMO_KIND_END && !event->name.bytes)
		fputs("(began before)", stdout);
	else
		ky_cli_text(stdout, event->name.data, event->name.bytes);
	printf("%s", ky_cli_plain());
}

/* Print an event; span is what an end ends, or NULL. depth: of the spans around it. */
static void print_text(struct tail_command *tail, const struct ky_event *event,
		       const struct ky_live_span *span, uint32_t depth)
{
	const uint8_t kind = known_kind(event->kind);
	char text[KY_QUANTITY_BYTES];
	print_time(tail, event->time_ns);
	print_thread(event->thread);
	for (uint32_t i = 0; i < depth && i < 64; i++)
		fputs("| ", stdout);
	printf("%s ", kinds[kind].sign);
	if (kind == KYMO_KIND_LOST) {
		printf("%s%" PRIu64 " events were overwritten before they were read%s\n",
		       ky_cli_style("31"), event->id, ky_cli_plain());
		return;
	}
	print_name(event, span);
	if (event->site && event->site->flags & KYMO_SITE_ID)
		printf(" #%" PRIx64, event->id);
	if (span && event->time_ns >= span->begin_ns)
		printf(" %s",
		       ky_quantity_duration(text, (int64_t)(event->time_ns - span->begin_ns)));
	if (kind != KYMO_KIND_PRINT)
		print_args(event);
	putchar('\n');
}

/* ---- JSON ---- */

static void json_value(struct ky_json_out *json, const char *key, const struct kymo_arg *arg)
{
	char text[32];
	switch (arg->type) {
	case KYMO_TYPE_INT:
		ky_json_out_int(json, key, arg->value.i);
		break;
	case KYMO_TYPE_UINT:
		ky_json_out_uint(json, key, arg->value.u);
		break;
	case KYMO_TYPE_DOUBLE:
		ky_json_out_real(json, key, arg->value.d);
		break;
	case KYMO_TYPE_BOOL:
		ky_json_out_bool(json, key, arg->value.u != 0);
		break;
	case KYMO_TYPE_POINTER:
		snprintf(text, sizeof(text), "0x%" PRIx64, arg->value.u);
		ky_json_out_text(json, key, text);
		break;
	case KYMO_TYPE_STRING:
		ky_json_out_string(json, key, arg->string, arg->string_bytes);
		break;
	default:
		ky_json_out_null(json, key);
	}
}

static void json_args(struct ky_json_out *json, const struct ky_event *event)
{
	if (!event->args_count || event->kind == KYMO_KIND_PRINT)
		return;
	ky_json_out_begin(json, "args", '{');
	for (uint32_t i = 0; i < event->args_count; i++) {
		const char *const key = event->args[i].key;
		json_value(json, key && *key ? key : "value", &event->args[i]);
	}
	ky_json_out_end(json, '}');
}

static void print_json(pid_t pid, const struct ky_event *event, const struct ky_live_span *span)
{
	struct ky_json_out json = {.file = stdout};
	ky_json_out_begin(&json, NULL, '{');
	ky_json_out_uint(&json, "ts", event->time_ns);
	ky_json_out_int(&json, "pid", pid);
	ky_json_out_int(&json, "tid", event->thread->tid);
	ky_json_out_string(&json, "thread", event->thread->name.data, event->thread->name.bytes);
	ky_json_out_text(&json, "kind", kinds[known_kind(event->kind)].name);
	if (event->kind == KYMO_KIND_LOST) {
		ky_json_out_uint(&json, "events", event->id);
		ky_json_out_end(&json, '}');
		return;
	}
	if (event->site) {
		const struct ky_text category = category_of(event, span);
		ky_json_out_string(&json, "category", category.data, category.bytes);
	}
	if (span && span->name)
		ky_json_out_text(&json, "name", span->name);
	else
		ky_json_out_string(&json, "name", event->name.data, event->name.bytes);
	if (event->site && event->site->flags & KYMO_SITE_ID)
		ky_json_out_uint(&json, "id", event->id);
	if (span && event->time_ns >= span->begin_ns)
		ky_json_out_uint(&json, "dur", event->time_ns - span->begin_ns);
	json_args(&json, event);
	ky_json_out_end(&json, '}');
}

/* ---- events ---- */

/* Open the span with its name, and behind that its category. */
static void begin_span(struct ky_live_thread *thread, const struct ky_event *event)
{
	const struct ky_text name = event->name;
	const struct ky_text category = category_of(event, NULL);
	char *const text = calloc(1, (size_t)name.bytes + category.bytes + 2);
	if (!text)
		return;
	if (name.bytes)
		memcpy(text, name.data, name.bytes);
	if (category.bytes)
		memcpy(text + name.bytes + 1, category.data, category.bytes);
	if (ky_live_spans_begin(thread, event->time_ns, 0, text))
		thread->open[thread->depth - 1].category = text + name.bytes + 1;
}

static void on_event(void *context, pid_t pid, const struct ky_event *event)
{
	struct tail_command *const tail = context;
	struct ky_live_span span = {0};
	bool ended = false;
	if (tail->count && tail->printed >= tail->count)
		return;
	struct ky_live_thread *const thread = ky_live_spans_thread(&tail->spans, event->thread);
	if (thread && event->kind == KYMO_KIND_LOST)
		ky_live_spans_lost(thread);
	if (thread && event->kind == KYMO_KIND_END)
		ended = ky_live_spans_end(thread, &span);
	if (tail->json)
		print_json(pid, event, ended ? &span : NULL);
	else
		print_text(tail, event, ended ? &span : NULL, thread ? thread->depth : 0);
	if (thread && event->kind == KYMO_KIND_BEGIN)
		begin_span(thread, event);
	free(span.name);
	tail->printed++;
}

static int on_round(void *context, uint64_t elapsed_ns, uint64_t lost)
{
	struct tail_command *const tail = context;
	(void)elapsed_ns;
	(void)lost;
	return fflush(stdout) != 0 || ferror(stdout) ||
	       (tail->count && tail->printed >= tail->count);
}

static int run(int argc, char **argv)
{
	struct tail_command tail = {.second = -1};
	const struct ky_live_how how = {.event = on_event, .round = on_round, .context = &tail};
	tail.wall_ns = ky_clock_realtime() - ky_clock_boottime();
	const int code = ky_live_run(&tail.capture, argc, argv, NULL, &how);
	ky_live_spans_free(&tail.spans);
	return code;
}

static const struct ky_option options[] = {
	{"count", KY_OPTION_AT(NUMBER, struct tail_command, count), .letter = 'n', .argument = "N",
	 .least = 1, .most = 1000000000, .help = "end after N events"},
	{"json", KY_OPTION_AT(FLAG, struct tail_command, json),
	 .help = "print an object of JSON for each event, one on a line"},
	{0},
};

static const struct ky_section sections[] = {
	{"OUTPUT",
	 "The time of day, the thread's name and number, a sign for the kind of event, category and name, and the arguments. A line is "
	 "indented by the spans that are open around it, of those that began since kymo looks.\n\n"
	 "`>` a span begins; `<` it ends, with its duration; `.` an instant; `=` a counter and its value; `\"` a message; `>>` `..` `<<` an "
	 "asynchronous span, with its id behind `#`; `~>` `~~` `>~` a flow; `!` events were lost here, because the ring was full before they "
	 "were read.\n\n"
	 "In JSON `ts` is nanoseconds of CLOCK_BOOTTIME and `dur`, of ends, nanoseconds; an object of kind `lost` has the number of "
	 "missing `events`."},
	{0},
};

const struct ky_verb ky_verb_tail = {
	.name = "tail",
	.summary = "print the events of running programs as they come",
	.usage = "[OPTIONS] [-p PID|NAME ...]",
	.about =
		"Switch on the trace points of running processes and print each event as it comes, a line each, as strace does with "
		"system calls. Ends when the processes have ended, after --duration or --count, or with Ctrl-C; the trace points are "
		"switched off again. The programs never wait: what is not read in time is reported as lost.",
	.status =
		"0: done; 1: failed; 2: wrong usage; 3: a process, category or function that was named matches nothing; 77: "
		"`--functions` is not possible on this machine.",
	.examples = "kymo tail -p server\n"
		    "kymo tail -p server -c net,-net.debug\n"
		    "kymo tail -p server --functions='handle_*'\n"
		    "kymo tail -p server --json | jq 'select(.dur > 1000000)'",
	.related = "top attach list",
	.options =
		(const struct ky_option_set[]){
			{options, 0}, {ky_live_options, 0}, {ky_capture_function_options, 0}, {0}},
	.sections = sections,
	.run = run,
};
