/* SPDX-License-Identifier: MIT */
/*
 * report.h: tables of numbers and their targets; aligned for people, or JSON.
 *
 * A section begins a table, adds rows and notes and ends it. A number that was not measured is NAN:
 * a dash for people, null in JSON.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#define REPORT_TARGETS_MAX 32
#define REPORT_NOTES_MAX 8
#define REPORT_TEXT_MAX 160

struct report_column {
	const char *key;     /* in JSON; NULL ends the list */
	const char *heading; /* for people */
	int decimals;
};

struct report_target {
	char what[REPORT_TEXT_MAX];
	const char *unit;
	double value;
	double at_most;
};

struct report {
	bool json;
	bool timed;                          /* else counts are tiny and targets do not apply */
	bool failed;                         /* something did not work at all */
	const struct report_column *columns; /* of the table that is being written */
	uint32_t tables;
	uint32_t rows;
	uint32_t notes_count;
	char notes[REPORT_NOTES_MAX][REPORT_TEXT_MAX];
	uint32_t targets_count;
	struct report_target targets[REPORT_TARGETS_MAX];
};

void report_open(struct report *report, bool json, bool timed);

/* Columns live until the table ends. */
void report_begin(struct report *report, const char *key, const char *title,
		  const struct report_column *columns);
/* One value for each column. */
void report_row(struct report *report, const char *label, const double *values);
/* Shown under the table. */
__attribute__((format(printf, 2, 3))) void report_note(struct report *report, const char *format,
						       ...);
/* The same, for what did not work. */
__attribute__((format(printf, 2, 3))) void report_failure(struct report *report, const char *format,
							  ...);
void report_end(struct report *report);

/* Compare the value with its target at the end. NAN was not measured, and is neither met nor missed. */
__attribute__((format(printf, 5, 6))) void report_target(struct report *report, double value,
							 double at_most, const char *unit,
							 const char *format, ...);

/* Show the targets; return how many were missed. */
uint32_t report_close(const struct report *report);

#endif
