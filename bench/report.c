/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LABEL_WIDTH 38
#define TARGET_WIDTH 62
#define COLUMN_WIDTH_MIN 8

static int column_width(const struct report_column *column)
{
	const int width = (int)strlen(column->heading);
	return 2 + (width > COLUMN_WIDTH_MIN ? width : COLUMN_WIDTH_MIN);
}

static void print_json_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else if ((unsigned char)*text < ' ')
			printf("\\u%04x", (unsigned)*text);
		else
			putchar(*text);
	}
	putchar('"');
}

static void print_json_number(double value)
{
	if (isfinite(value))
		printf("%.6g", value);
	else
		fputs("null", stdout);
}

void report_open(struct report *report, bool json, bool timed)
{
	memset(report, 0, sizeof(*report));
	report->json = json;
	report->timed = timed;
	if (json)
		putchar('{');
}

void report_begin(struct report *report, const char *key, const char *title,
		  const struct report_column *columns)
{
	report->columns = columns;
	report->rows = 0;
	report->notes_count = 0;
	report->tables++;
	if (report->json) {
		print_json_string(key);
		fputs(":{\"rows\":[", stdout);
		return;
	}
	printf("%s%-*s", report->tables > 1 ? "\n" : "", LABEL_WIDTH, title);
	for (; columns->key; columns++)
		printf("%*s", column_width(columns), columns->heading);
	putchar('\n');
}

static void print_json_row(const struct report *report, const char *label, const double *values)
{
	fputs(report->rows ? ",{\"name\":" : "{\"name\":", stdout);
	print_json_string(label);
	for (const struct report_column *column = report->columns; column->key; column++) {
		printf(",\"%s\":", column->key);
		print_json_number(*values++);
	}
	putchar('}');
}

static void print_text_row(const struct report *report, const char *label, const double *values)
{
	printf("  %-*s", LABEL_WIDTH - 2, label);
	for (const struct report_column *column = report->columns; column->key; column++) {
		const double value = *values++;
		if (isfinite(value))
			printf("%*.*f", column_width(column), column->decimals, value);
		else
			printf("%*s", column_width(column), "-");
	}
	putchar('\n');
	fflush(stdout); /* the next row may take seconds */
}

void report_row(struct report *report, const char *label, const double *values)
{
	if (report->json)
		print_json_row(report, label, values);
	else
		print_text_row(report, label, values);
	report->rows++;
}

static void add_note(struct report *report, const char *format, va_list list)
{
	if (report->notes_count < REPORT_NOTES_MAX)
		vsnprintf(report->notes[report->notes_count++], REPORT_TEXT_MAX, format, list);
}

void report_note(struct report *report, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	add_note(report, format, list);
	va_end(list);
}

void report_failure(struct report *report, const char *format, ...)
{
	report->failed = true;
	va_list list;
	va_start(list, format);
	add_note(report, format, list);
	va_end(list);
}

void report_end(struct report *report)
{
	if (!report->json) {
		for (uint32_t i = 0; i < report->notes_count; i++)
			printf("  (%s)\n", report->notes[i]);
		return;
	}
	fputs("],\"notes\":[", stdout);
	for (uint32_t i = 0; i < report->notes_count; i++) {
		fputs(i ? "," : "", stdout);
		print_json_string(report->notes[i]);
	}
	fputs("]},\n", stdout);
}

void report_target(struct report *report, double value, double at_most, const char *unit,
		   const char *format, ...)
{
	if (report->targets_count == REPORT_TARGETS_MAX)
		return;
	struct report_target *target = &report->targets[report->targets_count++];
	target->value = report->timed ? value : NAN;
	target->at_most = at_most;
	target->unit = unit;
	va_list list;
	va_start(list, format);
	vsnprintf(target->what, sizeof(target->what), format, list);
	va_end(list);
}

static bool is_missed(const struct report_target *target)
{
	return isfinite(target->value) && target->value > target->at_most;
}

static const char *verdict(const struct report_target *target)
{
	if (!isfinite(target->value))
		return "not measured";
	return is_missed(target) ? "missed" : "met";
}

static void print_text_target(const struct report_target *target)
{
	char value[32] = "-";
	if (isfinite(target->value))
		snprintf(value, sizeof(value), "%.4g", target->value);
	printf("  %-*s%9s  at most %6.4g %-6s %s\n", TARGET_WIDTH, target->what, value,
	       target->at_most, target->unit, verdict(target));
}

static void print_json_target(const struct report_target *target)
{
	fputs("{\"target\":", stdout);
	print_json_string(target->what);
	fputs(",\"value\":", stdout);
	print_json_number(target->value);
	fputs(",\"at_most\":", stdout);
	print_json_number(target->at_most);
	printf(",\"unit\":\"%s\",\"verdict\":\"%s\"}", target->unit, verdict(target));
}

uint32_t report_close(const struct report *report)
{
	uint32_t missed = 0;
	fputs(report->json ? "\"targets\":[" : "\ntargets\n", stdout);
	for (uint32_t i = 0; i < report->targets_count; i++) {
		missed += is_missed(&report->targets[i]);
		if (!report->json) {
			print_text_target(&report->targets[i]);
			continue;
		}
		fputs(i ? "," : "", stdout);
		print_json_target(&report->targets[i]);
	}
	if (report->json)
		puts("]}");
	return missed;
}
