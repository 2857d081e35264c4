/* SPDX-License-Identifier: MIT */
/*
 * cmd_diff.c: kymo diff: what got slower or faster from one trace to another. What counts as a
 * difference is diff.h's business; here it is shown, and turned into an exit code.
 */
#include "cli/cli.h"
#include "cli/cli_filter.h"
#include "cli/cli_json.h"
#include "query/diff.h"

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT 30
#define NARROW 130

static const char *const measure_names[] = {"p50", "mean", "p95", "p99"};
static const char *const verdict_names[] = {"slower", "faster", "same", "too few", "new", "gone"};
static const char *const verdict_styles[] = {"31", "32", NULL, "2", "33", "33"};

struct options {
	struct ky_cli_filter filter;
	struct ky_diff_options diff;
	double fail_over; /* part; negative: not asked for */
	const char *format;
	uint32_t limit;
	bool all;
	bool json;
};

struct comparison {
	const struct options *options;
	struct ky_trace *a, *b;
	const char *a_path, *b_path;
	struct ky_diff diff;
	uint32_t failed; /* names that are slower than allowed */
};

static const char *name_of(const struct comparison *comparison, const struct ky_diff_row *row)
{
	return row->verdict == KY_DIFF_NEW ? ky_cli_name(comparison->b, row->b_name)
					   : ky_cli_name(comparison->a, row->a_name);
}

static const char *change_text(char *buf, const struct ky_diff_row *row)
{
	const double percent = fabs(row->change) < 0.0005 ? 0 : 100 * row->change;
	if (row->verdict == KY_DIFF_NEW || row->verdict == KY_DIFF_GONE)
		return "";
	if (!isfinite(percent) || percent >= 9999.5)
		return strcpy(buf, percent > 0 ? "> 9999 %" : "");
	snprintf(buf, KY_CLI_NUMBER_BYTES, "%+.*f %%", fabs(percent) < 99.95 ? 1 : 0, percent);
	return buf;
}

static void duration_cell(struct ky_cli_table *table, uint64_t count, double ns)
{
	char text[KY_CLI_NUMBER_BYTES];
	ky_cli_table_cell(table, count ? ky_cli_duration(text, (int64_t)ns) : "");
}

static void count_cell(struct ky_cli_table *table, uint64_t count)
{
	char text[KY_CLI_NUMBER_BYTES];
	ky_cli_table_cell(table, count ? ky_cli_count(text, count) : "");
}

static void print_row(struct ky_cli_table *table, const struct comparison *comparison,
		      const struct ky_diff_row *row, bool narrow)
{
	const enum ky_diff_measure measure = comparison->options->diff.measure;
	const char *const style = verdict_styles[row->verdict];
	char text[KY_CLI_NUMBER_BYTES];
	ky_cli_table_styled(table, verdict_names[row->verdict], style);
	ky_cli_table_cell(table, name_of(comparison, row));
	ky_cli_table_styled(table, change_text(text, row), style);
	duration_cell(table, row->a.count, ky_diff_measure(&row->a, measure));
	duration_cell(table, row->b.count, ky_diff_measure(&row->b, measure));
	if (!narrow) {
		const enum ky_diff_measure other =
			measure == KY_MEASURE_MEAN ? KY_MEASURE_P50 : KY_MEASURE_MEAN;
		duration_cell(table, row->a.count, ky_diff_measure(&row->a, other));
		duration_cell(table, row->b.count, ky_diff_measure(&row->b, other));
	}
	count_cell(table, row->a.count + row->a.instants);
	count_cell(table, row->b.count + row->b.instants);
	duration_cell(table, row->a.count, (double)row->a.total_ns);
	duration_cell(table, row->b.count, (double)row->b.total_ns);
}

static struct ky_cli_table *new_table(const struct comparison *comparison, bool narrow)
{
	static char titles[4][16];
	struct ky_cli_column columns[11] = {
		{"", false, false}, {"name", false, true}, {"change", true, false}};
	const enum ky_diff_measure measure = comparison->options->diff.measure;
	const bool mean = measure == KY_MEASURE_MEAN;
	unsigned count = 3;
	for (unsigned side = 0; side < 2; side++) {
		snprintf(titles[side], sizeof(titles[0]), "%s %c", measure_names[measure],
			 "ab"[side]);
		columns[count++] = (struct ky_cli_column){titles[side], true, false};
	}
	for (unsigned side = 0; side < 2 && !narrow; side++) {
		snprintf(titles[2 + side], sizeof(titles[0]), "%s %c", mean ? "p50" : "mean",
			 "ab"[side]);
		columns[count++] = (struct ky_cli_column){titles[2 + side], true, false};
	}
	columns[count++] = (struct ky_cli_column){"count a", true, false};
	columns[count++] = (struct ky_cli_column){"count b", true, false};
	columns[count++] = (struct ky_cli_column){"total a", true, false};
	columns[count++] = (struct ky_cli_column){"total b", true, false};
	return ky_cli_table_new(columns, count);
}

