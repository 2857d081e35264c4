/* SPDX-License-Identifier: MIT */
/*
 * ftrace_text.c: a line of ftrace's text: its columns, and the fields of what follows the event's name.
 *
 *   comm-PID  ( TGID) [CPU] FLAGS  SEC.USEC: event: payload        trace, trace_pipe, atrace
 *   comm-PID  [CPU]  SEC.NSEC: event:     payload                  trace-cmd report
 *   comm-PID  [CPU] FLAGS  SEC.USEC: func <-caller                 function tracer
 *   comm-PID  CPUFLAGS  USECus : func <-caller                     latency format
 *
 * A comm may have any of -, [, (, : and blanks in it. So the parser first looks for "[CPU]", with a PID that
 * ends before it and a time that ends with a colon behind it: the first place where all of that fits.
 */
#include "base/chars.h"
#include "formats/ftrace/ftrace_event.h"

#include <ctype.h>

/* ---- what follows the name ---- */

/*
 * What follows the name of an event in ftrace's text. Most is "key=value key=value", in the
 * kernel's words. A comm may have blanks, equal signs and arrows in it: it goes on until the last place where
 * the field that the kernel prints behind it begins. The rest stays in a field "text".
 *
 * trace-cmd prints scheduling events in its own words: "bash:12 [120] S ==> sh:13 [120]".
 */

struct payload_text {
	const char *at;
	const char *end;
};

static bool starts(struct payload_text span, const char *with)
{
	size_t bytes = strlen(with);
	return (size_t)(span.end - span.at) >= bytes && memcmp(span.at, with, bytes) == 0;
}

static const char *find_last(struct payload_text span, const char *what)
{
	size_t bytes = strlen(what);
	for (const char *at = span.end - bytes; at >= span.at; at--)
		if (memcmp(at, what, bytes) == 0)
			return at;
	return NULL;
}

/* Fields with names of tasks, and the text that follows each. */
static const struct {
	const char *key;
	const char *next;
} comms[] = {
	{"prev_comm=", " prev_pid="}, {"next_comm=", " next_pid="},
	{"comm=", " pid="},           {"child_comm=", " child_pid="},
	{"oldcomm=", " newcomm="},    {"newcomm=", " oom_score_adj="},
};

/* Return where the value that begins at at ends; key is the token with its '='. */
static const char *value_end(struct payload_text key, const char *at, const char *end)
{
	const char *blank = memchr(at, ' ', (size_t)(end - at));
	for (size_t i = 0; i < sizeof(comms) / sizeof(comms[0]); i++) {
		if (!starts(key, comms[i].key))
			continue;
		/* The second half of a switch has the same fields again. */
		const char *arrow = memmem(at, (size_t)(end - at), " ==> next_comm=", 15);
		const char *last =
			find_last((struct payload_text){at, arrow ? arrow : end}, comms[i].next);
		return last ? last : blank ? blank : end;
	}
	return blank ? blank : end;
}

static bool is_key(char c)
{
	return ky_chars_is_word(c) || c == '.' || c == '-';
}

/* The '=' of a token that begins at at, or NULL. */
static const char *key_end(const char *at, const char *end)
{
	const char *begin = at;
	while (at < end && is_key(*at))
		at++;
	return at < end && at > begin && *at == '=' ? at : NULL;
}

