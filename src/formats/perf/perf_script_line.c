/* SPDX-License-Identifier: MIT */
/*
 * perf_script_line.c: parses lines of `perf script`. A head may begin with any text, so its time is
 * found first ("12.345678:"), and the rest from there, to both sides.
 */
#include "base/chars.h"
#include "formats/perf/perf_script.h"

#include <string.h>

#define TIME_SECONDS_MAX 9000000000ll

static const char *token_end(const char *p, const char *end)
{
	while (p < end && !ky_chars_is_blank(*p))
		p++;
	return p;
}

/* Go back over blanks and a token that ends before p; return its start, or p without one. */
static const char *token_before(const char *begin, const char *p, const char **token_stop)
{
	while (p > begin && ky_chars_is_blank(p[-1]))
		p--;
	*token_stop = p;
	while (p > begin && !ky_chars_is_blank(p[-1]))
		p--;
	return p;
}

static bool decimal(const char *p, const char *end, int64_t *value)
{
	uint64_t number = 0;
	const bool is_number = end - p <= 18 && ky_chars_decimal(p, end, INT64_MAX, &number) == end;
	*value = (int64_t)number;
	return is_number;
}

/* "12.345678:" in whole nanoseconds. */
static bool take_time(const char *p, const char *end, int64_t *ns)
{
	int64_t seconds, fraction;
	if (end - p < 4 || end[-1] != ':' || !ky_chars_is_digit(*p))
		return false;
	const char *dot = memchr(p, '.', (size_t)(end - p));
	if (!dot || end - 1 - dot - 1 > 9 || !decimal(p, dot, &seconds) ||
	    !decimal(dot + 1, end - 1, &fraction) || seconds > TIME_SECONDS_MAX)
		return false;
	for (int64_t digits = end - 1 - (dot + 1); digits < 9; digits++)
		fraction *= 10;
	*ns = seconds * 1000000000 + fraction;
	return true;
}

/* "123", "123/124" or "-1". */
static bool take_ids(const char *p, const char *end, struct ky_perf_script_head *head)
{
	const char *slash = memchr(p, '/', (size_t)(end - p));
	head->pid = -1;
	if (end - p == 2 && p[0] == '-' && p[1] == '1') {
		head->tid = -1;
		return true;
	}
	if (slash && !decimal(p, slash, &head->pid))
		return false;
	return decimal(slash ? slash + 1 : p, end, &head->tid) && head->tid <= INT32_MAX &&
	       head->pid <= INT32_MAX;
}

static bool take_cpu(const char *p, const char *end, int64_t *cpu)
{
	return end - p > 2 && p[0] == '[' && end[-1] == ']' && decimal(p + 1, end - 1, cpu) &&
	       *cpu < INT32_MAX;
}

/* Parse the text before the time: comm, ids, CPU, flags. */
static bool take_left(const char *begin, const char *time, struct ky_perf_script_head *head)
{
	const char *stop;
	const char *token = token_before(begin, time, &stop);
	head->cpu = -1;
	/* Flags of the context ("d.h.") may be between the CPU and the time. */
	if (token < stop && *token != '[' && !take_ids(token, stop, head))
		token = token_before(begin, token, &stop);
	if (take_cpu(token, stop, &head->cpu))
		token = token_before(begin, token, &stop);
	if (token == stop || !take_ids(token, stop, head))
		return false;
	while (token > begin && ky_chars_is_blank(token[-1]))
		token--;
	head->comm = (struct ky_perf_text){begin, (size_t)(token - begin)};
	return true;
}

/* Parse the text after the time: period, event, rest. */
static bool take_right(const char *p, const char *end, struct ky_perf_script_head *head)
{
	int64_t period;
	p = ky_chars_skip_blanks(p, end);
	const char *stop = token_end(p, end);
	head->period = 0;
	if (decimal(p, stop, &period)) {
		head->period = (uint64_t)period;
		p = ky_chars_skip_blanks(stop, end);
		stop = token_end(p, end);
	}
	if (stop == p || stop[-1] != ':')
		return false;
	head->event = (struct ky_perf_text){p, (size_t)(stop - 1 - p)};
	p = ky_chars_skip_blanks(stop, end);
	while (end > p && ky_chars_is_blank(end[-1]))
		end--;
	head->rest = (struct ky_perf_text){p, (size_t)(end - p)};
	return head->event.bytes > 0;
}

