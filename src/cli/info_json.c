/* SPDX-License-Identifier: MIT */
/* info_json.c: kymo info --json. */
#include "cli/info.h"

#include "base/json_out.h"
#include "cli/cli.h"
#include "query/snapshot.h"

static void times(struct ky_json_out *json, const struct ky_info *info,
		  const struct ky_trace *trace)
{
	char text[KY_QUANTITY_DATE_BYTES];
	ky_json_out_begin(json, "time", '{');
	ky_json_out_text(json, "clock", ky_clock_name(trace->clock));
	ky_json_out_int(json, "begin_ns", trace->begin_ns);
	ky_json_out_int(json, "end_ns", trace->end_ns);
	ky_json_out_text(json, "wall_begin",
			 info->has_wall ? ky_quantity_date(text, info->wall_begin_ns) : NULL);
	ky_json_out_text(json, "wall_end",
			 info->has_wall ? ky_quantity_date(text, info->wall_end_ns) : NULL);
	ky_json_out_end(json, '}');
}

static void counts(struct ky_json_out *json, const struct ky_info *info,
		   const struct ky_trace *trace)
{
	ky_json_out_begin(json, "counts", '{');
	ky_json_out_uint(json, "events", trace->events);
	ky_json_out_uint(json, "slices", info->spans);
	ky_json_out_uint(json, "unfinished", info->unfinished);
	ky_json_out_uint(json, "instants", info->instants);
	ky_json_out_uint(json, "counters", trace->counters.rows.count);
	ky_json_out_uint(json, "flows", trace->flows.rows.count);
	ky_json_out_uint(json, "args", trace->args.rows.count);
	ky_json_out_uint(json, "samples", trace->samples.rows.count);
	ky_json_out_uint(json, "sched", trace->sched.rows.count);
	ky_json_out_uint(json, "kernel_events", trace->raw_events.rows.count);
	ky_json_out_uint(json, "logs", trace->logs.rows.count);
	ky_json_out_uint(json, "tracks", trace->tracks.rows.count);
	ky_json_out_uint(json, "threads", trace->threads.rows.count);
	ky_json_out_uint(json, "processes", trace->processes.rows.count);
	ky_json_out_end(json, '}');
}