/* Report whether everything became a field. */
static bool parse_pairs(struct ky_ftrace_event *event, const char *at, const char *end)
{
	bool whole = true;
	while (at < end) {
		if (*at == ' ' || *at == ',') {
			at++;
			continue;
		}
		const char *equal = key_end(at, end);
		const char *stop;
		if (event->fields_count >= KY_FTRACE_FIELDS_MAX - 1)
			return false;
		if (equal && equal + 1 <= end) {
			stop = value_end((struct payload_text){at, equal + 1}, equal + 1, end);
			const char *value_stop =
				stop > equal + 1 && stop[-1] == ',' ? stop - 1 : stop;
			ky_ftrace_add_value(event, at, (size_t)(equal - at), equal + 1,
					    (size_t)(value_stop - equal - 1));
		} else {
			stop = memchr(at, ' ', (size_t)(end - at));
			stop = stop ? stop : end;
			if (event->fields_count == 0)
				ky_ftrace_add_text(event, "name", 4, at, (size_t)(stop - at));
			else if (!starts((struct payload_text){at, stop}, "==>"))
				whole = false;
		}
		at = stop;
	}
	return whole;
}

/* "comm:pid [prio]" from at on; NULL when it is not. */
static const char *parse_task(struct ky_ftrace_event *event, struct payload_text text,
			      const char *const keys[3])
{
	const char *open = memmem(text.at, (size_t)(text.end - text.at), " [", 2);
	const char *close = open ? memchr(open, ']', (size_t)(text.end - open)) : NULL;
	const char *colon = open;
	while (colon && colon > text.at && *colon != ':')
		colon--;
	if (!close || !colon || *colon != ':' || colon + 1 >= open)
		return NULL;
	for (const char *digit = colon + 1; digit < open; digit++)
		if (*digit < '0' || *digit > '9')
			return NULL;
	ky_ftrace_add_text(event, keys[0], strlen(keys[0]), text.at, (size_t)(colon - text.at));
	ky_ftrace_add_value(event, keys[1], strlen(keys[1]), colon + 1, (size_t)(open - colon - 1));
	ky_ftrace_add_value(event, keys[2], strlen(keys[2]), open + 2, (size_t)(close - open - 2));
	return close + 1;
}

/* trace-cmd's own words for a switch. */
static bool parse_switch(struct ky_ftrace_event *event, struct payload_text text)
{
	static const char *const prev_keys[3] = {"prev_comm", "prev_pid", "prev_prio"};
	static const char *const next_keys[3] = {"next_comm", "next_pid", "next_prio"};
	const char *arrow = memmem(text.at, (size_t)(text.end - text.at), " ==> ", 5);
	if (!arrow || starts(text, "prev_comm="))
		return false;
	const char *state = parse_task(event, (struct payload_text){text.at, arrow}, prev_keys);
	if (!state)
		return false;
	while (state < arrow && *state == ' ')
		state++;
	ky_ftrace_add_value(event, "prev_state", 10, state, (size_t)(arrow - state));
	return parse_task(event, (struct payload_text){arrow + 5, text.end}, next_keys) != NULL;
}

static bool parse_wakeup(struct ky_ftrace_event *event, struct payload_text text)
{
	static const char *const keys[3] = {"comm", "pid", "prio"};
	const char *rest = starts(text, "comm=") ? NULL : parse_task(event, text, keys);
	return rest && parse_pairs(event, rest, text.end);
}

/* A print is preceded by the function that wrote it. */
static struct payload_text marker_text(struct payload_text text)
{
	static const char writer[] = "tracing_mark_write: ";
	if (starts(text, writer))
		text.at += sizeof(writer) - 1;
	return text;
}

/* "NR 1 (1, 7f.., 5)" and "NR 1 = 5". */
static bool parse_syscall(struct ky_ftrace_event *event, struct payload_text text)
{
	if (!starts(text, "NR "))
		return false;
	const char *number = text.at + 3;
	const char *blank = memchr(number, ' ', (size_t)(text.end - number));
	const char *end = blank ? blank : text.end;
	ky_ftrace_add_value(event, "id", 2, number, (size_t)(end - number));
	if (text.end - end > 3 && memcmp(end, " = ", 3) == 0)
		ky_ftrace_add_value(event, "ret", 3, end + 3, (size_t)(text.end - end - 3));
	else if (text.end - end > 1)
		ky_ftrace_add_text(event, "args", 4, end + 1, (size_t)(text.end - end - 1));
	return true;
}

