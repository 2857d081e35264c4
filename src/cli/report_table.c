/* SPDX-License-Identifier: MIT */
/* report_table.c: the tables of kymo report: what takes how long, of slices and of sampled functions. */
#include "base/array.h"
#include "base/json_out.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/info.h"
#include "cli/report.h"
#include "query/sample_stats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- slices, by name, category, thread or process ---- */

#define NARROW 118

enum kind {
	COUNT,
	TIME,
	REAL /* a time that is not a whole number */
};

struct measure {
	const char *name;
	size_t offset;
	enum kind kind;
	bool wide_only; /* left out on a narrow terminal */
};

#define MEASURE_LIST(X)                                                                            \
	X("count", count, COUNT, false)                                                            \
	X("total", total_ns, TIME, false)                                                          \
	X("self", self_ns, TIME, false)                                                            \
	X("min", min_ns, TIME, true)                                                               \
	X("mean", mean_ns, REAL, true)                                                             \
	X("p50", p50_ns, TIME, false)                                                              \
	X("p95", p95_ns, TIME, true)                                                               \
	X("p99", p99_ns, TIME, false)                                                              \
	X("max", max_ns, TIME, false)

#define MEASURE(name, field, kind, wide) {name, offsetof(struct ky_stats_row, field), kind, wide},
static const struct measure measures[] = {MEASURE_LIST(MEASURE)};
#define CHOICE(name, field, kind, wide) {name, NULL, NULL},
const struct ky_choice ky_report_measures[] = {MEASURE_LIST(CHOICE){0}};
#define MEASURES (sizeof(measures) / sizeof(measures[0]))

static const struct measure *find_measure(const char *name)
{
	for (size_t i = 0; i < MEASURES; i++) {
		if (strcmp(measures[i].name, name) == 0)
			return &measures[i];
	}
	return NULL;
}

static double value_of(const struct ky_stats_row *row, const struct measure *measure)
{
	const void *const at = (const char *)row + measure->offset;
	switch (measure->kind) {
	case COUNT:
		return (double)(*(const uint64_t *)at + row->instants);
	case TIME:
		return (double)*(const int64_t *)at;
	default:
		return *(const double *)at;
	}
}

static int64_t time_of(const struct ky_stats_row *row, const struct measure *measure)
{
	const void *const at = (const char *)row + measure->offset;
	if (measure->kind == TIME)
		return *(const int64_t *)at;
	const double real = *(const double *)at;
	return real < 9.2e18 ? (int64_t)real : INT64_MAX;
}

static int descending(const void *a_, const void *b_, void *measure)
{
	const struct ky_stats_row *const a = a_, *const b = b_;
	const double left = value_of(a, measure), right = value_of(b, measure);
	if (left != right)
		return left < right ? 1 : -1;
	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	return (a->key > b->key) - (a->key < b->key);
}

static void print_cells(struct ky_cli_table *table, const struct ky_stats_row *row, bool narrow)
{
	char text[KY_QUANTITY_BYTES];
	for (size_t m = 0; m < MEASURES; m++) {
		if (narrow && measures[m].wide_only)
			continue;
		if (measures[m].kind == COUNT)
			ky_cli_table_cell(table,
					  ky_quantity_count(text, row->count + row->instants));
		else
			ky_cli_table_cell(
				table,
				row->count ? ky_quantity_duration(text, time_of(row, &measures[m]))
					   : "");
	}
}

static void print_notes(const struct ky_stats *stats, uint32_t shown)
{
	char text[KY_QUANTITY_BYTES];
	uint64_t unfinished = 0;
	for (uint32_t i = 0; i < stats->count; i++)
		unfinished += stats->rows[i].unfinished;
	ky_cli_more(shown, stats->count);
	if (unfinished == 1)
		puts("1 slice never ended: it counts to the end of the trace");
	else if (unfinished)
		printf("%s slices never ended: they count to the end of the trace\n",
		       ky_quantity_count(text, unfinished));
}

/* Mark the names that several rows have, by number of the string; NULL without memory. The caller frees it. */
static uint8_t *shared_names(const struct ky_report *report, const struct ky_stats *stats)
{
	uint8_t *const times = report->by == KY_BY_NAME
				       ? calloc((size_t)report->trace->strings.count + 1, 1)
				       : NULL;
	if (report->by == KY_BY_NAME && !times)
		ky_memory_missing();
	for (uint32_t i = 0; times && i < stats->count; i++)
		if (times[stats->rows[i].key] < 2)
			times[stats->rows[i].key]++;
	return times;
}

