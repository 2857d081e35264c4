/* SPDX-License-Identifier: MIT */
/*
 * cmd_sched.c: kymo sched: how long threads ran, waited for a CPU and were off it, as perf sched latency and timehist show it, with the
 * span that a thread was in and the thread that woke it.
 */
#include "base/array.h"
#include "base/json_out.h"
#include "cli/cli.h"
#include "cli/info.h"
#include "query/filter.h"
#include "query/sched_stats.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT 30u

enum sched_sort { SORT_MAX, SORT_MEAN, SORT_DELAY, SORT_RUN, SORT_RUNS, SORT_NAME };

struct sched_command {
	struct ky_cli_filter filter;
	const char *format;
	enum sched_sort sort;
	uint32_t limit;
	bool json, timehist;
};

/* ---- words ---- */

/* Return a time of the trace in seconds since its beginning, as --from takes it; text has KY_QUANTITY_BYTES. */
static const char *at_text(char *text, const struct ky_trace *trace, int64_t ts)
{
	snprintf(text, KY_QUANTITY_BYTES, "%.6f s",
		 (double)ky_sub_clamped(ts, trace->begin_ns) / 1e9);
	return text;
}

/* Return the mean, 0 of none. */
static int64_t mean_ns(const struct ky_sched_times *times)
{
	return times->count ? times->total_ns / (int64_t)times->count : 0;
}

static void add_duration(struct ky_cli_table *table, bool known, int64_t ns)
{
	char text[KY_QUANTITY_BYTES];
	ky_cli_table_cell(table, known ? ky_quantity_duration(text, ns) : NULL);
}

static void add_thread(struct ky_cli_table *table, const struct ky_trace *trace, uint32_t thread)
{
	char label[KY_STATS_LABEL_BYTES];
	ky_cli_table_cell(table,
			  thread == KY_NONE ? NULL : ky_cli_thread_label(label, trace, thread));
}

static const char *text_of(const struct ky_trace *trace, uint32_t string)
{
	return string ? ky_text_of(trace, string) : "";
}

/* ---- tables ---- */

static void print_threads(const struct ky_sched_stats *stats, const struct ky_trace *trace,
			  uint32_t limit)
{
	static const struct ky_cli_column columns[] = {
		{"thread", false, true},  {"runs", true, false},     {"preempted", true, false},
		{"run", true, false},     {"runnable", true, false}, {"sleep", true, false},
		{"blocked", true, false}, {"delay", true, false},    {"max delay", true, false},
		{"at", true, false},
	};
	char text[KY_QUANTITY_BYTES];
	const uint32_t count = stats->threads_count;
	const uint32_t shown = limit && limit < count ? limit : count;
	struct ky_cli_table *table = KY_CLI_TABLE(columns);
	for (uint32_t i = 0; i < shown; i++) {
		const struct ky_sched_thread *const row = &stats->threads[i];
		const bool delayed = row->delay.count != 0;
		add_thread(table, trace, row->thread);
		ky_cli_table_cell(table, ky_quantity_count(text, row->runs));
		ky_cli_table_cell(table, ky_quantity_count(text, row->preempted));
		add_duration(table, true, row->run_ns);
		add_duration(table, row->runnable_ns != 0, row->runnable_ns);
		add_duration(table, row->sleep_ns != 0, row->sleep_ns);
		add_duration(table, row->disk_ns != 0, row->disk_ns);
		add_duration(table, delayed, mean_ns(&row->delay));
		add_duration(table, delayed, row->delay.max_ns);
		ky_cli_table_cell(table, delayed ? at_text(text, trace, row->delay.max_ts) : NULL);
	}
	ky_cli_table_print(&table, 0);
	ky_cli_more(shown, count);
}

static void print_cpus(const struct ky_sched_stats *stats, const struct ky_trace *trace)
{
	static const struct ky_cli_column columns[] = {
		{"CPU", true, false},  {"busy", true, false},    {"", true, false},
		{"runs", true, false}, {"waiting", true, false}, {"max", true, false},
		{"at", true, false},
	};
	char text[KY_QUANTITY_BYTES];
	struct ky_cli_table *table = KY_CLI_TABLE(columns);
	const double range = (double)(ky_sub_clamped(stats->end_ns, stats->begin_ns));
	for (uint32_t i = 0; i < stats->cpus_count; i++) {
		const struct ky_sched_cpu *const cpu = &stats->cpus[i];
		ky_cli_table_format(table, "%" PRIu32, cpu->cpu);
		add_duration(table, true, cpu->busy_ns);
		ky_cli_table_format(table, "%.1f %%",
				    range > 0 ? 100 * (double)cpu->busy_ns / range : 0.0);
		ky_cli_table_cell(table, ky_quantity_count(text, cpu->runs));
		ky_cli_table_format(table, "%.2f",
				    range > 0 ? (double)cpu->waiting_ns / range : 0.0);
		ky_cli_table_format(table, "%" PRIu32, cpu->depth_max);
		ky_cli_table_cell(table,
				  cpu->depth_max ? at_text(text, trace, cpu->depth_max_ts) : NULL);
	}
	puts("\nCPUs, and threads that wait for them");
	ky_cli_table_print(&table, 0);
}

