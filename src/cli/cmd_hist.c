/* SPDX-License-Identifier: MIT */
/* cmd_hist.c: kymo hist: draw how the durations of a name are distributed. */
#include "base/json_out.h"
#include "cli/cli.h"
#include "cli/info.h"
#include "query/histogram.h"
#include "query/stats.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS_MIN 8
#define BUCKETS_MAX 24
#define WIDTH 100 /* where there is no terminal */
#define BAR_MIN 4

static const struct {
	const char *name;
	double part;
} percentiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999}};
#define PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

struct hist {
	const char *name;
	int64_t *durations;
	uint64_t count;
	int64_t min, max;
	double total;
	int64_t at[PERCENTILES];
	struct ky_histogram histogram;
};

static void measure(struct hist *hist)
{
	hist->min = hist->max = hist->durations[0];
	for (uint64_t i = 0; i < hist->count; i++) {
		const int64_t ns = hist->durations[i];
		hist->min = ns < hist->min ? ns : hist->min;
		hist->max = ns > hist->max ? ns : hist->max;
		hist->total += (double)ns;
	}
	for (size_t i = 0; i < PERCENTILES; i++)
		hist->at[i] = ky_stats_select(hist->durations, hist->count,
					      ky_stats_rank(hist->count, percentiles[i].part));
}

/* Print a figure, on the next line if this one has no room for it. */
static void print_figure(const char *name, int64_t ns, unsigned *used)
{
	char text[KY_QUANTITY_BYTES];
	ky_quantity_duration(text, ns);
	const unsigned columns =
		3 + (unsigned)strlen(name) + ky_cli_text_columns(text, strlen(text));
	if (*used && *used + columns > ky_cli_width_or(WIDTH)) {
		putchar('\n');
		*used = 0;
	}
	printf("  %s %s", name, text);
	*used += columns;
}

static void print_summary(const struct hist *hist)
{
	char text[KY_QUANTITY_BYTES];
	fputs(ky_cli_style("1"), stdout);
	ky_cli_text(stdout, hist->name, strlen(hist->name));
	printf("%s: %s %s, ", ky_cli_plain(), ky_quantity_count(text, hist->count),
	       hist->count == 1 ? "slice" : "slices");
	printf("%s in all\n", ky_quantity_duration(text, (int64_t)fmin(hist->total, 9e18)));
	unsigned used = 0;
	print_figure("min", hist->min, &used);
	print_figure("mean", (int64_t)(hist->total / (double)hist->count), &used);
	for (size_t i = 0; i < PERCENTILES; i++)
		print_figure(percentiles[i].name, hist->at[i], &used);
	print_figure("max", hist->max, &used);
	fputs("\n\n", stdout);
}

static void print_ascii_bar(uint64_t count, uint64_t most, unsigned columns)
{
	const unsigned length = (unsigned)((double)count / (double)most * columns + 0.5);
	fputs("  ", stdout);
	for (unsigned i = 0; i < (length ? length : 1); i++)
		putchar('#');
}

/* A bar in eighths of a character. */
static void print_bar(uint64_t count, uint64_t most, unsigned columns)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	if (ky_cli_ascii()) {
		print_ascii_bar(count, most, columns);
		return;
	}
	unsigned length = (unsigned)((double)count / (double)most * columns * 8 + 0.5);
	if (count && !length)
		length = 1;
	printf("  %s", ky_cli_style("36"));
	for (; length >= 8; length -= 8)
		fputs("█", stdout);
	fputs(eighths[length], stdout);
	fputs(ky_cli_plain(), stdout);
}

static void print_marks(const struct hist *hist, uint32_t bucket)
{
	bool any = false;
	for (size_t i = 0; i < PERCENTILES; i++) {
		if (ky_histogram_bucket(&hist->histogram, hist->at[i]) != bucket)
			continue;
		if (!any)
			printf(" %s%s", ky_cli_style("33"), ky_cli_sign("◀", "<"));
		printf(" %s", percentiles[i].name);
		any = true;
	}
	if (any)
		fputs(ky_cli_plain(), stdout);
}

