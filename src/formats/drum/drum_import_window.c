/* SPDX-License-Identifier: MIT */
/*
 * drum_import_window.c: events of a flight recorder into the model. Its file has only parts of the time:
 *
 *        ┌ window ────────┐                    ┌ window ────────┐
 *   ─────┤ begin A        ├── nothing known ───┤   end of B     ├─────
 *        └────────────────┘                    └────────────────┘
 *            A ends here ▲                     ▲ B begins here
 *
 * Which spans ended between two windows nobody knows, and it is no loss: it was not wanted. Each thread has its own place
 * in the windows, for its events come in order and those of others between them.
 */
#include "formats/drum/drum_import.h"

#include "base/array.h"

#include <errno.h>
#include <string.h>

/* An event and the record of what it asked for have times of the same clock by two ways. */
#define SAME_MOMENT_NS 1000000
/* Records of nearly the same time that are looked at. */
#define NEAR_MAX 64u
#define END_MARGIN_NS 2000

void ky_event_intake_windows(struct ky_event_intake *intake, const struct ky_window *windows,
			     uint32_t count)
{
	intake->windows = windows;
	intake->windows_count = count;
}

void ky_event_end_open(struct ky_event_intake *intake, struct ky_known_thread *t, int64_t latest_ns)
{
	int64_t ns = t->end_ns < latest_ns ? t->end_ns : latest_ns;
	ns = ns < t->last_ns ? t->last_ns : ns;
	while (t->stack.depth) {
		uint32_t category, name;
		if (ky_event_pop(intake, t, &category, &name))
			ky_put_end_late(intake->trace, ns, t->track, category, name);
	}
}

/* The clocks of two drums differ a little. */
static int64_t with_margin(int64_t ns)
{
	return ns < INT64_MAX - END_MARGIN_NS ? ns + END_MARGIN_NS : INT64_MAX;
}

void ky_event_begin(struct ky_event_intake *intake, struct ky_known_thread *t, int64_t ns)
{
	const bool same_window = ns <= t->window_ns;
	t->first_ns = ns;
	if (ns > with_margin(t->end_ns))
		ky_event_end_open(intake, t, t->window_ns);
	if (t->window_ns == KY_EVENT_ANEW && intake->owned)
		ky_thread_expect(intake->trace, t->thread, ns);
	if (!same_window) {
		const struct ky_window *window =
			ky_window_of(intake->windows, intake->windows_count, ns);
		ky_event_end_open(intake, t, t->window_ns);
		t->made_up = 0;
		t->window_ns = window ? window->to_ns : INT64_MAX;
		if (window && window->from_ns < ns)
			t->first_ns = window->from_ns;
	}
	if (intake->ends)
		t->end_ns = ky_thread_ends_after(intake->ends, t->pid, t->tid, ns);
	const int64_t end_ns = with_margin(t->end_ns);
	t->until_ns = end_ns < t->window_ns ? end_ns : t->window_ns;
}

/* ---- asynchronous spans ---- */

/* An end finds its beginning in an earlier window by its id; without one the span began with its window. */
static void begin_with_window(struct ky_event_intake *intake, const struct ky_window *window,
			      uint32_t track, uint32_t category, uint32_t name)
{
	struct ky_trace *trace = intake->trace;
	const uint32_t args = ky_args_one(trace, intake->begin_lost, KY_ARG_BOOL, true);
	ky_put_begin(trace, window->from_ns, track, category, name, args);
}

/* What is open on the track; NULL without memory. */
static struct ky_open_async *async_on(struct ky_event_intake *intake, uint32_t track)
{
	bool made;
	uint32_t *index = ky_u64_map_add(&intake->async_of, track, &made);
	if (!index)
		return NULL;
	if (made)
		*index = intake->async_of.table.count - 1;
	struct ky_open_async *open = ky_table_make(&intake->asyncs, *index, &intake->clean);
	if (open)
		open->track = track;
	return open;
}

void ky_event_async(struct ky_event_intake *intake, uint32_t track, const struct ky_event *e,
		    uint32_t category, uint32_t name, int64_t ns)
{
	const struct ky_window *window = ky_window_of(intake->windows, intake->windows_count, ns);
	struct ky_open_async *open = async_on(intake, track);
	if (!open) {
		intake->trace->error = -ENOMEM;
		return;
	}
	if (e->kind == KYMO_KIND_ASYNC_BEGIN) {
		open->depth++;
		open->window_ns = window ? window->to_ns : INT64_MAX;
	} else if (open->depth) {
		open->depth--;
	} else if (window && window->from_ns < ns) {
		begin_with_window(intake, window, track, category, name);
	}
}

static void end_asyncs(struct ky_event_intake *intake)
{
	for (uint32_t i = 0; i < intake->asyncs.count; i++) {
		struct ky_open_async *open = ky_table_at(&intake->asyncs, i);
		for (; open->depth && open->window_ns != INT64_MAX; open->depth--)
			ky_put_end(intake->trace, open->window_ns, open->track, 0, 0, 0);
	}
}

void ky_event_intake_end(struct ky_event_intake *intake)
{
	for (uint32_t i = 0; i < intake->threads.count; i++) {
		struct ky_known_thread *t = ky_table_at(&intake->threads, i);
		if (t->known && (t->window_ns != INT64_MAX || t->end_ns != INT64_MAX))
			ky_event_end_open(intake, t, t->window_ns);
	}
	end_asyncs(intake);
}

/* ---- snapshots ---- */

uint32_t ky_event_snapshots_track(struct ky_trace *trace)
{
	return ky_track_global(trace, ky_string_z(trace, "snapshots"));
}

void ky_event_intake_snapshots(struct ky_event_intake *intake,
			       const struct ky_event_snapshot *snapshots, uint32_t count)
{
	intake->snapshots = snapshots;
	intake->snapshots_count = count;
}

static bool is_same(const struct ky_event_snapshot *snapshot, const struct ky_event *e)
{
	const bool same_reason = snapshot->reason.bytes == e->name.bytes &&
				 memcmp(snapshot->reason.data, e->name.data, e->name.bytes) == 0;
	const bool same_thread = !snapshot->tid || snapshot->tid == e->thread->tid;
	return same_thread && (same_reason || snapshot->by_api);
}

bool ky_event_is_known_snapshot(const struct ky_event_intake *intake, const struct ky_event *e,
				int64_t ns)
{
	const struct ky_event_snapshot *snapshots = intake->snapshots;
	const uint32_t low = KY_ARRAY_SEARCH(0, intake->snapshots_count, at,
					     snapshots[at].ns < ns - SAME_MOMENT_NS);
	for (uint32_t i = 0; i < NEAR_MAX && low + i < intake->snapshots_count; i++) {
		if (snapshots[low + i].ns - SAME_MOMENT_NS > ns)
			break;
		if (is_same(&snapshots[low + i], e))
			return true;
	}
	return false;
}