static void rows(struct ky_json_out *json, const struct ky_info *info, const struct ky_trace *trace)
{
	ky_json_out_begin(json, "threads", '[');
	for (uint32_t i = 0; i < info->rows_count; i++) {
		const struct ky_info_row *const row = &info->rows[i];
		if (i >= info->rows_used && row->thread == KY_NONE)
			continue;
		ky_json_out_begin(json, NULL, '{');
		if (row->process != KY_NONE) {
			ky_json_out_int(json, "pid", trace->processes.pid[row->process]);
			ky_json_out_text(json, "process",
					 ky_text_of(trace, trace->processes.name[row->process]));
		}
		if (row->thread != KY_NONE) {
			ky_json_out_int(json, "tid", trace->threads.tid[row->thread]);
			ky_json_out_text(json, "thread",
					 ky_text_of(trace, trace->threads.name[row->thread]));
		}
		ky_json_out_uint(json, "slices", row->slices);
		ky_json_out_uint(json, "instants", row->instants);
		ky_json_out_uint(json, "counters", row->counters);
		ky_json_out_uint(json, "samples", row->samples);
		ky_json_out_uint(json, "sched", row->sched);
		ky_json_out_int(json, "busy_ns", row->busy_ns);
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
}

static void categories(struct ky_json_out *json, const struct ky_info *info,
		       const struct ky_trace *trace)
{
	ky_json_out_begin(json, "categories", '[');
	for (uint32_t i = 0; i < info->categories_count; i++) {
		ky_json_out_begin(json, NULL, '{');
		ky_json_out_text(json, "category", ky_text_of(trace, info->categories[i].name));
		ky_json_out_uint(json, "slices", info->categories[i].slices);
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
}

static void metadata(struct ky_json_out *json, const struct ky_trace *trace)
{
	ky_json_out_begin(json, "metadata", '[');
	for (uint32_t i = 0; i < trace->metadata.rows.count; i++) {
		ky_json_out_begin(json, NULL, '{');
		ky_json_out_text(json, "key", ky_text_of(trace, trace->metadata.key[i]));
		if (trace->metadata.text[i])
			ky_json_out_text(json, "value", ky_text_of(trace, trace->metadata.text[i]));
		else
			ky_json_out_int(json, "value", trace->metadata.number[i]);
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
}

/* Return the severity as Perfetto's tables have it. */
static const char *severity_name(uint8_t severity)
{
	return severity == KY_DATA_LOSS ? "data_loss" : ky_info_severity(severity);
}

static void problems(struct ky_json_out *json, const struct ky_trace *trace)
{
	ky_json_out_begin(json, "problems", '[');
	for (uint32_t i = 0; i < trace->problems.rows.count; i++) {
		ky_json_out_begin(json, NULL, '{');
		ky_json_out_text(json, "name", ky_text_of(trace, trace->problems.name[i]));
		ky_json_out_text(json, "severity", severity_name(trace->problems.severity[i]));
		ky_json_out_uint(json, "count", trace->problems.number[i]);
		if (trace->problems.first_at[i] != KY_NO_PLACE)
			ky_json_out_uint(json, "first_at_byte", trace->problems.first_at[i]);
		ky_json_out_text(json, "first", ky_text_of(trace, trace->problems.first[i]));
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
}

void ky_info_json_losses(struct ky_json_out *json, const struct ky_trace *trace)
{
	ky_json_out_uint(json, "lost", trace->lost);
	ky_json_out_begin(json, "losses", '[');
	for (uint32_t i = 0; i < trace->losses.rows.count; i++) {
		const uint32_t thread = trace->losses.thread[i];
		ky_json_out_begin(json, NULL, '{');
		ky_json_out_text(json, "what", ky_text_of(trace, trace->losses.what[i]));
		if (trace->losses.events[i])
			ky_json_out_uint(json, "events", trace->losses.events[i]);
		if (thread != KY_NONE)
			ky_json_out_int(json, "tid", trace->threads.tid[thread]);
		if (trace->losses.cpu[i] != KY_NONE)
			ky_json_out_uint(json, "cpu", trace->losses.cpu[i]);
		if (trace->losses.ts[i] != KY_TIME_NONE)
			ky_json_out_int(json, "ts", trace->losses.ts[i]);
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
}

void ky_info_json_faults(struct ky_json_out *json, const struct ky_trace *trace)
{
	ky_info_json_losses(json, trace);
	problems(json, trace);
}

void ky_info_json_counts(struct ky_json_out *json, const struct ky_info_count *losses,
			 const struct ky_info_count *problems)
{
	uint64_t lost = 0;
	for (const struct ky_info_count *at = losses; at->text; at++)
		lost += at->count;
	ky_json_out_uint(json, "lost", lost);
	ky_json_out_begin(json, "losses", '[');
	for (const struct ky_info_count *at = losses; at->text; at++) {
		if (!at->count)
			continue;
		ky_json_out_begin(json, NULL, '{');
		ky_json_out_text(json, "what", at->text);
		ky_json_out_uint(json, "events", at->count);
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
	ky_json_out_begin(json, "problems", '[');
	for (const struct ky_info_count *at = problems; at->text; at++) {
		if (!at->count)
			continue;
		ky_json_out_begin(json, NULL, '{');
		ky_json_out_text(json, "name", at->name);
		ky_json_out_text(json, "severity", severity_name(KY_DATA_LOSS));
		ky_json_out_uint(json, "count", at->count);
		ky_json_out_text(json, "first", at->text);
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
}

static void put_number(struct ky_json_out *json, const struct ky_trace *trace, uint32_t slice,
		       const char *key)
{
	const int64_t number = ky_snapshot_number(trace, slice, key);
	if (number >= 0)
		ky_json_out_int(json, key, number);
}

static void json_stack(struct ky_json_out *json, const char *stack)
{
	struct ky_snapshot_frame frame;
	if (!stack)
		return;
	ky_json_out_begin(json, "stack", '[');
	while (ky_snapshot_frame(&stack, &frame))
		ky_json_out_string(json, NULL, frame.line, frame.line_bytes);
	ky_json_out_end(json, ']');
}

static void json_capture(struct ky_json_out *json, const struct ky_trace *trace)
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
		json_stack(json, ky_snapshot_text(trace, i, "stack"));
		ky_json_out_end(json, '}');
	}
	ky_json_out_end(json, ']');
}

void ky_info_json(const struct ky_info *info, const struct ky_trace *trace, const char *path,
		  FILE *to)
{
	struct ky_json_out json = {.file = to, .lines = 2};
	ky_json_out_begin(&json, NULL, '{');
	ky_json_out_text(&json, "file", path);
	ky_json_out_text(&json, "format", trace->format);
	if (info->file_bytes)
		ky_json_out_uint(&json, "bytes", info->file_bytes);
	times(&json, info, trace);
	counts(&json, info, trace);
	rows(&json, info, trace);
	categories(&json, info, trace);
	metadata(&json, trace);
	json_capture(&json, trace);
	ky_info_json_faults(&json, trace);
	ky_json_out_end(&json, '}');
}
