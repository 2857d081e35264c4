/* SPDX-License-Identifier: MIT */
/* report_samples.c: kymo report of a trace of samples: the functions that took the time. */
#include "base/json_out.h"
#include "cli/cli.h"
#include "cli/report.h"
#include "query/sample_stats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

static void print_text(const struct ky_report *report, const struct ky_function_stats *stats,
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
	ky_cli_table_print(&table, stdout);
	if (rows < stats->count)
		printf("and %" PRIu32 " more (--limit 0 shows all)\n", stats->count - rows);
}

static void print_json(const struct ky_report *report, const struct ky_function_stats *stats,
		       uint32_t rows, uint32_t event)
{
	struct ky_json_out json = {.file = stdout, .lines = 2};
	ky_json_out_begin(&json, NULL, '{');
	ky_json_out_text(&json, "by", "function");
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

static void print_csv(const struct ky_report *report, const struct ky_function_stats *stats,
		      uint32_t rows)
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

static int by_total(const void *a_, const void *b_)
{
	const struct ky_function_row *const a = a_, *const b = b_;
	return (a->total_weight < b->total_weight) - (a->total_weight > b->total_weight);
}

static int by_count(const void *a_, const void *b_)
{
	const struct ky_function_row *const a = a_, *const b = b_;
	return (a->self_samples < b->self_samples) - (a->self_samples > b->self_samples);
}

int ky_report_samples(const struct ky_report *report)
{
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
		print_json(report, &stats, rows, event);
	else if (report->output == KY_REPORT_CSV)
		print_csv(report, &stats, rows);
	else if (stats.samples)
		print_text(report, &stats, rows, event);
	else
		ky_cli_error("no sample is like that; 'kymo report' without filters shows what "
			     "there is");
	ky_function_stats_free(&stats);
	return 0;
}
