/* SPDX-License-Identifier: MIT */
/*
 * cmd_info.c: kymo info: shows what is in a file: its format and times, processes and threads, counts, losses and problems.
 * info_json.c prints the same as JSON.
 */
#include "base/array.h"
#include "cli/cli.h"
#include "cli/info.h"
#include "formats/load.h"
#include "model/clocks.h"
#include "query/filter.h"
#include "query/snapshot.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* ---- counting ---- */

/* Rows are first all threads, then all processes, then the rest. */
static void name_rows(struct ky_info *info, const struct ky_trace *trace)
{
	const uint32_t threads = trace->threads.rows.count, processes = trace->processes.rows.count;
	for (uint32_t i = 0; i < info->rows_count; i++) {
		struct ky_info_row *const row = &info->rows[i];
		row->thread = i < threads ? i : KY_NONE;
		row->process = i < threads               ? trace->threads.process[i]
			       : i - threads < processes ? i - threads
							 : KY_NONE;
	}
}

static uint32_t row_of_track(const struct ky_trace *trace, uint32_t track)
{
	const uint32_t threads = trace->threads.rows.count, processes = trace->processes.rows.count;
	const uint32_t thread = ky_track_thread(trace, track);
	if (thread < threads)
		return thread;
	const uint32_t process = ky_track_process(trace, track);
	return threads + (process < processes ? process : processes);
}

static void count_slices(struct ky_info *info, const struct ky_trace *trace, const uint32_t *row_of,
			 uint64_t *categories)
{
	const struct ky_slices *const slices = &trace->slices;
	for (uint32_t i = 0; i < slices->rows.count; i++) {
		struct ky_info_row *const row = &info->rows[row_of[slices->track[i]]];
		categories[slices->category[i]]++;
		if (slices->kind[i] == KY_SLICE_INSTANT) {
			row->instants++;
			info->instants++;
			continue;
		}
		row->slices++;
		info->spans++;
		info->unfinished += slices->dur[i] < 0;
		int64_t ns = slices->dur[i];
		if (ns < 0 && __builtin_sub_overflow(trace->end_ns, slices->ts[i], &ns))
			ns = 0;
		if (slices->depth[i] == 0 &&
		    __builtin_add_overflow(row->busy_ns, ns, &row->busy_ns))
			row->busy_ns = INT64_MAX;
	}
}

static void count_others(struct ky_info *info, const struct ky_trace *trace, const uint32_t *row_of)
{
	const uint32_t threads = trace->threads.rows.count, nobody = info->rows_count - 1;
	for (uint32_t i = 0; i < trace->counters.rows.count; i++)
		info->rows[row_of[trace->counters.track[i]]].counters++;
	for (uint32_t i = 0; i < trace->samples.rows.count; i++) {
		const uint32_t thread = trace->samples.thread[i];
		info->rows[thread < threads ? thread : nobody].samples++;
	}
	for (uint32_t i = 0; i < trace->sched.rows.count; i++) {
		const uint32_t thread = trace->sched.thread[i];
		info->rows[thread < threads ? thread : nobody].sched++;
	}
}

static uint64_t events_of(const struct ky_info_row *row)
{
	return row->slices + row->instants + row->counters + row->samples + row->sched;
}

static int most_events(const void *a_, const void *b_)
{
	const struct ky_info_row *const a = a_, *const b = b_;
	if (events_of(a) != events_of(b))
		return events_of(a) < events_of(b) ? 1 : -1;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->thread > b->thread) - (a->thread < b->thread);
}

KY_ORDER(most_slices, struct ky_info_category,
	 KY_COMPARE_THEN(b->slices, a->slices, KY_COMPARE(a->name, b->name)))

static int list_categories(struct ky_info *info, const uint64_t *counts, uint32_t strings)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < strings; i++)
		count += counts[i] != 0;
	info->categories = calloc((size_t)count + 1, sizeof(*info->categories));
	if (!info->categories)
		return -ENOMEM;
	for (uint32_t i = 0; i < strings; i++) {
		if (counts[i])
			info->categories[info->categories_count++] =
				(struct ky_info_category){i, counts[i]};
	}
	qsort(info->categories, count, sizeof(*info->categories), most_slices);
	return 0;
}

