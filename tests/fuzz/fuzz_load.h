/* SPDX-License-Identifier: MIT */
/*
 * fuzz_load.h: loads any bytes with one reader and looks at what came of it: every number that stands for something
 * must do so, and a failure must say why in one line.
 */
#ifndef KY_FUZZ_LOAD_H
#define KY_FUZZ_LOAD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/load.h"

static inline void fuzz_check(bool holds)
{
	if (!holds)
		abort();
}

/* Columns of numbers: each below count, or KY_NONE where that stands for none. */
static inline void fuzz_check_below(const uint32_t *column, struct ky_rows rows, uint32_t count,
				    bool or_none)
{
	for (uint32_t i = 0; i < rows.count; i++)
		fuzz_check(column[i] < count || (or_none && column[i] == KY_NONE));
}

static inline void fuzz_check_strings(const struct ky_trace *trace, const uint32_t *column,
				      struct ky_rows rows)
{
	fuzz_check_below(column, rows, trace->strings.count, false);
}

/* No row is its own ancestor. */
static inline void fuzz_check_acyclic(const uint32_t *parent, struct ky_rows rows)
{
	for (uint32_t i = 0; i < rows.count; i++) {
		uint32_t steps = 0;
		for (uint32_t at = parent[i]; at != KY_NONE && steps < 4096; at = parent[at])
			fuzz_check(at < rows.count && at != i && ++steps <= rows.count);
	}
}

static inline void fuzz_check_slices(const struct ky_trace *trace)
{
	const struct ky_slices *slices = &trace->slices;
	for (uint32_t i = 0; i < slices->rows.count; i++) {
		fuzz_check(i == 0 || slices->ts[i] >= slices->ts[i - 1]);
		fuzz_check(slices->dur[i] >= -1);
		fuzz_check(slices->parent[i] == KY_NONE || slices->parent[i] < i);
		fuzz_check(slices->parent[i] != KY_NONE || slices->depth[i] == 0);
	}
	fuzz_check_below(slices->track, slices->rows, trace->tracks.rows.count, false);
	fuzz_check_below(slices->args, slices->rows, trace->arg_sets.rows.count, false);
	fuzz_check_strings(trace, slices->name, slices->rows);
	fuzz_check_strings(trace, slices->category, slices->rows);
}

static inline void fuzz_check_tracks(const struct ky_trace *trace)
{
	const struct ky_tracks *tracks = &trace->tracks;
	for (uint32_t i = 0; i < tracks->rows.count; i++) {
		const uint8_t kind = tracks->kind[i] % KY_TRACK_COUNTER;
		fuzz_check(kind != KY_TRACK_THREAD || tracks->owner[i] < trace->threads.rows.count);
		fuzz_check(kind != KY_TRACK_PROCESS ||
			   tracks->owner[i] < trace->processes.rows.count);
	}
	fuzz_check_acyclic(tracks->parent, tracks->rows);
	fuzz_check_strings(trace, tracks->name, tracks->rows);
	fuzz_check_strings(trace, tracks->type, tracks->rows);
	fuzz_check_strings(trace, tracks->unit, tracks->rows);
	fuzz_check_below(tracks->args, tracks->rows, trace->arg_sets.rows.count, false);
	fuzz_check_below(trace->counters.track, trace->counters.rows, tracks->rows.count, false);
	fuzz_check_below(trace->counters.args, trace->counters.rows, trace->arg_sets.rows.count,
			 false);
}

static inline void fuzz_check_threads(const struct ky_trace *trace)
{
	const uint32_t threads = trace->threads.rows.count;
	fuzz_check_strings(trace, trace->threads.name, trace->threads.rows);
	fuzz_check_below(trace->threads.process, trace->threads.rows, trace->processes.rows.count,
			 true);
	fuzz_check_strings(trace, trace->processes.name, trace->processes.rows);
	fuzz_check_strings(trace, trace->processes.cmdline, trace->processes.rows);
	fuzz_check_below(trace->processes.parent, trace->processes.rows,
			 trace->processes.rows.count, true);
	fuzz_check_below(trace->sched.thread, trace->sched.rows, threads, false);
	fuzz_check_strings(trace, trace->sched.end_state, trace->sched.rows);
	fuzz_check_below(trace->thread_states.thread, trace->thread_states.rows, threads, false);
	fuzz_check_below(trace->thread_states.waker, trace->thread_states.rows, threads, true);
	fuzz_check_strings(trace, trace->thread_states.state, trace->thread_states.rows);
	fuzz_check_below(trace->logs.thread, trace->logs.rows, threads, true);
	fuzz_check_strings(trace, trace->logs.message, trace->logs.rows);
	fuzz_check_strings(trace, trace->logs.tag, trace->logs.rows);
	fuzz_check_below(trace->raw_events.thread, trace->raw_events.rows, threads, true);
	fuzz_check_strings(trace, trace->raw_events.name, trace->raw_events.rows);
	fuzz_check_below(trace->losses.thread, trace->losses.rows, threads, true);
}

