/* SPDX-License-Identifier: MIT */
/*
 * kymo_read.c: reads .kymo files into the model.
 *
 *   source 0 ─▶ snapshots, notes, clocks
 *   drums, by their first event ─▶ whose ─▶ intake: an own one each, for trace points and threads are numbered by source
 *   streams ─▶ the readers of their formats: kymo_stream.c
 *
 * Whose: a drum is of one process. Two with the same pid whose times overlap are of different processes (of other pid
 * namespaces) and get rows of their own; when one begins after the other ended it is the same process after an exec. A
 * drum that kymo made beside the program's own (calls of its functions, its threads off the CPU) is of the same process
 * and the same threads: it comes after it, so that of spans that begin at one time the outer come first. Spans that a
 * program begins in one function and ends in another (KYMO_BEGIN, KYMO_END) do not nest with calls: then the calls are
 * on tracks of their own.
 *
 * Events of one source come in the order of time, and slices are built at once; unless an event goes back (its beginning
 * was overwritten, or it has its own time), or there are several sources: then the file is read a second time, and the
 * model sorts.
 */
#include "base/array.h"
#include "base/map.h"
#include "core/layout.h"
#include "formats/drum/drum_import.h"
#include "formats/kymo/kymo_columns.h"
#include "formats/kymo/kymo_file.h"
#include "formats/kymo/kymo_reader.h"
#include "formats/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is of all sources ---- */

/*
 *   SNAPSHOT ─┬─▶ an instant on the track "snapshots"
 *             ├─▶ window [from, to]; those that touch are one
 *             └─▶ snapshots: the event that asked for it is not shown beside it
 *   NOTE ─────▶ metadata "capture_note"
 *   CLOCK ────▶ the trace's clocks: source 0's, else those of the first source that has any
 */
struct common_parts {
	struct ky_window *windows;
	uint32_t windows_count;
	struct ky_event_snapshot *snapshots;
	uint32_t snapshots_count;
	struct ky_pair_map program_ends; /* source to its time */
};

static int64_t time_of(uint64_t ns)
{
	return ns <= INT64_MAX ? (int64_t)ns : INT64_MAX;
}

static void put_text(struct ky_trace *trace, const char *key, struct ky_text text)
{
	if (text.bytes)
		ky_arg_string(trace, ky_string_z(trace, key),
			      ky_string(trace, text.data, text.bytes));
}

static void put_snapshot(struct ky_trace *trace, const struct ky_kymo_snapshot_record *snapshot)
{
	static const char *const arg_keys[] = {"debug.arg1", "debug.arg2"};
	const struct ky_kymo_snapshot *at = &snapshot->at;
	const struct ky_text name = snapshot->reason.bytes ? snapshot->reason : snapshot->trigger;
	ky_args_begin(trace);
	put_text(trace, "debug.trigger", snapshot->trigger);
	if (at->pid)
		ky_arg_int(trace, ky_string_z(trace, "debug.pid"), at->pid);
	if (at->tid)
		ky_arg_int(trace, ky_string_z(trace, "debug.tid"), at->tid);
	for (uint32_t i = 0; i < 2 && i < at->args_count; i++)
		ky_arg_uint(trace, ky_string_z(trace, arg_keys[i]), at->args[i]);
	if (at->noticed_ns > at->time_ns)
		ky_arg_uint(trace, ky_string_z(trace, "debug.noticed_after_ns"),
			    at->noticed_ns - at->time_ns);
	put_text(trace, "debug.stack", snapshot->stack);
	if (at->to_ns) {
		ky_arg_int(trace, ky_string_z(trace, "debug.from"), time_of(at->from_ns));
		ky_arg_int(trace, ky_string_z(trace, "debug.to"), time_of(at->to_ns));
	}
	const uint32_t args = ky_args_end(trace);
	ky_put_instant(trace, time_of(at->time_ns), ky_event_snapshots_track(trace),
		       ky_string_z(trace, "kymo"), ky_string(trace, name.data, name.bytes), args);
}

