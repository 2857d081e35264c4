/* SPDX-License-Identifier: MIT */
/*
 * walk.c: merges the tables of a trace in the order of time.
 *
 * Each table is in that order already, so there is one place in each. The ends of slices are not: those that
 * are open wait in a queue, the earliest end first and of equal ones the innermost. An entry is pushed when
 * its slice begins. top is the innermost open slice of each track; those below it are found by parents.
 *
 * An entry whose end is before the next item's time is due. One whose end is that very time is only due when
 * the next item begins beside it, which its parent tells: so a slice that begins where its parent ends
 * stays inside.
 */
#include "formats/walk.h"

#include "base/array.h"
#include "base/queue.h"

#include <errno.h>
#include <stdlib.h>

struct open_end {
	int64_t end;
	uint32_t slice;
};

struct ky_walk {
	const struct ky_trace *trace;
	struct ky_export_selection selection;
	struct ky_export_left *left;
	bool named_ends;
	uint32_t next[KY_WALK_WHATS]; /* of KY_WALK_BEGIN: slices; END and INSTANT are not used */
	uint32_t *top;                /* by track */
	uint8_t *ended;               /* a bit for each slice */
	uint8_t *around;              /* the same: it ended while one in it was open */
	uint64_t arounds;
	struct open_end *queue;
	uint32_t queue_count, queue_room;
	uint32_t *carried; /* counters that have their last value before the range */
	uint32_t carried_count, carried_next;
	int error;
};

/* ---- selection ---- */

static int64_t slice_end(const struct ky_trace *trace, uint32_t slice)
{
	const int64_t dur = trace->slices.dur[slice];
	const int64_t ts = trace->slices.ts[slice];
	if (dur < 0 || ts > INT64_MAX - 1 - dur)
		return INT64_MAX;
	return ts + dur;
}

bool ky_selected_range(const struct ky_export_selection *s, int64_t ts, int64_t end)
{
	if (s->to_ns != KY_TIME_NONE && ts >= s->to_ns)
		return false;
	return s->from_ns == KY_TIME_NONE || ts >= s->from_ns || end > s->from_ns;
}

bool ky_selected_slice(const struct ky_trace *trace, const struct ky_export_selection *s,
		       uint32_t slice)
{
	return trace->slices.ts[slice] >= 0 && ky_selected_any_slice(trace, s, slice);
}

bool ky_selected_any_slice(const struct ky_trace *trace, const struct ky_export_selection *s,
			   uint32_t slice)
{
	const int64_t ts = trace->slices.ts[slice];
	if (!ky_selected_range(s, ts, slice_end(trace, slice)))
		return false;
	if (s->tracks && !s->tracks[trace->slices.track[slice]])
		return false;
	return !s->categories || s->categories[trace->slices.category[slice]];
}

bool ky_selected_thread(const struct ky_export_selection *s, uint32_t thread)
{
	return !s->threads || (thread != KY_NONE && s->threads[thread]);
}

/* ---- the queue ---- */

KY_QUEUE(ends, struct open_end, a->end != b->end ? a->end < b->end : a->slice > b->slice)

static void push_end(struct ky_walk *w, struct open_end entry)
{
	if (!KY_ARRAY_GROW(w->queue, w->queue_room, (uint64_t)w->queue_count + 1)) {
		w->error = -ENOMEM;
		return;
	}
	ends_up(w->queue, w->queue_count++, entry);
}

static void pop_end(struct ky_walk *w)
{
	w->queue_count--;
	ends_down(w->queue, w->queue_count, 0, w->queue[w->queue_count]);
}

/* ---- open slices ---- */

static bool has_ended(const struct ky_walk *w, uint32_t slice)
{
	return w->ended[slice / 8] >> slice % 8 & 1;
}

static void set_ended(struct ky_walk *w, uint32_t slice)
{
	w->ended[slice / 8] |= (uint8_t)(1u << slice % 8);
}

/*
 * Return the innermost slice around it that is written as a span. A slice that ends earlier (it has no length, and a
 * longer one began in it) does not count: no format has that.
 */
static uint32_t enclosing(const struct ky_walk *w, uint32_t slice)
{
	const struct ky_slices *slices = &w->trace->slices;
	const int64_t end = slice_end(w->trace, slice);
	uint32_t at = slices->parent[slice];
	while (at != KY_NONE && (slices->kind[at] == KY_SLICE_INSTANT || has_ended(w, at) ||
				 slices->track[at] != slices->track[slice] ||
				 (end != INT64_MAX && slice_end(w->trace, at) < end) ||
				 !ky_selected_slice(w->trace, &w->selection, at)))
		at = slices->parent[at];
	return at;
}

