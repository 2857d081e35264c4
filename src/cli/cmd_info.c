/* SPDX-License-Identifier: MIT */
/*
 * cmd_info.c: kymo info: shows what is in a file: its format and times, processes and threads, counts, losses and
 * problems. info_count.c counts, info_json.c prints JSON, this file prints text.
 */
#include "cli/cli.h"
#include "cli/cli_filter.h"
#include "cli/info.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>

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
	char a[KY_INFO_TIME_BYTES], b[KY_INFO_TIME_BYTES];
	const char *const clock = ky_clock_name(trace->clock);
	fputs(ky_cli_style("1"), stdout);
	ky_cli_text(stdout, path, strlen(path));
	printf("%s: %s", ky_cli_plain(), ky_info_format_title(trace));
	if (info->file_bytes)
		printf(", %s", ky_quantity_bytes(a, info->file_bytes));
	printf("\n  lasts %s", ky_quantity_duration(a, trace->end_ns - trace->begin_ns));
	printf(", from %" PRId64 ".%09" PRId64 " s", trace->begin_ns / 1000000000,
	       trace->begin_ns < 0 ? -(trace->begin_ns % 1000000000)
				   : trace->begin_ns % 1000000000);
	printf(" of %s\n", clock ? clock : "the trace's own clock");
	if (info->has_wall)
		printf("  %s to %s\n", ky_info_wall_time(a, info->wall_begin_ns),
		       ky_info_wall_time(b, info->wall_end_ns));
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
	char text[KY_CLI_LABEL_BYTES];
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
	ky_cli_table_indent(table, 2);
	ky_cli_table_print(&table, stdout);
	more(available, rows);
}

static void print_categories(const struct ky_info *info, const struct ky_trace *trace, bool all)
{
	static const struct ky_cli_column columns[] = {{"category", false, true},
						       {"events", true, false}};
	const uint32_t rows = at_most(info->categories_count, CATEGORIES_SHOWN, all);
	char text[KY_CLI_LABEL_BYTES];
	if (!rows || (info->categories_count == 1 && !info->categories[0].name))
		return;
	struct ky_cli_table *table = ky_cli_table_new(columns, 2);
	title("categories");
	for (uint32_t i = 0; i < rows; i++) {
		ky_cli_table_cell(table, ky_cli_by_label(text, trace, KY_BY_CATEGORY,
							 info->categories[i].name));
		ky_cli_table_cell(table, ky_quantity_count(text, info->categories[i].slices));
	}
	ky_cli_table_indent(table, 2);
	ky_cli_table_print(&table, stdout);
	more(info->categories_count, rows);
}

static void print_losses(const struct ky_trace *trace, bool all)
{
	static const struct ky_cli_column columns[] = {
		{"events", true, false}, {"where", false, true}, {"what", false, true}};
	const struct ky_losses *const losses = &trace->losses;
	const uint32_t rows = at_most(losses->rows.count, PROBLEMS_SHOWN, all);
	char text[KY_CLI_LABEL_BYTES];
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
	ky_cli_table_indent(table, 2);
	ky_cli_table_print(&table, stdout);
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
	ky_cli_table_indent(table, 2);
	ky_cli_table_print(&table, stdout);
	more(problems->rows.count, rows);
}

static int print(struct ky_trace *trace, const char *path, bool json, bool all)
{
	struct ky_info info;
	if (ky_info_make(&info, trace, path) != 0) {
		ky_cli_error("%s: not enough memory to count it", path);
		return KY_EXIT_FAILED;
	}
	if (json) {
		ky_info_json(&info, trace, path, stdout);
	} else {
		print_head(&info, trace, path);
		print_counts(&info, trace);
		print_tasks(&info, trace, all);
		print_categories(&info, trace, all);
		ky_info_capture(trace, all);
		print_losses(trace, all);
		print_problems(trace, all);
	}
	ky_info_free(&info);
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
	{"all", KY_OPTION_AT(FLAG, struct command, all),
	 .help = "show all threads, categories, sources, snapshots, losses and problems, not only the first"},
	KY_CLI_FORMAT_OPTION(struct command, format),
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