/* "work struct 00000000: function vmstat_update". */
static bool parse_work(struct ky_ftrace_event *event, struct payload_text text)
{
	const char *found = memmem(text.at, (size_t)(text.end - text.at), "function ", 9);
	if (found)
		ky_ftrace_add_text(event, "function", 8, found + 9, (size_t)(text.end - found - 9));
	return false;
}

/* trace-cmd: "0.5 us |  func();" and "func() {" of an entry, "1.2 us | }" of an exit. */
static bool parse_graph(struct ky_ftrace_event *event, struct payload_text text)
{
	const char *bar = memchr(text.at, '|', (size_t)(text.end - text.at));
	const char *at = bar ? bar + 1 : text.at;
	while (at < text.end && *at == ' ')
		at++;
	const char *paren = memchr(at, '(', (size_t)(text.end - at));
	if (paren && paren > at)
		ky_ftrace_add_text(event, "func", 4, at, (size_t)(paren - at));
	return false;
}

/* trace-cmd: "func <-- caller" under the name "function". */
static bool parse_function(struct ky_ftrace_event *event, struct payload_text text)
{
	const char *arrow = memmem(text.at, (size_t)(text.end - text.at), " <-- ", 5);
	ky_ftrace_add_text(event, "ip", 2, text.at, (size_t)((arrow ? arrow : text.end) - text.at));
	if (arrow)
		ky_ftrace_add_text(event, "parent_ip", 9, arrow + 5,
				   (size_t)(text.end - arrow - 5));
	return true;
}

static bool is_named(const struct ky_ftrace_event *event, const char *name)
{
	return event->name_bytes == strlen(name) &&
	       memcmp(event->name_text, name, event->name_bytes) == 0;
}

static bool starts_named(const struct ky_ftrace_event *event, const char *name)
{
	return event->name_bytes >= strlen(name) &&
	       memcmp(event->name_text, name, strlen(name)) == 0;
}

/* Report whether the event's own form was there and all of it was taken. */
static bool parse_own(struct ky_ftrace_event *event, struct payload_text text)
{
	switch (event->name_text[0]) {
	case 's':
		if (is_named(event, "sched_switch"))
			return parse_switch(event, text);
		if (starts_named(event, "sched_wak"))
			return parse_wakeup(event, text);
		return starts_named(event, "sys_e") && parse_syscall(event, text);
	case 'w':
		return starts_named(event, "workqueue_execute") && parse_work(event, text);
	case 'f':
		if (is_named(event, "function"))
			return parse_function(event, text);
		return starts_named(event, "funcgraph_") && parse_graph(event, text);
	default:
		return false;
	}
}

/* Add the fields of what follows an event's name. */
static void add_payload(struct ky_ftrace_event *event, const char *text, size_t bytes)
{
	struct payload_text span = {text, text + bytes};
	if (is_named(event, "print") || is_named(event, "0") ||
	    is_named(event, "tracing_mark_write") || is_named(event, "bprint") ||
	    is_named(event, "bputs")) {
		span = marker_text(span);
		event->text = span.at;
		event->text_bytes = (size_t)(span.end - span.at);
		ky_ftrace_add_text(event, "buf", 3, event->text, event->text_bytes);
		return;
	}
	if (parse_own(event, span))
		return;
	if (starts(span, "[FAILED TO PARSE] "))
		span.at += 18;
	bool whole = parse_pairs(event, span.at, span.end);
	if (!whole)
		ky_ftrace_add_text(event, "text", 4, text, bytes);
}

/* ---- columns ---- */

struct text_columns {
	const char *comm;
	size_t comm_bytes;
	int32_t tid;
	int32_t tgid;
	uint32_t cpu;
	int64_t ts;
	const char *rest; /* behind the time and its colon */
};

