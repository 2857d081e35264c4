/* SPDX-License-Identifier: MIT */
/*
 * view_strands.c: combines tracks of the trace into strands. A trace has a track for each id of an async span, and one for
 * each slice that overlaps others of its thread: tens of thousands of them. Those of the same owner, name and parent
 * become one strand, and are packed into rows so that nothing overlaps.
 */
#include "base/array.h"
#include "base/map.h"
#include "server/view_pyramids.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* ---- tally: the events of each track, thread and CPU, counted in one pass over a few columns ---- */

static int make_room(struct ky_view_tally *tally, const struct ky_view *view)
{
	const size_t tracks = view->trace->tracks.rows.count,
		     threads = view->trace->threads.rows.count;
	tally->cpus = view->tables[KY_VIEW_SCHED].keys;
	tally->tracks = calloc(tracks + 1, sizeof(*tally->tracks));
	tally->states = calloc(threads + 1, sizeof(*tally->states));
	tally->sample_spans = calloc(threads + 1, sizeof(*tally->sample_spans));
	tally->sample_rows = calloc(threads + 1, sizeof(*tally->sample_rows));
	tally->sched = calloc((size_t)tally->cpus + 1, sizeof(*tally->sched));
	return tally->tracks && tally->states && tally->sample_spans && tally->sample_rows &&
			       tally->sched
		       ? 0
		       : -ENOMEM;
}

static void count_slices(struct ky_view_tally *tally, const struct ky_slices *slices)
{
	for (uint32_t i = 0; i < slices->rows.count; i++) {
		struct ky_view_tally_track *const track = &tally->tracks[slices->track[i]];
		track->slices++;
		if (slices->depth[i] >= track->rows)
			track->rows = (uint16_t)(slices->depth[i] + 1);
	}
}

static void count_counters(struct ky_view_tally *tally, const struct ky_counters *counters)
{
	for (uint32_t i = 0; i < counters->rows.count; i++) {
		struct ky_view_tally_track *const track = &tally->tracks[counters->track[i]];
		const double value = counters->value[i];
		track->min = track->counters ? fmin(track->min, value) : value;
		track->max = track->counters ? fmax(track->max, value) : value;
		track->counters++;
	}
}

static void count_kernel(struct ky_view_tally *tally, const struct ky_trace *trace)
{
	const struct ky_sched *const sched = &trace->sched;
	for (uint32_t i = 0; i < sched->rows.count; i++) {
		const uint32_t thread = sched->thread[i];
		const bool idle = thread != KY_NONE && trace->threads.is_idle[thread];
		if (sched->cpu[i] < tally->cpus && !idle)
			tally->sched[sched->cpu[i]]++;
	}
	for (uint32_t i = 0; i < trace->thread_states.rows.count; i++)
		if (trace->thread_states.thread[i] != KY_NONE)
			tally->states[trace->thread_states.thread[i]]++;
	for (uint32_t i = 0; i < trace->losses.rows.count; i++)
		tally->losses += trace->losses.ts[i] != KY_TIME_NONE;
}

static void count_sample_spans(struct ky_view_tally *tally, const struct ky_sample_spans *spans)
{
	for (uint32_t i = 0; i < spans->count; i++) {
		const uint32_t thread = spans->thread[i];
		tally->sample_spans[thread]++;
		if (spans->depth[i] >= tally->sample_rows[thread])
			tally->sample_rows[thread] = (uint16_t)(spans->depth[i] + 1);
	}
}

int ky_view_tally_open(struct ky_view_tally *tally, const struct ky_view *view)
{
	*tally = (struct ky_view_tally){0};
	if (make_room(tally, view))
		return -ENOMEM;
	count_slices(tally, &view->trace->slices);
	count_counters(tally, &view->trace->counters);
	count_kernel(tally, view->trace);
	count_sample_spans(tally, &view->sample_spans);
	return 0;
}

void ky_view_tally_close(struct ky_view_tally *tally)
{
	free(tally->tracks);
	free(tally->states);
	free(tally->sample_spans);
	free(tally->sample_rows);
	free(tally->sched);
	*tally = (struct ky_view_tally){0};
}

/* ---- strands ---- */

/* Deeper than any real nesting; also ends cycles of parents. */
#define PARENTS_MAX 16u

