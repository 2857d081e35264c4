/* SPDX-License-Identifier: MIT */
/* info_json.c: kymo info --json. */
#include "cli/cli_json.h"
#include "cli/info.h"

static void times(struct ky_cli_json *json, const struct ky_info *info,
		  const struct ky_trace *trace)
{
	char text[KY_INFO_TIME_BYTES];
	ky_cli_json_begin(json, "time", '{');
	ky_cli_json_text(json, "clock", ky_clock_name(trace->clock));
	ky_cli_json_int(json, "begin_ns", trace->begin_ns);
	ky_cli_json_int(json, "end_ns", trace->end_ns);
	ky_cli_json_text(json, "wall_begin",
			 info->has_wall ? ky_info_wall_time(text, info->wall_begin_ns) : NULL);
	ky_cli_json_text(json, "wall_end",
			 info->has_wall ? ky_info_wall_time(text, info->wall_end_ns) : NULL);
	ky_cli_json_end(json, '}');
}

static void counts(struct ky_cli_json *json, const struct ky_info *info,
		   const struct ky_trace *trace)
{
	ky_cli_json_begin(json, "counts", '{');
	ky_cli_json_uint(json, "events", trace->events);
	ky_cli_json_uint(json, "slices", info->spans);
	ky_cli_json_uint(json, "unfinished", info->unfinished);
	ky_cli_json_uint(json, "instants", info->instants);
	ky_cli_json_uint(json, "counters", trace->counters.rows.count);
	ky_cli_json_uint(json, "flows", trace->flows.rows.count);
	ky_cli_json_uint(json, "args", trace->args.rows.count);
	ky_cli_json_uint(json, "samples", trace->samples.rows.count);
	ky_cli_json_uint(json, "sched", trace->sched.rows.count);
	ky_cli_json_uint(json, "kernel_events", trace->raw_events.rows.count);
	ky_cli_json_uint(json, "logs", trace->logs.rows.count);
	ky_cli_json_uint(json, "tracks", trace->tracks.rows.count);
	ky_cli_json_uint(json, "threads", trace->threads.rows.count);
	ky_cli_json_uint(json, "processes", trace->processes.rows.count);
	ky_cli_json_end(json, '}');
}

static void rows(struct ky_cli_json *json, const struct ky_info *info, const struct ky_trace *trace)
{
	ky_cli_json_begin(json, "threads", '[');
	for (uint32_t i = 0; i < info->rows_count; i++) {
		const struct ky_info_row *const row = &info->rows[i];
		if (i >= info->rows_used && row->thread == KY_NONE)
			continue;
		ky_cli_json_begin(json, NULL, '{');
		if (row->process != KY_NONE) {
			ky_cli_json_int(json, "pid", trace->processes.pid[row->process]);
			ky_cli_json_name(json, "process", trace,
					 trace->processes.name[row->process]);
		}
		if (row->thread != KY_NONE) {
			ky_cli_json_int(json, "tid", trace->threads.tid[row->thread]);
			ky_cli_json_name(json, "thread", trace, trace->threads.name[row->thread]);
		}
		ky_cli_json_uint(json, "slices", row->slices);
		ky_cli_json_uint(json, "instants", row->instants);
		ky_cli_json_uint(json, "counters", row->counters);
		ky_cli_json_uint(json, "samples", row->samples);
		ky_cli_json_uint(json, "sched", row->sched);
		ky_cli_json_int(json, "busy_ns", row->busy_ns);
		ky_cli_json_end(json, '}');
	}
	ky_cli_json_end(json, ']');
}

static void categories(struct ky_cli_json *json, const struct ky_info *info,
		       const struct ky_trace *trace)
{
	ky_cli_json_begin(json, "categories", '[');
	for (uint32_t i = 0; i < info->categories_count; i++) {
		ky_cli_json_begin(json, NULL, '{');
		ky_cli_json_name(json, "category", trace, info->categories[i].name);
		ky_cli_json_uint(json, "slices", info->categories[i].slices);
		ky_cli_json_end(json, '}');
	}
	ky_cli_json_end(json, ']');
}

static void metadata(struct ky_cli_json *json, const struct ky_trace *trace)
{
	ky_cli_json_begin(json, "metadata", '[');
	for (uint32_t i = 0; i < trace->metadata.rows.count; i++) {
		ky_cli_json_begin(json, NULL, '{');
		ky_cli_json_name(json, "key", trace, trace->metadata.key[i]);
		if (trace->metadata.text[i])
			ky_cli_json_name(json, "value", trace, trace->metadata.text[i]);
		else
			ky_cli_json_int(json, "value", trace->metadata.number[i]);
		ky_cli_json_end(json, '}');
	}
	ky_cli_json_end(json, ']');
}

static void losses(struct ky_cli_json *json, const struct ky_trace *trace)
{
	ky_cli_json_uint(json, "lost", trace->lost);
	ky_cli_json_begin(json, "losses", '[');
	for (uint32_t i = 0; i < trace->losses.rows.count; i++) {
		const uint32_t thread = trace->losses.thread[i];
		ky_cli_json_begin(json, NULL, '{');
		ky_cli_json_name(json, "what", trace, trace->losses.what[i]);
		if (trace->losses.events[i])
			ky_cli_json_uint(json, "events", trace->losses.events[i]);
		if (thread != KY_NONE)
			ky_cli_json_int(json, "tid", trace->threads.tid[thread]);
		if (trace->losses.cpu[i] != KY_NONE)
			ky_cli_json_uint(json, "cpu", trace->losses.cpu[i]);
		if (trace->losses.ts[i] != KY_TIME_NONE)
			ky_cli_json_int(json, "ts", trace->losses.ts[i]);
		ky_cli_json_end(json, '}');
	}
	ky_cli_json_end(json, ']');
}

static void problems(struct ky_cli_json *json, const struct ky_trace *trace)
{
	ky_cli_json_begin(json, "problems", '[');
	for (uint32_t i = 0; i < trace->problems.rows.count; i++) {
		ky_cli_json_begin(json, NULL, '{');
		ky_cli_json_name(json, "name", trace, trace->problems.name[i]);
		ky_cli_json_text(json, "severity", ky_info_severity(trace->problems.severity[i]));
		ky_cli_json_uint(json, "count", trace->problems.number[i]);
		if (trace->problems.first_at[i] != KY_NO_PLACE)
			ky_cli_json_uint(json, "first_at_byte", trace->problems.first_at[i]);
		ky_cli_json_name(json, "first", trace, trace->problems.first[i]);
		ky_cli_json_end(json, '}');
	}
	ky_cli_json_end(json, ']');
}

void ky_info_json(const struct ky_info *info, const struct ky_trace *trace, const char *path,
		  FILE *to)
{
	struct ky_cli_json json = {.to = to, .lines = 2};
	ky_cli_json_begin(&json, NULL, '{');
	ky_cli_json_text(&json, "file", path);
	ky_cli_json_text(&json, "format", trace->format);
	if (info->file_bytes)
		ky_cli_json_uint(&json, "bytes", info->file_bytes);
	times(&json, info, trace);
	counts(&json, info, trace);
	rows(&json, info, trace);
	categories(&json, info, trace);
	metadata(&json, trace);
	ky_info_capture_json(&json, trace);
	losses(&json, trace);
	problems(&json, trace);
	ky_cli_json_end(&json, '}');
}