KY_ORDER(by_time, struct ky_event_snapshot, KY_COMPARE(a->ns, b->ns))

KY_ORDER(by_from, struct ky_window, KY_COMPARE(a->from_ns, b->from_ns))

/* Ordered, and those that touch made one. */
static void join_windows(struct common_parts *common)
{
	struct ky_window *windows = common->windows;
	uint32_t count = 0;
	qsort(windows, common->windows_count, sizeof(*windows), by_from);
	for (uint32_t i = 0; i < common->windows_count; i++) {
		if (!count || windows[i].from_ns > windows[count - 1].to_ns)
			windows[count++] = windows[i];
		else if (windows[i].to_ns > windows[count - 1].to_ns)
			windows[count - 1].to_ns = windows[i].to_ns;
	}
	common->windows_count = count;
}

static bool is_api(struct ky_text trigger)
{
	return trigger.bytes == 3 && memcmp(trigger.data, "api", 3) == 0;
}

static int take_snapshots(struct common_parts *common, const struct ky_kymo_info *info)
{
	const size_t room = (size_t)info->snapshots_count + 1;
	common->windows = malloc(room * sizeof(*common->windows));
	common->snapshots = malloc(room * sizeof(*common->snapshots));
	if (!common->windows || !common->snapshots)
		return -ENOMEM;
	for (uint32_t i = 0; i < info->snapshots_count; i++) {
		const struct ky_kymo_snapshot_record *snapshot = &info->snapshots[i];
		const struct ky_kymo_snapshot *at = &snapshot->at;
		common->snapshots[common->snapshots_count++] =
			(struct ky_event_snapshot){.ns = time_of(at->time_ns),
						   .tid = at->tid,
						   .by_api = is_api(snapshot->trigger),
						   .reason = snapshot->reason};
		if (at->to_ns && at->from_ns <= at->to_ns)
			common->windows[common->windows_count++] =
				(struct ky_window){time_of(at->from_ns), time_of(at->to_ns)};
	}
	qsort(common->snapshots, common->snapshots_count, sizeof(*common->snapshots), by_time);
	join_windows(common);
	return 0;
}

static bool has_clocks(struct ky_kymo *source)
{
	return source && ky_kymo_info(source)->samples_count;
}

/* 0 is a file that was made of another trace, which does not say. */
static void put_clock(struct ky_trace *trace, const struct ky_tick_reading *s)
{
	struct ky_clock_reading readings[3] = {{KY_CLOCK_BOOTTIME, (int64_t)s->boottime_ns}};
	uint32_t known = 1;
	if (s->monotonic_ns)
		readings[known++] =
			(struct ky_clock_reading){KY_CLOCK_MONOTONIC, (int64_t)s->monotonic_ns};
	if (s->realtime_ns)
		readings[known++] =
			(struct ky_clock_reading){KY_CLOCK_REALTIME, (int64_t)s->realtime_ns};
	ky_put_clocks(trace, (int64_t)s->boottime_ns, readings, known);
}

static void put_clocks(struct ky_trace *trace, const struct ky_kymo_bundle *bundle)
{
	struct ky_kymo *source = ky_kymo_bundle_of_all(bundle);
	for (uint32_t i = 0; !has_clocks(source) && i < ky_kymo_bundle_count(bundle); i++)
		source = ky_kymo_bundle_source(bundle, i);
	if (!has_clocks(source))
		return;
	const struct ky_kymo_info *info = ky_kymo_info(source);
	/* Definitions that come once more at the end have all of them a second time. */
	for (uint32_t i = 0; i < info->samples_count; i++)
		if (!i ||
		    memcmp(&info->samples[i], &info->samples[i - 1], sizeof(info->samples[i])) != 0)
			put_clock(trace, &info->samples[i]);
}

static int take_ends(struct common_parts *common, const struct ky_kymo_info *info)
{
	bool made;
	for (uint32_t i = 0; i < info->ends_count; i++) {
		if (info->ends[i].tid)
			continue;
		uint64_t *ns =
			ky_pair_map_add(&common->program_ends, info->ends[i].source, 0, &made);
		if (!ns)
			return -ENOMEM;
		*ns = (uint64_t)time_of(info->ends[i].time_ns);
	}
	return 0;
}

