/* SPDX-License-Identifier: MIT */
/*
 * ftrace_graph.c: the function_graph tracer's text.
 *
 *    0)               |  sys_open() {          begins
 *    0)   0.541 us    |    getname();          begins and ends
 *    0) + 12.3 us     |  } . sys_open    ends
 *    0)  sshd-123  =>  bash-12                 from here on CPU 0 runs another thread
 *
 * Before the CPU may stand an absolute time (funcgraph-abstime), behind it the task (funcgraph-proc). Without
 * absolute times only durations are known: each CPU then has a clock that begins at 0 and advances by
 * them, so that spans nest and last as they did, and gaps are missing.
 */
#include "base/array.h"
#include "base/chars.h"
#include "formats/ftrace/ftrace_event.h"

#include <errno.h>

#define CPUS_MAX 1024u
#define DEPTH_MAX 256u

struct ky_ftrace_graph_cpu {
	int64_t clock;
	int32_t tid; /* 0: not known */
	uint32_t depth;
	int64_t begins[DEPTH_MAX];
};

/* The parts of a line. */
struct graph_parts {
	uint32_t cpu;
	bool has_ts;
	int64_t ts;
	bool has_dur;
	int64_t dur;
	int32_t tid;
	const char *function;
	const char *end;
};

/* Return the number with up to nine decimals, in units of one thousand millionth. */
static const char *parse_fixed(const char *at, const char *end, int64_t *value)
{
	uint64_t whole = 0;
	uint64_t part = 0;
	uint64_t unit = 100000000;
	const char *begin = at;
	for (; at < end && ky_chars_is_digit(*at) && whole < 1000000000; at++)
		whole = whole * 10 + (uint64_t)(*at - '0');
	if (at == begin)
		return NULL;
	if (at < end && *at == '.')
		for (at++; at < end && ky_chars_is_digit(*at); at++, unit /= 10)
			part += (uint64_t)(*at - '0') * unit;
	*value = (int64_t)(whole * 1000000000 + part);
	return at;
}

static const char *parse_cpu(const char *at, const char *end, uint32_t *cpu)
{
	uint64_t number;
	at = ky_chars_decimal(ky_chars_skip_blanks(at, end), end, CPUS_MAX - 1, &number);
	*cpu = (uint32_t)number;
	return at && at < end && *at == ')' ? at + 1 : NULL;
}

/* "comm-12" that ends at end: 12, else 0. */
static int32_t tid_before(const char *at, const char *end)
{
	int64_t tid = 0;
	int64_t unit = 1;
	const char *digit = end;
	while (digit > at && ky_chars_is_digit(digit[-1]) && unit < 1000000000) {
		tid += (digit[-1] - '0') * unit;
		unit *= 10;
		digit--;
	}
	return digit > at && digit < end && digit[-1] == '-' && tid <= INT32_MAX ? (int32_t)tid : 0;
}

