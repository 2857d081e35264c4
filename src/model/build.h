/* SPDX-License-Identifier: MIT */
/*
 * build.h: state that a trace needs only while it is filled, private to the model. The stage hands
 * records back in the order of time to ky_build_*(), which make rows of them.
 */
#ifndef KY_MODEL_BUILD_H
#define KY_MODEL_BUILD_H

#include "base/map.h"
#include "model/intake.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the stage ---- */

/*
 * Events on their way from a reader to the builders: packed, and put into the order of time.
 *
 *   record: ts 8 │ sequence 4 │ kind 5 bits, track 27 bits │ 0 to 12 words by kind
 *
 *   run  0   ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪ tail 900     Each run is ordered. A record goes to the run whose tail is the latest
 *   run  1   ▪▪▪▪▪▪ tail 620              that is not after it; so the tails stay in descending order, input that
 *   run  2   ▪▪ tail 100                  is in order needs one run, and input that is nested or woven of
 *   ...                                   ordered parts needs few (patience sorting).
 *   rest     ▪▪▪▪ any order, sorted at the end: records that fit no run when there were enough runs
 *
 * At the end the runs are merged, and their memory is freed as it is read. Records of the same time keep their
 * order, except Chrome's: those kinds have a rank.
 */

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
#define KY_STAGE_RUNS 256u

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

struct ky_stage_run {
	int64_t tail_ts;
	uint64_t tail_rank;
	struct ky_stage_chunk *first, *last;
	uint32_t at; /* merging: offset of the next record in first */
};

struct ky_stage {
	struct ky_stage_run *runs; /* KY_STAGE_RUNS and the rest */
	uint32_t runs_count;
	uint32_t sequence;
	uint64_t records;
};

/* Apply a record; words are those of its kind. */
typedef void (*ky_stage_fn)(void *context, int64_t ts, enum ky_record_kind kind, uint32_t track,
			    const uint32_t *words);

/* Two words of a record: a number of 64 bits, which ky_words_u64() puts together again. */
#define KY_TWO_WORDS(value) (uint32_t)(value), (uint32_t)((uint64_t)(value) >> 32)

static inline uint64_t ky_words_u64(const uint32_t *words)
{
	return words[0] | (uint64_t)words[1] << 32;
}

static inline double ky_words_real(const uint32_t *words)
{
	double value;
	memcpy(&value, words, sizeof(value));
	return value;
}