static int load_common(struct ky_trace *trace, const struct ky_kymo_bundle *bundle,
		       struct common_parts *common)
{
	struct ky_kymo *of_all = ky_kymo_bundle_of_all(bundle);
	put_clocks(trace, bundle);
	if (!of_all)
		return 0;
	const struct ky_kymo_info *info = ky_kymo_info(of_all);
	for (uint32_t i = 0; i < info->remarks_count; i++)
		ky_put_metadata(trace, "capture_note",
				ky_string(trace, info->remarks[i].data, info->remarks[i].bytes));
	for (uint32_t i = 0; i < info->snapshots_count; i++)
		put_snapshot(trace, &info->snapshots[i]);
	const int error = take_ends(common, info);
	return !error && info->snapshots_count ? take_snapshots(common, info) : error;
}

/* Snapshots, notes and clocks into the trace. 0 or -ENOMEM. */
/* A source with events, or with a process that recorded none. */
struct drum {
	struct ky_kymo *source;
	uint64_t first_ns, last_ns;
	uint32_t layer; /* enum ky_drum_layer */
	uint32_t order; /* in the file */
};

struct kymo_loading {
	struct ky_load *load;
	struct ky_kymo_bundle *bundle;
	struct common_parts common;
	struct ky_event_intake *intake; /* of the source that is being read */
	struct drum *drums;
	uint32_t drums_count;
	struct ky_u64_map crossing; /* pids: of those below */
	struct ky_u64_map lives;    /* pid: drum + 1 that ends last of its current life */
	uint64_t chunks, chunks_done;
	uint64_t unknown, damaged; /* events left out, of all */
	struct ky_thread_ends ends;
	uint32_t process; /* whose source it is that is being read; KY_NONE: of several */
	bool ordered;
	bool beside; /* there are several drums of the same threads */
};

/* Report whether the file's index shows that its events come in the order of time. */
static bool seems_ordered(const struct ky_kymo_bundle *bundle)
{
	uint32_t drums = 0;
	for (uint32_t i = 0; i < ky_kymo_bundle_count(bundle); i++) {
		struct ky_kymo *source = ky_kymo_bundle_source(bundle, i);
		const struct ky_kymo_info *info = ky_kymo_info(source);
		uint64_t bytes;
		if (info->lost || info->snapshots_count || ky_kymo_stream_kind(source, &bytes))
			return false;
		for (uint32_t site = 0; site < info->sites_count; site++)
			if (info->sites[site]->flags & KYMO_SITE_TIME)
				return false;
		drums += info->entries_count != 0;
	}
	return drums <= 1;
}

/* ---- drums ---- */

static int on_chunk(void *context, uint64_t done, uint64_t all)
{
	const struct kymo_loading *loading = context;
	struct ky_load *load = loading->load;
	(void)all;
	if (ky_event_intake_is_done(loading->intake))
		return -EAGAIN;
	return load->progress ? load->progress(load, loading->chunks_done + done, loading->chunks)
			      : 0;
}

static void find_range(struct drum *drum)
{
	const struct ky_kymo_info *info = ky_kymo_info(drum->source);
	drum->first_ns = UINT64_MAX;
	for (uint32_t i = 0; i < info->entries_count; i++) {
		const uint64_t first = ky_kymo_ns(drum->source, info->entries[i].first_ticks);
		const uint64_t last = ky_kymo_ns(drum->source, info->entries[i].last_ticks);
		drum->first_ns = first < drum->first_ns ? first : drum->first_ns;
		drum->last_ns = last > drum->last_ns ? last : drum->last_ns;
	}
}

KY_ORDER(by_begin, struct drum,
	 KY_COMPARE_THEN(a->layer, b->layer,
			 KY_COMPARE_THEN(a->first_ns, b->first_ns, KY_COMPARE(a->order, b->order))))