static int count_events(struct ky_info *info, const struct ky_trace *trace)
{
	const uint32_t tracks = trace->tracks.rows.count, strings = trace->strings.count + 1;
	uint32_t *const row_of = calloc((size_t)tracks + 1, sizeof(*row_of));
	uint64_t *const categories = calloc(strings, sizeof(*categories));
	int result = row_of && categories ? 0 : -ENOMEM;
	if (result == 0) {
		for (uint32_t i = 0; i < tracks; i++)
			row_of[i] = row_of_track(trace, i);
		count_slices(info, trace, row_of, categories);
		count_others(info, trace, row_of);
		result = list_categories(info, categories, strings);
	}
	free(row_of);
	free(categories);
	return result;
}

static void find_wall_time(struct ky_info *info, const struct ky_trace *trace)
{
	info->has_wall = trace->clocks && (trace->begin_ns || trace->end_ns) &&
			 ky_clocks_convert(trace->clocks, trace->clock, KY_CLOCK_REALTIME,
					   trace->begin_ns, &info->wall_begin_ns) &&
			 ky_clocks_convert(trace->clocks, trace->clock, KY_CLOCK_REALTIME,
					   trace->end_ns, &info->wall_end_ns);
}

static void free_counts(struct ky_info *info)
{
	free(info->rows);
	free(info->categories);
	*info = (struct ky_info){0};
}

/* Return 0 or -ENOMEM. */
static int count_all(struct ky_info *info, const struct ky_trace *trace, const char *path)
{
	struct stat status;
	*info = (struct ky_info){.rows_count = trace->threads.rows.count +
					       trace->processes.rows.count + 1};
	info->rows = calloc(info->rows_count, sizeof(*info->rows));
	if (!info->rows)
		return -ENOMEM;
	name_rows(info, trace);
	if (count_events(info, trace) != 0) {
		free_counts(info);
		return -ENOMEM;
	}
	qsort(info->rows, info->rows_count, sizeof(*info->rows), most_events);
	while (info->rows_used < info->rows_count && events_of(&info->rows[info->rows_used]))
		info->rows_used++;
	find_wall_time(info, trace);
	if (stat(path, &status) == 0 && S_ISREG(status.st_mode))
		info->file_bytes = (uint64_t)status.st_size;
	return 0;
}

/* "Chrome Trace Event JSON" */
static const char *format_title(const struct ky_trace *trace)
{
	for (const struct ky_reader *const *reader = ky_readers; *reader; reader++) {
		if (trace->format && strcmp((*reader)->name, trace->format) == 0)
			return (*reader)->title;
	}
	return trace->format ? trace->format : "not known";
}

const char *ky_info_severity(uint8_t severity)
{
	return severity == KY_ERROR ? "error" : severity == KY_DATA_LOSS ? "data loss" : "info";
}

/* ---- text ---- */

#define ROWS_SHOWN 20
#define CATEGORIES_SHOWN 10
#define PROBLEMS_SHOWN 20

static void title(const char *text)
{
	printf("\n%s%s%s\n", ky_cli_style("1"), text, ky_cli_plain());
}

static void more(uint32_t all, uint32_t shown)
{
	if (all > shown)
		printf("  and %" PRIu32 " more (--all shows them)\n", all - shown);
}

static uint32_t at_most(uint32_t count, uint32_t limit, bool all)
{
	return all || count < limit ? count : limit;
}

static void print_head(const struct ky_info *info, const struct ky_trace *trace, const char *path)
{
	char a[KY_QUANTITY_DATE_BYTES], b[KY_QUANTITY_DATE_BYTES];
	const char *const clock = ky_clock_name(trace->clock);
	fputs(ky_cli_style("1"), stdout);
	ky_cli_text(stdout, path, strlen(path));
	printf("%s: %s", ky_cli_plain(), format_title(trace));
	if (info->file_bytes)
		printf(", %s", ky_quantity_bytes(a, info->file_bytes));
	printf("\n  lasts %s",
	       ky_quantity_duration(a, ky_sub_clamped(trace->end_ns, trace->begin_ns)));
	printf(", from %" PRId64 ".%09" PRId64 " s", trace->begin_ns / 1000000000,
	       trace->begin_ns < 0 ? -(trace->begin_ns % 1000000000)
				   : trace->begin_ns % 1000000000);
	printf(" of %s\n", clock ? clock : "the trace's own clock");
	if (info->has_wall)
		printf("  %s to %s\n", ky_quantity_date(a, info->wall_begin_ns),
		       ky_quantity_date(b, info->wall_end_ns));
}

static void print_count(const char *what, uint64_t count, const char *one)
{
	char text[KY_QUANTITY_BYTES];
	if (count)
		printf("  %-10s %s\n", count == 1 ? one : what, ky_quantity_count(text, count));
}