static void print_offs(const struct ky_sched_stats *stats, const struct ky_trace *trace,
		       uint32_t limit)
{
	static const struct ky_cli_column columns[] = {
		{"thread", false, true},   {"state", false, false}, {"in span", false, true},
		{"woken by", false, true}, {"count", true, false},  {"total", true, false},
		{"max", true, false},      {"at", true, false},
	};
	char text[KY_QUANTITY_BYTES];
	const uint32_t count = stats->offs_count;
	const uint32_t shown = limit && limit < count ? limit : count;
	if (!count)
		return;
	struct ky_cli_table *table = KY_CLI_TABLE(columns);
	for (uint32_t i = 0; i < shown; i++) {
		const struct ky_sched_off *const off = &stats->offs[i];
		add_thread(table, trace, off->thread);
		ky_cli_table_cell(table, text_of(trace, off->state));
		ky_cli_table_cell(table, text_of(trace, off->span));
		add_thread(table, trace, off->waker);
		ky_cli_table_cell(table, ky_quantity_count(text, off->times.count));
		add_duration(table, true, off->times.total_ns);
		add_duration(table, true, off->times.max_ns);
		ky_cli_table_cell(table, at_text(text, trace, off->times.max_ts));
	}
	puts("\noff the CPU, from a switch to the next run");
	ky_cli_table_print(&table, 0);
	ky_cli_more(shown, count);
}

static void print_timehist(const struct ky_sched_stats *stats, const struct ky_trace *trace,
			   uint32_t limit)
{
	static const struct ky_cli_column columns[] = {
		{"time", true, false},   {"CPU", true, false},   {"thread", false, true},
		{"wait", true, false},   {"delay", true, false}, {"run", true, false},
		{"state", false, false}, {"span", false, true},  {"woken by", false, true},
	};
	char text[KY_QUANTITY_BYTES];
	const uint32_t count = stats->runs_count;
	const uint32_t shown = limit && limit < count ? limit : count;
	struct ky_cli_table *table = KY_CLI_TABLE(columns);
	for (uint32_t i = 0; i < shown; i++) {
		const struct ky_sched_run *const run = &stats->runs[i];
		ky_cli_table_cell(table,
				  at_text(text, trace, ky_add_clamped(run->ts, run->run_ns)));
		if (run->cpu == KY_NONE)
			ky_cli_table_cell(table, NULL);
		else
			ky_cli_table_format(table, "%" PRIu32, run->cpu);
		add_thread(table, trace, run->thread);
		add_duration(table, run->wait_ns >= 0, run->wait_ns);
		add_duration(table, run->delay_ns >= 0, run->delay_ns);
		add_duration(table, true, run->run_ns);
		ky_cli_table_cell(table, text_of(trace, run->state));
		ky_cli_table_cell(table, text_of(trace, run->span));
		add_thread(table, trace, run->waker);
	}
	ky_cli_table_print(&table, 0);
	ky_cli_more(shown, count);
}

static void print_summary(const struct ky_sched_stats *stats, const struct ky_trace *trace)
{
	char text[KY_QUANTITY_BYTES];
	uint64_t runs = 0;
	for (uint32_t i = 0; i < stats->cpus_count; i++)
		runs += stats->cpus[i].runs;
	printf("%" PRIu32 " %s, ", stats->cpus_count, stats->cpus_count == 1 ? "CPU" : "CPUs");
	printf("%s, ", ky_quantity_duration(text, ky_sub_clamped(stats->end_ns, stats->begin_ns)));
	printf("%s runs", ky_quantity_count(text, runs));
	if (stats->depth_max)
		printf(", at most %" PRIu32 " %s waiting, at %s", stats->depth_max,
		       stats->depth_max == 1 ? "thread" : "threads",
		       at_text(text, trace, stats->depth_max_ts));
	puts("");
}

/* ---- JSON ---- */