static int list_drums(struct kymo_loading *loading)
{
	const uint32_t count = ky_kymo_bundle_count(loading->bundle);
	const bool several = ky_kymo_bundle_several(loading->bundle);
	loading->drums = calloc((size_t)count + 1, sizeof(*loading->drums));
	if (!loading->drums)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		struct ky_kymo *source = ky_kymo_bundle_source(loading->bundle, i);
		const struct ky_kymo_info *info = ky_kymo_info(source);
		if (several && !info->entries_count && !info->processes_count)
			continue;
		struct drum *drum = &loading->drums[loading->drums_count++];
		*drum = (struct drum){.source = source, .layer = info->layer, .order = i};
		loading->beside |= info->layer != KY_DRUM_OWN;
		loading->chunks += info->entries_count;
		find_range(drum);
	}
	qsort(loading->drums, loading->drums_count, sizeof(*loading->drums), by_begin);
	return 0;
}

/* Return the row of the drum's process: see the head of this file. */
static uint32_t process_of(struct kymo_loading *loading, uint32_t index, int32_t pid)
{
	struct ky_trace *trace = loading->load->trace;
	const struct drum *drum = &loading->drums[index];
	bool made;
	if (drum->layer != KY_DRUM_OWN)
		return ky_process(trace, pid);
	uint32_t *life = ky_u64_map_add(&loading->lives, (uint32_t)pid, &made);
	if (!life) {
		trace->error = -ENOMEM;
		return 0;
	}
	const struct drum *before = made ? NULL : &loading->drums[*life - 1];
	const bool has_events = ky_kymo_info(drum->source)->entries_count != 0;
	const bool another = before && has_events && drum->first_ns <= before->last_ns;
	if (!before || another || drum->last_ns > before->last_ns)
		*life = index + 1;
	return another ? ky_process_new(trace, pid) : ky_process(trace, pid);
}

/* Report whether the program has spans that may begin in one function and end in another. */
static bool crosses_functions(const struct ky_kymo_info *info)
{
	for (uint32_t i = 0; i < info->sites_count; i++) {
		const struct ky_site *const site = info->sites[i];
		if (site->kind == KYMO_KIND_BEGIN && !(site->flags & KYMO_SITE_SCOPE))
			return true;
	}
	return false;
}

/* Drums beside a program's own come after it. */
static void put_beside(struct kymo_loading *loading, const struct ky_kymo_info *info)
{
	bool made;
	ky_event_intake_beside(loading->intake, info->layer == KY_DRUM_OWN);
	if (info->layer != KY_DRUM_OWN)
		ky_event_intake_apart(loading->intake, &loading->crossing);
	else if (crosses_functions(info) &&
		 !ky_u64_map_add(&loading->crossing, (uint32_t)info->pid, &made))
		loading->load->trace->error = -ENOMEM;
}

static void put_processes(struct kymo_loading *loading, uint32_t index,
			  const struct ky_kymo_info *info)
{
	struct ky_event_intake *intake = loading->intake;
	if (loading->beside || loading->ends.count)
		ky_event_intake_ends(intake, &loading->ends, info->layer == KY_DRUM_SWITCHES);
	if (loading->beside)
		put_beside(loading, info);
	/* As the recorder leaves it: several are in files made of other traces, whose pids are all of one machine. */
	loading->process = KY_NONE;
	if (info->processes_count == 1 && ky_kymo_bundle_several(loading->bundle)) {
		loading->process = process_of(loading, index, info->pid);
		ky_event_intake_owner(intake, info->pid, loading->process);
	}
	for (uint32_t i = 0; i < info->processes_count; i++)
		ky_event_intake_process(intake, info->processes[i].pid, info->processes[i].name,
					info->processes[i].command);
	if (!info->processes_count)
		ky_event_intake_process(intake, info->pid, info->process, info->command);
}