/* Add the label of a row; a name that another category has, too, has its own behind it. */
static void add_label(struct ky_cli_table *table, const struct ky_report *report,
		      const struct ky_stats_row *row, const uint8_t *shared)
{
	char text[KY_STATS_LABEL_BYTES];
	const char *const label = ky_cli_by_label(text, report->trace, report->by, row->key);
	char *longer = NULL;
	if (shared && shared[row->key] > 1 && row->category &&
	    asprintf(&longer, "%s [%s]", label, ky_text_of(report->trace, row->category)) < 0) {
		ky_memory_missing();
		longer = NULL;
	}
	ky_cli_table_cell(table, longer ? longer : label);
	free(longer);
}

static void print_text(const struct ky_report *report, const struct ky_stats *stats, uint32_t rows)
{
	uint8_t *const shared = shared_names(report, stats);
	struct ky_cli_column columns[MEASURES + 1] = {{ky_cli_by[report->by].name, false, true}};
	const bool narrow = ky_cli_width() && ky_cli_width() < NARROW;
	unsigned count = 1;
	for (size_t m = 0; m < MEASURES; m++) {
		if (!narrow || !measures[m].wide_only)
			columns[count++] = (struct ky_cli_column){measures[m].name, true, false};
	}
	struct ky_cli_table *table = ky_cli_table_new(columns, count);
	for (uint32_t i = 0; i < rows; i++) {
		add_label(table, report, &stats->rows[i], shared);
		print_cells(table, &stats->rows[i], narrow);
	}
	free(shared);
	ky_cli_table_print(&table, 0);
	print_notes(stats, rows);
}

static void json_key(struct ky_json_out *json, const struct ky_report *report, uint32_t key)
{
	const struct ky_trace *const trace = report->trace;
	if (report->by == KY_BY_THREAD && key != KY_NONE) {
		ky_json_out_text(json, "thread", ky_text_of(trace, trace->threads.name[key]));
		ky_json_out_int(json, "tid", trace->threads.tid[key]);
		if (trace->threads.process[key] != KY_NONE)
			ky_json_out_int(json, "pid",
					trace->processes.pid[trace->threads.process[key]]);
	} else if (report->by == KY_BY_PROCESS && key != KY_NONE) {
		ky_json_out_text(json, "process", ky_text_of(trace, trace->processes.name[key]));
		ky_json_out_int(json, "pid", trace->processes.pid[key]);
	} else {
		ky_json_out_text(json, ky_cli_by[report->by].name,
				 ky_text_of(trace, key == KY_NONE ? 0 : key));
	}
}

static void print_json(const struct ky_report *report, const struct ky_stats *stats, uint32_t rows)
{
	struct ky_json_out json = {.file = stdout, .lines = 2};
	char key[16];
	ky_json_out_begin(&json, NULL, '{');
	ky_json_out_text(&json, "by", ky_cli_by[report->by].name);
	ky_info_json_faults(&json, report->trace);
	ky_json_out_begin(&json, "rows", '[');
	for (uint32_t i = 0; i < rows; i++) {
		const struct ky_stats_row *const row = &stats->rows[i];
		ky_json_out_begin(&json, NULL, '{');
		json_key(&json, report, row->key);
		if (report->by == KY_BY_NAME)
			ky_json_out_text(&json, "category",
					 ky_text_of(report->trace, row->category));
		ky_json_out_uint(&json, "count", row->count);
		ky_json_out_uint(&json, "instants", row->instants);
		ky_json_out_uint(&json, "unfinished", row->unfinished);
		for (size_t m = 0; m < MEASURES; m++) {
			snprintf(key, sizeof(key), "%s_ns", measures[m].name);
			if (measures[m].kind == TIME)
				ky_json_out_int(&json, key, time_of(row, &measures[m]));
			else if (measures[m].kind == REAL)
				ky_json_out_real(&json, key, value_of(row, &measures[m]));
		}
		ky_json_out_real(&json, "stddev_ns", row->stddev_ns);
		ky_json_out_end(&json, '}');
	}
	ky_json_out_end(&json, ']');
	ky_json_out_end(&json, '}');
}

void ky_report_csv_text(const char *text, char end)
{
	ky_cli_csv(stdout, text, strlen(text), false);
	putchar(end);
}