struct maker {
	struct ky_view_strands *strands;
	const struct ky_trace *trace;
	const struct ky_view_tally *tally;
	struct ky_pair_map by_key;
};

/* Return the track that this one is the overflow of. Overflow comes after its track. */
static uint32_t without_overflow(const struct ky_trace *trace, uint32_t track)
{
	const struct ky_tracks *const tracks = &trace->tracks;
	while ((tracks->flags[track] & KY_TRACK_OVERFLOW) && tracks->parent[track] < track)
		track = tracks->parent[track];
	return track;
}

static struct ky_view_strand *add_strand(struct maker *maker, uint32_t track, uint32_t parent)
{
	struct ky_view_strands *const strands = maker->strands;
	if (!KY_ARRAY_GROW_ZERO(strands->items, strands->room, (uint64_t)strands->count + 1))
		return NULL;
	struct ky_view_strand *const strand = &strands->items[strands->count++];
	*strand = (struct ky_view_strand){
		.parent = parent, .track = track, .node = KY_NONE, .inner = KY_NONE};
	return strand;
}

/* Return the strand of a track that is not overflow; KY_NONE without memory. */
static uint32_t strand_of(struct maker *maker, uint32_t track, uint32_t parents)
{
	const struct ky_tracks *const tracks = &maker->trace->tracks;
	uint32_t parent = tracks->parent[track];
	bool made;
	if (maker->strands->of[track] != KY_NONE)
		return maker->strands->of[track];
	if (parent != KY_NONE && parent != track && parents < PARENTS_MAX &&
	    !ky_track_is_counter(tracks->kind[parent]))
		parent = strand_of(maker, without_overflow(maker->trace, parent), parents + 1);
	else
		parent = KY_NONE;
	const uint64_t a = (uint64_t)(tracks->flags[track] & KY_TRACK_ASYNC) << 56 |
			   (uint64_t)tracks->kind[track] << 32 | tracks->owner[track];
	const uint64_t b = (uint64_t)tracks->name[track] << 32 | parent;
	uint64_t *const slot = ky_pair_map_add(&maker->by_key, a, b, &made);
	if (!slot)
		return KY_NONE;
	if (made)
		*slot = add_strand(maker, track, parent) ? maker->strands->count - 1 : KY_NONE;
	return maker->strands->of[track] = (uint32_t)*slot;
}

static int take_track(struct maker *maker, uint32_t track)
{
	const struct ky_view_tally_track *const tally = &maker->tally->tracks[track];
	const uint32_t base = without_overflow(maker->trace, track);
	const uint32_t number = strand_of(maker, base, 0);
	if (number == KY_NONE)
		return -ENOMEM;
	maker->strands->of[track] = number;
	struct ky_view_strand *const strand = &maker->strands->items[number];
	strand->events += tally->slices;
	if (base != track) {
		strand->overflow++;
		return 0;
	}
	strand->tracks++;
	if (tally->rows > strand->rows)
		strand->rows = tally->rows;
	return 0;
}

static void choose_packing(struct ky_view_strands *strands)
{
	for (uint32_t i = 0; i < strands->count; i++) {
		struct ky_view_strand *const strand = &strands->items[i];
		strand->packed = strand->tracks > 1 || strand->overflow;
		strand->base_row = strand->tracks > 1 ? 0 : strand->rows;
		strands->packed |= strand->packed;
	}
}

int ky_view_strands_open(struct ky_view_strands *strands, const struct ky_trace *trace,
			 const struct ky_view_tally *tally)
{
	const uint32_t count = trace->tracks.rows.count;
	struct maker maker = {.strands = strands, .trace = trace, .tally = tally};
	*strands =
		(struct ky_view_strands){.of = malloc(((size_t)count + 1) * sizeof(*strands->of))};
	int error = strands->of ? 0 : -ENOMEM;
	for (uint32_t track = 0; !error && track < count; track++)
		strands->of[track] = KY_NONE;
	for (uint32_t track = 0; !error && track < count; track++)
		if (tally->tracks[track].slices)
			error = take_track(&maker, track);
	if (!error)
		choose_packing(strands);
	ky_pair_map_free(&maker.by_key);
	return error;
}