/* What was open when the program ended, ends. */
static void put_end(struct kymo_loading *loading, const struct drum *drum)
{
	const struct ky_kymo_info *info = ky_kymo_info(drum->source);
	struct ky_trace *trace = loading->load->trace;
	const uint64_t *ns = ky_pair_map_find(&loading->common.program_ends,
					      ky_kymo_source_number(drum->source), 0);
	if (!ns)
		return;
	if (loading->process != KY_NONE)
		ky_put_program_end(trace, (int64_t)*ns, loading->process);
	for (uint32_t i = 0; loading->process == KY_NONE && i < info->processes_count; i++)
		ky_put_program_end(trace, (int64_t)*ns, ky_process(trace, info->processes[i].pid));
}

static void put_drum_facts(struct kymo_loading *loading, const struct drum *drum)
{
	struct ky_trace *trace = loading->load->trace;
	const struct ky_kymo_info *info = ky_kymo_info(drum->source);
	char text[256];
	if (!ky_kymo_bundle_several(loading->bundle))
		return;
	const int used = snprintf(text, sizeof(text), "%u: drum of %.100s, pid %d: %llu events",
				  ky_kymo_source_number(drum->source),
				  info->process.bytes ? info->process.data : "a process", info->pid,
				  (unsigned long long)info->events);
	if (info->lost)
		snprintf(text + used, sizeof(text) - (size_t)used, ", %llu lost",
			 (unsigned long long)info->lost);
	ky_put_metadata(trace, "capture_source", ky_string_z(trace, text));
}

static void count_left_out(struct kymo_loading *loading, const struct drum *drum,
			   const struct ky_kymo_totals *totals)
{
	const struct ky_kymo_info *info = ky_kymo_info(drum->source);
	loading->unknown += totals->unknown;
	loading->damaged += totals->damaged;
	struct ky_trace *trace = loading->load->trace;
	uint64_t told = totals->lost;
	for (uint32_t i = 0; i < info->losses_count; i++)
		told += ky_put_missing(trace, KY_TIME_NONE, KY_NONE, KY_NONE, info->losses[i].count,
				       info->losses[i].what.data);
	if (info->lost > told)
		ky_put_lost(trace, KY_TIME_NONE, KY_NONE, KY_NONE, info->lost - told,
			    KY_LOSS_NO_RING);
}

/* Call of the program that a process executed later are in another drum. */
static void cut_followed(struct kymo_loading *loading, uint32_t index)
{
	const struct drum *const drum = &loading->drums[index];
	for (uint32_t i = index + 1; i < loading->drums_count && drum->layer != KY_DRUM_OWN; i++) {
		if (loading->drums[i].layer == drum->layer)
			ky_event_intake_cut(loading->intake,
					    ky_kymo_info(loading->drums[i].source)->pid);
	}
}

static void take_end(void *context, const struct ky_event *event)
{
	struct kymo_loading *loading = context;
	const struct ky_thread_end end = {event->thread->pid, event->thread->tid,
					  (int64_t)event->time_ns};
	if (event->kind == KYMO_KIND_INSTANT && event->time_ns < INT64_MAX &&
	    !ky_thread_ends_add(&loading->ends, &end))
		loading->load->trace->error = -ENOMEM;
}

/* The capture saw that the ring of a thread was given back. */
static int take_thread_ends(struct kymo_loading *loading)
{
	struct ky_kymo *const of_all = ky_kymo_bundle_of_all(loading->bundle);
	const struct ky_kymo_info *const info = of_all ? ky_kymo_info(of_all) : NULL;
	struct ky_u64_map pids = {0};
	bool made, fine = true;
	for (uint32_t i = 0; info && info->ends_count && fine && i < loading->drums_count; i++) {
		struct ky_kymo *const source = loading->drums[i].source;
		uint32_t *const pid = ky_u64_map_add(&pids, ky_kymo_source_number(source), &made);
		fine = pid != NULL;
		if (fine)
			*pid = (uint32_t)ky_kymo_info(source)->pid;
	}
	for (uint32_t i = 0; info && fine && i < info->ends_count; i++) {
		const struct ky_kymo_program_end *const end = &info->ends[i];
		const uint32_t *const pid = end->tid ? ky_u64_map_find(&pids, end->source) : NULL;
		const struct ky_thread_end thread = {pid ? (int32_t)*pid : 0, (int32_t)end->tid,
						     time_of(end->time_ns)};
		fine = !pid || ky_thread_ends_add(&loading->ends, &thread);
	}
	ky_u64_map_free(&pids);
	return fine ? 0 : -ENOMEM;
}