static const char *trim(const char *at, const char *end)
{
	while (end > at && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
		end--;
	return end;
}

/* Columns between the CPU and the function: task, flags, duration. */
static void parse_middle(const char *at, const char *end, struct graph_parts *parts)
{
	while (at < end) {
		const char *bar = memchr(at, '|', (size_t)(end - at));
		const char *stop = bar ? bar : end;
		const char *last = trim(at, stop);
		if (last - at > 3 && memcmp(last - 3, " us", 3) == 0) {
			const char *number = last - 3;
			while (number > at && (ky_chars_is_digit(number[-1]) || number[-1] == '.'))
				number--;
			parts->has_dur = parse_fixed(number, last, &parts->dur) != NULL;
			parts->dur /= 1000000; /* of microseconds in 1e-9 */
		} else if (!parts->tid) {
			parts->tid = tid_before(at, last);
		}
		at = stop + 1;
	}
}

/* The last '|' before the function, which may have none itself. */
static const char *last_bar(const char *at, const char *end)
{
	const char *comment = memmem(at, (size_t)(end - at), "/*", 2);
	return memrchr(at, '|', (size_t)((comment ? comment : end) - at));
}

static bool parse_line(const char *line, const char *end, struct graph_parts *parts)
{
	const char *at = ky_chars_skip_blanks(line, end);
	const char *after = parse_fixed(at, end, &parts->ts);
	if (after && after < end && memchr(at, '.', (size_t)(after - at))) {
		after = ky_chars_skip_blanks(after, end);
		if (after == end || *after != '|')
			return false;
		parts->has_ts = true;
		at = after + 1;
	}
	at = parse_cpu(at, end, &parts->cpu);
	if (!at)
		return false;
	const char *bar = last_bar(at, end);
	parts->function = ky_chars_skip_blanks(bar ? bar + 1 : at, end);
	parts->end = end;
	if (bar)
		parse_middle(at, bar, parts);
	return true;
}

static struct ky_ftrace_graph_cpu *cpu_of(struct ky_trace *trace, struct ky_ftrace_graph *graph,
					  uint32_t cpu)
{
	if (!KY_ARRAY_GROW_ZERO(graph->cpus, graph->cpus_room, (uint64_t)cpu + 1)) {
		trace->error = -ENOMEM;
		return NULL;
	}
	return &graph->cpus[cpu];
}

static uint32_t track_of(struct ky_trace *trace, const struct graph_parts *parts,
			 const struct ky_ftrace_graph_cpu *cpu)
{
	int32_t tid = parts->tid ? parts->tid : cpu->tid;
	if (tid)
		return ky_track_of_thread(trace, ky_thread_by_tid(trace, tid));
	const struct ky_track_spec spec = {
		.kind = KY_TRACK_CPU,
		.owner = parts->cpu,
		.name = ky_string_z(trace, "Funcgraph"),
	};
	return ky_track(trace, &spec);
}

static void put_end(struct ky_trace *trace, const struct graph_parts *parts,
		    struct ky_ftrace_graph_cpu *cpu, uint32_t track)
{
	int64_t ts = parts->has_ts ? parts->ts : cpu->clock;
	if (cpu->depth && --cpu->depth < DEPTH_MAX && parts->has_dur &&
	    cpu->begins[cpu->depth] + parts->dur > ts)
		ts = cpu->begins[cpu->depth] + parts->dur;
	ky_put_end(trace, ts, track, 0, 0, 0);
	cpu->clock = ts;
}

static void put_function(struct ky_trace *trace, const struct graph_parts *parts,
			 struct ky_ftrace_graph_cpu *cpu, const char *paren)
{
	uint32_t track = track_of(trace, parts, cpu);
	int64_t ts = parts->has_ts ? parts->ts : cpu->clock;
	uint32_t name = ky_string(trace, parts->function, (size_t)(paren - parts->function));
	if (memchr(paren, '{', (size_t)(parts->end - paren))) {
		ky_put_begin(trace, ts, track, 0, name, 0);
		if (cpu->depth < DEPTH_MAX)
			cpu->begins[cpu->depth] = ts;
		cpu->depth++;
		cpu->clock = ts;
		return;
	}
	ky_put_complete(trace, ts, parts->has_dur ? parts->dur : 0, track, 0, name, 0);
	cpu->clock = ts + (parts->has_dur ? parts->dur : 0);
}

/* " 0)  sshd-123  =>  bash-12 ": true when it is one. */
static bool switch_task(struct ky_trace *trace, const struct graph_parts *parts,
			struct ky_ftrace_graph_cpu *cpu)
{
	const char *arrow =
		memmem(parts->function, (size_t)(parts->end - parts->function), "=>", 2);
	if (!arrow)
		return false;
	const char *comm = ky_chars_skip_blanks(arrow + 2, parts->end);
	const char *end = trim(comm, parts->end);
	cpu->tid = tid_before(comm, end);
	cpu->depth = 0;
	const char *dash = memrchr(comm, '-', (size_t)(end - comm));
	if (cpu->tid && dash && dash > comm)
		ky_thread_name(trace, ky_thread_by_tid(trace, cpu->tid),
			       ky_string(trace, comm, (size_t)(dash - comm)), KY_NAME_KERNEL);
	return true;
}

bool ky_ftrace_graph_line(struct ky_trace *trace, struct ky_ftrace_graph *graph, const char *line,
			  size_t bytes)
{
	const char *end = trim(line, line + bytes);
	const char *at = ky_chars_skip_blanks(line, end);
	struct graph_parts parts = {0};
	if (end - at > 8 && memcmp(at, "--------", 8) == 0)
		return true;
	if (at == end || !ky_chars_is_digit(*at) || !parse_line(line, end, &parts))
		return false;
	struct ky_ftrace_graph_cpu *cpu = cpu_of(trace, graph, parts.cpu);
	if (!cpu)
		return true;
	const char *paren = memchr(parts.function, '(', (size_t)(end - parts.function));
	if (parts.function < end && *parts.function == '}')
		put_end(trace, &parts, cpu, track_of(trace, &parts, cpu));
	else if (!switch_task(trace, &parts, cpu) && paren && paren > parts.function)
		put_function(trace, &parts, cpu, paren);
	return true;
}

void ky_ftrace_graph_end(struct ky_ftrace_graph *graph)
{
	KY_ARRAY_FREE(graph->cpus, graph->cpus_room);
}