static int64_t clip_begin(const struct ky_walk *w, int64_t ts)
{
	const struct ky_export_selection *s = &w->selection;
	return s->cut && s->from_ns != KY_TIME_NONE && ts < s->from_ns ? s->from_ns : ts;
}

static int64_t clip_end(const struct ky_walk *w, int64_t end)
{
	const struct ky_export_selection *s = &w->selection;
	return s->cut && s->to_ns != KY_TIME_NONE && end != INT64_MAX && end > s->to_ns ? s->to_ns
											: end;
}

/*
 * Report whether readers will give it another end: its own event comes after the end of a slice around it that one
 * without an end is in, and all in that one end with it as soon as there is a later event.
 */
static bool ends_too_late(const struct ky_walk *w, uint32_t slice, int64_t ts)
{
	uint32_t at = w->arounds ? w->trace->slices.parent[slice] : KY_NONE;
	for (; at != KY_NONE; at = w->trace->slices.parent[at])
		if (w->around[at / 8] >> at % 8 & 1 && clip_end(w, slice_end(w->trace, at)) < ts)
			return true;
	return false;
}

/*
 * End the innermost slice of a track, not later than at. False when its end is not written: it would end another
 * one, for readers have ended this one by then.
 */
static bool end_top(struct ky_walk *w, uint32_t track, int64_t at, struct ky_walk_item *item)
{
	const uint32_t slice = w->top[track];
	const int64_t end = clip_end(w, slice_end(w->trace, slice));
	*item = (struct ky_walk_item){KY_WALK_END, slice, end < at ? end : at, KY_TIME_NONE, false};
	const bool late = ends_too_late(w, slice, item->ts);
	w->left->ends += end > at || late;
	set_ended(w, slice);
	w->top[track] = enclosing(w, slice);
	return !late;
}

static bool is_open(const struct ky_walk *w, uint32_t slice)
{
	uint32_t at = w->top[w->trace->slices.track[slice]];
	while (at != KY_NONE && at > slice)
		at = enclosing(w, at);
	return at == slice;
}

/* Report whether readers match an end with its name to it, and not to an open slice inside it. */
static bool is_named_apart(const struct ky_walk *w, uint32_t slice)
{
	const struct ky_slices *s = &w->trace->slices;
	const uint32_t name = s->name[slice], category = s->category[slice];
	for (uint32_t at = w->top[s->track[slice]]; at != KY_NONE && at != slice;
	     at = enclosing(w, at))
		if ((!category || s->category[at] == category) &&
		    (!name || !s->name[at] || s->name[at] == name))
			return false;
	return true;
}

/* An end that comes before time ts, or at it when something that never ends is inside; if there is one. */
static bool take_due_end(struct ky_walk *w, int64_t ts, struct ky_walk_item *item)
{
	while (w->queue_count && w->queue[0].end <= ts && w->queue[0].end != INT64_MAX) {
		const struct open_end entry = w->queue[0];
		const uint32_t track = w->trace->slices.track[entry.slice];
		const bool top = w->top[track] == entry.slice;
		if (!top && !is_open(w, entry.slice)) {
			pop_end(w);
			continue;
		}
		const bool around = !top && w->named_ends && is_named_apart(w, entry.slice);
		if (entry.end == ts && !around)
			return false;
		if (top || around)
			pop_end(w);
		if (around) {
			set_ended(w, entry.slice);
			w->left->ends += ends_too_late(w, w->top[track], entry.end);
			w->around[entry.slice / 8] |= (uint8_t)(1u << entry.slice % 8);
			w->arounds++;
			*item = (struct ky_walk_item){KY_WALK_END, entry.slice, entry.end,
						      KY_TIME_NONE, true};
			return true;
		}
		if (end_top(w, track, entry.end, item)) /* slices inside end with it */
			return true;
	}
	return false;
}

/* ---- the tables ---- */

static bool skip_negative(int64_t ts, uint64_t *left)
{
	if (ts >= 0)
		return false;
	++*left;
	return true;
}

static bool peek_slice(struct ky_walk *w, int64_t *ts)
{
	const struct ky_slices *slices = &w->trace->slices;
	for (uint32_t *row = &w->next[KY_WALK_BEGIN]; *row < slices->rows.count; ++*row) {
		uint64_t *left = slices->kind[*row] == KY_SLICE_INSTANT ? &w->left->instants
									: &w->left->slices;
		if (skip_negative(slices->ts[*row], left) ||
		    !ky_selected_slice(w->trace, &w->selection, *row))
			continue;
		*ts = clip_begin(w, slices->ts[*row]);
		return true;
	}
	return false;
}

