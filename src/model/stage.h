/* SPDX-License-Identifier: MIT */
/*
 * stage.h: events on their way from a reader to the builders: packed, and put into the order of time.
 *
 *   record: ts 8 │ sequence 4 │ kind 5 bits, track 27 bits │ 0 to 12 words by kind
 *
 *   lane 0   ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪ tail 900     Each lane is ordered. A record goes to the lane whose tail is the latest
 *   lane 1   ▪▪▪▪▪▪ tail 620              that is not after it; so the tails stay in descending order, input that
 *   lane 2   ▪▪ tail 100                  is in order needs one lane, and input that is nested or woven of
 *   ...                                   ordered parts needs few (patience sorting).
 *   rest     ▪▪▪▪ any order, sorted at the end: records that fit no lane when there were enough lanes
 *
 * At the end the lanes are merged, and their memory is freed as it is read. Records of the same time keep their
 * order, except Chrome's: those kinds have a rank.
 */
#ifndef KY_MODEL_STAGE_H
#define KY_MODEL_STAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ky_record_kind {
	KY_REC_BEGIN,       /* category, name, args */
	KY_REC_BEGIN_PLAIN, /* category, name */
	KY_REC_END,         /* category, name, args */
	KY_REC_END_PLAIN,   /* nothing */
	KY_REC_END_FIRST,
	KY_REC_COMPLETE, /* dur (2), category, name, args */
	KY_REC_COMPLETE_LONGEST,
	KY_REC_INSTANT,      /* category, name, args */
	KY_REC_COUNTER,      /* value (2) */
	KY_REC_COUNTER_ARGS, /* value (2), args */
	KY_REC_FLOW,         /* step and bind, id (2) */
	KY_REC_FLOW_LONGEST, /* dur (2) of the complete event before it, step and bind, id (2) */
	KY_REC_LOG,          /* thread, priority, tag, message */
	KY_REC_SAMPLE,       /* thread, callsite, cpu, mode, event, weight (2) */
	KY_REC_KERNEL,       /* by number of words; track is sub */
	KY_REC_KERNEL_LAST = KY_REC_KERNEL + 12,
	KY_REC_KINDS
};

#define KY_KERNEL_WORDS_MAX 12u
#define KY_STAGE_TRACKS_MAX (1u << 27)
#define KY_STAGE_LANES 256u

struct ky_record {
	int64_t ts;
	uint32_t sequence;
	uint32_t kind_track; /* kind << 27 | track */
};

struct ky_stage_chunk {
	struct ky_stage_chunk *next;
	uint32_t bytes; /* with this head */
	uint32_t used;
};

struct ky_stage_lane {
	int64_t tail_ts;
	uint64_t tail_rank;
	struct ky_stage_chunk *first, *last;
	uint32_t at; /* merging: offset of the next record in first */
};

struct ky_stage {
	struct ky_stage_lane *lanes; /* KY_STAGE_LANES and the rest */
	uint32_t lanes_count;
	uint32_t sequence;
	uint64_t records;
};

/* Apply a record; words are those of its kind. */
typedef void (*ky_stage_fn)(void *context, int64_t ts, enum ky_record_kind kind, uint32_t track,
			    const uint32_t *words);

int ky_stage_open(struct ky_stage *stage);
void ky_stage_close(struct ky_stage *stage);
/* Stage a record; false without memory. */
bool ky_stage_put(struct ky_stage *stage, int64_t ts, enum ky_record_kind kind, uint32_t track,
		  const uint32_t *words);
/* Apply all records in order and free them. 0, -ENOMEM, or the result of progress. */
int ky_stage_drain(struct ky_stage *stage, ky_stage_fn apply, void *context,
		   int (*progress)(void *, uint64_t, uint64_t), void *progress_context);

#endif