/* Return the columns of the widest marks. */
static unsigned marks_columns(const struct hist *hist)
{
	unsigned widest = 0;
	for (uint32_t bucket = 0; bucket < hist->histogram.count; bucket++) {
		unsigned columns = 0;
		for (size_t i = 0; i < PERCENTILES; i++)
			if (ky_histogram_bucket(&hist->histogram, hist->at[i]) == bucket)
				columns +=
					(columns ? 1 : 3) + (unsigned)strlen(percentiles[i].name);
		widest = columns > widest ? columns : widest;
	}
	return widest;
}

static void print_buckets(const struct hist *hist)
{
	const struct ky_histogram *const histogram = &hist->histogram;
	/* The edge, the count, and room for the marks behind the bar. */
	const unsigned around = 2 + 8 + 2 + 6 + 2 + marks_columns(hist);
	const unsigned width = ky_cli_width_or(WIDTH);
	const unsigned columns = width > around + BAR_MIN ? width - around : BAR_MIN;
	uint64_t most = 1;
	for (uint32_t i = 0; i < histogram->count; i++)
		most = histogram->counts[i] > most ? histogram->counts[i] : most;
	for (uint32_t i = 0; i < histogram->count; i++) {
		char edge[KY_QUANTITY_BYTES], count[KY_QUANTITY_BYTES];
		ky_quantity_duration(edge, histogram->edges[i]);
		const unsigned used = ky_cli_text_columns(edge, strlen(edge));
		printf("  %*s%s  %6s", used < 8 ? (int)(8 - used) : 0, "", edge,
		       ky_quantity_count(count, histogram->counts[i]));
		if (histogram->counts[i])
			print_bar(histogram->counts[i], most, columns);
		print_marks(hist, i);
		putchar('\n');
	}
}

static void print_json(const struct hist *hist, const struct ky_trace *trace)
{
	struct ky_json_out json = {.file = stdout, .lines = 2};
	char key[16];
	ky_json_out_begin(&json, NULL, '{');
	ky_json_out_text(&json, "name", hist->name);
	ky_json_out_uint(&json, "count", hist->count);
	ky_json_out_real(&json, "total_ns", hist->total);
	ky_json_out_real(&json, "mean_ns", hist->total / (double)hist->count);
	ky_json_out_int(&json, "min_ns", hist->min);
	for (size_t i = 0; i < PERCENTILES; i++) {
		snprintf(key, sizeof(key), "%s_ns", percentiles[i].name);
		ky_json_out_int(&json, key, hist->at[i]);
	}
	ky_json_out_int(&json, "max_ns", hist->max);
	ky_json_out_text(&json, "scale", hist->histogram.log ? "log" : "linear");
	ky_info_json_faults(&json, trace);
	ky_json_out_begin(&json, "buckets", '[');
	for (uint32_t i = 0; i < hist->histogram.count; i++) {
		ky_json_out_begin(&json, NULL, '{');
		ky_json_out_int(&json, "from_ns", hist->histogram.edges[i]);
		ky_json_out_int(&json, "to_ns", hist->histogram.edges[i + 1]);
		ky_json_out_uint(&json, "count", hist->histogram.counts[i]);
		ky_json_out_end(&json, '}');
	}
	ky_json_out_end(&json, ']');
	ky_json_out_end(&json, '}');
}

/* Few values make few bars: Rice's rule. */
static uint32_t usual_buckets(uint64_t count)
{
	const double rule = 2 * cbrt((double)count);
	return rule < BUCKETS_MIN ? BUCKETS_MIN : rule > BUCKETS_MAX ? BUCKETS_MAX : (uint32_t)rule;
}