static bool peek_counter(struct ky_walk *w, int64_t *ts)
{
	const struct ky_counters *counters = &w->trace->counters;
	const struct ky_export_selection *s = &w->selection;
	if (w->carried_next < w->carried_count) {
		*ts = s->from_ns;
		return true;
	}
	for (uint32_t *row = &w->next[KY_WALK_COUNTER]; *row < counters->rows.count; ++*row) {
		const int64_t at = counters->ts[*row];
		if (skip_negative(at, &w->left->counters) || !ky_selected_range(s, at, at) ||
		    (s->tracks && !s->tracks[counters->track[*row]]))
			continue;
		*ts = at;
		return true;
	}
	return false;
}

/* A table of points or spans of threads. */
struct thread_rows {
	const int64_t *ts, *dur;
	const uint32_t *thread;
	uint32_t count;
	uint64_t *left;
};

static struct thread_rows rows_of(const struct ky_walk *w, enum ky_walk_what what)
{
	const struct ky_trace *t = w->trace;
	switch (what) {
	case KY_WALK_SCHED:
		return (struct thread_rows){t->sched.ts, t->sched.dur, t->sched.thread,
					    t->sched.rows.count, &w->left->sched};
	case KY_WALK_STATE:
		return (struct thread_rows){t->thread_states.ts, t->thread_states.dur,
					    t->thread_states.thread, t->thread_states.rows.count,
					    &w->left->sched};
	case KY_WALK_SAMPLE:
		return (struct thread_rows){t->samples.ts, NULL, t->samples.thread,
					    t->samples.rows.count, &w->left->samples};
	case KY_WALK_LOG:
		return (struct thread_rows){t->logs.ts, NULL, t->logs.thread, t->logs.rows.count,
					    &w->left->logs};
	default:
		return (struct thread_rows){t->raw_events.ts, NULL, t->raw_events.thread,
					    t->raw_events.rows.count, &w->left->raw_events};
	}
}

static int64_t row_end(const struct thread_rows *rows, uint32_t row)
{
	if (!rows->dur)
		return rows->ts[row];
	const int64_t dur = rows->dur[row];
	return dur < 0 || rows->ts[row] > INT64_MAX - 1 - dur ? INT64_MAX : rows->ts[row] + dur;
}

static bool peek_thread_row(struct ky_walk *w, enum ky_walk_what what, int64_t *ts)
{
	const struct thread_rows rows = rows_of(w, what);
	for (uint32_t *row = &w->next[what]; *row < rows.count; ++*row) {
		if (skip_negative(rows.ts[*row], rows.left) ||
		    !ky_selected_range(&w->selection, rows.ts[*row], row_end(&rows, *row)) ||
		    !ky_selected_thread(&w->selection, rows.thread[*row]))
			continue;
		*ts = rows.dur ? clip_begin(w, rows.ts[*row]) : rows.ts[*row];
		return true;
	}
	return false;
}

static bool peek(struct ky_walk *w, enum ky_walk_what what, int64_t *ts)
{
	if (what == KY_WALK_BEGIN)
		return peek_slice(w, ts);
	if (what == KY_WALK_COUNTER)
		return peek_counter(w, ts);
	if (what == KY_WALK_END || what == KY_WALK_INSTANT)
		return false;
	return peek_thread_row(w, what, ts);
}

static void take_slice(struct ky_walk *w, int64_t ts, struct ky_walk_item *item)
{
	const struct ky_slices *slices = &w->trace->slices;
	const uint32_t slice = w->next[KY_WALK_BEGIN];
	const uint32_t track = slices->track[slice];
	const uint32_t around = enclosing(w, slice);
	while (w->top[track] != KY_NONE && w->top[track] != around)
		if (end_top(w, track, ts, item))
			return;
	w->next[KY_WALK_BEGIN]++;
	const bool instant = slices->kind[slice] == KY_SLICE_INSTANT;
	*item = (struct ky_walk_item){instant ? KY_WALK_INSTANT : KY_WALK_BEGIN, slice, ts,
				      KY_TIME_NONE, false};
	if (instant)
		return;
	w->top[track] = slice;
	push_end(w, (struct open_end){clip_end(w, slice_end(w->trace, slice)), slice});
}