/* Digits up to end, at most INT32_MAX. NULL when there are none or too large a number. */
static const char *parse_uint(const char *at, const char *end, uint32_t *value)
{
	uint64_t number;
	at = ky_chars_decimal(at, end, INT32_MAX, &number);
	if (at)
		*value = (uint32_t)number;
	return at;
}

/* SEC.FRACTION in nanoseconds, exactly; a number without a point is one of ticks. */
static const char *parse_time(const char *at, const char *end, int64_t *ts)
{
	uint64_t whole;
	at = ky_chars_decimal(at, end, UINT64_MAX, &whole);
	if (!at)
		return NULL;
	if (at < end && *at == '.') {
		uint64_t nanoseconds = 0;
		uint64_t unit = 100000000;
		const char *begin = ++at;
		for (; at < end && ky_chars_is_digit(*at); at++, unit /= 10)
			nanoseconds += (uint64_t)(*at - '0') * unit;
		if (at == begin || __builtin_mul_overflow(whole, 1000000000u, &whole) ||
		    __builtin_add_overflow(whole, nanoseconds, &whole))
			return NULL;
	}
	*ts = (int64_t)whole;
	return whole <= INT64_MAX ? at : NULL;
}

/* Irqs-off, need-resched, context; then one or two depths: as Perfetto takes them. */
static const char *skip_flags(const char *at, const char *end)
{
	const char *begin = at;
	while (at < end && at < begin + 3 &&
	       (isalpha((unsigned char)*at) || *at == '.' || *at == '#'))
		at++;
	if (at != begin + 3)
		return begin;
	while (at < end && at < begin + 5 &&
	       (ky_chars_is_digit(*at) || (*at >= 'a' && *at <= 'f') || *at == '.'))
		at++;
	return at > begin + 3 ? at : begin;
}

/* From behind "[CPU]" on: flags and the time. */
static bool parse_right(const char *at, const char *end, struct text_columns *columns)
{
	at = ky_chars_skip_blanks(at, end);
	at = ky_chars_skip_blanks(skip_flags(at, end), end);
	at = parse_time(at, end, &columns->ts);
	if (!at || at >= end || *at != ':')
		return false;
	columns->rest = at + 1;
	return true;
}

/* trace-cmd writes the name of an instance's buffer before its lines: "net:   bash-12 [000] ...". */
static const char *skip_buffer(const char *comm, const char *end)
{
	const char *colon = memchr(comm, ':', (size_t)(end - comm));
	if (!colon || end - colon < 3 || !ky_chars_is_blank(colon[1]))
		return comm;
	const char *behind = ky_chars_skip_blanks(colon + 1, end);
	return behind < end ? behind : comm;
}

/* From before "[CPU]" backwards: an optional (TGID), and -PID. */
static bool parse_left(const char *line, const char *at, struct text_columns *columns)
{
	while (at > line && ky_chars_is_blank(at[-1]))
		at--;
	columns->tgid = 0;
	if (at > line && at[-1] == ')') {
		const char *inner_end = --at;
		while (at > line &&
		       (ky_chars_is_digit(at[-1]) || ky_chars_is_blank(at[-1]) || at[-1] == '-'))
			at--;
		if (at == line || at[-1] != '(')
			return false;
		uint32_t tgid = 0;
		if (parse_uint(ky_chars_skip_blanks(at, inner_end), inner_end, &tgid))
			columns->tgid = (int32_t)tgid;
		at--;
		while (at > line && ky_chars_is_blank(at[-1]))
			at--;
	}
	const char *pid_end = at;
	uint32_t pid;
	while (at > line && ky_chars_is_digit(at[-1]))
		at--;
	if (at == line || at[-1] != '-' || !parse_uint(at, pid_end, &pid))
		return false;
	columns->tid = (int32_t)pid;
	columns->comm = skip_buffer(ky_chars_skip_blanks(line, at - 1), at - 1);
	columns->comm_bytes = (size_t)(at - 1 - columns->comm);
	return true;
}

