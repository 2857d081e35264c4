/* SPDX-License-Identifier: MIT */
/*
 * ftrace_dump.c: the lists of processes that atrace and systrace append to a trace: which process a thread
 * belongs to, and names that are longer than a comm.
 */
#include "formats/ftrace/ftrace_text.h"

#define TOKENS_MAX 11

struct dump_token {
	const char *text;
	size_t bytes;
};

/* The last of max takes the rest of the line. */
static size_t split(const char *line, size_t bytes, struct dump_token *tokens, size_t max)
{
	size_t count = 0;
	const char *at = line;
	const char *end = line + bytes;
	while (count < max) {
		while (at < end && *at == ' ')
			at++;
		if (at == end)
			break;
		const char *begin = at;
		while (at < end && *at != ' ')
			at++;
		if (count + 1 == max)
			at = end;
		tokens[count++] = (struct dump_token){begin, (size_t)(at - begin)};
	}
	return count;
}

static bool is(struct dump_token token, const char *text)
{
	return token.bytes == strlen(text) && memcmp(token.text, text, token.bytes) == 0;
}

static bool number(struct dump_token token, int64_t *value)
{
	*value = 0;
	for (size_t i = 0; i < token.bytes; i++) {
		if (token.text[i] < '0' || token.text[i] > '9' || i >= 9)
			return false;
		*value = *value * 10 + (token.text[i] - '0');
	}
	return token.bytes > 0;
}

static bool long_line(struct ky_trace *trace, const char *line, size_t bytes)
{
	struct dump_token tokens[10];
	int64_t pid;
	int64_t parent;
	if (split(line, bytes, tokens, 10) < 10 || !number(tokens[1], &pid) ||
	    !number(tokens[2], &parent))
		return false;
	uint32_t parent_process = ky_process(trace, parent);
	uint32_t process = ky_process(trace, pid);
	(void)ky_thread(trace, pid, pid);
	if (process < trace->processes.rows.count && process != parent_process)
		trace->processes.parent[process] = parent_process;
	ky_process_name(trace, process, ky_string(trace, tokens[8].text, tokens[8].bytes),
			KY_NAME_SYSTEM);
	return true;
}

static bool short_line(struct ky_trace *trace, const char *line, size_t bytes)
{
	struct dump_token tokens[4];
	int64_t pid;
	int64_t tid;
	if (split(line, bytes, tokens, 4) < 4 || !number(tokens[1], &pid) ||
	    !number(tokens[2], &tid))
		return false;
	(void)ky_thread(trace, pid, pid);
	ky_thread_name(trace, ky_thread(trace, pid, tid),
		       ky_string(trace, tokens[3].text, tokens[3].bytes), KY_NAME_KERNEL_OTHER);
	return true;
}

bool ky_ftrace_dump_line(struct ky_trace *trace, struct ky_ftrace_dump *dump, const char *line,
			 size_t bytes)
{
	struct dump_token tokens[TOKENS_MAX];
	size_t count = split(line, bytes, tokens, TOKENS_MAX);
	if (count >= 4 && is(tokens[0], "USER") && is(tokens[1], "PID")) {
		dump->form = is(tokens[2], "TID")    ? KY_DUMP_SHORT
			     : is(tokens[2], "PPID") ? KY_DUMP_LONG
						     : KY_DUMP_NONE;
		return dump->form != KY_DUMP_NONE;
	}
	if (dump->form == KY_DUMP_LONG)
		return long_line(trace, line, bytes);
	return dump->form == KY_DUMP_SHORT && short_line(trace, line, bytes);
}