void ky_view_strands_close(struct ky_view_strands *strands)
{
	for (uint32_t i = 0; i < strands->count; i++)
		KY_ARRAY_FREE(strands->items[i].free_at, strands->items[i].free_room);
	KY_ARRAY_FREE(strands->items, strands->room);
	free(strands->of);
	*strands = (struct ky_view_strands){0};
}

/* ---- packing ---- */

/* Report whether the slices of a track of the trace are packed. */
static bool is_packed(const struct ky_view_strand *strand, uint8_t track_flags)
{
	return strand->packed && (!strand->base_row || (track_flags & KY_TRACK_OVERFLOW));
}

#define ROWS_MAX 256u

/*
 * Store the height of the tree over each packed slice in row_of for now. Children come after their parents: walking
 * backwards, each is known when its parent is reached.
 */
static void measure(const struct ky_view_strands *strands, const struct ky_trace *trace,
		    uint16_t *row_of)
{
	const struct ky_slices *const slices = &trace->slices;
	for (uint32_t i = slices->rows.count; i-- > 0;) {
		const uint32_t track = slices->track[i], parent = slices->parent[i];
		if (!is_packed(&strands->items[strands->of[track]], trace->tracks.flags[track]))
			continue;
		if (!row_of[i])
			row_of[i] = 1;
		if (parent != KY_NONE && row_of[parent] <= row_of[i])
			row_of[parent] = (uint16_t)(row_of[i] + 1);
	}
}

/* Return the first of that many consecutive free rows. */
static uint32_t free_row(const struct ky_view_strand *strand, int64_t begin, uint32_t height)
{
	uint32_t run = 0;
	for (uint32_t row = 0; row < strand->free_used; row++) {
		run = strand->free_at[row] <= begin ? run + 1 : 0;
		if (run == height)
			return row + 1 - height;
	}
	const uint32_t row = strand->free_used - run;
	if (row + height <= ROWS_MAX)
		return row;
	return height < ROWS_MAX ? ROWS_MAX - height : 0;
}

static bool place_root(struct ky_view_strand *strand, int64_t begin, int64_t end, uint16_t *row_of)
{
	const uint32_t height = *row_of, row = free_row(strand, begin, height);
	if (!KY_ARRAY_GROW(strand->free_at, strand->free_room, row + height))
		return false;
	for (; strand->free_used < row + height; strand->free_used++)
		strand->free_at[strand->free_used] = INT64_MIN;
	for (uint32_t i = row; i < row + height; i++)
		if (strand->free_at[i] < end)
			strand->free_at[i] = end;
	*row_of = (uint16_t)(strand->base_row + row);
	return true;
}

static bool place(struct ky_view_strands *strands, const struct ky_view *view, uint16_t *row_of)
{
	const struct ky_slices *const slices = &view->trace->slices;
	const uint8_t *const flags = view->trace->tracks.flags;
	for (uint32_t i = 0; i < slices->rows.count; i++) {
		const uint32_t track = slices->track[i], parent = slices->parent[i];
		struct ky_view_strand *const strand = &strands->items[strands->of[track]];
		if (!is_packed(strand, flags[track]))
			row_of[i] = slices->depth[i];
		else if (parent != KY_NONE)
			row_of[i] = (uint16_t)(row_of[parent] + 1);
		else if (!place_root(strand, slices->ts[i],
				     ky_view_pyramids_end(&view->tables[KY_VIEW_SLICES], i,
							  view->trace->end_ns),
				     &row_of[i]))
			return false;
	}
	return true;
}

int ky_view_strands_pack(struct ky_view_strands *strands, struct ky_view *view)
{
	const uint32_t count = view->trace->slices.rows.count;
	if (!strands->packed)
		return 0;
	view->row_of = calloc((size_t)count + 1, sizeof(*view->row_of));
	if (!view->row_of)
		return -ENOMEM;
	measure(strands, view->trace, view->row_of);
	if (!place(strands, view, view->row_of))
		return -ENOMEM;
	for (uint32_t i = 0; i < strands->count; i++)
		if (strands->items[i].packed)
			strands->items[i].rows = (uint16_t)(strands->items[i].base_row +
							    strands->items[i].free_used);
	view->tables[KY_VIEW_SLICES].row = view->row_of;
	return 0;
}