static bool is_shown(const struct comparison *comparison, const struct ky_diff_row *row)
{
	return comparison->options->all ||
	       (row->verdict != KY_DIFF_SAME && row->verdict != KY_DIFF_TOO_FEW);
}

static void print_rows(const struct comparison *comparison)
{
	const bool narrow = ky_cli_width() && ky_cli_width() < NARROW;
	struct ky_cli_table *table = new_table(comparison, narrow);
	uint32_t shown = 0, hidden = 0;
	for (uint32_t i = 0; i < comparison->diff.count; i++) {
		const struct ky_diff_row *const row = &comparison->diff.rows[i];
		if (!is_shown(comparison, row))
			continue;
		if (comparison->options->limit && shown == comparison->options->limit) {
			hidden++;
			continue;
		}
		print_row(table, comparison, row, narrow);
		shown++;
	}
	ky_cli_table_print(&table, stdout);
	if (hidden)
		printf("and %" PRIu32 " more (--limit 0 shows all)\n", hidden);
	if (shown)
		putchar('\n');
}

static uint32_t count_verdict(const struct ky_diff *diff, enum ky_diff_verdict verdict)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < diff->count; i++)
		count += diff->rows[i].verdict == verdict;
	return count;
}

static void print_summary(const struct comparison *comparison)
{
	const struct ky_diff *const diff = &comparison->diff;
	const struct options *const options = comparison->options;
	const uint32_t few = count_verdict(diff, KY_DIFF_TOO_FEW);
	printf("%" PRIu32 " slower, %" PRIu32 " faster of %" PRIu32 " %s judged", diff->slower,
	       diff->faster, diff->judged, diff->judged == 1 ? "name" : "names");
	if (few)
		printf("; %" PRIu32 " with fewer than %" PRIu32 " slices in one trace are not", few,
		       options->diff.min_count);
	printf("; %" PRIu32 " new, %" PRIu32 " gone\n", count_verdict(diff, KY_DIFF_NEW),
	       count_verdict(diff, KY_DIFF_GONE));
	if (options->fail_over < 0)
		return;
	const char *const measure = measure_names[options->diff.measure];
	if (comparison->failed)
		printf("%sfailed%s: %" PRIu32 " %s slower by more than %g %% (%s)\n",
		       ky_cli_style("31"), ky_cli_plain(), comparison->failed,
		       comparison->failed == 1 ? "name is" : "names are", options->fail_over * 100,
		       measure);
	else
		printf("%spassed%s: no name is slower by more than %g %% (%s)\n",
		       ky_cli_style("32"), ky_cli_plain(), options->fail_over * 100, measure);
}

static void json_side(struct ky_cli_json *json, const char *key, const struct ky_stats_row *row)
{
	ky_cli_json_begin(json, key, '{');
	ky_cli_json_uint(json, "count", row->count);
	ky_cli_json_uint(json, "instants", row->instants);
	ky_cli_json_int(json, "total_ns", row->total_ns);
	ky_cli_json_real(json, "mean_ns", row->mean_ns);
	ky_cli_json_int(json, "p50_ns", row->p50_ns);
	ky_cli_json_int(json, "p95_ns", row->p95_ns);
	ky_cli_json_int(json, "p99_ns", row->p99_ns);
	ky_cli_json_end(json, '}');
}

static void json_row(struct ky_cli_json *json, const struct comparison *comparison,
		     const struct ky_diff_row *row)
{
	const bool is_new = row->verdict == KY_DIFF_NEW, is_gone = row->verdict == KY_DIFF_GONE;
	ky_cli_json_begin(json, NULL, '{');
	ky_cli_json_name(json, "name", is_new ? comparison->b : comparison->a,
			 is_new ? row->b_name : row->a_name);
	ky_cli_json_text(json, "verdict", verdict_names[row->verdict]);
	ky_cli_json_real(json, "change", is_new || is_gone ? NAN : row->change);
	ky_cli_json_real(json, "p", row->p);
	ky_cli_json_real(json, "cliffs_delta", row->effect);
	ky_cli_json_real(json, "cost_ns", row->cost_ns);
	if (!is_new)
		json_side(json, "a", &row->a);
	if (!is_gone)
		json_side(json, "b", &row->b);
	ky_cli_json_end(json, '}');
}

