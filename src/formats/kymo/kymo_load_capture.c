/* SPDX-License-Identifier: MIT */
/*
 * kymo_load_capture.c: the parts of a .kymo file that belong to all sources: snapshots, notes, clocks.
 *
 *   SNAPSHOT ─┬─▶ an instant on the track "snapshots"
 *             ├─▶ window [from, to]; those that touch are one
 *             └─▶ told: the event that asked for it is not shown beside it
 *   NOTE ─────▶ metadata "capture_note"
 *   CLOCK ────▶ the trace's clocks: source 0's, else those of the first source that has any
 */
#include "formats/kymo/kymo_load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int64_t time_of(uint64_t ns)
{
	return ns <= INT64_MAX ? (int64_t)ns : INT64_MAX;
}

/* ---- snapshots ---- */

static void put_text(struct ky_trace *trace, const char *key, struct ky_text text)
{
	if (text.bytes)
		ky_arg_string(trace, ky_string_z(trace, key),
			      ky_string(trace, text.data, text.bytes));
}

static void put_snapshot(struct ky_trace *trace, const struct ky_kymo_snapshot_told *told)
{
	static const char *const arg_keys[] = {"debug.arg1", "debug.arg2"};
	const struct ky_kymo_snapshot *at = &told->at;
	const struct ky_text name = told->reason.bytes ? told->reason : told->trigger;
	ky_args_begin(trace);
	put_text(trace, "debug.trigger", told->trigger);
	if (at->pid)
		ky_arg_int(trace, ky_string_z(trace, "debug.pid"), at->pid);
	if (at->tid)
		ky_arg_int(trace, ky_string_z(trace, "debug.tid"), at->tid);
	for (uint32_t i = 0; i < 2 && i < at->args_count; i++)
		ky_arg_uint(trace, ky_string_z(trace, arg_keys[i]), at->args[i]);
	if (at->noticed_ns > at->time_ns)
		ky_arg_uint(trace, ky_string_z(trace, "debug.noticed_after_ns"),
			    at->noticed_ns - at->time_ns);
	put_text(trace, "debug.stack", told->stack);
	if (at->to_ns) {
		ky_arg_int(trace, ky_string_z(trace, "debug.from"), time_of(at->from_ns));
		ky_arg_int(trace, ky_string_z(trace, "debug.to"), time_of(at->to_ns));
	}
	const uint32_t args = ky_args_end(trace);
	ky_put_instant(trace, time_of(at->time_ns), ky_event_snapshots_track(trace),
		       ky_string_z(trace, "kymo"), ky_string(trace, name.data, name.bytes), args);
}

static int by_time(const void *a, const void *b)
{
	const struct ky_event_told *left = a, *right = b;
	return (left->ns > right->ns) - (left->ns < right->ns);
}

static int by_begin(const void *a, const void *b)
{
	const struct ky_window *left = a, *right = b;
	return (left->from_ns > right->from_ns) - (left->from_ns < right->from_ns);
}

/* Ordered, and those that touch made one. */
static void join_windows(struct ky_kymo_common *common)
{
	struct ky_window *windows = common->windows;
	uint32_t count = 0;
	qsort(windows, common->windows_count, sizeof(*windows), by_begin);
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

static int take_snapshots(struct ky_kymo_common *common, const struct ky_kymo_info *info)
{
	const size_t room = (size_t)info->snapshots_count + 1;
	common->windows = malloc(room * sizeof(*common->windows));
	common->told = malloc(room * sizeof(*common->told));
	if (!common->windows || !common->told)
		return -ENOMEM;
	for (uint32_t i = 0; i < info->snapshots_count; i++) {
		const struct ky_kymo_snapshot_told *snapshot = &info->snapshots[i];
		const struct ky_kymo_snapshot *at = &snapshot->at;
		common->told[common->told_count++] =
			(struct ky_event_told){.ns = time_of(at->time_ns),
					       .tid = at->tid,
					       .by_api = is_api(snapshot->trigger),
					       .reason = snapshot->reason};
		if (at->to_ns && at->from_ns <= at->to_ns)
			common->windows[common->windows_count++] =
				(struct ky_window){time_of(at->from_ns), time_of(at->to_ns)};
	}
	qsort(common->told, common->told_count, sizeof(*common->told), by_time);
	join_windows(common);
	return 0;
}

/* ---- clocks ---- */

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

int ky_kymo_load_common(struct ky_trace *trace, const struct ky_kymo_bundle *bundle,
			struct ky_kymo_common *common)
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
	return info->snapshots_count ? take_snapshots(common, info) : 0;
}

void ky_kymo_common_free(struct ky_kymo_common *common)
{
	free(common->windows);
	free(common->told);
	*common = (struct ky_kymo_common){0};
}
