/* SPDX-License-Identifier: MIT */
/*
 * filter.h: which rows of a trace a struct ky_stats_filter lets through. Globs are matched once
 * for each text or track, not once for each row.
 *
 *   from          to
 *   ├─────────────┤
 * ██████                counts from `from` on
 *      ████             counts as it is
 *              ▌        an instant at `to` is out, one at `from` is in
 */
#ifndef KY_QUERY_FILTER_H
#define KY_QUERY_FILTER_H

#include "query/reach.h"
#include "query/stats.h"

struct ky_filter {
	const struct ky_trace *trace;
	int64_t from_ns, to_ns; /* INT64_MIN and INT64_MAX when open */
	const char *name;
	const char *category;
	uint8_t *tracks;  /* NULL: all; else a byte for each */
	uint8_t *threads; /* the same of threads */
	uint8_t *names;   /* NULL: all; else what is known of each string */
	uint8_t *categories;
	uint32_t end;   /* the first slice that begins at to_ns or later */
	uint32_t first; /* the first slice that begins at from_ns or later */
	const struct ky_reach *reach;
	const int *stop;
};

/* spec may be NULL and must outlive the filter. 0 or -ENOMEM. */
int ky_filter_open(struct ky_filter *filter, const struct ky_trace *trace,
		   const struct ky_stats_filter *spec);
void ky_filter_close(struct ky_filter *filter);

enum { KY_FILTER_UNKNOWN, KY_FILTER_IN, KY_FILTER_OUT };
/* Parts of the ones below. */
bool ky_filter_match_name(const struct ky_filter *filter, uint32_t string);
bool ky_filter_match_category(const struct ky_filter *filter, uint32_t string);

static inline bool ky_filter_name(const struct ky_filter *filter, uint32_t name)
{
	if (!filter->names)
		return true;
	const uint8_t known = filter->names[name];
	return known == KY_FILTER_UNKNOWN ? ky_filter_match_name(filter, name)
					  : known == KY_FILTER_IN;
}

static inline bool ky_filter_category(const struct ky_filter *filter, uint32_t category)
{
	if (!filter->categories)
		return true;
	const uint8_t known = filter->categories[category];
	return known == KY_FILTER_UNKNOWN ? ky_filter_match_category(filter, category)
					  : known == KY_FILTER_IN;
}

/* Whether the slice is among some that all ended before the range, and are passed over together. */
static inline bool ky_filter_passes(const struct ky_filter *filter, uint32_t slice)
{
	return filter->reach && slice < filter->first &&
	       filter->reach->ends[slice / KY_REACH_ROWS] <= filter->from_ns;
}

/* Then not all slices came: what was made of them is worth nothing. */
static inline bool ky_filter_stopped(const struct ky_filter *filter)
{
	return filter->stop && __atomic_load_n(filter->stop, __ATOMIC_RELAXED) != 0;
}

/*
 * The next slice to look at, from this one on: all that the filter lets through come, and of the others only some. Ends
 * with filter->end or more.
 */
static inline uint32_t ky_filter_next(const struct ky_filter *filter, uint32_t slice)
{
	if (slice % KY_REACH_ROWS == 0 && ky_filter_stopped(filter))
		return filter->end;
	while (slice % KY_REACH_ROWS == 0 && ky_filter_passes(filter, slice))
		slice = filter->first - slice < KY_REACH_ROWS ? filter->first
							      : slice + KY_REACH_ROWS;
	return slice;
}

static inline int64_t ky_add_clamped(int64_t a, int64_t b)
{
	int64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

static inline int64_t ky_sub_clamped(int64_t a, int64_t b)
{
	int64_t difference;
	return __builtin_sub_overflow(a, b, &difference) ? (b > 0 ? INT64_MIN : INT64_MAX)
							 : difference;
}

struct ky_span {
	int64_t begin, end;
};

/* A slice's time within the filter's; one that never ended lasts to the trace's end. */
static inline struct ky_span ky_filter_span(const struct ky_filter *filter, uint32_t slice)
{
	const struct ky_slices *const slices = &filter->trace->slices;
	const int64_t ts = slices->ts[slice], dur = slices->dur[slice];
	int64_t end = dur < 0 ? filter->trace->end_ns : ky_add_clamped(ts, dur);
	end = end < filter->to_ns ? end : filter->to_ns;
	const int64_t begin = ts > filter->from_ns ? ts : filter->from_ns;
	return (struct ky_span){begin, end > begin ? end : begin};
}

/* Whether a span, of which some is cut, has to do with the range at all. */
static inline bool ky_filter_time(const struct ky_filter *filter, uint32_t slice)
{
	const struct ky_slices *const slices = &filter->trace->slices;
	const int64_t ts = slices->ts[slice], dur = slices->dur[slice];
	if (ts >= filter->from_ns)
		return ts < filter->to_ns;
	return dur < 0 ? filter->trace->end_ns > filter->from_ns
		       : ky_add_clamped(ts, dur) > filter->from_ns;
}

/* All but the name. */
static inline bool ky_filter_slice_place(const struct ky_filter *filter, uint32_t slice)
{
	const struct ky_slices *const slices = &filter->trace->slices;
	return (!filter->tracks || filter->tracks[slices->track[slice]]) &&
	       ky_filter_category(filter, slices->category[slice]) && ky_filter_time(filter, slice);
}

static inline bool ky_filter_slice(const struct ky_filter *filter, uint32_t slice)
{
	return ky_filter_name(filter, filter->trace->slices.name[slice]) &&
	       ky_filter_slice_place(filter, slice);
}

#endif