static void take(struct ky_walk *w, enum ky_walk_what what, int64_t ts, struct ky_walk_item *item)
{
	if (what == KY_WALK_BEGIN) {
		take_slice(w, ts, item);
		return;
	}
	*item = (struct ky_walk_item){what, w->next[what], ts, KY_TIME_NONE, false};
	if (what == KY_WALK_COUNTER && w->carried_next < w->carried_count) {
		item->row = w->carried[w->carried_next++];
		return;
	}
	if (what == KY_WALK_SCHED || what == KY_WALK_STATE) {
		const struct thread_rows rows = rows_of(w, what);
		const int64_t end = row_end(&rows, item->row);
		item->end_ns = end == INT64_MAX ? KY_TIME_NONE : clip_end(w, end);
	}
	w->next[what]++;
}

bool ky_walk_next(struct ky_walk *w, struct ky_walk_item *item)
{
	int64_t first = INT64_MAX;
	enum ky_walk_what what = KY_WALK_WHATS;
	if (w->error)
		return false;
	for (uint32_t i = 0; i < KY_WALK_WHATS; i++) {
		int64_t ts;
		if (peek(w, (enum ky_walk_what)i, &ts) && (what == KY_WALK_WHATS || ts < first)) {
			first = ts;
			what = (enum ky_walk_what)i;
		}
	}
	if (take_due_end(w, first, item))
		return true;
	if (what == KY_WALK_WHATS)
		return false;
	take(w, what, first, item);
	return !w->error;
}

/* ---- open and close ---- */

/* A part of a trace begins with the values that its counters have there. */
static int carry_counters(struct ky_walk *w)
{
	const struct ky_counters *counters = &w->trace->counters;
	const struct ky_export_selection *s = &w->selection;
	const uint32_t tracks = w->trace->tracks.rows.count;
	if (!s->cut || s->from_ns == KY_TIME_NONE || s->from_ns < 0 || !counters->rows.count)
		return 0;
	uint32_t *last = malloc((size_t)tracks * sizeof(*last));
	if (!last)
		return -ENOMEM;
	for (uint32_t i = 0; i < tracks; i++)
		last[i] = KY_NONE;
	for (uint32_t i = 0; i < counters->rows.count && counters->ts[i] <= s->from_ns; i++)
		last[counters->track[i]] = counters->ts[i] < s->from_ns ? i : KY_NONE;
	for (uint32_t i = 0; i < tracks; i++)
		if (last[i] != KY_NONE && (!s->tracks || s->tracks[i]))
			last[w->carried_count++] = last[i];
	w->carried = last;
	return 0;
}

int ky_walk_open(struct ky_walk **walk, const struct ky_trace *trace,
		 const struct ky_export_selection *selection, bool named_ends,
		 struct ky_export_left *left)
{
	static const struct ky_export_selection all = {
		.from_ns = KY_TIME_NONE, .to_ns = KY_TIME_NONE, false};
	const uint32_t tracks = trace->tracks.rows.count;
	struct ky_walk *w = calloc(1, sizeof(*w));
	*walk = w;
	if (!w)
		return -ENOMEM;
	w->trace = trace;
	w->selection = selection ? *selection : all;
	w->left = left;
	w->named_ends = named_ends;
	w->top = malloc(((size_t)tracks + 1) * sizeof(*w->top));
	w->ended = calloc((size_t)trace->slices.rows.count / 8 + 1, 1);
	w->around = calloc((size_t)trace->slices.rows.count / 8 + 1, 1);
	if (!w->top || !w->ended || !w->around || carry_counters(w) != 0) {
		ky_walk_close(walk);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < tracks; i++)
		w->top[i] = KY_NONE;
	return 0;
}

void ky_walk_close(struct ky_walk **walk)
{
	if (!*walk)
		return;
	free((*walk)->top);
	free((*walk)->ended);
	free((*walk)->around);
	ky_array_release((*walk)->queue);
	free((*walk)->carried);
	free(*walk);
	*walk = NULL;
}

int ky_walk_error(const struct ky_walk *w)
{
	return w->error;
}

static uint64_t rows_done(const struct ky_walk *w)
{
	uint64_t done = 0;
	for (uint32_t i = 0; i < KY_WALK_WHATS; i++)
		done += w->next[i];
	return done;
}

static uint64_t rows_all(const struct ky_walk *w)
{
	const struct ky_trace *t = w->trace;
	return (uint64_t)t->slices.rows.count + t->counters.rows.count + t->sched.rows.count +
	       t->thread_states.rows.count + t->samples.rows.count + t->logs.rows.count +
	       t->raw_events.rows.count;
}