static bool parse_columns(const char *line, const char *end, struct text_columns *columns)
{
	for (const char *open = memchr(line, '[', (size_t)(end - line)); open;
	     open = memchr(open + 1, '[', (size_t)(end - open - 1))) {
		const char *close = parse_uint(open + 1, end, &columns->cpu);
		if (close && close < end && *close == ']' && parse_right(close + 1, end, columns) &&
		    parse_left(line, open, columns))
			return true;
	}
	return false;
}

/* "  bash-3994    0d..1    3us+: rest": microseconds since the trace began. */
static bool parse_latency(const char *line, const char *end, struct text_columns *columns)
{
	const char *us = line;
	const char *colon;
	do {
		us = memchr(us, 'u', (size_t)(end - us));
		if (!us || end - us < 4)
			return false;
		us++;
		colon = memchr(us, ':', end - us < 4 ? (size_t)(end - us) : 4);
	} while (us[0] != 's' || us - line < 2 || !ky_chars_is_digit(us[-2]) || !colon);
	const char *at = us - 1;
	while (at > line && (ky_chars_is_digit(at[-1]) || at[-1] == '.'))
		at--;
	int64_t microseconds;
	if (!parse_time(at, us - 1, &microseconds) || microseconds > INT64_MAX / 1000 ||
	    memchr(at, '.', (size_t)(us - at)))
		return false;
	const char *flags = at;
	while (flags > line && ky_chars_is_blank(flags[-1]))
		flags--;
	while (flags > line && !ky_chars_is_blank(flags[-1]))
		flags--;
	columns->ts = microseconds * 1000;
	columns->rest = colon + 1;
	const char *after = parse_uint(flags, at, &columns->cpu);
	return after && skip_flags(after, at) > after && parse_left(line, flags, columns);
}

/* "CPU:3 [LOST 42 EVENTS]", "CPU:3 [EVENTS DROPPED]", "CPU 0: 12 EVENTS DROPPED". */
static bool parse_lost(struct ky_trace *trace, const char *line, const char *end)
{
	uint32_t cpu;
	uint32_t events = 0;
	if (end - line < 8 || memcmp(line, "CPU", 3) != 0 || (line[3] != ':' && line[3] != ' '))
		return false;
	const char *at = parse_uint(line + 4, end, &cpu);
	if (!at || (!memmem(at, (size_t)(end - at), "LOST", 4) &&
		    !memmem(at, (size_t)(end - at), "DROPPED", 7)))
		return false;
	while (at < end && !ky_chars_is_digit(*at))
		at++;
	(void)parse_uint(at, end, &events);
	ky_put_lost(trace, KY_TIME_NONE, KY_NONE, cpu, events, KY_LOSS_FTRACE);
	return true;
}

/* "# entries-in-buffer/entries-written: 10/20   #P:2": what was written and is not there is lost. */
static void parse_comment(struct ky_trace *trace, const char *line, const char *end)
{
	static const char entries[] = "entries-in-buffer/entries-written:";
	static const char tracer[] = "# tracer: ";
	uint32_t present;
	uint32_t written;
	const char *found = memmem(line, (size_t)(end - line), entries, sizeof(entries) - 1);
	if (found) {
		const char *at = ky_chars_skip_blanks(found + sizeof(entries) - 1, end);
		at = parse_uint(at, end, &present);
		if (at && at < end && *at == '/' && parse_uint(at + 1, end, &written) &&
		    written > present)
			ky_put_lost(trace, KY_TIME_NONE, KY_NONE, KY_NONE, written - present,
				    KY_LOSS_FTRACE_OVERWRITTEN);
	}
	if ((size_t)(end - line) > sizeof(tracer) - 1 &&
	    memcmp(line, tracer, sizeof(tracer) - 1) == 0)
		ky_put_metadata(trace, "ftrace_tracer",
				ky_string(trace, line + sizeof(tracer) - 1,
					  (size_t)(end - line) - (sizeof(tracer) - 1)));
}