static inline void fuzz_check_samples(const struct ky_trace *trace)
{
	fuzz_check_below(trace->samples.thread, trace->samples.rows, trace->threads.rows.count,
			 true);
	fuzz_check_below(trace->samples.callsite, trace->samples.rows, trace->callsites.rows.count,
			 true);
	fuzz_check_strings(trace, trace->samples.event, trace->samples.rows);
	fuzz_check_below(trace->callsites.frame, trace->callsites.rows, trace->frames.rows.count,
			 false);
	for (uint32_t i = 0; i < trace->callsites.rows.count; i++)
		fuzz_check(trace->callsites.parent[i] == KY_NONE || trace->callsites.parent[i] < i);
	fuzz_check_below(trace->frames.mapping, trace->frames.rows, trace->mappings.rows.count,
			 true);
	fuzz_check_strings(trace, trace->frames.name, trace->frames.rows);
	fuzz_check_strings(trace, trace->mappings.name, trace->mappings.rows);
}

static inline void fuzz_check_rest(const struct ky_trace *trace)
{
	const uint32_t slices = trace->slices.rows.count;
	fuzz_check_below(trace->flows.out, trace->flows.rows, slices, false);
	fuzz_check_below(trace->flows.in, trace->flows.rows, slices, false);
	fuzz_check_below(trace->flow_ends.slice, trace->flow_ends.rows, slices, false);
	fuzz_check_strings(trace, trace->args.key, trace->args.rows);
	for (uint32_t i = 0; i < trace->args.rows.count; i++)
		fuzz_check(trace->args.type[i] < KY_ARG_STRING ||
			   trace->args.value[i] < trace->strings.count);
	for (uint32_t i = 1; i < trace->arg_sets.rows.count; i++)
		fuzz_check(ky_arg_set_first(trace, i) <= ky_arg_set_end(trace, i) &&
			   ky_arg_set_end(trace, i) <= trace->args.rows.count);
	fuzz_check_strings(trace, trace->problems.name, trace->problems.rows);
	fuzz_check_strings(trace, trace->problems.first, trace->problems.rows);
	fuzz_check(trace->begin_ns <= trace->end_ns);
}

static inline void fuzz_check_trace(const struct ky_trace *trace)
{
	fuzz_check_slices(trace);
	fuzz_check_tracks(trace);
	fuzz_check_threads(trace);
	fuzz_check_samples(trace);
	fuzz_check_rest(trace);
}

/* What a load gave: a trace that holds together, or NULL and a line that says why. */
static inline bool fuzz_check_load(struct ky_trace *trace, int error, const char *message)
{
	if (error) {
		fuzz_check(!trace && message[0] != '\0' && !strchr(message, '\n'));
		return false;
	}
	fuzz_check_trace(trace);
	ky_trace_close(&trace);
	return true;
}

/* reader may be NULL: then it is found by the bytes. Whether they could be loaded. */
static inline bool fuzz_load(const uint8_t *data, size_t bytes, const struct ky_reader *reader)
{
	char message[KY_MESSAGE_BYTES];
	struct ky_trace *trace;
	const int error = ky_load_memory(&trace, data, bytes, reader, message);
	return fuzz_check_load(trace, error, message);
}

/* The same of a path; format may be NULL. */
static inline bool fuzz_load_path(const char *path, const char *format, bool repair)
{
	const struct ky_load_options options = {
		.size = sizeof(options), .format = format, .repair = repair};
	char message[KY_MESSAGE_BYTES];
	struct ky_trace *trace;
	const int error = ky_load(&trace, path, &options, message);
	return fuzz_check_load(trace, error, message);
}

/* The bytes as `kymo repair` reads them: it goes on behind damage. */
static inline void fuzz_load_repair(const uint8_t *data, size_t bytes,
				    const struct ky_reader *reader)
{
	char path[64];
	const int fd = memfd_create("fuzz", MFD_CLOEXEC);
	fuzz_check(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fuzz_load_path(path, reader->name, true);
	close(fd);
}

#endif