static void print_json(const struct comparison *comparison)
{
	const struct options *const options = comparison->options;
	struct ky_cli_json json = {.to = stdout, .lines = 2};
	ky_cli_json_begin(&json, NULL, '{');
	ky_cli_json_text(&json, "a", comparison->a_path);
	ky_cli_json_text(&json, "b", comparison->b_path);
	ky_cli_json_text(&json, "measure", measure_names[options->diff.measure]);
	ky_cli_json_real(&json, "alpha", options->diff.alpha);
	ky_cli_json_real(&json, "min_change", options->diff.min_change);
	ky_cli_json_uint(&json, "min_count", options->diff.min_count);
	ky_cli_json_uint(&json, "judged", comparison->diff.judged);
	ky_cli_json_uint(&json, "slower", comparison->diff.slower);
	ky_cli_json_uint(&json, "faster", comparison->diff.faster);
	if (options->fail_over >= 0) {
		ky_cli_json_real(&json, "fail_over", options->fail_over);
		ky_cli_json_bool(&json, "failed", comparison->failed != 0);
	}
	ky_cli_json_begin(&json, "rows", '[');
	for (uint32_t i = 0; i < comparison->diff.count; i++)
		json_row(&json, comparison, &comparison->diff.rows[i]);
	ky_cli_json_end(&json, ']');
	ky_cli_json_end(&json, '}');
}

/* A check that has nothing to check must not pass. */
static bool lacks_slices(const struct comparison *comparison)
{
	const struct ky_trace *const traces[2] = {comparison->a, comparison->b};
	const char *const paths[2] = {comparison->a_path, comparison->b_path};
	for (unsigned i = 0; i < 2; i++) {
		if (traces[i]->slices.rows.count)
			continue;
		ky_cli_error(
			"%s: there are no slices in it to compare; 'kymo info' says what there is",
			paths[i]);
		return true;
	}
	return false;
}

static int compare(struct comparison *comparison)
{
	const struct options *const options = comparison->options;
	const struct ky_stats_filter a = ky_cli_filter_of(&options->filter, comparison->a);
	const struct ky_stats_filter b = ky_cli_filter_of(&options->filter, comparison->b);
	struct ky_diff_options diff = options->diff;
	diff.a = &a;
	diff.b = &b;
	if (lacks_slices(comparison))
		return KY_EXIT_FAILED;
	if (ky_diff_make(&comparison->diff, comparison->a, comparison->b, &diff) != 0) {
		ky_cli_error("not enough memory to compare them");
		return KY_EXIT_FAILED;
	}
	for (uint32_t i = 0; i < comparison->diff.count; i++) {
		const struct ky_diff_row *const row = &comparison->diff.rows[i];
		comparison->failed += options->fail_over >= 0 && row->verdict == KY_DIFF_SLOWER &&
				      row->change > options->fail_over;
	}
	if (options->json) {
		print_json(comparison);
	} else {
		print_rows(comparison);
		print_summary(comparison);
	}
	ky_diff_free(&comparison->diff);
	return comparison->failed ? KY_EXIT_FAILED : KY_EXIT_DONE;
}

enum {
	MEASURE = KY_CLI_OPTION_OWN,
	MIN_COUNT,
	ALPHA,
	MIN_CHANGE,
	FAIL_OVER,
	LIMIT_OPTION,
	ALL,
	JSON,
	FORMAT
};

static const struct option longs[] = {
	KY_CLI_FILTER_OPTIONS,
	{"measure", required_argument, NULL, MEASURE},
	{"min-count", required_argument, NULL, MIN_COUNT},
	{"alpha", required_argument, NULL, ALPHA},
	{"min-change", required_argument, NULL, MIN_CHANGE},
	{"fail-over", required_argument, NULL, FAIL_OVER},
	{"limit", required_argument, NULL, LIMIT_OPTION},
	{"all", no_argument, NULL, ALL},
	{"json", no_argument, NULL, JSON},
	{"format", required_argument, NULL, FORMAT},
	{0},
};

