/* SPDX-License-Identifier: MIT */
/* filter.c: see filter.h. */
#include "query/filter.h"
#include "core/glob.h"
#include "model/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool glob(const char *pattern, const char *text, size_t bytes)
{
	return ky_glob_match(pattern, strlen(pattern), text, bytes);
}

static const char *text_or_empty(const struct ky_trace *trace, uint32_t string, size_t *bytes)
{
	*bytes = ky_strings_bytes(&trace->strings, string);
	return *bytes ? ky_text_of(trace, string) : "";
}

bool ky_filter_match_name(const struct ky_filter *filter, uint32_t string)
{
	size_t bytes;
	const char *const text = text_or_empty(filter->trace, string, &bytes);
	const bool in = glob(filter->name, text, bytes);
	filter->names[string] = in ? KY_FILTER_IN : KY_FILTER_OUT;
	return in;
}

/* A category may be a list ("net,slow"): one matching member is enough. */
bool ky_filter_match_category(const struct ky_filter *filter, uint32_t string)
{
	size_t bytes;
	const char *text = text_or_empty(filter->trace, string, &bytes);
	const char *const end = text + bytes;
	bool in = glob(filter->category, text, bytes);
	while (!in && text < end) {
		const char *const comma = memchr(text, ',', (size_t)(end - text));
		const char *const stop = comma ? comma : end;
		in = glob(filter->category, text, (size_t)(stop - text));
		text = comma ? comma + 1 : end;
	}
	filter->categories[string] = in ? KY_FILTER_IN : KY_FILTER_OUT;
	return in;
}

/* A number means the id, and may also be a name. */
static bool match_task(const struct ky_trace *trace, const char *wanted, uint32_t name, int64_t id)
{
	char *end;
	size_t bytes;
	const char *const text = text_or_empty(trace, name, &bytes);
	if (glob(wanted, text, bytes))
		return true;
	errno = 0;
	const long long number = strtoll(wanted, &end, 10);
	return end != wanted && !*end && !errno && number == id;
}

static bool thread_in(const struct ky_trace *trace, const struct ky_stats_filter *spec,
		      uint32_t thread)
{
	return !spec->thread ||
	       (thread != KY_NONE && match_task(trace, spec->thread, trace->threads.name[thread],
						trace->threads.tid[thread]));
}

static bool process_in(const struct ky_trace *trace, const struct ky_stats_filter *spec,
		       uint32_t process)
{
	return !spec->process || (process != KY_NONE &&
				  match_task(trace, spec->process, trace->processes.name[process],
					     trace->processes.pid[process]));
}

static bool track_in(const struct ky_trace *trace, const struct ky_stats_filter *spec,
		     uint32_t track)
{
	const uint32_t thread = ky_track_thread(trace, track);
	if (thread == KY_NONE)
		return !spec->thread && process_in(trace, spec, ky_track_process(trace, track));
	return thread_in(trace, spec, thread) &&
	       process_in(trace, spec, trace->threads.process[thread]);
}

static int select_tasks(struct ky_filter *filter, const struct ky_stats_filter *spec)
{
	const struct ky_trace *const trace = filter->trace;
	filter->tracks = calloc((size_t)trace->tracks.rows.count + 1, 1);
	filter->threads = calloc((size_t)trace->threads.rows.count + 1, 1);
	if (!filter->tracks || !filter->threads)
		return -ENOMEM;
	for (uint32_t i = 0; i < trace->threads.rows.count; i++)
		filter->threads[i] = (!spec->threads || spec->threads[i]) &&
				     thread_in(trace, spec, i) &&
				     process_in(trace, spec, trace->threads.process[i]);
	for (uint32_t i = 0; i < trace->tracks.rows.count; i++) {
		filter->tracks[i] = (!spec->tracks || spec->tracks[i]) && track_in(trace, spec, i);
	}
	return 0;
}

int ky_filter_open(struct ky_filter *filter, const struct ky_trace *trace,
		   const struct ky_stats_filter *spec)
{
	static const struct ky_stats_filter everything = {.from_ns = KY_TIME_NONE,
							  .to_ns = KY_TIME_NONE};
	const size_t strings = (size_t)trace->strings.count + 1;
	int error = 0;
	spec = spec ? spec : &everything;
	*filter =
		(struct ky_filter){.trace = trace, .name = spec->name, .category = spec->category};
	filter->from_ns = spec->from_ns == KY_TIME_NONE ? INT64_MIN : spec->from_ns;
	filter->to_ns = spec->to_ns == KY_TIME_NONE ? INT64_MAX : spec->to_ns;
	filter->end =
		spec->to_ns == KY_TIME_NONE
			? trace->slices.rows.count
			: ky_index_time(trace->slices.ts, trace->slices.rows.count, spec->to_ns);
	filter->first = ky_index_time(trace->slices.ts, trace->slices.rows.count, filter->from_ns);
	filter->ends = spec->ends;
	filter->stop = spec->stop;
	if (spec->name && !(filter->names = calloc(strings, 1)))
		error = -ENOMEM;
	if (spec->category && !(filter->categories = calloc(strings, 1)))
		error = -ENOMEM;
	if (!error && (spec->thread || spec->process || spec->tracks || spec->threads))
		error = select_tasks(filter, spec);
	if (error)
		ky_filter_close(filter);
	return error;
}

void ky_filter_close(struct ky_filter *filter)
{
	free(filter->tracks);
	free(filter->threads);
	free(filter->names);
	free(filter->categories);
	*filter = (struct ky_filter){0};
}

/* A slice that never ended lasts to the end of the trace. */
static int64_t block_end(const struct ky_trace *trace, uint32_t first, uint32_t count)
{
	const int64_t *const ts = trace->slices.ts + first, *const dur = trace->slices.dur + first;
	int64_t last = INT64_MIN;
	for (uint32_t i = 0; i < count; i++) {
		const int64_t end = dur[i] < 0 ? trace->end_ns : ky_add_clamped(ts[i], dur[i]);
		last = end > last ? end : last;
	}
	return last;
}

int ky_filter_ends_make(struct ky_filter_ends *ends, const struct ky_trace *trace)
{
	const uint32_t rows = trace->slices.rows.count;
	const uint32_t blocks = rows / KY_FILTER_ENDS_ROWS + (rows % KY_FILTER_ENDS_ROWS != 0);
	ends->ends = malloc(((size_t)blocks + 1) * sizeof(*ends->ends));
	if (!ends->ends)
		return -ENOMEM;
	for (uint32_t i = 0; i < blocks; i++) {
		const uint32_t left = rows - i * KY_FILTER_ENDS_ROWS;
		ends->ends[i] = block_end(trace, i * KY_FILTER_ENDS_ROWS,
					  left < KY_FILTER_ENDS_ROWS ? left : KY_FILTER_ENDS_ROWS);
	}
	return 0;
}

void ky_filter_ends_free(struct ky_filter_ends *ends)
{
	free(ends->ends);
	*ends = (struct ky_filter_ends){0};
}
