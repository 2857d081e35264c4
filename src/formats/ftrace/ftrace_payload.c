/* SPDX-License-Identifier: MIT */
/*
 * ftrace_payload.c: what follows the name of an event in ftrace's text. Most is "key=value key=value", in the
 * kernel's words. A comm may have blanks, equal signs and arrows in it: it goes on until the last place where
 * the field that the kernel prints behind it begins. The rest stays in a field "text".
 *
 * trace-cmd prints scheduling events in its own words: "bash:12 [120] S ==> sh:13 [120]".
 */
#include "formats/ftrace/ftrace_text.h"

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
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '.' || c == '-';
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

void ky_ftrace_payload(struct ky_ftrace_event *event, const char *text, size_t bytes)
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
