/* SPDX-License-Identifier: MIT */
/*
 * filter.h: the rows of a trace that pass a struct ky_stats_filter. Globs are matched once for each text or track, not
 * once for each row.
 *
 *   from          to
 *   ├─────────────┤
 * ██████                counts from `from` on
 *      ████             counts in full
 *              ▌        an instant at `to` is out, one at `from` is in
 */
#ifndef KY_QUERY_FILTER_H
#define KY_QUERY_FILTER_H

#include "query/stats.h"

/*
 * When the slices of each block of rows have all ended. Slices are in the order of their start, and few early ones last
 * long: so a short range late in a long trace skips nearly all that ended before it.
 *
 *   rows   │▪ ▪▪ ▪ ▪│▪▪▪ ━━━━━━━━━━━━━━━━━━━━━━━│▪ ▪ ▪▪ │        from
 *   ends           ↑                            ↑       ↑         │      only the second block is checked
 */
struct ky_filter_ends {
	int64_t *ends; /* by block: the last end of its slices */
};

#define KY_FILTER_ENDS_ROWS 4096u

/* Make the ends of all blocks in one pass over all slices. 0 or -ENOMEM. */
int ky_filter_ends_make(struct ky_filter_ends *ends, const struct ky_trace *trace);
void ky_filter_ends_free(struct ky_filter_ends *ends);

struct ky_filter {
	const struct ky_trace *trace;
	int64_t from_ns, to_ns; /* INT64_MIN and INT64_MAX when open */
	const char *name;
	const char *category;
	uint8_t *tracks;  /* NULL: all; else a byte for each */
	uint8_t *threads; /* the same of threads */
	uint8_t *names;   /* NULL: all; else a cached result for each string */
	uint8_t *categories;
	uint32_t end;   /* the first slice that begins at to_ns or later */
	uint32_t first; /* the first slice that begins at from_ns or later */
	const struct ky_filter_ends *ends;
	const int *stop;
};

/* Open a filter; spec may be NULL and must outlive it. 0 or -ENOMEM. */
int ky_filter_open(struct ky_filter *filter, const struct ky_trace *trace,
		   const struct ky_stats_filter *spec);
void ky_filter_close(struct ky_filter *filter);

enum { KY_FILTER_UNKNOWN, KY_FILTER_IN, KY_FILTER_OUT };
/* Used by the inline functions below. */
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

/* Report whether the slice is in a block that ended before the range and is skipped as a whole. */
static inline bool ky_filter_passes(const struct ky_filter *filter, uint32_t slice)
{
	return filter->ends && slice < filter->first &&
	       filter->ends->ends[slice / KY_FILTER_ENDS_ROWS] <= filter->from_ns;
}

/* Report whether the filter was stopped: results are then incomplete and worthless. */
static inline bool ky_filter_stopped(const struct ky_filter *filter)
{
	return filter->stop && __atomic_load_n(filter->stop, __ATOMIC_RELAXED) != 0;
}

/*
 * Return the next slice to check, from this one on: all that pass the filter, and some that do not;
 * filter->end or more at the end.
 */
static inline uint32_t ky_filter_next(const struct ky_filter *filter, uint32_t slice)
{
	if (slice % KY_FILTER_ENDS_ROWS == 0 && ky_filter_stopped(filter))
		return filter->end;
	while (slice % KY_FILTER_ENDS_ROWS == 0 && ky_filter_passes(filter, slice))
		slice = filter->first - slice < KY_FILTER_ENDS_ROWS ? filter->first
								    : slice + KY_FILTER_ENDS_ROWS;
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

struct ky_interval {
	int64_t begin, end;
};

/* Return a slice's time within the filter's; a slice without an end lasts to the end of the trace. */
static inline struct ky_interval ky_filter_interval(const struct ky_filter *filter, uint32_t slice)
{
	const struct ky_slices *const slices = &filter->trace->slices;
	const int64_t ts = slices->ts[slice], dur = slices->dur[slice];
	int64_t end = dur < 0 ? filter->trace->end_ns : ky_add_clamped(ts, dur);
	end = end < filter->to_ns ? end : filter->to_ns;
	const int64_t begin = ts > filter->from_ns ? ts : filter->from_ns;
	return (struct ky_interval){begin, end > begin ? end : begin};
}

/* Report whether a clipped slice touches the range at all. */
static inline bool ky_filter_time(const struct ky_filter *filter, uint32_t slice)
{
	const struct ky_slices *const slices = &filter->trace->slices;
	const int64_t ts = slices->ts[slice], dur = slices->dur[slice];
	if (ts >= filter->from_ns)
		return ts < filter->to_ns;
	return dur < 0 ? filter->trace->end_ns > filter->from_ns
		       : ky_add_clamped(ts, dur) > filter->from_ns;
}

/* Check everything but the name. */
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