static void print_counts(const struct ky_info *info, const struct ky_trace *trace)
{
	char a[KY_QUANTITY_BYTES], b[KY_QUANTITY_BYTES];
	title("contents");
	if (info->unfinished)
		printf("  %-10s %s, %s of them never ended\n", "slices",
		       ky_quantity_count(a, info->spans), ky_quantity_count(b, info->unfinished));
	else
		print_count("slices", info->spans, "slice");
	print_count("instants", info->instants, "instant");
	print_count("counters", trace->counters.rows.count, "counter");
	print_count("flows", trace->flows.rows.count, "flow");
	print_count("samples", trace->samples.rows.count, "sample");
	print_count("sched", trace->sched.rows.count, "sched");
	print_count("kernel", trace->raw_events.rows.count, "kernel");
	print_count("logs", trace->logs.rows.count, "log");
	if (!trace->events && !info->spans && !info->instants)
		puts("  no events");
}

/* ---- captures ---- */

static void print_lines(const struct ky_trace *trace, const char *key, const char *heading,
			bool all)
{
	const struct ky_metadata *metadata = &trace->metadata;
	uint32_t count = 0;
	for (uint32_t i = 0; i < metadata->rows.count; i++) {
		const char *text = ky_text_of(trace, metadata->text[i]);
		if (!text || !metadata->key[i] ||
		    strcmp(ky_text_of(trace, metadata->key[i]), key) != 0)
			continue;
		if (count++ == 0)
			title(heading);
		if (!all && count > ROWS_SHOWN)
			continue;
		fputs("  ", stdout);
		ky_cli_text(stdout, text, strlen(text));
		putchar('\n');
	}
	more(count, at_most(count, ROWS_SHOWN, all));
}

static void print_snapshot(struct ky_cli_table *table, const struct ky_trace *trace, uint32_t slice)
{
	char text[KY_QUANTITY_BYTES];
	const int64_t pid = ky_snapshot_number(trace, slice, "pid"),
		      tid = ky_snapshot_number(trace, slice, "tid");
	const char *trigger = ky_snapshot_text(trace, slice, "trigger");
	const char *reason = ky_text_of(trace, trace->slices.name[slice]);
	ky_cli_table_format(table, "+%s",
			    ky_quantity_duration(text, ky_sub_clamped(trace->slices.ts[slice],
								      trace->begin_ns)));
	if (pid >= 0 && tid >= 0 && tid != pid)
		ky_cli_table_format(table, "%" PRId64 "/%" PRId64, pid, tid);
	else if (pid >= 0)
		ky_cli_table_format(table, "%" PRId64, pid);
	else
		ky_cli_table_cell(table, "");
	ky_cli_table_cell(table, trigger ? trigger : "");
	ky_cli_table_cell(table, reason ? reason : "");
}

static void print_snapshots(const struct ky_trace *trace, bool all)
{
	static const struct ky_cli_column columns[] = {{"at", true, false},
						       {"process", true, false},
						       {"trigger", false, true},
						       {"reason", false, true}};
	struct ky_cli_table *table = NULL;
	uint32_t count = 0;
	for (uint32_t i = ky_snapshot_next(trace, 0); i != KY_NONE;
	     i = ky_snapshot_next(trace, i + 1)) {
		if (!table)
			table = ky_cli_table_new(columns, 4);
		if (all || count < ROWS_SHOWN)
			print_snapshot(table, trace, i);
		count++;
	}
	if (!table)
		return;
	title("snapshots");
	ky_cli_table_print(&table, 2);
	more(count, at_most(count, ROWS_SHOWN, all));
}

/* Print sources, notes and snapshots of a capture. */
static void print_capture(const struct ky_trace *trace, bool all)
{
	print_lines(trace, "capture_source", "sources", all);
	print_lines(trace, "capture_note", "notes", all);
	print_snapshots(trace, all);
	ky_cli_stacks(trace, all);
}

/* ---- counts ---- */

/* A column of counts appears if any row has one. */
struct counted {
	const char *title;
	size_t offset;
};

static const struct counted counted[] = {
	{"slices", offsetof(struct ky_info_row, slices)},
	{"instants", offsetof(struct ky_info_row, instants)},
	{"counters", offsetof(struct ky_info_row, counters)},
	{"samples", offsetof(struct ky_info_row, samples)},
	{"sched", offsetof(struct ky_info_row, sched)},
};
#define COUNTED (sizeof(counted) / sizeof(counted[0]))