struct options {
	struct ky_cli_filter filter;
	const char *format;
	enum ky_histogram_scale scale;
	uint32_t buckets; /* 0: the usual number */
	bool json;
};

static int show(struct ky_trace *trace, const struct options *options)
{
	const struct ky_stats_filter filter = ky_cli_filter_of(&options->filter, trace);
	struct hist hist = {.name = filter.name ? filter.name : "all slices"};
	int error = ky_stats_durations(trace, &filter, &hist.durations, &hist.count);
	int code = KY_EXIT_DONE;
	if (!error && !hist.count) {
		code = trace->slices.rows.count
			       ? ky_cli_filter_nothing(&options->filter, trace, false)
			       : KY_EXIT_FAILED;
		if (code == KY_EXIT_FAILED)
			ky_cli_error("there are no slices in it; 'kymo info' shows what it has");
	} else if (!error) {
		measure(&hist);
		error = ky_histogram_make(
			&hist.histogram, hist.durations, hist.count, options->scale,
			options->buckets ? options->buckets : usual_buckets(hist.count));
	}
	if (error) {
		ky_cli_error("not enough memory for the durations");
		code = KY_EXIT_FAILED;
	} else if (hist.count && options->json) {
		print_json(&hist, trace);
	} else if (hist.count) {
		print_summary(&hist);
		print_buckets(&hist);
	}
	ky_histogram_free(&hist.histogram);
	free(hist.durations);
	return code;
}

static int run(int argc, char **argv)
{
	struct options options = {0};
	const int wrong = ky_options_read(&options, argc, argv);
	if (wrong)
		return wrong;
	if (ky_cli_filter_check(&options.filter) != 0)
		return KY_EXIT_USAGE;
	if (argc - optind < 1 || argc - optind > 2)
		return ky_cli_usage(optind == argc ? "the file is missing"
						   : "only one file and one name at a time");
	if (argc - optind == 2)
		options.filter.name = argv[optind + 1];
	struct ky_trace *trace = ky_cli_load(argv[optind], options.format, false);
	if (!trace)
		return KY_EXIT_FAILED;
	const int code = show(trace, &options);
	ky_trace_close(&trace);
	return code;
}

#define AT(type, field) KY_OPTION_AT(type, struct options, field)

static const struct ky_option options[] = {
	{"buckets", AT(NUMBER, buckets), .argument = "N", .least = 1,
	 .most = KY_HISTOGRAM_BUCKETS_MAX,
	 .help = "maximum number of bars (default: 8 to 24, depending on the number of slices)"},
	{"log", AT(SET, scale), .least = KY_SCALE_LOG,
	 .help = "ranges that grow by the same factor",
	 .more = "Default when the longest duration is more than 50 times the shortest."},
	{"linear", AT(SET, scale), .least = KY_SCALE_LINEAR, .help = "equal, round ranges"},
	{"json", AT(FLAG, json), .help = "print JSON"},
	KY_CLI_INPUT_FORMAT(struct options, format),
	{.help = "which part of the trace"},
	{0},
};

const struct ky_verb ky_verb_hist = {
	.name = "hist",
	.summary = "show how the durations of a name are distributed",
	.usage = "[OPTIONS] FILE [NAME]",
	.about =
		"Draw how the durations of the slices with this name (a glob; default: all slices) are distributed: a "
		"bar for each range of durations, with the percentiles marked.",
	.status =
		"0: done; 1: failed, or a trace without slices; 2: wrong usage; 3: no slice has that name, or passes the filters.",
	.examples = "kymo hist trace.json handle_request\n"
		    "kymo hist --linear --buckets 40 --thread worker trace.pftrace 'db.*'\n"
		    "kymo hist --json trace.kymo commit | jq .p99_ns",
	.related = "report diff",
	.options = (const struct ky_option_set[]){{options, 0},
						  KY_CLI_FILTER_SETS(struct options, filter),
						  {0}},
	.run = run,
};
