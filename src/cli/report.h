/* SPDX-License-Identifier: MIT */
/*
 * report.h: the three kinds of kymo report, a table of slices and one of functions from samples
 * (report_table.c), a call tree (report_tree.c).
 */
#ifndef KY_CLI_REPORT_H
#define KY_CLI_REPORT_H

#include "cli/cli.h"

enum ky_report_output { KY_REPORT_TEXT, KY_REPORT_JSON, KY_REPORT_CSV };

struct ky_report {
	struct ky_trace *trace;
	struct ky_stats_filter filter;
	enum ky_report_output output;
	enum ky_stats_by by;
	const char *sort;
	const char *event; /* of samples; NULL: the most frequent */
	uint32_t limit;    /* rows; 0: all */
	uint32_t depth;    /* of a tree; 0: all */
	bool samples;      /* instead of slices */
};

/* The measures that --sort takes. */
extern const struct ky_choice ky_report_measures[];

/* Each returns 0, 1 when nothing passes the filter, or -ENOMEM. */
int ky_report_table(const struct ky_report *report);
int ky_report_tree(const struct ky_report *report);
int ky_report_samples(const struct ky_report *report);

/* Return the event that the report is about, a string of the trace, or 0 for all. Mention other events. */
uint32_t ky_report_event(const struct ky_report *report);

/* Print a field of CSV, quoted if necessary, then a comma or the end of the line. */
void ky_report_csv_text(const char *text, char end);

#endif