/* A session has noted that in its file. */
static int take_own_ends(struct kymo_loading *loading, const struct ky_kymo_info *info)
{
	for (uint32_t i = 0; i < info->ends_count; i++) {
		const struct ky_thread_end end = {info->pid, (int32_t)info->ends[i].tid,
						  time_of(info->ends[i].time_ns)};
		if (end.tid && !ky_thread_ends_add(&loading->ends, &end))
			return -ENOMEM;
	}
	return 0;
}

/* Before all others: see thread_ends.h. */
static int read_ends(struct kymo_loading *loading)
{
	const struct ky_stream_sink sink = {.event = take_end, .context = loading};
	int error = take_thread_ends(loading);
	for (uint32_t i = 0; !error && i < loading->drums_count; i++) {
		struct ky_kymo_totals totals = {0};
		error = take_own_ends(loading, ky_kymo_info(loading->drums[i].source));
		if (!error && loading->drums[i].layer == KY_DRUM_SWITCHES)
			error = ky_kymo_read(loading->drums[i].source, 0, UINT64_MAX, &sink,
					     &totals);
	}
	ky_thread_ends_sort(&loading->ends);
	return error ? error : loading->load->trace->error;
}

static int read_events(struct kymo_loading *loading, uint32_t index)
{
	struct ky_kymo *source = loading->drums[index].source;
	struct ky_trace *trace = loading->load->trace;
	struct ky_event_intake *intake = loading->intake;
	struct ky_kymo_totals totals = {0};
	const struct ky_stream_sink sink = {.thread = ky_event_intake_thread,
					    .event = ky_event_intake_event,
					    .words = ky_event_intake_words,
					    .context = intake};
	put_processes(loading, index, ky_kymo_info(source));
	ky_event_intake_windows(intake, loading->common.windows, loading->common.windows_count);
	ky_event_intake_snapshots(intake, loading->common.snapshots,
				  loading->common.snapshots_count);
	ky_kymo_on_progress(source, on_chunk, loading);
	int error = ky_kymo_read(source, 0, UINT64_MAX, &sink, &totals);
	if (!error && ky_event_intake_is_done(intake))
		error = trace->error ? trace->error : -EAGAIN;
	if (error)
		return error;
	cut_followed(loading, index);
	ky_event_intake_end(intake);
	put_end(loading, &loading->drums[index]);
	count_left_out(loading, &loading->drums[index], &totals);
	return 0;
}

static int read_drum(struct kymo_loading *loading, uint32_t index)
{
	struct ky_trace *trace = loading->load->trace;
	int error = ky_event_intake_open(&loading->intake, trace, loading->ordered);
	if (error)
		return error;
	put_drum_facts(loading, &loading->drums[index]);
	error = read_events(loading, index);
	ky_event_intake_close(&loading->intake);
	loading->chunks_done += ky_kymo_info(loading->drums[index].source)->entries_count;
	return error;
}

/* ---- damage ---- */

static void put_problems(struct kymo_loading *loading)
{
	struct ky_trace *trace = loading->load->trace;
	const struct ky_kymo_bundle *bundle = loading->bundle;
	/* Notes are of the file: those of any source are those of all. */
	const struct ky_kymo_info *info = ky_kymo_info(ky_kymo_bundle_source(bundle, 0));
	for (uint32_t i = 0; i < info->notes_count; i++)
		ky_problem(trace, "kymo_damaged", KY_ERROR, info->notes[i].at, "%s",
			   info->notes[i].text);
	if (info->damages > info->notes_count)
		ky_problems(trace, "kymo_damaged", KY_ERROR, KY_NO_PLACE,
			    info->damages - info->notes_count);
	if (!ky_kymo_bundle_finished(bundle))
		ky_problem(trace, "kymo_not_finished", KY_INFO, KY_NO_PLACE,
			   "there is no index at the end: the program was killed, or still writes");
	if (loading->unknown)
		ky_problems(trace, "kymo_site_unknown", KY_DATA_LOSS, KY_NO_PLACE,
			    loading->unknown);
	if (loading->damaged)
		ky_put_lost(trace, KY_TIME_NONE, KY_NONE, KY_NONE, loading->damaged,
			    KY_LOSS_FILE_DAMAGED);
}