static void print_csv(const struct ky_report *report, const struct ky_stats *stats, uint32_t rows)
{
	char text[KY_STATS_LABEL_BYTES];
	printf("%s,instants,unfinished", ky_cli_by[report->by].name);
	for (size_t m = 0; m < MEASURES; m++)
		printf(",%s%s", measures[m].name, measures[m].kind == COUNT ? "" : "_ns");
	puts(report->by == KY_BY_NAME ? ",category" : "");
	for (uint32_t i = 0; i < rows; i++) {
		const struct ky_stats_row *const row = &stats->rows[i];
		ky_report_csv_text(ky_cli_by_label(text, report->trace, report->by, row->key), ',');
		printf("%" PRIu64 ",%" PRIu64 ",%" PRIu64, row->instants, row->unfinished,
		       row->count);
		for (size_t m = 1; m < MEASURES; m++) {
			if (measures[m].kind == TIME)
				printf(",%" PRId64, time_of(row, &measures[m]));
			else
				printf(",%.1f", value_of(row, &measures[m]));
		}
		if (report->by == KY_BY_NAME) {
			putchar(',');
			ky_report_csv_text(row->category ? ky_text_of(report->trace, row->category)
							 : "",
					   '\n');
		} else {
			putchar('\n');
		}
	}
}

int ky_report_table(const struct ky_report *report)
{
	struct ky_stats stats;
	const int error = ky_stats_make(&stats, report->trace,
					report->by == KY_BY_NAME ? KY_BY_NAME_CATEGORY : report->by,
					&report->filter);
	if (error)
		return error;
	const unsigned failures = ky_memory_failures();
	const uint32_t rows =
		report->limit && report->limit < stats.count ? report->limit : stats.count;
	const struct measure *const measure = find_measure(report->sort);
	if (stats.count)
		qsort_r(stats.rows, stats.count, sizeof(*stats.rows), descending,
			(void *)(uintptr_t)measure);
	if (report->output == KY_REPORT_JSON)
		print_json(report, &stats, rows);
	else if (report->output == KY_REPORT_CSV)
		print_csv(report, &stats, rows);
	else if (stats.count)
		print_text(report, &stats, rows);
	const bool none = !stats.count;
	ky_stats_free(&stats);
	return ky_memory_failures() != failures ? -ENOMEM : none;
}

/* ---- functions that took the time, from samples ---- */

uint32_t ky_report_event(const struct ky_report *report)
{
	const struct ky_trace *const trace = report->trace;
	char count[KY_QUANTITY_BYTES];
	uint64_t others;
	if (report->event) {
		const uint32_t found =
			ky_strings_find(&trace->strings, report->event, strlen(report->event));
		/* A number that no sample has. */
		return found ? found : KY_NONE;
	}
	const uint32_t event = ky_sample_main_event(trace, &others);
	if (others && report->output == KY_REPORT_TEXT)
		ky_cli_error("%s samples are of other events than %s; --event chooses",
			     ky_quantity_count(count, others), ky_cli_name(trace, event));
	return event;
}

static const char *module_of(const struct ky_trace *trace, uint32_t mapping)
{
	const char *const path = mapping < trace->mappings.rows.count
					 ? ky_text_of(trace, trace->mappings.name[mapping])
					 : NULL;
	/* perf records the kernel with the symbol that its address was taken from: _text or _stext. */
	if (path && strncmp(path, "[kernel.kallsyms]", 17) == 0)
		return "[kernel.kallsyms]";
	const char *const slash = path ? strrchr(path, '/') : NULL;
	return slash && slash[1] ? slash + 1 : path;
}

/* Return the line where most of the function's time went, "malloc.c:3292", or "". */
static const char *source_of(char *buf, size_t room, const struct ky_trace *trace, uint32_t frame)
{
	const char *const path = ky_text_of(trace, trace->frames.file[frame]);
	buf[0] = '\0';
	if (!trace->frames.file[frame] || !path)
		return buf;
	const char *const slash = strrchr(path, '/');
	snprintf(buf, room, "%s:%" PRIu32, slash && slash[1] ? slash + 1 : path,
		 trace->frames.line[frame]);
	return buf;
}

static bool any_source(const struct ky_trace *trace, const struct ky_function_stats *stats,
		       uint32_t rows)
{
	for (uint32_t i = 0; i < rows; i++)
		if (trace->frames.file[stats->rows[i].frame])
			return true;
	return false;
}

