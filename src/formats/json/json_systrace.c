/* SPDX-License-Identifier: MIT */
/*
 * json_systrace.c: the top-level value systemTraceEvents: what the kernel recorded beside the
 * program's events. As a string it is ftrace's text, with its line ends escaped; as an object with
 * the type "fuchsia" it is a list of switches and of names of processes and threads.
 */
#include "formats/json/json_reader.h"

#include "formats/ftrace/ftrace_event.h"

#define LINE_BYTES_MAX (64u << 10)

/* Return where a line ends: at an escaped line end or the closing quote; NULL: not in the buffer. */
static const uint8_t *line_end(const uint8_t *at, const uint8_t *end)
{
	while (at < end) {
		if (*at == '"')
			return at;
		if (*at != '\\') {
			at++;
			continue;
		}
		if (end - at < 2)
			return NULL;
		if (at[1] == 'n')
			return at;
		at += 2;
	}
	return NULL;
}

static void put_line(struct ky_json *json, const uint8_t *at, size_t bytes)
{
	const struct ky_json_text text = {at, bytes, true};
	char *line = ky_json_scratch(json, bytes + 1);

	if (!line || bytes == 0)
		return;
	const size_t line_bytes = ky_json_unescape(&text, line);
	for (char *nul = memchr(line, '\0', line_bytes); nul;
	     nul = memchr(nul, '\0', (size_t)(line + line_bytes - nul)))
		*nul = ' ';
	line[line_bytes] = '\0';
	ky_ftrace_text_line(json->trace, line, line_bytes, json->input->position);
}

static bool read_text(struct ky_json *json)
{
	struct ky_input *input = json->input;

	ky_input_skip(input, 1);
	for (;;) {
		const uint8_t *stop = line_end(input->at, input->end);
		if (!stop) {
			if (input->end - input->at > LINE_BYTES_MAX) {
				ky_problem(json->trace, "systrace_parse_failure", KY_ERROR,
					   input->position, "a line longer than %u bytes",
					   LINE_BYTES_MAX);
				ky_input_skip(input, LINE_BYTES_MAX);
			} else if (!ky_json_feed_grow(input)) {
				return false;
			}
			continue;
		}
		const bool last = *stop == '"';
		put_line(json, input->at, (size_t)(stop - input->at));
		ky_input_skip(input, (size_t)(stop - input->at) + (last ? 1 : 2));
		if (last)
			return true;
	}
}

static bool tid_of(const struct ky_json_tree *tree, uint32_t object, int32_t *tid,
		   int32_t *priority)
{
	int64_t number;

	if (object == KY_JSON_NO_NODE ||
	    !ky_json_tree_int(tree, ky_json_tree_get(tree, object, "tid"), &number) || number < 0 ||
	    number > INT32_MAX)
		return false;
	*tid = (int32_t)number;
	*priority = 0;
	if (ky_json_tree_int(tree, ky_json_tree_get(tree, object, "prio"), &number) &&
	    number >= INT32_MIN && number <= INT32_MAX)
		*priority = (int32_t)number;
	return true;
}

/* Zircon's states of a thread by Linux's letters: new, running, suspended, blocked, dying, dead. */
static uint32_t state_of(struct ky_json *json, uint32_t out)
{
	static const char letters[] = "RRTSZX";
	int64_t state;

	if (!ky_json_tree_int(&json->tree, ky_json_tree_get(&json->tree, out, "state"), &state) ||
	    state < 0 || state > 5)
		return 0;
	return ky_json_string_of(json, (const uint8_t *)&letters[state], 1);
}

static void put_switch(struct ky_json *json)
{
	const struct ky_json_tree *tree = &json->tree;
	const uint32_t out = ky_json_tree_get(tree, 0, "out");
	struct ky_switch event = {0};
	int64_t ts, cpu;

	if (!ky_json_tree_decimal(tree, ky_json_tree_get(tree, 0, "ts"), 3, &ts) || ts < 0 ||
	    !ky_json_tree_int(tree, ky_json_tree_get(tree, 0, "cpu"), &cpu) || cpu < 0 ||
	    cpu > 65535 || !tid_of(tree, out, &event.prev_tid, &event.prev_priority) ||
	    !tid_of(tree, ky_json_tree_get(tree, 0, "in"), &event.next_tid, &event.next_priority)) {
		ky_problem(json->trace, "json_system_event_invalid", KY_ERROR,
			   json->input->position, "a switch needs ts, cpu, in.tid and out.tid");
		return;
	}
	event.cpu = (uint32_t)cpu;
	event.prev_state = state_of(json, out);
	ky_put_switch(json->trace, ts, &event);
}

static void put_name(struct ky_json *json, bool of_thread)
{
	struct ky_trace *trace = json->trace;
	const struct ky_json_tree *tree = &json->tree;
	const uint32_t name = ky_json_node_string(json, tree, ky_json_tree_get(tree, 0, "name"));
	int64_t pid, tid;

	if (!ky_json_tree_int(tree, ky_json_tree_get(tree, 0, "pid"), &pid))
		return;
	pid = ky_json_pid(pid);
	if (!of_thread)
		ky_process_name(trace, ky_process(trace, pid), name, KY_NAME_SYSTEM);
	else if (ky_json_tree_int(tree, ky_json_tree_get(tree, 0, "tid"), &tid))
		ky_thread_name(trace, ky_thread(trace, pid, ky_json_pid(tid)), name,
			       KY_NAME_SYSTEM);
}

static bool take_event(void *context, const uint8_t *stop)
{
	struct ky_json *json = context;
	struct ky_json_text phase;

	(void)stop;
	if (!ky_json_object(json) ||
	    !ky_json_tree_text(&json->tree, ky_json_tree_get(&json->tree, 0, "ph"), &phase))
		return true;
	if (ky_json_is(&phase, "k"))
		put_switch(json);
	else if (ky_json_is(&phase, "p") || ky_json_is(&phase, "t"))
		put_name(json, *phase.at == 't');
	else
		ky_problem(json->trace, "json_system_event_ignored", KY_INFO, json->input->position,
			   "a system event of another kind than k, p and t");
	return true;
}

static bool take_member(void *context, const char *key)
{
	struct ky_json *json = context;
	if (strcmp(key, "events") == 0 && *json->input->at == '[')
		return ky_json_feed_elements(json->input, take_event, json);
	return ky_json_feed_skip(json->input, NULL);
}

bool ky_json_system_read(struct ky_json *json)
{
	struct ky_input *input = json->input;

	if (*input->at == '"')
		return read_text(json);
	if (*input->at != '{') {
		ky_problem(json->trace, "json_system_event_invalid", KY_ERROR, input->position,
			   "systemTraceEvents is neither text nor an object");
		return ky_json_feed_skip(input, NULL);
	}
	ky_input_skip(input, 1);
	return ky_json_feed_members(input, take_member, json);
}