static void json_thread(struct ky_json_out *json, const char *key, const struct ky_trace *trace,
			uint32_t thread)
{
	const struct ky_threads *const threads = &trace->threads;
	if (thread == KY_NONE) {
		ky_json_out_null(json, key);
		return;
	}
	const uint32_t process = threads->process[thread];
	ky_json_out_begin(json, key, '{');
	ky_json_out_int(json, "tid", threads->tid[thread]);
	ky_json_out_text(json, "name", text_of(trace, threads->name[thread]));
	if (process != KY_NONE)
		ky_json_out_int(json, "pid", trace->processes.pid[process]);
	ky_json_out_end(json, '}');
}

static void json_times(struct ky_json_out *json, const char *key,
		       const struct ky_sched_times *times)
{
	ky_json_out_begin(json, key, '{');
	ky_json_out_uint(json, "count", times->count);
	ky_json_out_int(json, "total_ns", times->total_ns);
	ky_json_out_int(json, "mean_ns", mean_ns(times));
	ky_json_out_int(json, "max_ns", times->max_ns);
	if (times->count)
		ky_json_out_int(json, "max_ts", times->max_ts);
	ky_json_out_end(json, '}');
}

static void json_threads(struct ky_json_out *json, const struct ky_sched_stats *stats,
			 const struct ky_trace *trace)
{
	ky_json_out_begin(json, "threads", '[');
	for (uint32_t i = 0; i < stats->threads_count; i++) {
		const struct ky_sched_thread *const row = &stats->threads[i];
		ky_json_out_begin(json, NULL, '{');
		json_thread(json, "thread", trace, row->thread);
		ky_json_out_uint(json, "runs", row->runs);
		ky_json_out_uint(json, "switches", row->switches);
		ky_json_out_uint(json, "preempted", row->preempted);
		ky_json_out_uint(json, "migrations", row->migrations);
		ky_json_out_int(json, "run_ns", row->run_ns);
		ky_json_out_int(json, "runnable_ns", row->runnable_ns);
		ky_json_out_int(json, "sleep_ns", row->sleep_ns);
		ky_json_out_int(json, "blocked_ns", row->disk_ns);
		ky_json_out_int(json, "other_ns", row->other_ns);
		json_times(json, "delay", &row->delay);
		ky_json_out_begin(json, "cpus", '{');
		uint32_t n = KY_ARRAY_SEARCH(0, stats->places_count, at,
					     stats->places[at].thread < row->thread);
		for (; n < stats->places_count && stats->places[n].thread == row->thread; n++) {
			char key[16];
			snprintf(key, sizeof(key), "%" PRIu32, stats->places[n].cpu);
			ky_json_out_int(json, key, stats->places[n].run_ns);
		}
		ky_json_out_end(json, '}');
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
}

static void json_cpus(struct ky_json_out *json, const struct ky_sched_stats *stats)
{
	ky_json_out_begin(json, "cpus", '[');
	for (uint32_t i = 0; i < stats->cpus_count; i++) {
		const struct ky_sched_cpu *const cpu = &stats->cpus[i];
		ky_json_out_begin(json, NULL, '{');
		ky_json_out_uint(json, "cpu", cpu->cpu);
		ky_json_out_uint(json, "runs", cpu->runs);
		ky_json_out_int(json, "busy_ns", cpu->busy_ns);
		ky_json_out_int(json, "idle_ns", cpu->idle_ns);
		ky_json_out_int(json, "waiting_ns", cpu->waiting_ns);
		ky_json_out_uint(json, "depth_max", cpu->depth_max);
		if (cpu->depth_max)
			ky_json_out_int(json, "depth_max_ts", cpu->depth_max_ts);
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
}

static void json_offs(struct ky_json_out *json, const struct ky_sched_stats *stats,
		      const struct ky_trace *trace)
{
	ky_json_out_begin(json, "off_cpu", '[');
	for (uint32_t i = 0; i < stats->offs_count; i++) {
		const struct ky_sched_off *const off = &stats->offs[i];
		ky_json_out_begin(json, NULL, '{');
		json_thread(json, "thread", trace, off->thread);
		ky_json_out_text(json, "state", off->state ? text_of(trace, off->state) : NULL);
		ky_json_out_text(json, "span", off->span ? text_of(trace, off->span) : NULL);
		json_thread(json, "waker", trace, off->waker);
		json_times(json, "times", &off->times);
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
}

static void json_known(struct ky_json_out *json, const char *key, int64_t ns)
{
	if (ns >= 0)
		ky_json_out_int(json, key, ns);
	else
		ky_json_out_null(json, key);
}

static void json_runs(struct ky_json_out *json, const struct ky_sched_stats *stats,
		      const struct ky_trace *trace)
{
	ky_json_out_begin(json, "switches", '[');
	for (uint32_t i = 0; i < stats->runs_count; i++) {
		const struct ky_sched_run *const run = &stats->runs[i];
		ky_json_out_begin(json, NULL, '{');
		ky_json_out_int(json, "ts", run->ts);
		json_known(json, "cpu", run->cpu == KY_NONE ? -1 : (int64_t)run->cpu);
		json_thread(json, "thread", trace, run->thread);
		json_known(json, "wait_ns", run->wait_ns);
		json_known(json, "delay_ns", run->delay_ns);
		ky_json_out_int(json, "run_ns", run->run_ns);
		ky_json_out_text(json, "state", run->state ? text_of(trace, run->state) : NULL);
		ky_json_out_text(json, "span", run->span ? text_of(trace, run->span) : NULL);
		json_thread(json, "waker", trace, run->waker);
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
}

static void print_json(const struct ky_sched_stats *stats, const struct ky_trace *trace,
		       bool timehist)
{
	struct ky_json_out json = {.file = stdout, .lines = 2};
	ky_json_out_begin(&json, NULL, '{');
	ky_json_out_int(&json, "begin_ts", stats->begin_ns);
	ky_json_out_int(&json, "duration_ns", ky_sub_clamped(stats->end_ns, stats->begin_ns));
	ky_json_out_uint(&json, "depth_max", stats->depth_max);
	if (stats->depth_max)
		ky_json_out_int(&json, "depth_max_ts", stats->depth_max_ts);
	ky_info_json_faults(&json, trace);
	if (timehist) {
		json_runs(&json, stats, trace);
	} else {
		json_threads(&json, stats, trace);
		json_cpus(&json, stats);
		json_offs(&json, stats, trace);
	}
	ky_json_out_end(&json, '}');
}

/* ---- order ---- */

static const struct ky_trace *sorted_trace; /* qsort has no context */

static int by_name(const struct ky_sched_thread *a, const struct ky_sched_thread *b)
{
	const struct ky_threads *const threads = &sorted_trace->threads;
	const int order = strcmp(text_of(sorted_trace, threads->name[a->thread]),
				 text_of(sorted_trace, threads->name[b->thread]));
	return order ? order : (a->thread > b->thread) - (a->thread < b->thread);
}

#define COMPARE(function, value)                                                                   \
	static int function(const void *a_, const void *b_)                                        \
	{                                                                                          \
		const struct ky_sched_thread *const a = a_, *const b = b_;                         \
		const int64_t left = (int64_t)value(a), right = (int64_t)value(b);                 \
		return left != right ? (left < right ? 1 : -1) : by_name(a, b);                    \
	}
#define MAX_OF(row) (row)->delay.max_ns
#define MEAN_OF(row) mean_ns(&(row)->delay)
#define DELAY_OF(row) (row)->delay.total_ns
#define RUN_OF(row) (row)->run_ns
#define RUNS_OF(row) (row)->runs
COMPARE(compare_max, MAX_OF)
COMPARE(compare_mean, MEAN_OF)
COMPARE(compare_delay, DELAY_OF)
COMPARE(compare_run, RUN_OF)
COMPARE(compare_runs, RUNS_OF)

static int compare_name(const void *a, const void *b)
{
	return by_name(a, b);
}

static void sort(struct ky_sched_stats *stats, const struct ky_trace *trace, enum sched_sort by)
{
	static int (*const compare[])(const void *, const void *) = {
		[SORT_MAX] = compare_max, [SORT_MEAN] = compare_mean, [SORT_DELAY] = compare_delay,
		[SORT_RUN] = compare_run, [SORT_RUNS] = compare_runs, [SORT_NAME] = compare_name};
	sorted_trace = trace;
	if (stats->threads_count)
		qsort(stats->threads, stats->threads_count, sizeof(*stats->threads), compare[by]);
}

/* ---- the verb ---- */

static int show(const struct sched_command *command, struct ky_trace *trace)
{
	const struct ky_stats_filter filter = ky_cli_filter_of(&command->filter, trace);
	struct ky_sched_stats stats;
	if (!trace->thread_states.rows.count)
		return ky_cli_error(
			"there is no scheduling in it: record it with 'kymo record', or 'kymo run "
			"--kernel'");
	if (ky_sched_stats_make(&stats, trace, &filter) != 0)
		return ky_cli_error("not enough memory");
	int code = KY_EXIT_DONE;
	sort(&stats, trace, command->sort);
	if (!stats.threads_count) {
		ky_cli_error("no thread that the scheduler handled matches these filters");
		code = KY_EXIT_NOTHING;
	} else if (command->json) {
		print_json(&stats, trace, command->timehist);
	} else if (command->timehist) {
		print_timehist(&stats, trace, command->limit == UINT32_MAX ? 0 : command->limit);
	} else {
		const uint32_t limit = command->limit == UINT32_MAX ? LIMIT : command->limit;
		print_summary(&stats, trace);
		print_threads(&stats, trace, limit);
		if (stats.cpus_count)
			print_cpus(&stats, trace);
		print_offs(&stats, trace, limit);
	}
	ky_sched_stats_free(&stats);
	return code;
}

static int run(int argc, char **argv)
{
	struct sched_command command = {.limit = UINT32_MAX};
	const int wrong = ky_options_read(&command, argc, argv);
	if (wrong)
		return wrong;
	if (ky_cli_filter_check(&command.filter) != 0)
		return KY_EXIT_USAGE;
	if (optind + 1 != argc)
		return ky_cli_usage(optind == argc ? "the file is missing"
						   : "only one file at a time");
	struct ky_trace *trace = ky_cli_load(argv[optind], command.format, command.json);
	if (!trace)
		return KY_EXIT_FAILED;
	const int code = show(&command, trace);
	ky_trace_close(&trace);
	return code;
}

#define AT(type, field) KY_OPTION_AT(type, struct sched_command, field)

/* By enum sched_sort. */
static const struct ky_choice sorts[] = {{.name = "max"},
					 {.name = "mean"},
					 {.name = "delay"},
					 {.name = "run"},
					 {.name = "runs"},
					 {.name = "name"},
					 {0}};

static const struct ky_option options[] = {
	{"timehist", AT(FLAG, timehist),
	 .help = "print a line for each time that a thread ran: how long it waited before, for what and for whom"},
	{"sort", AT(CHOICE, sort), .argument = "WHAT", .choices = sorts,
	 .help = "order of threads: max (the longest delay, default), mean, delay (all of it), run, runs or name"},
	{"limit", AT(NUMBER, limit), .argument = "N", .most = 1000000000,
	 .help = "maximum rows; 0 = all (default 30, of --timehist all)"},
	{"json", AT(FLAG, json), .help = "print JSON, with all rows"},
	KY_CLI_INPUT_FORMAT(struct sched_command, format),
	{.help = "which part of the trace"},
	{0},
};

static const struct ky_section sections[] = {
	{"OUTPUT",
	 "Threads: `runs` are the times that it got a CPU, `preempted` those after which it could have run on. `run`, `runnable`, `sleep` (S) and "
	 "`blocked` (D) are the time in each state. `delay` is the mean time from runnable to running, after a wake-up or a "
	 "preemption, `max delay` the longest and `at` when that began, in seconds from the beginning of the trace, as `--from` takes it.\n\n"
	 "CPUs: `waiting` is the mean number of threads that waited for this CPU, `max` the most at once. A thread waits for the CPU that it "
	 "runs on next.\n\n"
	 "Off the CPU: how often and how long a thread was switched away until its next run, by the state in which it left, the innermost span "
	 "that was open then, and the thread that woke it.\n\n"
	 "`--timehist`: `time` is when it was switched away; `wait` how long it was asleep or blocked before it ran, `delay` how long it was "
	 "runnable, `run` how long it ran, `state` in which state it left and `span` in which span. An empty field is unknown.\n\n"
	 "In JSON, times are nanoseconds, `ts` those of the trace's clock."},
	{0},
};

const struct ky_verb ky_verb_sched = {
	.name = "sched",
	.summary = "show how long threads ran, waited for a CPU, and slept, and who woke them",
	.usage = "[OPTIONS] FILE",
	.about =
		"Show what the scheduler did in a trace: the runs and delays of each thread, the time in each state and on each CPU, how many threads waited, and where "
		"threads were off the CPU: in which span, and who woke them. The trace needs scheduling events: kymo record has them, kymo run and "
		"attach with --kernel, perf sched record, trace-cmd, Perfetto.",
	.status =
		"0: done; 1: failed, or a trace without scheduling; 2: wrong usage; 3: no thread passes the filters.",
	.examples =
		"kymo sched trace.kymo\n"
		"kymo sched --thread 'worker*' --from 2s --to 3s trace.kymo\n"
		"kymo sched --timehist --process server trace.kymo\n"
		"kymo sched --json perf.data | jq '.threads[] | select(.delay.max_ns > 10000000)'",
	.related = "report query record",
	.options =
		(const struct ky_option_set[]){
			{options, 0},
			{ky_cli_filter_range, offsetof(struct sched_command, filter)},
			{ky_cli_filter_tasks, offsetof(struct sched_command, filter)},
			{0}},
	.sections = sections,
	.run = run,
};