static int parse_measure(const char *text, enum ky_diff_measure *measure)
{
	for (*measure = KY_MEASURE_P50; *measure <= KY_MEASURE_P99; ++*measure) {
		if (strcmp(measure_names[*measure], text) == 0)
			return 0;
	}
	return ky_cli_usage("--measure %s is none of p50, mean, p95, p99", text);
}

static int parse_percent(const char *option, const char *text, double *part)
{
	char *end;
	const double value = strtod(text, &end);
	if (end == text || (*end && strcmp(end, "%") != 0) || !(value >= 0) || !isfinite(value))
		return ky_cli_usage("--%s %s is no percentage: 5%% is one", option, text);
	*part = value / 100;
	return 0;
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

static int parse_alpha(const char *text, double *alpha)
{
	char *end;
	*alpha = strtod(text, &end);
	if (end == text || *end || !(*alpha > 0) || !(*alpha < 1))
		return ky_cli_usage("--alpha %s is no number between 0 and 1", text);
	return 0;
}

static int take_option(struct options *options, int option)
{
	switch (option) {
	case MEASURE:
		return parse_measure(optarg, &options->diff.measure);
	case MIN_COUNT:
		return parse_number("min-count", optarg, &options->diff.min_count);
	case ALPHA:
		return parse_alpha(optarg, &options->diff.alpha);
	case MIN_CHANGE:
		return parse_percent("min-change", optarg, &options->diff.min_change);
	case FAIL_OVER:
		return parse_percent("fail-over", optarg, &options->fail_over);
	case LIMIT_OPTION:
		return parse_number("limit", optarg, &options->limit);
	case FORMAT:
		options->format = optarg;
		return 0;
	case JSON:
		options->json = true;
		return 0;
	default:
		options->all = true;
		return 0;
	}
}

static int run(int argc, char **argv)
{
	struct options options = {
		.diff = {.min_count = 20, .alpha = 0.01, .min_change = 0.02},
		.fail_over = -1,
		.limit = LIMIT,
	};
	for (int option; (option = ky_cli_option(argc, argv, "", longs)) != -1;) {
		if (ky_cli_filter_option(&options.filter, option, optarg))
			continue;
		const int wrong = take_option(&options, option);
		if (wrong)
			return wrong;
	}
	if (ky_cli_filter_check(&options.filter) != 0)
		return KY_EXIT_USAGE;
	if (argc - optind != 2)
		return ky_cli_usage("which two files? The old one comes first");
	struct comparison comparison = {
		.options = &options, .a_path = argv[optind], .b_path = argv[optind + 1]};
	int code = KY_EXIT_FAILED;
	comparison.a = ky_cli_load(comparison.a_path, options.format, false);
	if (comparison.a)
		comparison.b = ky_cli_load(comparison.b_path, options.format, false);
	if (comparison.b)
		code = compare(&comparison);
	ky_trace_close(&comparison.a);
	ky_trace_close(&comparison.b);
	return code;
}

const struct ky_verb ky_verb_diff = {
	"diff", "two traces: what got slower or faster, with an exit code for CI",
	"usage: kymo diff [OPTIONS] A B\n"
	"\n"
	"Compares the slices of two traces by their names. A name is slower or faster only when a\n"
	"rank test says that this is no chance (p below alpha after the correction for all "
	"names),\n"
	"the difference is not negligible (Cliff's delta of 0.147 or more) and the measure "
	"changed\n"
	"by --min-change or more; names with few slices are not judged. Sorted by the time it "
	"costs.\n"
	"\n"
	"  --measure WHAT          p50 (as is), mean, p95 or p99: what change is of\n"
	"  --fail-over PERCENT     exit with 1 when a name is slower by more than this\n"
	"  --min-change PERCENT    smaller changes are none (2%)\n"
	"  --min-count N           slices that both must have of a name (20)\n"
	"  --alpha P               how likely a false alarm may be, in all (0.01)\n"
	"  --all                   also what did not change or has too few slices\n"
	"  --limit N               rows; 0 is all (30)\n" KY_CLI_FILTER_HELP
	"  --json                  for machines: all rows\n"
	"  --format NAME           read both as this format instead of looking at their content\n"
	"  --help                  this\n"
	"\n"
	"examples\n"
	"  kymo diff before.json after.json\n"
	"  kymo diff --fail-over 5% --name 'handle*' main.pftrace branch.pftrace\n"
	"  kymo diff --measure p99 --json a.kymo b.kymo | jq '.rows[] | select(.verdict == "
	"\"slower\")'\n",
	run};
