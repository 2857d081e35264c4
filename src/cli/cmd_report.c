/* SPDX-License-Identifier: MIT */
/* cmd_report.c: kymo report: its options; report.h says who answers. */
#include "cli/cli.h"
#include "cli/report.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT 30
#define TREE_LIMIT 10
#define TREE_DEPTH 12

struct options {
	struct ky_cli_filter filter;
	const char *format;
	bool tree;
	bool limited; /* --limit was given */
	bool sorted;  /* --sort was given */
	struct ky_report report;
};

enum { BY = KY_CLI_OPTION_OWN, SORT, TREE, DEPTH, LIMIT_OPTION, SAMPLES, EVENT, JSON, CSV, FORMAT };

static const struct option longs[] = {
	KY_CLI_FILTER_OPTIONS,
	{"by", required_argument, NULL, BY},
	{"sort", required_argument, NULL, SORT},
	{"tree", no_argument, NULL, TREE},
	{"depth", required_argument, NULL, DEPTH},
	{"limit", required_argument, NULL, LIMIT_OPTION},
	{"samples", no_argument, NULL, SAMPLES},
	{"event", required_argument, NULL, EVENT},
	{"json", no_argument, NULL, JSON},
	{"csv", no_argument, NULL, CSV},
	{"format", required_argument, NULL, FORMAT},
	{0},
};

static int parse_by(const char *text, enum ky_stats_by *by)
{
	for (*by = KY_BY_NAME; *by <= KY_BY_PROCESS; ++*by) {
		if (strcmp(ky_cli_by_title(*by), text) == 0)
			return 0;
	}
	return ky_cli_usage("--by %s is none of name, category, thread, process", text);
}

static int parse_number(const char *option, const char *text, uint32_t *number)
{
	char *end;
	const unsigned long value = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || value > UINT32_MAX)
		return ky_cli_usage("--%s %s is no number", option, text);
	*number = (uint32_t)value;
	return 0;
}

static int take_option(struct options *options, int option)
{
	struct ky_report *const report = &options->report;
	switch (option) {
	case BY:
		return parse_by(optarg, &report->by);
	case SORT:
		report->sort = optarg;
		options->sorted = true;
		if (!ky_report_sort_known(optarg))
			return ky_cli_usage(
				"--sort %s is none of total, self, count, min, mean, p50, "
				"p95, p99, max",
				optarg);
		return 0;
	case DEPTH:
		return parse_number("depth", optarg, &report->depth);
	case LIMIT_OPTION:
		options->limited = true;
		return parse_number("limit", optarg, &report->limit);
	case TREE:
		options->tree = true;
		return 0;
	case EVENT:
		report->event = optarg;
		report->samples = true;
		return 0;
	case SAMPLES:
		report->samples = true;
		return 0;
	case FORMAT:
		options->format = optarg;
		return 0;
	default:
		report->output = option == JSON ? KY_REPORT_JSON : KY_REPORT_CSV;
		return 0;
	}
}

static void set_defaults(struct options *options)
{
	struct ky_report *const report = &options->report;
	const struct ky_trace *const trace = report->trace;
	if (!trace->slices.rows.count && trace->samples.rows.count)
		report->samples = true;
	/*
	 * Slices of one thread or category are within each other: their total counts time more
	 * than once.
	 */
	if (!options->sorted)
		report->sort = report->samples || report->by != KY_BY_NAME ? "self" : "total";
	if (!options->limited)
		report->limit = report->output != KY_REPORT_TEXT ? 0
				: options->tree                  ? TREE_LIMIT
								 : LIMIT;
	report->filter = ky_cli_filter_of(&options->filter, trace);
}

static int answer(const struct options *options, const char *path)
{
	const struct ky_report *const report = &options->report;
	const struct ky_trace *const trace = report->trace;
	const bool any = report->samples ? trace->samples.rows.count : trace->slices.rows.count;
	if (!any && report->output == KY_REPORT_TEXT) {
		ky_cli_error("%s: there are no %s in it; 'kymo info' says what there is", path,
			     report->samples ? "samples" : "slices and no samples");
		return KY_EXIT_DONE;
	}
	const int error = options->tree     ? ky_report_tree(report)
			  : report->samples ? ky_report_samples(report)
					    : ky_report_table(report);
	if (error) {
		ky_cli_error("%s: not enough memory to sum it up", path);
		return KY_EXIT_FAILED;
	}
	return KY_EXIT_DONE;
}

static int run(int argc, char **argv)
{
	struct options options = {.report = {.sort = "total", .depth = TREE_DEPTH}};
	for (int option; (option = ky_cli_option(argc, argv, "", longs)) != -1;) {
		if (ky_cli_filter_option(&options.filter, option, optarg))
			continue;
		const int wrong = take_option(&options, option);
		if (wrong)
			return wrong;
	}
	if (ky_cli_filter_check(&options.filter) != 0)
		return KY_EXIT_USAGE;
	if (argc - optind != 1)
		return ky_cli_usage(optind == argc ? "which file?" : "one file at a time");
	struct ky_trace *trace = ky_cli_load(argv[optind], options.format, false);
	if (!trace)
		return KY_EXIT_FAILED;
	options.report.trace = trace;
	set_defaults(&options);
	const int code = answer(&options, argv[optind]);
	ky_trace_close(&trace);
	return code;
}

const struct ky_verb ky_verb_report = {
	"report", "what takes how long: totals, self times, percentiles, call trees",
	"usage: kymo report [OPTIONS] FILE\n"
	"\n"
	"Sums up the slices of a trace: how many there are of each name, how long they take in "
	"all,\n"
	"without what they call (self), and how that is distributed. A trace that has samples "
	"only\n"
	"is summed up by function.\n"
	"\n"
	"  --by WHAT               name (as is), category, thread or process\n"
	"  --sort MEASURE          total, self, count, min, mean, p50, p95, p99, max (total of "
	"names,\n"
	"                          self of others, whose slices are within each other)\n"
	"  --limit N               rows, in a tree those under each row; 0 is all (30, in a tree "
	"10)\n"
	"  --tree                  what was called from where; with --by thread one under each\n"
	"  --depth N               of the tree; 0 is all (12)\n"
	"  --samples               samples, also when there are slices\n"
	"  --event NAME            samples of this event\n" KY_CLI_FILTER_HELP
	"  --json, --csv           for machines; times are in nanoseconds\n"
	"  --format NAME           read it as this format instead of looking at its content\n"
	"  --help                  this\n"
	"\n"
	"examples\n"
	"  kymo report trace.json\n"
	"  kymo report --tree --name 'handle*' --thread worker trace.pftrace\n"
	"  kymo report --by thread --sort self --from 2s --to 2.5s trace.kymo\n",
	run};