/* ---- the loop of exporters ---- */

#define PUSH_BYTES (256u << 10)
#define PROGRESS_ITEMS 16384u

/* A trace may have both scheduling slices and thread states: a format that carries one of them lacks nothing. */
static void leave_out(const struct ky_export_job *job, const struct ky_walk_rows *rows,
		      enum ky_walk_what what)
{
	struct ky_export_left *left = job->left;
	if (what == KY_WALK_SCHED)
		left->sched += !rows->state || !job->trace->thread_states.rows.count;
	else if (what == KY_WALK_STATE)
		left->sched += !job->trace->sched.rows.count;
	else if (what == KY_WALK_SAMPLE)
		left->samples++;
	else if (what == KY_WALK_LOG)
		left->logs++;
	else if (what == KY_WALK_RAW)
		left->raw_events++;
}

int ky_walk_each(const struct ky_export_job *job, const struct ky_walk_rows *rows, void *self)
{
	const ky_walk_row_fn by_what[KY_WALK_WHATS] = {
		[KY_WALK_BEGIN] = rows->slice,   [KY_WALK_END] = rows->slice,
		[KY_WALK_INSTANT] = rows->slice, [KY_WALK_COUNTER] = rows->counter,
		[KY_WALK_SCHED] = rows->sched,   [KY_WALK_STATE] = rows->state,
		[KY_WALK_SAMPLE] = rows->sample, [KY_WALK_LOG] = rows->log,
		[KY_WALK_RAW] = rows->raw,
	};
	struct ky_out *out = job->out;
	struct ky_walk *walk;
	struct ky_walk_item next;
	int error = ky_walk_open(&walk, job->trace, job->selection, rows->named_ends, job->left);
	if (error)
		return error;
	for (uint32_t items = 0; !error && ky_walk_next(walk, &next); items++) {
		if (by_what[next.what])
			by_what[next.what](self, &next);
		else
			leave_out(job, rows, next.what);
		if (out->used >= PUSH_BYTES)
			error = ky_out_push(out);
		if (!error && job->progress && items % PROGRESS_ITEMS == 0)
			error = job->progress(job->context, rows_done(walk), rows_all(walk));
	}
	if (!error)
		error = ky_walk_error(walk);
	ky_walk_close(&walk);
	return error ? error : out->error;
}

uint64_t ky_walk_snapshots(const struct ky_trace *trace)
{
	const struct ky_clock_rows *rows = &trace->clock_rows;
	uint64_t count = 0;
	for (uint32_t i = 0; i < rows->rows.count; i++)
		count += !i || rows->snapshot[i] != rows->snapshot[i - 1];
	return count;
}

/* ---- switches of CPUs ---- */

static struct ky_cpu_slice *slice_of(struct ky_cpu_switches *switches, uint32_t cpu)
{
	for (uint32_t i = 0; i < switches->count; i++)
		if (switches->items[i].cpu == cpu)
			return &switches->items[i];
	if (!KY_ARRAY_ADD(switches->items, switches->count, switches->room,
			  (struct ky_cpu_slice){cpu, KY_NONE, KY_TIME_NONE}))
		return NULL;
	return &switches->items[switches->count - 1];
}

static bool is_over(const struct ky_cpu_slice *slice)
{
	return slice->row != KY_NONE && slice->end != KY_TIME_NONE;
}

bool ky_cpu_switches_add(struct ky_cpu_switches *switches, const struct ky_trace *trace,
			 const struct ky_walk_item *item, ky_cpu_switch_fn *put, void *self)
{
	struct ky_cpu_slice *last = slice_of(switches, trace->sched.cpu[item->row]);
	if (!last)
		return false;
	if (is_over(last) && last->end < item->ts) {
		put(self, last->cpu, last->end, last->row, KY_NONE);
		last->row = KY_NONE;
	}
	put(self, last->cpu, item->ts, last->row, item->row);
	last->row = item->row;
	last->end = item->end_ns;
	return true;
}

void ky_cpu_switches_end(const struct ky_cpu_switches *switches, ky_cpu_switch_fn *put, void *self)
{
	for (uint32_t i = 0; i < switches->count; i++) {
		const struct ky_cpu_slice *last = &switches->items[i];
		if (is_over(last))
			put(self, last->cpu, last->end, last->row, KY_NONE);
	}
}

void ky_cpu_switches_free(struct ky_cpu_switches *switches)
{
	KY_ARRAY_FREE(switches->items, switches->room);
	switches->count = 0;
}
