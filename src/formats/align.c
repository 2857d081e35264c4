/* SPDX-License-Identifier: MIT */
/*
 * align.c: how far the clocks of two traces are apart.
 *
 * By clocks: both traces say what the time of day was. When the machine's boot comes out as the same moment they are
 * of one boot, and the clocks since boot are one clock. Else the hosts' times of day are taken for equal.
 *
 * By flows: a message arrives after it left. One from the first trace to the other says that the offset is at
 * least its send minus its receive; one back, that it is at most. The true offset is between the largest of
 * the former and the smallest of the latter: the middle is taken.
 *
 *          at least ◀── messages there     messages back ──▶ at most
 *   ───────────────┤░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░├───────────▶ offset
 *                                    middle
 */
#include "formats/merge.h"

#include "base/map.h"
#include "formats/xxh64.h"

#define SAME_BOOT_NS INT64_C(1000000000)

const char *ky_align_name(enum ky_align_by by)
{
	static const char *const names[] = {
		[KY_ALIGN_NONE] = "nothing",
		[KY_ALIGN_BOOT] = "clock snapshots (same boot)",
		[KY_ALIGN_REALTIME] = "clock snapshots (time of day)",
		[KY_ALIGN_FLOWS] = "matching flows",
		[KY_ALIGN_GIVEN] = "the offset given",
	};
	return names[by];
}

/* ---- clocks ---- */

/* Return the time of day at the trace's time 0. */
static bool day_at_zero(struct ky_trace *trace, int64_t *ns)
{
	int64_t realtime;
	if (!ky_clocks_known(trace->clocks, KY_CLOCK_REALTIME) ||
	    !ky_clocks_convert(trace->clocks, trace->clock, KY_CLOCK_REALTIME, trace->begin_ns,
			       &realtime))
		return false;
	*ns = realtime - trace->begin_ns;
	return true;
}

static bool counts_from_boot(uint64_t clock)
{
	return clock == KY_CLOCK_BOOTTIME || clock == KY_CLOCK_MONOTONIC;
}

struct ky_alignment ky_align_by_clocks(struct ky_trace *first, struct ky_trace *other)
{
	struct ky_alignment a = {.by = KY_ALIGN_NONE, .uncertain_ns = -1};
	int64_t zero, other_zero, apart;
	if (!day_at_zero(first, &zero) || !day_at_zero(other, &other_zero) ||
	    __builtin_sub_overflow(other_zero, zero, &apart))
		return a;
	a.by = KY_ALIGN_REALTIME;
	a.offset_ns = apart;
	if (first->clock == other->clock && counts_from_boot(first->clock) &&
	    apart > -SAME_BOOT_NS && apart < SAME_BOOT_NS) {
		a.by = KY_ALIGN_BOOT;
		a.offset_ns = 0;
		a.uncertain_ns = 0;
	}
	return a;
}

/* ---- flows ---- */

static uint64_t text_hash(const struct ky_trace *trace, uint32_t string)
{
	return string ? ky_xxh64(ky_text_of(trace, string),
				 ky_strings_bytes(&trace->strings, string))
		      : 0;
}

static uint64_t label_hash(const struct ky_trace *trace, uint32_t row)
{
	return ky_hash_pair(text_hash(trace, trace->flow_ends.category[row]),
			    text_hash(trace, trace->flow_ends.name[row]));
}

/* Ends of a trace, by id and label; value is the row. The first of equal ones counts. */
static bool index_ends(struct ky_pair_map *map, const struct ky_trace *trace)
{
	for (uint32_t i = 0; i < trace->flow_ends.rows.count; i++) {
		bool made;
		uint64_t *row =
			ky_pair_map_add(map, trace->flow_ends.id[i], label_hash(trace, i), &made);
		if (!row)
			return false;
		if (made)
			*row = i;
	}
	return true;
}

struct align_bounds {
	int64_t least, most;
	uint32_t forth, back;
};

static void take_pair(struct align_bounds *b, const struct ky_trace *first, uint32_t row,
		      const struct ky_trace *other, uint32_t other_row)
{
	const int64_t ts = first->slices.ts[first->flow_ends.slice[row]];
	const int64_t other_ts = other->slices.ts[other->flow_ends.slice[other_row]];
	const bool arrives = first->flow_ends.arrives[row] != 0;
	int64_t apart;
	if (arrives == (other->flow_ends.arrives[other_row] != 0) ||
	    __builtin_sub_overflow(ts, other_ts, &apart))
		return;
	if (arrives) {
		b->most = !b->back || apart < b->most ? apart : b->most;
		b->back++;
	} else {
		b->least = !b->forth || apart > b->least ? apart : b->least;
		b->forth++;
	}
}

static struct ky_alignment between(const struct align_bounds *b)
{
	struct ky_alignment a = {
		.by = KY_ALIGN_FLOWS, .forth = b->forth, .back = b->back, .uncertain_ns = -1};
	if (!b->forth && !b->back) {
		a.by = KY_ALIGN_NONE;
	} else if (!b->back) {
		a.offset_ns = b->least;
	} else if (!b->forth) {
		a.offset_ns = b->most;
	} else {
		/* Halves first: the sum could be too large. */
		a.offset_ns = b->least / 2 + b->most / 2 + (b->least % 2 + b->most % 2) / 2;
		a.contradicts = b->least > b->most;
		const uint64_t least = (uint64_t)b->least, most = (uint64_t)b->most;
		a.uncertain_ns = (int64_t)((a.contradicts ? least - most : most - least) / 2);
	}
	return a;
}

struct ky_alignment ky_align_by_flows(const struct ky_trace *first, const struct ky_trace *other)
{
	struct ky_pair_map map = {0};
	struct align_bounds b = {0};
	if (index_ends(&map, other))
		for (uint32_t i = 0; i < first->flow_ends.rows.count; i++) {
			const uint64_t *row = ky_pair_map_find(&map, first->flow_ends.id[i],
							       label_hash(first, i));
			if (row)
				take_pair(&b, first, i, other, (uint32_t)*row);
		}
	ky_pair_map_free(&map);
	return between(&b);
}