static double percent(double part, double all)
{
	return all > 0 ? 100 * part / all : 0;
}

static void print_functions(const struct ky_report *report, const struct ky_function_stats *stats,
			    uint32_t rows, uint32_t event)
{
	static const struct ky_cli_column columns[] = {
		{"self", true, false},     {"total", true, false},  {"samples", true, false},
		{"function", false, true}, {"module", false, true}, {"hottest line", false, true}};
	const bool lines = any_source(report->trace, stats, rows);
	struct ky_cli_table *table = ky_cli_table_new(columns, lines ? 6 : 5);
	char text[KY_QUANTITY_BYTES];
	char source[256];
	for (uint32_t i = 0; i < rows; i++) {
		const struct ky_function_row *const row = &stats->rows[i];
		ky_cli_table_format(table, "%.1f %%", percent(row->self_weight, stats->weight));
		ky_cli_table_format(table, "%.1f %%", percent(row->total_weight, stats->weight));
		ky_cli_table_cell(table, ky_quantity_count(text, row->self_samples));
		ky_cli_table_cell(table, ky_cli_name(report->trace, row->name));
		ky_cli_table_cell(table, module_of(report->trace, row->mapping));
		if (lines)
			ky_cli_table_cell(table, source_of(source, sizeof(source), report->trace,
							   row->frame));
	}
	printf("%s samples", ky_quantity_count(text, stats->samples));
	if (event && event != KY_NONE) {
		const char *const name = ky_text_of(report->trace, event);
		fputs(" of ", stdout);
		ky_cli_text(stdout, name, strlen(name));
	}
	putchar('\n');
	ky_cli_table_print(&table, 0);
	ky_cli_more(rows, stats->count);
}

static void print_functions_json(const struct ky_report *report,
				 const struct ky_function_stats *stats, uint32_t rows,
				 uint32_t event)
{
	struct ky_json_out json = {.file = stdout, .lines = 2};
	ky_json_out_begin(&json, NULL, '{');
	ky_json_out_text(&json, "by", "function");
	ky_info_json_faults(&json, report->trace);
	ky_json_out_text(&json, "event", ky_text_of(report->trace, event == KY_NONE ? 0 : event));
	ky_json_out_uint(&json, "samples", stats->samples);
	ky_json_out_real(&json, "weight", stats->weight);
	ky_json_out_begin(&json, "rows", '[');
	for (uint32_t i = 0; i < rows; i++) {
		const struct ky_function_row *const row = &stats->rows[i];
		ky_json_out_begin(&json, NULL, '{');
		ky_json_out_text(&json, "function", ky_text_of(report->trace, row->name));
		ky_json_out_text(&json, "module", module_of(report->trace, row->mapping));
		if (report->trace->frames.file[row->frame]) {
			ky_json_out_text(
				&json, "file",
				ky_text_of(report->trace, report->trace->frames.file[row->frame]));
			ky_json_out_uint(&json, "line", report->trace->frames.line[row->frame]);
		}
		ky_json_out_uint(&json, "self_samples", row->self_samples);
		ky_json_out_uint(&json, "total_samples", row->total_samples);
		ky_json_out_real(&json, "self_weight", row->self_weight);
		ky_json_out_real(&json, "total_weight", row->total_weight);
		ky_json_out_end(&json, '}');
	}
	ky_json_out_end(&json, ']');
	ky_json_out_end(&json, '}');
}

static void print_functions_csv(const struct ky_report *report,
				const struct ky_function_stats *stats, uint32_t rows)
{
	char source[256];
	puts("function,module,self_samples,total_samples,self_weight,total_weight,source");
	for (uint32_t i = 0; i < rows; i++) {
		const struct ky_function_row *const row = &stats->rows[i];
		const char *const module = module_of(report->trace, row->mapping);
		ky_report_csv_text(ky_cli_name(report->trace, row->name), ',');
		ky_report_csv_text(module ? module : "", ',');
		printf("%" PRIu64 ",%" PRIu64 ",%.17g,%.17g,", row->self_samples,
		       row->total_samples, row->self_weight, row->total_weight);
		ky_report_csv_text(source_of(source, sizeof(source), report->trace, row->frame),
				   '\n');
	}
}

KY_ORDER(by_total, struct ky_function_row, KY_COMPARE(b->total_weight, a->total_weight))

