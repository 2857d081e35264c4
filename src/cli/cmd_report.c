/* SPDX-License-Identifier: MIT */
/* cmd_report.c: kymo report: its options; report.h lists the kinds of reports. */
#include "base/nearest.h"
#include "cli/cli.h"
#include "cli/report.h"

#include <getopt.h>
#include <string.h>

#define LIMIT 30
#define TREE_LIMIT 10
#define TREE_DEPTH 12

#define NOT_GIVEN UINT32_MAX

struct options {
	struct ky_cli_filter filter;
	const char *format;
	bool tree;
	uint32_t sort;  /* of ky_report_measures, or NOT_GIVEN */
	uint32_t limit; /* or NOT_GIVEN */
	struct ky_report report;
};

/* Report whether the trace has calls of functions: what is outermost there has the most time, and tells the least. */
static bool has_functions(const struct ky_trace *trace)
{
	static const char note[] = "functions: ";
	for (uint32_t i = 0; i < trace->metadata.rows.count; i++) {
		const char *const key = ky_text_of(trace, trace->metadata.key[i]);
		const char *const text = ky_text_of(trace, trace->metadata.text[i]);
		if (key && text && strcmp(key, "capture_note") == 0 &&
		    strncmp(text, note, sizeof(note) - 1) == 0)
			return true;
	}
	return false;
}

static void set_defaults(struct options *options)
{
	struct ky_report *const report = &options->report;
	const struct ky_trace *const trace = report->trace;
	if (report->event || (!trace->slices.rows.count && trace->samples.rows.count))
		report->samples = true;
	/* Slices of one thread or category nest: their total counts time more than once. */
	if (options->sort != NOT_GIVEN)
		report->sort = ky_report_measures[options->sort].name;
	else
		report->sort =
			report->samples || report->by != KY_BY_NAME || has_functions(report->trace)
				? "self"
				: "total";
	if (options->limit != NOT_GIVEN)
		report->limit = options->limit;
	else
		report->limit = report->output != KY_REPORT_TEXT ? 0
				: options->tree                  ? TREE_LIMIT
								 : LIMIT;
	report->filter = ky_cli_filter_of(&options->filter, trace);
}

/* Report which option is the reason that there is nothing to show. */
static int report_nothing(const struct options *options)
{
	struct ky_trace *const trace = options->report.trace;
	const char *const event = options->report.event;
	struct ky_nearest nearest = {0};
	char hint[KY_NEAREST_TEXT_BYTES + 16];
	if (!event || ky_strings_find(&trace->strings, event, strlen(event)))
		return ky_cli_filter_nothing(&options->filter, trace, options->report.samples);
	for (uint32_t i = 0; i < trace->samples.rows.count; i++) {
		const char *const name = ky_text_of(trace, trace->samples.event[i]);
		if (name && (!i || trace->samples.event[i] != trace->samples.event[i - 1]))
			ky_nearest_note(&nearest, event, name);
	}
	ky_nearest_hint(&nearest, "; 'kymo info' lists the events", hint, sizeof(hint));
	ky_cli_error("no sample is of an event '%s'%s", event, hint);
	return KY_EXIT_NOTHING;
}

static int print(const struct options *options, const char *path)
{
	const struct ky_report *const report = &options->report;
	const struct ky_trace *const trace = report->trace;
	const bool any = report->samples ? trace->samples.rows.count : trace->slices.rows.count;
	if (!any && report->output == KY_REPORT_TEXT) {
		ky_cli_error("%s has no %s; 'kymo info' shows what it has", path,
			     report->samples ? "samples" : "slices and no samples");
		return KY_EXIT_DONE;
	}
	const int error = options->tree     ? ky_report_tree(report)
			  : report->samples ? ky_report_samples(report)
					    : ky_report_table(report);
	if (error > 0 && any)
		return report_nothing(options);
	if (error < 0)
		return ky_cli_error("%s: not enough memory to summarize it", path);
	if (report->output == KY_REPORT_TEXT)
		ky_cli_stacks(trace, false);
	return KY_EXIT_DONE;
}