static uint64_t count_in(const struct ky_info_row *row, const struct counted *column)
{
	return *(const uint64_t *)((const char *)row + column->offset);
}

static bool has_any(const struct ky_info *info, const struct counted *column)
{
	for (uint32_t i = 0; i < info->rows_used; i++) {
		if (count_in(&info->rows[i], column))
			return true;
	}
	return false;
}

static void print_row(struct ky_cli_table *table, const struct ky_trace *trace,
		      const struct ky_info_row *row, const bool *shown, bool spans)
{
	char text[KY_STATS_LABEL_BYTES];
	ky_cli_table_cell(table, ky_cli_process_label(text, trace, row->process));
	if (row->thread != KY_NONE)
		ky_cli_table_cell(table, ky_cli_thread_label(text, trace, row->thread));
	else
		ky_cli_table_cell(table, "(tracks of no thread)");
	for (size_t c = 0; c < COUNTED; c++) {
		const uint64_t count = count_in(row, &counted[c]);
		if (shown[c])
			ky_cli_table_cell(table, count ? ky_quantity_count(text, count) : "");
	}
	if (spans)
		ky_cli_table_cell(table,
				  row->slices ? ky_quantity_duration(text, row->busy_ns) : "");
}

static void print_tasks(const struct ky_info *info, const struct ky_trace *trace, bool all)
{
	struct ky_cli_column columns[COUNTED + 3] = {{"process", false, true},
						     {"thread", false, true}};
	bool shown[COUNTED];
	unsigned count = 2;
	char text[64];
	for (size_t c = 0; c < COUNTED; c++) {
		shown[c] = has_any(info, &counted[c]);
		if (shown[c])
			columns[count++] = (struct ky_cli_column){counted[c].title, true, false};
	}
	if (info->spans)
		columns[count++] = (struct ky_cli_column){"in slices", true, false};
	struct ky_cli_table *table = ky_cli_table_new(columns, count);
	const uint32_t available = all ? info->rows_count : info->rows_used;
	const uint32_t rows = at_most(available, ROWS_SHOWN, all);
	snprintf(text, sizeof(text), "%" PRIu32 " %s, %" PRIu32 " %s", trace->processes.rows.count,
		 trace->processes.rows.count == 1 ? "process" : "processes",
		 trace->threads.rows.count, trace->threads.rows.count == 1 ? "thread" : "threads");
	title(text);
	for (uint32_t i = 0; i < rows; i++) {
		if (i < info->rows_used || info->rows[i].thread != KY_NONE)
			print_row(table, trace, &info->rows[i], shown, info->spans > 0);
	}
	ky_cli_table_print(&table, 2);
	more(available, rows);
}

static void print_categories(const struct ky_info *info, const struct ky_trace *trace, bool all)
{
	static const struct ky_cli_column columns[] = {{"category", false, true},
						       {"events", true, false}};
	const uint32_t rows = at_most(info->categories_count, CATEGORIES_SHOWN, all);
	char text[KY_STATS_LABEL_BYTES];
	if (!rows || (info->categories_count == 1 && !info->categories[0].name))
		return;
	struct ky_cli_table *table = ky_cli_table_new(columns, 2);
	title("categories");
	for (uint32_t i = 0; i < rows; i++) {
		ky_cli_table_cell(table, ky_cli_by_label(text, trace, KY_BY_CATEGORY,
							 info->categories[i].name));
		ky_cli_table_cell(table, ky_quantity_count(text, info->categories[i].slices));
	}
	ky_cli_table_print(&table, 2);
	more(info->categories_count, rows);
}

static void print_losses(const struct ky_trace *trace, bool all)
{
	static const struct ky_cli_column columns[] = {
		{"events", true, false}, {"where", false, true}, {"what", false, true}};
	const struct ky_losses *const losses = &trace->losses;
	const uint32_t rows = at_most(losses->rows.count, PROBLEMS_SHOWN, all);
	char text[KY_STATS_LABEL_BYTES];
	if (!rows)
		return;
	struct ky_cli_table *table = ky_cli_table_new(columns, 3);
	title("lost");
	for (uint32_t i = 0; i < rows; i++) {
		const uint64_t events = losses->events[i];
		ky_cli_table_styled(table, events ? ky_quantity_count(text, events) : "some", "31");
		if (losses->thread[i] != KY_NONE)
			ky_cli_table_cell(table,
					  ky_cli_thread_label(text, trace, losses->thread[i]));
		else if (losses->cpu[i] != KY_NONE)
			ky_cli_table_format(table, "CPU %" PRIu32, losses->cpu[i]);
		else
			ky_cli_table_cell(table, "");
		ky_cli_table_cell(table, ky_text_of(trace, losses->what[i]));
	}
	ky_cli_table_print(&table, 2);
	more(losses->rows.count, rows);
}