bool ky_perf_script_head(const char *line, size_t bytes, struct ky_perf_script_head *head)
{
	const char *end = line + bytes;
	const char *begin = ky_chars_skip_blanks(line, end);
	for (const char *p = begin; p < end;) {
		const char *stop = token_end(p, end);
		if (take_time(p, stop, &head->time_ns))
			return take_left(begin, p, head) && take_right(stop, end, head);
		p = ky_chars_skip_blanks(stop, end);
	}
	return false;
}

/* Return where the last "(...)" of the text begins, which the text ends with; NULL when it does not. */
static const char *last_group(const char *p, const char *end)
{
	int depth = 0;
	if (p == end || end[-1] != ')')
		return NULL;
	for (const char *q = end; q > p; q--) {
		depth += q[-1] == ')';
		depth -= q[-1] == '(';
		if (depth == 0)
			return q - 1;
	}
	return NULL;
}

/* Take "+0x1f" off the end of a symbol. */
static void take_offset(struct ky_perf_script_frame *frame)
{
	const char *begin = frame->symbol.text;
	const char *end = begin + frame->symbol.bytes;
	for (const char *p = end; p > begin + 2 && end - p <= 17; p--) {
		if (p[-1] != 'x')
			continue;
		if (p - begin < 4 || p[-2] != '0' || p[-3] != '+')
			return;
		if (ky_chars_hex(p, end, &frame->offset) == end)
			frame->symbol.bytes = (size_t)(p - 3 - begin);
		return;
	}
}

bool ky_perf_script_frame(const char *line, size_t bytes, struct ky_perf_script_frame *frame)
{
	const char *end = line + bytes;
	const char *p = ky_chars_skip_blanks(line, end);
	*frame = (struct ky_perf_script_frame){0};
	while (end > p && ky_chars_is_blank(end[-1]))
		end--;
	p = ky_chars_hex(p, end, &frame->address);
	if (!p || p == end || !ky_chars_is_blank(*p))
		return false;
	p = ky_chars_skip_blanks(p, end);
	const char *group = last_group(p, end);
	const char *symbol_end = end;
	/* The file is a group of its own; one that touches the symbol is its parameters. */
	if (group && (group == p || ky_chars_is_blank(group[-1]))) {
		frame->file = (struct ky_perf_text){group + 1, (size_t)(end - 1 - (group + 1))};
		symbol_end = group;
	}
	while (symbol_end > p && ky_chars_is_blank(symbol_end[-1]))
		symbol_end--;
	frame->symbol = (struct ky_perf_text){p, (size_t)(symbol_end - p)};
	take_offset(frame);
	return true;
}

bool ky_perf_script_branch(const char *text, size_t bytes, struct ky_perf_script_branch *branch)
{
	const char *end = text + bytes;
	const char *arrow = bytes >= 4 ? memmem(text, bytes, " => ", 4) : NULL;
	if (!arrow)
		return false;
	/* Words before the first address say what kind it is. */
	const char *p = ky_chars_skip_blanks(text, end);
	const char *kind = p;
	for (;;) {
		if (ky_perf_script_frame(p, (size_t)(arrow - p), &branch->from) &&
		    branch->from.file.bytes)
			break;
		const char *stop = token_end(p, arrow);
		if (stop - kind > 32)
			return false;
		p = ky_chars_skip_blanks(stop, arrow);
		if (p >= arrow)
			return false;
	}
	while (p > kind && ky_chars_is_blank(p[-1]))
		p--;
	branch->kind = (struct ky_perf_text){kind, (size_t)(p - kind)};
	return ky_perf_script_frame(arrow + 4, (size_t)(end - (arrow + 4)), &branch->to);
}