KY_ORDER(by_count, struct ky_function_row, KY_COMPARE(b->self_samples, a->self_samples))

/* ---- samples by thread or process ---- */

static void print_owners(const struct ky_report *report, const struct ky_sample_owner *rows,
			 uint32_t count, double weight)
{
	const struct ky_cli_column columns[] = {{"share", true, false},
						{"samples", true, false},
						{ky_cli_by[report->by].name, false, true}};
	struct ky_cli_table *table = ky_cli_table_new(columns, 3);
	char text[KY_STATS_LABEL_BYTES];
	const uint32_t shown = report->limit && report->limit < count ? report->limit : count;
	for (uint32_t i = 0; i < shown; i++) {
		ky_cli_table_format(table, "%.1f %%", percent(rows[i].weight, weight));
		ky_cli_table_cell(table, ky_quantity_count(text, rows[i].samples));
		ky_cli_table_cell(table,
				  ky_cli_by_label(text, report->trace, report->by, rows[i].owner));
	}
	ky_cli_table_print(&table, 0);
	ky_cli_more(shown, count);
}

static void print_owners_json(const struct ky_report *report, const struct ky_sample_owner *rows,
			      uint32_t count, double weight)
{
	struct ky_json_out json = {.file = stdout, .lines = 2};
	ky_json_out_begin(&json, NULL, '{');
	ky_json_out_text(&json, "by", ky_cli_by[report->by].name);
	ky_info_json_faults(&json, report->trace);
	ky_json_out_real(&json, "weight", weight);
	ky_json_out_begin(&json, "rows", '[');
	for (uint32_t i = 0; i < count && (!report->limit || i < report->limit); i++) {
		ky_json_out_begin(&json, NULL, '{');
		json_key(&json, report, rows[i].owner);
		ky_json_out_uint(&json, "samples", rows[i].samples);
		ky_json_out_real(&json, "weight", rows[i].weight);
		ky_json_out_end(&json, '}');
	}
	ky_json_out_end(&json, ']');
	ky_json_out_end(&json, '}');
}

static void print_owners_csv(const struct ky_report *report, const struct ky_sample_owner *rows,
			     uint32_t count)
{
	char text[KY_STATS_LABEL_BYTES];
	printf("%s,samples,weight\n", ky_cli_by[report->by].name);
	for (uint32_t i = 0; i < count && (!report->limit || i < report->limit); i++) {
		ky_report_csv_text(ky_cli_by_label(text, report->trace, report->by, rows[i].owner),
				   ',');
		printf("%" PRIu64 ",%.17g\n", rows[i].samples, rows[i].weight);
	}
}

static int report_owners(const struct ky_report *report)
{
	struct ky_sample_owner *rows;
	uint32_t count;
	double weight = 0;
	const int error = ky_sample_owners_make(&rows, &count, report->trace, report->by,
						&report->filter, ky_report_event(report));
	if (error)
		return error;
	for (uint32_t i = 0; i < count; i++)
		weight += rows[i].weight;
	if (report->output == KY_REPORT_JSON)
		print_owners_json(report, rows, count, weight);
	else if (report->output == KY_REPORT_CSV)
		print_owners_csv(report, rows, count);
	else if (count)
		print_owners(report, rows, count, weight);
	free(rows);
	return !count;
}

int ky_report_samples(const struct ky_report *report)
{
	if (report->by == KY_BY_THREAD || report->by == KY_BY_PROCESS)
		return report_owners(report);
	struct ky_function_stats stats;
	const uint32_t event = ky_report_event(report);
	const int error = ky_function_stats_make(&stats, report->trace, &report->filter, event);
	if (error)
		return error;
	const uint32_t rows =
		report->limit && report->limit < stats.count ? report->limit : stats.count;
	if (stats.count && strcmp(report->sort, "total") == 0)
		qsort(stats.rows, stats.count, sizeof(*stats.rows), by_total);
	else if (stats.count && strcmp(report->sort, "count") == 0)
		qsort(stats.rows, stats.count, sizeof(*stats.rows), by_count);
	if (report->output == KY_REPORT_JSON)
		print_functions_json(report, &stats, rows, event);
	else if (report->output == KY_REPORT_CSV)
		print_functions_csv(report, &stats, rows);
	else if (stats.samples)
		print_functions(report, &stats, rows, event);
	const bool none = !stats.samples;
	ky_function_stats_free(&stats);
	return none;
}
