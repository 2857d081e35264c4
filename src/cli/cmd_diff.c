/* SPDX-License-Identifier: MIT */
/*
 * cmd_diff.c: kymo diff: show what got slower or faster from one trace to another, and return it as an exit code. diff.h
 * defines what counts as a difference.
 */
#include "base/json_out.h"
#include "cli/cli.h"
#include "cli/info.h"
#include "query/diff.h"

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT 30
#define NARROW 130

/* By enum ky_diff_measure. */
static const struct ky_choice measures[] = {
	{.name = "p50"}, {.name = "mean"}, {.name = "p95"}, {.name = "p99"}, {0}};
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
	snprintf(buf, KY_QUANTITY_BYTES, "%+.*f %%", fabs(percent) < 99.95 ? 1 : 0, percent);
	return buf;
}

static void duration_cell(struct ky_cli_table *table, uint64_t count, double ns)
{
	char text[KY_QUANTITY_BYTES];
	ky_cli_table_cell(table, count ? ky_quantity_duration(text, (int64_t)ns) : "");
}

static void count_cell(struct ky_cli_table *table, uint64_t count)
{
	char text[KY_QUANTITY_BYTES];
	ky_cli_table_cell(table, count ? ky_quantity_count(text, count) : "");
}

static void print_row(struct ky_cli_table *table, const struct comparison *comparison,
		      const struct ky_diff_row *row, bool narrow)
{
	const enum ky_diff_measure measure = comparison->options->diff.measure;
	const char *const style = verdict_styles[row->verdict];
	char text[KY_QUANTITY_BYTES];
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
		snprintf(titles[side], sizeof(titles[0]), "%s %c", measures[measure].name,
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
	ky_cli_table_print(&table, 0);
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
	const char *const measure = measures[options->diff.measure].name;
	if (comparison->failed)
		printf("%sfailed%s: %" PRIu32 " %s slower by more than %g %% (%s)\n",
		       ky_cli_style("31"), ky_cli_plain(), comparison->failed,
		       comparison->failed == 1 ? "name is" : "names are", options->fail_over * 100,
		       measure);
	else
		printf("%spassed%s: no name is slower by more than %g %% (%s)\n",
		       ky_cli_style("32"), ky_cli_plain(), options->fail_over * 100, measure);
}

static void json_side(struct ky_json_out *json, const char *key, const struct ky_stats_row *row)
{
	ky_json_out_begin(json, key, '{');
	ky_json_out_uint(json, "count", row->count);
	ky_json_out_uint(json, "instants", row->instants);
	ky_json_out_int(json, "total_ns", row->total_ns);
	ky_json_out_real(json, "mean_ns", row->mean_ns);
	ky_json_out_int(json, "p50_ns", row->p50_ns);
	ky_json_out_int(json, "p95_ns", row->p95_ns);
	ky_json_out_int(json, "p99_ns", row->p99_ns);
	ky_json_out_end(json, '}');
}

static void json_row(struct ky_json_out *json, const struct comparison *comparison,
		     const struct ky_diff_row *row)
{
	const bool is_new = row->verdict == KY_DIFF_NEW, is_gone = row->verdict == KY_DIFF_GONE;
	ky_json_out_begin(json, NULL, '{');
	ky_json_out_text(json, "name",
			 ky_text_of(is_new ? comparison->b : comparison->a,
				    is_new ? row->b_name : row->a_name));
	ky_json_out_text(json, "verdict", verdict_names[row->verdict]);
	ky_json_out_real(json, "change", is_new || is_gone ? NAN : row->change);
	ky_json_out_real(json, "p", row->p);
	ky_json_out_real(json, "cliffs_delta", row->effect);
	ky_json_out_real(json, "cost_ns", row->cost_ns);
	if (!is_new)
		json_side(json, "a", &row->a);
	if (!is_gone)
		json_side(json, "b", &row->b);
	ky_json_out_end(json, '}');
}

static void print_json(const struct comparison *comparison)
{
	const struct options *const options = comparison->options;
	struct ky_json_out json = {.file = stdout, .lines = 2};
	ky_json_out_begin(&json, NULL, '{');
	ky_json_out_text(&json, "a", comparison->a_path);
	ky_json_out_text(&json, "b", comparison->b_path);
	ky_json_out_text(&json, "measure", measures[options->diff.measure].name);
	ky_json_out_real(&json, "alpha", options->diff.alpha);
	ky_json_out_real(&json, "min_change", options->diff.min_change);
	ky_json_out_uint(&json, "min_count", options->diff.min_count);
	ky_json_out_uint(&json, "judged", comparison->diff.judged);
	ky_json_out_uint(&json, "slower", comparison->diff.slower);
	ky_json_out_uint(&json, "faster", comparison->diff.faster);
	if (options->fail_over >= 0) {
		ky_json_out_real(&json, "fail_over", options->fail_over);
		ky_json_out_bool(&json, "failed", comparison->failed != 0);
	}
	ky_json_out_begin(&json, "a_faults", '{');
	ky_info_json_faults(&json, comparison->a);
	ky_json_out_end(&json, '}');
	ky_json_out_begin(&json, "b_faults", '{');
	ky_info_json_faults(&json, comparison->b);
	ky_json_out_end(&json, '}');
	ky_json_out_begin(&json, "rows", '[');
	for (uint32_t i = 0; i < comparison->diff.count; i++)
		json_row(&json, comparison, &comparison->diff.rows[i]);
	ky_json_out_end(&json, ']');
	ky_json_out_end(&json, '}');
}

/* Report a trace without slices: a check that has nothing to check must not pass. */
static bool lacks_slices(const struct comparison *comparison)
{
	const struct ky_trace *const traces[2] = {comparison->a, comparison->b};
	const char *const paths[2] = {comparison->a_path, comparison->b_path};
	for (unsigned i = 0; i < 2; i++) {
		if (traces[i]->slices.rows.count)
			continue;
		ky_cli_error("%s has no slices to compare; 'kymo info' shows what it has",
			     paths[i]);
		return true;
	}
	return false;
}

/* Report whether a name is slower or faster, or one that would be judged is in one trace only. */
static bool finds_difference(const struct ky_diff *diff, const struct ky_diff_options *options)
{
	for (uint32_t i = 0; i < diff->count; i++) {
		const struct ky_diff_row *const row = &diff->rows[i];
		if ((row->verdict == KY_DIFF_NEW && row->b.count >= options->min_count) ||
		    (row->verdict == KY_DIFF_GONE && row->a.count >= options->min_count))
			return true;
	}
	return diff->slower || diff->faster;
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
		return KY_EXIT_TROUBLE;
	if (ky_diff_make(&comparison->diff, comparison->a, comparison->b, &diff) != 0) {
		ky_cli_error("not enough memory to compare them");
		return KY_EXIT_TROUBLE;
	}
	if (!comparison->diff.count) {
		ky_diff_free(&comparison->diff);
		return ky_cli_filter_nothing(&options->filter, comparison->a, false);
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
	const bool differs = options->fail_over >= 0 ? comparison->failed != 0
						     : finds_difference(&comparison->diff, &diff);
	ky_diff_free(&comparison->diff);
	return differs ? KY_EXIT_FAILED : KY_EXIT_DONE;
}

static int parse_percent(const char *option, const char *text, double *part)
{
	char *end;
	const double value = strtod(text, &end);
	if (end == text || (*end && strcmp(end, "%") != 0) || !(value >= 0) || !isfinite(value))
		return ky_cli_usage("--%s %s is not a percentage: use 5%%", option, text);
	*part = value / 100;
	return 0;
}

static int take_alpha(void *context, const char *text)
{
	struct options *const options = context;
	char *end;
	options->diff.alpha = strtod(text, &end);
	if (end == text || *end || !(options->diff.alpha > 0) || !(options->diff.alpha < 1))
		return ky_cli_usage("--alpha %s is not a number between 0 and 1", text);
	return 0;
}

static int take_min_change(void *context, const char *text)
{
	return parse_percent("min-change", text, &((struct options *)context)->diff.min_change);
}

static int take_fail_over(void *context, const char *text)
{
	return parse_percent("fail-over", text, &((struct options *)context)->fail_over);
}

static int run(int argc, char **argv)
{
	struct options options = {
		.diff = {.min_count = 20, .alpha = 0.01, .min_change = 0.02},
		.fail_over = -1,
		.limit = LIMIT,
	};
	const int wrong = ky_options_read(&options, argc, argv);
	if (wrong)
		return wrong;
	if (ky_cli_filter_check(&options.filter) != 0)
		return KY_EXIT_USAGE;
	if (argc - optind != 2)
		return ky_cli_usage("two files are needed: the old one, then the new one");
	struct comparison comparison = {
		.options = &options, .a_path = argv[optind], .b_path = argv[optind + 1]};
	int code = KY_EXIT_TROUBLE;
	comparison.a = ky_cli_load(comparison.a_path, options.format, false);
	if (comparison.a)
		comparison.b = ky_cli_load(comparison.b_path, options.format, false);
	if (comparison.b)
		code = compare(&comparison);
	ky_trace_close(&comparison.a);
	ky_trace_close(&comparison.b);
	return code;
}

#define AT(type, field) KY_OPTION_AT(type, struct options, field)

static const struct ky_option options[] = {
	{"measure", AT(CHOICE, diff.measure), .argument = "WHAT", .choices = measures,
	 .help = "statistic to compare: p50 (default), mean, p95, p99"},
	{"fail-over", .kind = KY_OPTION_CALL, .take = take_fail_over, .argument = "PERCENT",
	 .help = "exit with 1 only when a name is slower by more than this"},
	{"min-change", .kind = KY_OPTION_CALL, .take = take_min_change, .argument = "PERCENT",
	 .help = "ignore smaller changes (default 2%)"},
	{"min-count", AT(NUMBER, diff.min_count), .argument = "N",
	 .help = "slices that both traces must have of a name (default 20)"},
	{"alpha", .kind = KY_OPTION_CALL, .take = take_alpha, .argument = "P",
	 .help = "significance level over all names (default 0.01)"},
	{"all", AT(FLAG, all), .letter = 'a',
	 .help = "also show what did not change or has too few slices"},
	{"limit", AT(NUMBER, limit), .argument = "N", .help = "maximum rows; 0 = all (default 30)"},
	{"json", AT(FLAG, json), .help = "print JSON: all rows, with p and Cliff's delta"},
	KY_CLI_INPUT_FORMAT(struct options, format),
	{.help = "which part of the traces"},
	{0},
};

const struct ky_verb ky_verb_diff = {
	.name = "diff",
	.summary = "compare two traces: what got slower or faster, with an exit code for CI",
	.usage = "[OPTIONS] BEFORE AFTER",
	.about =
		"Compare the slices of two traces by their names. A name is slower or faster only if a rank test finds "
		"the difference significant (p below alpha after correction for all names), the difference is not "
		"negligible (Cliff's delta of 0.147 or more) and the measure changed by --min-change or more. Names "
		"with few slices are not judged. The rows are sorted by the time the change costs.",
	.details =
		"The test is that of Mann and Whitney, corrected for ties and for slices that resemble their "
		"predecessors; p is corrected by Holm's method for the number of names judged, so alpha is the "
		"chance of any false alarm between two runs of the same program. The measure must change in the "
		"same direction. New and missing names come last.\n"
		"\n"
		"Two runs differ in more than the code: in the load of the machine, the place of the program in "
		"memory, the clock of the CPU. The test knows nothing of these: record both on the same machine, and "
		"long enough.",
	.status =
		"0: the same: no name is slower or faster; 1: they differ: a name is slower or faster, or one with "
		"`--min-count` slices is in one trace only; with `--fail-over`, a name is slower by more than that; "
		"2: trouble: a trace cannot be read or has no slices, or wrong usage; 3: the filters match nothing.",
	.examples =
		"kymo diff before.json after.json\n"
		"kymo diff --fail-over 5% --name 'handle*' main.pftrace branch.pftrace\n"
		"kymo diff --measure p99 --json a.kymo b.kymo | jq '.rows[] | select(.verdict == \"slower\")'",
	.related = "report hist",
	.options = (const struct ky_option_set[]){{options, 0},
						  KY_CLI_FILTER_SETS(struct options, filter),
						  {0}},
	.judges = true,
	.run = run,
};