static void print_problems(const struct ky_trace *trace, bool all)
{
	static const struct ky_cli_column columns[] = {{"severity", false, false},
						       {"count", true, false},
						       {"first", false, false},
						       {"what", false, false},
						       {"details", false, true}};
	const struct ky_problems *const problems = &trace->problems;
	const uint32_t rows = at_most(problems->rows.count, PROBLEMS_SHOWN, all);
	char text[KY_QUANTITY_BYTES];
	if (!rows)
		return;
	struct ky_cli_table *table = ky_cli_table_new(columns, 5);
	title("problems");
	for (uint32_t i = 0; i < rows; i++) {
		ky_cli_table_styled(table, ky_info_severity(problems->severity[i]),
				    problems->severity[i] == KY_INFO ? NULL : "31");
		ky_cli_table_cell(table, ky_quantity_count(text, problems->number[i]));
		if (problems->first_at[i] != KY_NO_PLACE)
			ky_cli_table_format(table, "byte %" PRIu64, problems->first_at[i]);
		else
			ky_cli_table_cell(table, "");
		ky_cli_table_cell(table, ky_text_of(trace, problems->name[i]));
		ky_cli_table_cell(table, ky_text_of(trace, problems->first[i]));
	}
	ky_cli_table_print(&table, 2);
	more(problems->rows.count, rows);
}

static int print(struct ky_trace *trace, const char *path, bool json, bool all)
{
	struct ky_info info;
	if (count_all(&info, trace, path) != 0)
		return ky_cli_error("%s: not enough memory to count it", path);
	if (json) {
		ky_info_json(&info, trace, path, stdout);
	} else {
		print_head(&info, trace, path);
		print_counts(&info, trace);
		print_tasks(&info, trace, all);
		print_categories(&info, trace, all);
		print_capture(trace, all);
		print_losses(trace, all);
		print_problems(trace, all);
	}
	free_counts(&info);
	return KY_EXIT_DONE;
}

struct command {
	const char *format;
	bool json, all;
};

static int run(int argc, char **argv)
{
	struct command command = {0};
	const int wrong = ky_options_read(&command, argc, argv);
	if (wrong)
		return wrong;
	if (argc - optind != 1)
		return ky_cli_usage(optind == argc ? "the file is missing"
						   : "only one file at a time");
	struct ky_trace *trace = ky_cli_load(argv[optind], command.format, true);
	if (!trace)
		return KY_EXIT_FAILED;
	const int code = print(trace, argv[optind], command.json, command.all);
	ky_trace_close(&trace);
	return code;
}

static const struct ky_option options[] = {
	{"all", KY_OPTION_AT(FLAG, struct command, all), .letter = 'a',
	 .help = "show all threads, categories, sources, snapshots, losses and problems, not only the first"},
	KY_CLI_INPUT_FORMAT(struct command, format),
	{"json", KY_OPTION_AT(FLAG, struct command, json), .help = "print JSON"},
	{0},
};

static const struct ky_section sections[] = {
	{"OUTPUT", "`in slices` is the time that a thread spent in its outermost slices."},
	{0},
};

const struct ky_verb ky_verb_info = {
	.name = "info",
	.summary = "show what is in a file: times, threads, counts, losses, problems",
	.usage = "[OPTIONS] FILE",
	.about =
		"Show what is in a trace: its format, the time it covers, its processes and threads, how many events "
		"of each kind, what was lost while it was recorded and what is wrong with the file; for a capture also "
		"its sources, notes and snapshots. FILE may be packed (gz, zst, zip), a directory, '-' for standard "
		"input, or pid:N for the buffer of a running process.",
	.details =
		"Times are shown by the wall clock if the trace knows it. Of each kind of problem the place of the "
		"first is shown.",
	.examples = "kymo info trace.pftrace\n"
		    "curl -s https://example.org/trace.json.gz | kymo info -\n"
		    "kymo info --json trace.json | jq .counts.slices",
	.related = "report validate",
	.options = (const struct ky_option_set[]){{options, 0}, {0}},
	.sections = sections,
	.run = run,
};
