/* SPDX-License-Identifier: MIT */
/*
 * info_capture.c: what kymo info says about a capture: where its events come from, what could not be had, which snapshots
 * were taken. The sources and notes are metadata of the trace, the snapshots a track: any format that carries them
 * is as good.
 */
#include "base/json_out.h"
#include "cli/cli.h"
#include "cli/cli_filter.h"
#include "cli/info.h"
#include "query/snapshot.h"

#include <inttypes.h>
#include <string.h>

#define ROWS_SHOWN 20

static bool is_text(const struct ky_trace *trace, uint32_t string, const char *text)
{
	return string && strcmp(ky_text_of(trace, string), text) == 0;
}

/* ---- for people ---- */

static void print_lines(const struct ky_trace *trace, const char *key, const char *title, bool all)
{
	const struct ky_metadata *metadata = &trace->metadata;
	uint32_t count = 0;
	for (uint32_t i = 0; i < metadata->rows.count; i++) {
		const char *text = ky_text_of(trace, metadata->text[i]);
		if (!text || !is_text(trace, metadata->key[i], key))
			continue;
		if (count++ == 0)
			printf("\n%s%s%s\n", ky_cli_style("1"), title, ky_cli_plain());
		if (!all && count > ROWS_SHOWN)
			continue;
		fputs("  ", stdout);
		ky_cli_text(stdout, text, strlen(text));
		putchar('\n');
	}
	if (!all && count > ROWS_SHOWN)
		printf("  and %" PRIu32 " more (--all shows them)\n", count - ROWS_SHOWN);
}

static void print_snapshot(struct ky_cli_table *table, const struct ky_trace *trace, uint32_t slice)
{
	char text[KY_QUANTITY_BYTES];
	const int64_t pid = ky_snapshot_number(trace, slice, "pid"),
		      tid = ky_snapshot_number(trace, slice, "tid");
	const char *trigger = ky_snapshot_text(trace, slice, "trigger");
	const char *reason = ky_text_of(trace, trace->slices.name[slice]);
	ky_cli_table_format(table, "+%s",
			    ky_quantity_duration(text, trace->slices.ts[slice] - trace->begin_ns));
	if (pid >= 0 && tid >= 0 && tid != pid)
		ky_cli_table_format(table, "%" PRId64 "/%" PRId64, pid, tid);
	else if (pid >= 0)
		ky_cli_table_format(table, "%" PRId64, pid);
	else
		ky_cli_table_cell(table, "");
	ky_cli_table_cell(table, trigger ? trigger : "");
	ky_cli_table_cell(table, reason ? reason : "");
}

static void print_snapshots(const struct ky_trace *trace, bool all)
{
	static const struct ky_cli_column columns[] = {{"at", true, false},
						       {"process", true, false},
						       {"trigger", false, true},
						       {"reason", false, true}};
	struct ky_cli_table *table = NULL;
	uint32_t count = 0;
	for (uint32_t i = ky_snapshot_next(trace, 0); i != KY_NONE;
	     i = ky_snapshot_next(trace, i + 1)) {
		if (!table)
			table = ky_cli_table_new(columns, 4);
		if (all || count < ROWS_SHOWN)
			print_snapshot(table, trace, i);
		count++;
	}
	if (!table)
		return;
	printf("\n%ssnapshots%s\n", ky_cli_style("1"), ky_cli_plain());
	ky_cli_table_indent(table, 2);
	ky_cli_table_print(&table, stdout);
	if (!all && count > ROWS_SHOWN)
		printf("  and %" PRIu32 " more (--all shows them)\n", count - ROWS_SHOWN);
}

void ky_info_capture(const struct ky_trace *trace, bool all)
{
	print_lines(trace, "capture_source", "sources", all);
	print_lines(trace, "capture_note", "notes", all);
	print_snapshots(trace, all);
}

/* ---- for machines ---- */

static void put_number(struct ky_json_out *json, const struct ky_trace *trace, uint32_t slice,
		       const char *key)
{
	const int64_t number = ky_snapshot_number(trace, slice, key);
	if (number >= 0)
		ky_json_out_int(json, key, number);
}

void ky_info_capture_json(struct ky_json_out *json, const struct ky_trace *trace)
{
	static const char *const numbers[] = {"pid", "tid", "from", "to"};
	ky_json_out_begin(json, "snapshots", '[');
	for (uint32_t i = ky_snapshot_next(trace, 0); i != KY_NONE;
	     i = ky_snapshot_next(trace, i + 1)) {
		ky_json_out_begin(json, NULL, '{');
		ky_json_out_int(json, "ts", trace->slices.ts[i]);
		ky_json_out_text(json, "reason", ky_text_of(trace, trace->slices.name[i]));
		ky_json_out_text(json, "trigger", ky_snapshot_text(trace, i, "trigger"));
		for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++)
			put_number(json, trace, i, numbers[n]);
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
}
