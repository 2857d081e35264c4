/* SPDX-License-Identifier: MIT */
/* info_count.c: see info.h. */
#include "cli/info.h"
#include "formats/load.h"
#include "model/clocks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* Rows are first all threads, then all processes, then the rest. */
static void name_rows(struct ky_info *info, const struct ky_trace *trace)
{
	const uint32_t threads = trace->threads.rows.count, processes = trace->processes.rows.count;
	for (uint32_t i = 0; i < info->rows_count; i++) {
		struct ky_info_row *const row = &info->rows[i];
		row->thread = i < threads ? i : KY_NONE;
		row->process = i < threads               ? trace->threads.process[i]
			       : i - threads < processes ? i - threads
							 : KY_NONE;
	}
}

static uint32_t row_of_track(const struct ky_trace *trace, uint32_t track)
{
	const uint32_t threads = trace->threads.rows.count, processes = trace->processes.rows.count;
	const uint32_t thread = ky_track_thread(trace, track);
	if (thread < threads)
		return thread;
	const uint32_t process = ky_track_process(trace, track);
	return threads + (process < processes ? process : processes);
}

static void count_slices(struct ky_info *info, const struct ky_trace *trace, const uint32_t *row_of,
			 uint64_t *categories)
{
	const struct ky_slices *const slices = &trace->slices;
	for (uint32_t i = 0; i < slices->rows.count; i++) {
		struct ky_info_row *const row = &info->rows[row_of[slices->track[i]]];
		categories[slices->category[i]]++;
		if (slices->kind[i] == KY_SLICE_INSTANT) {
			row->instants++;
			info->instants++;
			continue;
		}
		row->slices++;
		info->spans++;
		info->unfinished += slices->dur[i] < 0;
		int64_t ns = slices->dur[i];
		if (ns < 0 && __builtin_sub_overflow(trace->end_ns, slices->ts[i], &ns))
			ns = 0;
		if (slices->depth[i] == 0 &&
		    __builtin_add_overflow(row->busy_ns, ns, &row->busy_ns))
			row->busy_ns = INT64_MAX;
	}
}

static void count_others(struct ky_info *info, const struct ky_trace *trace, const uint32_t *row_of)
{
	const uint32_t threads = trace->threads.rows.count, nobody = info->rows_count - 1;
	for (uint32_t i = 0; i < trace->counters.rows.count; i++)
		info->rows[row_of[trace->counters.track[i]]].counters++;
	for (uint32_t i = 0; i < trace->samples.rows.count; i++) {
		const uint32_t thread = trace->samples.thread[i];
		info->rows[thread < threads ? thread : nobody].samples++;
	}
	for (uint32_t i = 0; i < trace->sched.rows.count; i++) {
		const uint32_t thread = trace->sched.thread[i];
		info->rows[thread < threads ? thread : nobody].sched++;
	}
}

static uint64_t events_of(const struct ky_info_row *row)
{
	return row->slices + row->instants + row->counters + row->samples + row->sched;
}

static int most_events(const void *a_, const void *b_)
{
	const struct ky_info_row *const a = a_, *const b = b_;
	if (events_of(a) != events_of(b))
		return events_of(a) < events_of(b) ? 1 : -1;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->thread > b->thread) - (a->thread < b->thread);
}

static int most_slices(const void *a_, const void *b_)
{
	const struct ky_info_category *const a = a_, *const b = b_;
	if (a->slices != b->slices)
		return a->slices < b->slices ? 1 : -1;
	return (a->name > b->name) - (a->name < b->name);
}

static int list_categories(struct ky_info *info, const uint64_t *counts, uint32_t strings)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < strings; i++)
		count += counts[i] != 0;
	info->categories = calloc((size_t)count + 1, sizeof(*info->categories));
	if (!info->categories)
		return -ENOMEM;
	for (uint32_t i = 0; i < strings; i++) {
		if (counts[i])
			info->categories[info->categories_count++] =
				(struct ky_info_category){i, counts[i]};
	}
	qsort(info->categories, count, sizeof(*info->categories), most_slices);
	return 0;
}

static int count_all(struct ky_info *info, const struct ky_trace *trace)
{
	const uint32_t tracks = trace->tracks.rows.count, strings = trace->strings.count + 1;
	uint32_t *const row_of = calloc((size_t)tracks + 1, sizeof(*row_of));
	uint64_t *const categories = calloc(strings, sizeof(*categories));
	int result = row_of && categories ? 0 : -ENOMEM;
	if (result == 0) {
		for (uint32_t i = 0; i < tracks; i++)
			row_of[i] = row_of_track(trace, i);
		count_slices(info, trace, row_of, categories);
		count_others(info, trace, row_of);
		result = list_categories(info, categories, strings);
	}
	free(row_of);
	free(categories);
	return result;
}

static void find_wall_time(struct ky_info *info, const struct ky_trace *trace)
{
	info->has_wall = trace->clocks && (trace->begin_ns || trace->end_ns) &&
			 ky_clocks_convert(trace->clocks, trace->clock, KY_CLOCK_REALTIME,
					   trace->begin_ns, &info->wall_begin_ns) &&
			 ky_clocks_convert(trace->clocks, trace->clock, KY_CLOCK_REALTIME,
					   trace->end_ns, &info->wall_end_ns);
}

int ky_info_make(struct ky_info *info, const struct ky_trace *trace, const char *path)
{
	struct stat status;
	*info = (struct ky_info){.rows_count = trace->threads.rows.count +
					       trace->processes.rows.count + 1};
	info->rows = calloc(info->rows_count, sizeof(*info->rows));
	if (!info->rows)
		return -ENOMEM;
	name_rows(info, trace);
	if (count_all(info, trace) != 0) {
		ky_info_free(info);
		return -ENOMEM;
	}
	qsort(info->rows, info->rows_count, sizeof(*info->rows), most_events);
	while (info->rows_used < info->rows_count && events_of(&info->rows[info->rows_used]))
		info->rows_used++;
	find_wall_time(info, trace);
	if (stat(path, &status) == 0 && S_ISREG(status.st_mode))
		info->file_bytes = (uint64_t)status.st_size;
	return 0;
}

void ky_info_free(struct ky_info *info)
{
	free(info->rows);
	free(info->categories);
	*info = (struct ky_info){0};
}

const char *ky_info_format_title(const struct ky_trace *trace)
{
	for (const struct ky_reader *const *reader = ky_readers; *reader; reader++) {
		if (trace->format && strcmp((*reader)->name, trace->format) == 0)
			return (*reader)->title;
	}
	return trace->format ? trace->format : "not known";
}

const char *ky_info_severity(uint8_t severity)
{
	return severity == KY_ERROR ? "error" : severity == KY_DATA_LOSS ? "data loss" : "info";
}

const char *ky_info_wall_time(char buf[KY_INFO_TIME_BYTES], int64_t ns)
{
	int64_t seconds = ns / 1000000000, rest = ns % 1000000000;
	if (rest < 0) {
		rest += 1000000000;
		seconds--;
	}
	const time_t whole = (time_t)seconds;
	struct tm tm;
	char text[24];
	if (!gmtime_r(&whole, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm))
		snprintf(text, sizeof(text), "%" PRId64, seconds);
	snprintf(buf, KY_INFO_TIME_BYTES, "%s.%09" PRId64 "Z", text, rest);
	return buf;
}