/* All of it. -EAGAIN: it is not ordered, and has to be read again so, into a new trace. */
static int load_sources(struct ky_load *load, struct ky_kymo_bundle *bundle, bool ordered)
{
	struct kymo_loading loading = {.load = load, .bundle = bundle, .ordered = ordered};
	int error = list_drums(&loading);
	if (!error)
		error = load_common(load->trace, bundle, &loading.common);
	if (!error && loading.common.windows_count)
		ky_trace_windows(load->trace, loading.common.windows, loading.common.windows_count);
	if (!error)
		error = read_ends(&loading);
	for (uint32_t i = 0; !error && i < loading.drums_count; i++)
		error = read_drum(&loading, i);
	if (!error)
		error = ky_kymo_stream_load_all(load, bundle);
	if (!error)
		put_problems(&loading);
	free(loading.common.windows);
	free(loading.common.snapshots);
	ky_pair_map_free(&loading.common.program_ends);
	ky_u64_map_free(&loading.crossing);
	ky_u64_map_free(&loading.lives);
	ky_thread_ends_free(&loading.ends);
	free(loading.drums);
	return error;
}

static bool probe(const struct ky_probe *probe)
{
	const uint64_t magic = KY_KYMO_MAGIC;
	return probe->bytes >= sizeof(magic) && memcmp(probe->data, &magic, sizeof(magic)) == 0;
}

static int start_over(struct ky_load *load)
{
	const char *const format = load->trace->format;
	ky_trace_close(&load->trace);
	const int error = ky_trace_open(&load->trace);
	if (!error)
		load->trace->format = format;
	return error;
}

static int read_sources(struct ky_load *load, struct ky_kymo_bundle *bundle)
{
	const bool ordered = seems_ordered(bundle);
	int error = load_sources(load, bundle, ordered);
	if (error == -EAGAIN && ordered) {
		error = start_over(load);
		if (!error)
			error = load_sources(load, bundle, false);
	}
	return error;
}

/* Load a file of columns; *done is false when it has rings instead. */
static int read_columns(struct ky_load *load, int fd, bool *done)
{
	struct ky_kymo_bytes bytes;
	struct ky_kymo_medium *medium;
	int error = ky_kymo_bytes_open_fd(&bytes, fd);
	*done = error || ky_kymo_is_columns(&bytes);
	if (error)
		return error;
	error = ky_kymo_medium_open(&medium, &bytes);
	if (!error && *done)
		error = ky_kymo_columns_load(load, medium);
	*done |= error != 0;
	ky_kymo_medium_close(&medium);
	return error;
}

static int read_trace(struct ky_load *load)
{
	struct ky_kymo_bundle *bundle;
	struct ky_kymo_error why = {0};
	uint64_t bytes;
	bool done;
	const int fd = ky_input_file(load->input, &bytes);
	if (fd < 0)
		return load->input->error;
	int error = read_columns(load, fd, &done);
	if (done)
		return error;
	error = ky_kymo_bundle_open_fd(&bundle, fd, &why);
	if (error == -ENOMEM)
		return error;
	if (error)
		return ky_load_fail(load, why.at, "%s", why.text);
	error = read_sources(load, bundle);
	ky_kymo_bundle_close(&bundle);
	return error;
}

const struct ky_reader ky_reader_kymo = {
	.name = "kymo",
	.title = "kymo trace",
	.directory = false,
	.probe = probe,
	.read = read_trace,
};