/* "func <-caller" of the function tracer. */
static bool put_function(struct ky_trace *trace, struct ky_ftrace_event *event, const char *text,
			 const char *end)
{
	const char *arrow = memmem(text, (size_t)(end - text), " <-", 3);
	if (!arrow || arrow == text)
		return false;
	const char *caller = arrow + 3;
	if (caller < end && *caller == '-')
		caller++;
	caller = ky_chars_skip_blanks(caller, end);
	event->name_text = "function";
	event->name_bytes = 8;
	event->name = ky_string_z(trace, "function");
	ky_ftrace_add_text(event, "ip", 2, text, (size_t)(arrow - text));
	ky_ftrace_add_text(event, "parent_ip", 9, caller, (size_t)(end - caller));
	ky_ftrace_put(trace, event);
	return true;
}

static const char *name_end(const char *at, const char *end)
{
	while (at < end && !ky_chars_is_blank(*at) && *at != ':')
		at++;
	/* A name has no colon, but the text behind it may follow without a blank. */
	return at < end && *at == ':' && at[-1] != ':' ? at : NULL;
}

static bool put_event(struct ky_trace *trace, const struct text_columns *columns, const char *end)
{
	struct ky_ftrace_event event;
	event.ts = columns->ts;
	event.cpu = columns->cpu;
	event.tid = columns->tid;
	event.tgid = columns->tgid;
	event.comm = ky_string(trace, columns->comm, columns->comm_bytes);
	event.release = 0;
	event.watched = NULL;
	event.machine = 0;
	event.fields_count = 0;
	event.text = NULL;
	event.text_bytes = 0;
	const char *name = ky_chars_skip_blanks(columns->rest, end);
	const char *colon = name < end ? name_end(name, end) : NULL;
	if (!colon || colon == name)
		return put_function(trace, &event, name, end);
	event.name_text = name;
	event.name_bytes = (size_t)(colon - name);
	event.name = ky_string(trace, name, event.name_bytes);
	const char *payload = ky_chars_skip_blanks(colon + 1, end);
	add_payload(&event, payload, (size_t)(end - payload));
	ky_ftrace_put(trace, &event);
	return true;
}

static const char *trim_end(const char *line, const char *end)
{
	while (end > line && isspace((unsigned char)end[-1]))
		end--;
	return end;
}

bool ky_ftrace_text_is_line(const char *line, size_t bytes)
{
	struct text_columns columns;
	const char *end = line + bytes;
	return bytes && line[0] != '#' &&
	       (parse_columns(line, end, &columns) || parse_latency(line, end, &columns));
}

static bool is_head(const char *line, size_t bytes)
{
	return (bytes >= 5 && memcmp(line, "cpus=", 5) == 0) ||
	       (bytes >= 9 && memcmp(line, "version =", 9) == 0) ||
	       (bytes >= 6 && memcmp(line, "TRACE:", 6) == 0);
}

void ky_ftrace_text_line(struct ky_trace *trace, const char *line, size_t bytes, uint64_t at)
{
	struct text_columns columns;
	const char *end = trim_end(line, line + bytes);
	if (end == line)
		return;
	if (line[0] == '#') {
		parse_comment(trace, line, end);
		return;
	}
	bytes = (size_t)(end - line);
	if ((parse_columns(line, end, &columns) || parse_latency(line, end, &columns)) &&
	    put_event(trace, &columns, end))
		return;
	if (parse_lost(trace, line, end) || is_head(line, bytes))
		return;
	ky_problem(trace, "systrace_parse_failure", KY_ERROR, at,
		   "not a line of ftrace: \"%.*s\"; expected TASK-PID [CPU] TIME: EVENT: ...",
		   bytes < 80 ? (int)bytes : 80, line);
}