static int run(int argc, char **argv)
{
	struct options options = {
		.sort = NOT_GIVEN, .limit = NOT_GIVEN, .report = {.depth = TREE_DEPTH}};
	const int wrong = ky_options_read(&options, argc, argv);
	if (wrong)
		return wrong;
	if (ky_cli_filter_check(&options.filter) != 0)
		return KY_EXIT_USAGE;
	if (argc - optind != 1)
		return ky_cli_usage(optind == argc ? "the file is missing"
						   : "only one file at a time");
	struct ky_trace *trace = ky_cli_load(argv[optind], options.format, false);
	if (!trace)
		return KY_EXIT_FAILED;
	options.report.trace = trace;
	set_defaults(&options);
	const int code = print(&options, argv[optind]);
	ky_trace_close(&trace);
	return code;
}

#define AT(type, field) KY_OPTION_AT(type, struct options, field)

static const struct ky_option options[] = {
	{"by", AT(CHOICE, report.by), .argument = "WHAT", .choices = ky_cli_by,
	 .help = "name (default), category, thread or process"},
	{"sort", AT(CHOICE, sort), .argument = "MEASURE", .choices = ky_report_measures,
	 .help = "total, self, count, min, mean, p50, p95, p99 or max (default: total; self for calls "
		 "of functions, and with --by category, thread or process, because their slices nest)"},
	{"limit", AT(NUMBER, limit), .argument = "N",
	 .help = "maximum rows, per parent in a tree; 0 = all (default 30; tree 10)",
	 .more = "`--json` and `--csv` print all by default."},
	{"tree", AT(FLAG, tree), .help = "show what was called from where",
	 .more = "With `--by thread` or `--by process`, one tree under each; otherwise all threads are one. With "
		 "`--name`, trees start at these names, and everything below them is shown."},
	{"depth", AT(NUMBER, report.depth), .argument = "N",
	 .help = "depth of the tree; 0 = all (default 12)"},
	{"samples", AT(FLAG, report.samples), .help = "show samples even if there are slices"},
	{"event", AT(TEXT, report.event), .argument = "NAME",
	 .help = "samples of this event (default: the most frequent)"},
	{"json", KY_OPTION_AT(SET, struct options, report.output), .least = KY_REPORT_JSON,
	 .help = "print JSON; times are in nanoseconds"},
	{"csv", KY_OPTION_AT(SET, struct options, report.output), .least = KY_REPORT_CSV,
	 .help = "print CSV; times are in nanoseconds",
	 .more = "A tree has a row for each node, which names its parent."},
	KY_CLI_INPUT_FORMAT(struct options, format),
	{.help = "which part of the trace"},
	{0},
};

const struct ky_verb ky_verb_report = {
	.name = "report",
	.summary = "show what takes how long: totals, self times, percentiles, call trees",
	.usage = "[OPTIONS] FILE",
	.about =
		"Summarize the slices of a trace: for each name how many there are, how long they take in total and "
		"without what they call (self), and how the durations are distributed. A trace that has only samples "
		"is summarized by function, or with --by thread or process by these. Messages of KYMO_PRINT are one row for each format; what has "
		"one name and several categories, such as a span and a function, has a row for each.",
	.details =
		"Percentiles are exact: the smallest duration that at least this part of all does not exceed. A "
		"slice that never ended counts up to the end of the trace; the report shows how many there are. "
		"Instants only have a count. The time of slices inside others of the same name (recursion) is in `total` "
		"once; with `--by`, slices inside others are counted each, so `total` may exceed the time that passed; "
		"`self` never does on one thread.\n"
		"\n"
		"Where source lines are known, a function of samples shows the line at which most of its time was "
		"spent; if it only calls others, the line of the call that took most.",
	.status = "0: done; 1: failed; 2: wrong usage; 3: the filters match nothing.",
	.examples = "kymo report trace.json\n"
		    "kymo report --tree --name 'handle*' --thread worker trace.pftrace\n"
		    "kymo report --by thread --sort self --from 2s --to 2.5s trace.kymo",
	.related = "hist diff query",
	.options = (const struct ky_option_set[]){{options, 0},
						  KY_CLI_FILTER_SETS(struct options, filter),
						  {0}},
	.run = run,
};