/* Return a real number's bits. */
static inline uint64_t ky_real_bits(double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

int ky_stage_open(struct ky_stage *stage);
void ky_stage_close(struct ky_stage *stage);
/* Stage a record; false without memory. */
bool ky_stage_put(struct ky_stage *stage, int64_t ts, enum ky_record_kind kind, uint32_t track,
		  const uint32_t *words);
/* Apply all records in order and free them. 0, -ENOMEM, or the result of progress. */
int ky_stage_drain(struct ky_stage *stage, ky_stage_fn apply, void *context,
		   int (*progress)(void *, uint64_t, uint64_t), void *progress_context);

/* ---- building ---- */

/* The slices of a track that may still get children: rows, the innermost last. */
struct ky_track_state {
	uint32_t *stack;
	uint32_t depth;
	uint32_t room;
	uint32_t finite;   /* slices on the stack whose end is known */
	uint32_t last;     /* slice that began last, or KY_NONE */
	uint32_t overflow; /* track for slices that overlap others, or KY_NONE */
	uint32_t pending;  /* flows that wait for the next slice: head of a list, or KY_NONE */
};

struct ky_pending_flow {
	uint64_t id;
	uint32_t next;
};

/* What a flow's key stands for. */
struct ky_flow_parts {
	uint64_t id;
	uint32_t category;
	uint32_t name;
};

/* Tracks that have one slice at a time: a queue, the one that is free first on top. */
struct ky_crowd_track {
	int64_t free_at;
	uint32_t track;
};

struct ky_crowd {
	struct ky_crowd_track *queue;
	uint64_t room;
	uint32_t count;
};

struct ky_kernel_state;

/* The end of a program of a process, which may go on with another. */
struct ky_program_end {
	uint32_t process;
	int64_t ts;
};

struct ky_build {
	struct ky_stage stage;
	bool in_order;   /* events are built as they come */
	int64_t last_ts; /* the time of the last one, then */
	uint32_t machine;
	bool kernel_twice;
	struct ky_program_end *program_ends;
	uint32_t program_ends_count, program_ends_room;
	struct ky_window *windows; /* NULL: everything */
	uint32_t windows_count;
	struct ky_pair_map process_by_pid;    /* machine, pid */
	struct ky_pair_map thread_by_tid;     /* machine, tid: the newest task of that tid */
	struct ky_pair_map thread_by_process; /* process, tid */
	struct ky_pair_map expected;          /* row, KY_EXPECTED_*: time of its first event */
	uint32_t *process_track;              /* by process, row + 1 */
	uint64_t process_track_room;
	uint32_t *thread_track;
	uint64_t thread_track_room;
	struct ky_pair_map track_by_spec;
	struct ky_track_state *states; /* by track */
	uint64_t states_room;
	struct ky_pair_map crowd_by_track;
	struct ky_crowd *crowds;
	uint64_t crowds_room, crowds_count;
	struct ky_pair_map flow_open; /* id: the slice that it is at */
	struct ky_pair_map flow_keys; /* parts: key */
	struct ky_flow_parts *flow_parts;
	uint64_t flow_parts_room, flow_parts_count;
	struct ky_pending_flow *pending_flows;
	uint64_t pending_room, pending_count;
	struct ky_pair_map mappings, frames, callsites;
	uint32_t args_begun; /* first row of the set being made */
	uint32_t snapshots;
	uint32_t input; /* string: the input that problems belong to */
	struct ky_kernel_state *kernel;
};

/*
 * Add a row to a table of the trace and return its number, or KY_NONE and set trace->error. The
 * caller sets all its cells.
 */
#define ky_append(trace, table)                                                                    \
	(__builtin_expect((table)->rows.count < (table)->rows.room, 1)                             \
		 ? (table)->rows.count++                                                           \
		 : ky_append_slow((trace), (table)))
uint32_t ky_append_slow(struct ky_trace *trace, void *table);

/* Record that memory ran out. */
void ky_trace_no_memory(struct ky_trace *trace);

/* Second key of struct ky_build's expected. */
enum { KY_EXPECTED_THREAD, KY_EXPECTED_PROCESS };
/* Return the row of a task that started then: the expected one if there is one, else a new one as in intake.h. */
uint32_t ky_process_begin(struct ky_trace *trace, int64_t pid, int64_t ts);
uint32_t ky_thread_begin(struct ky_trace *trace, uint32_t process, int64_t tid, int64_t ts);

/* Apply an event, in the order of time. Return its slice, or KY_NONE. */
uint32_t ky_build_begin(struct ky_trace *trace, int64_t ts, uint32_t track, uint32_t category,
			uint32_t name, uint32_t args);
uint32_t ky_build_end(struct ky_trace *trace, int64_t ts, uint32_t track, uint32_t category,
		      uint32_t name, uint32_t args);
uint32_t ky_build_complete(struct ky_trace *trace, int64_t ts, int64_t dur, uint32_t track,
			   uint32_t category, uint32_t name, uint32_t args);
uint32_t ky_build_instant(struct ky_trace *trace, int64_t ts, uint32_t track, uint32_t category,
			  uint32_t name, uint32_t args);
void ky_build_counter(struct ky_trace *trace, int64_t ts, uint32_t track, double value,
		      uint32_t args);
void ky_build_flow(struct ky_trace *trace, uint32_t track, enum ky_flow_step step,
		   enum ky_flow_bind bind, uint64_t id);
void ky_build_log(struct ky_trace *trace, int64_t ts, uint32_t thread, uint8_t priority,
		  uint32_t tag, uint32_t message);
void ky_build_sample(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t callsite,
		     uint32_t cpu, uint8_t mode, double weight, uint32_t event);

/* Report whether a kernel event at that time is in a window; sub is that of ky_stage_kernel(). */
bool ky_window_wants(const struct ky_trace *trace, int64_t ts, uint32_t sub);

/* Apply a record of the stage; a ky_stage_fn whose context is the trace. */
void ky_build_record(void *context, int64_t ts, enum ky_record_kind kind, uint32_t track,
		     const uint32_t *words);

/* Return the track's state, made on first use; NULL without memory. */
struct ky_track_state *ky_track_state_make(struct ky_trace *trace, uint32_t track);
static inline struct ky_track_state *ky_track_state(struct ky_trace *trace, uint32_t track)
{
	if (__builtin_expect(track < trace->build->states_room, 1))
		return &trace->build->states[track];
	return ky_track_state_make(trace, track);
}
/* Add a track beside this one, for slices that overlap its own. */
uint32_t ky_overflow_track(struct ky_trace *trace, uint32_t track);
/* Return one of many tracks beside this one that is free from ts on, and take it until the slice ends. */
uint32_t ky_overflow_crowd(struct ky_trace *trace, uint32_t track, int64_t ts, int64_t dur);
void ky_overflow_free(struct ky_build *build);
/* Add an arrow from one slice to another. */
void ky_flows_add(struct ky_trace *trace, uint32_t out, uint32_t in, struct ky_flow_parts parts);
/* Bind the flows that waited for the next slice of the track to this one. */
void ky_flows_begun(struct ky_trace *trace, struct ky_track_state *state, uint32_t slice);
/* After the last event, add the flows that never arrived to flow_ends. */
void ky_flows_finish(struct ky_trace *trace);
/* End what was open when its thread, process or program ended. */
void ky_ends_finish(struct ky_trace *trace);
/* Return the union of two sets; the second one's values win. */
uint32_t ky_args_join(struct ky_trace *trace, uint32_t first, uint32_t second);

/* Kernel events: kernel.c. */
int ky_kernel_open(struct ky_trace *trace);
void ky_kernel_apply(struct ky_trace *trace, int64_t ts, uint32_t sub, const uint32_t *words);
void ky_kernel_finish(struct ky_trace *trace);
void ky_kernel_close(struct ky_trace *trace);

/* Stage a kernel event, or apply it at once. At most KY_KERNEL_WORDS_MAX words, sub below 256. */
void ky_stage_kernel(struct ky_trace *trace, int64_t ts, uint32_t sub, const uint32_t *words,
		     uint32_t count);

#endif
