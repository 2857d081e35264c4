/* SPDX-License-Identifier: MIT */
/*
 * view_strands.c: which tracks of the trace are one to people. A trace has a track for each id of an async span, and
 * one for each slice that overlaps others of its thread: tens of thousands of them. Those of the same owner, name and
 * parent are one strand.
 */
#include "base/array.h"
#include "server/view_parts.h"

#include "base/map.h"

#include <errno.h>
#include <stdlib.h>

/* Deeper than any that is meant; and parents that lead back to themselves end here. */
#define PARENTS_MAX 16u

struct maker {
	struct ky_strands *strands;
	const struct ky_trace *trace;
	const struct ky_tally *tally;
	struct ky_pair_map by_key;
};

/* The track that this one is the overflow of. Overflow is of a track before it. */
static uint32_t without_overflow(const struct ky_trace *trace, uint32_t track)
{
	const struct ky_tracks *const tracks = &trace->tracks;
	while ((tracks->flags[track] & KY_TRACK_OVERFLOW) && tracks->parent[track] < track)
		track = tracks->parent[track];
	return track;
}

static struct ky_strand *add_strand(struct maker *maker, uint32_t track, uint32_t parent)
{
	struct ky_strands *const strands = maker->strands;
	if (!KY_ARRAY_GROW_ZERO(strands->items, strands->room, (uint64_t)strands->count + 1))
		return NULL;
	struct ky_strand *const strand = &strands->items[strands->count++];
	*strand = (struct ky_strand){
		.parent = parent, .track = track, .node = KY_NONE, .inner = KY_NONE};
	return strand;
}

/* The strand of a track that is no overflow; KY_NONE without memory. */
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
	const struct ky_tally_track *const tally = &maker->tally->tracks[track];
	const uint32_t base = without_overflow(maker->trace, track);
	const uint32_t number = strand_of(maker, base, 0);
	if (number == KY_NONE)
		return -ENOMEM;
	maker->strands->of[track] = number;
	struct ky_strand *const strand = &maker->strands->items[number];
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

static void choose_packing(struct ky_strands *strands)
{
	for (uint32_t i = 0; i < strands->count; i++) {
		struct ky_strand *const strand = &strands->items[i];
		strand->packed = strand->tracks > 1 || strand->overflow;
		strand->base_row = strand->tracks > 1 ? 0 : strand->rows;
		strands->packed |= strand->packed;
	}
}

int ky_strands_open(struct ky_strands *strands, const struct ky_trace *trace,
		    const struct ky_tally *tally)
{
	const uint32_t count = trace->tracks.rows.count;
	struct maker maker = {.strands = strands, .trace = trace, .tally = tally};
	*strands = (struct ky_strands){.of = malloc(((size_t)count + 1) * sizeof(*strands->of))};
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

void ky_strands_close(struct ky_strands *strands)
{
	for (uint32_t i = 0; i < strands->count; i++)
		free(strands->items[i].free_at);
	KY_ARRAY_FREE(strands->items, strands->room);
	free(strands->of);
	*strands = (struct ky_strands){0};
}
