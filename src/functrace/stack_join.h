/* SPDX-License-Identifier: MIT */
/*
 * stack_join.h: the call stacks of a thread, one after the other, joined to spans.
 *
 *   sample at        10        20        30        40
 *   stack            main      main      main      main
 *                    a         a         b         b
 *                              c
 *   spans            main ├──────────────────────────────
 *                    a    ├──────────────┤
 *                    c         ├─────────┤
 *                    b                   ├───────────────
 *                         10   15        25
 *
 * What changed between two samples changed in the middle of the CPU time between them: of the time that the thread was off
 * the CPU nothing is known but that it was in some function, and that nothing changed. A thread's begin counts as a sample
 * of an empty stack. Of a thread that is met later, the spans begin with its first sample.
 *
 * A frame goes on when the frames around it do, its function is the same, it lies at the same address, and it will return to
 * the same: a function that is called from another line is another call. Calls that come and go between two samples
 * are not seen, and neither is it when a function returned and was called again from the same place.
 *
 *   open       the spans that are open, the outermost first: what was in the last sample
 *   root       so many of them were in every whole stack: they are believed to go on when a stack is cut off
 *   offs       times off the CPU since the last sample: they are spans as soon as it is known in which frames they lie
 *
 * A stack that is cut off (it was longer than what was copied of it) begins somewhere: where its outermost frame is open, by its
 * address, it is joined there. Otherwise what is known of it lies under "[truncated]".
 */
#ifndef KY_FUNCTRACE_STACK_JOIN_H
#define KY_FUNCTRACE_STACK_JOIN_H

#include <stdbool.h>
#include <stdint.h>

#define KY_STACK_DEPTH_MAX 2048u /* spans in each other; what is deeper is not shown */
#define KY_STACK_OFFS_MAX 64u

/* Numbers of functions begin behind these. */
enum ky_stack_special { KY_STACK_OFF_CPU, KY_STACK_PREEMPTED, KY_STACK_TRUNCATED, KY_STACK_FIRST };

struct ky_stack_frame {
	uint32_t function;
	uint64_t returns; /* to where; 0: not known, or it is inlined */
	uint64_t place;   /* its address on the stack (CFA); 0: not known */
};

/* Where spans go: in the order of time. */
struct ky_stack_sink {
	void (*begin)(void *context, uint64_t ns, uint32_t function);
	void (*end)(void *context, uint64_t ns);
	void *context;
};

struct ky_stack_off {
	uint64_t from, to;
	uint32_t function; /* KY_STACK_OFF_CPU or KY_STACK_PREEMPTED */
};

/* A thread. All zero is one of which nothing is known. */
struct ky_stack_join {
	struct ky_stack_frame *open;
	uint32_t count, room;
	uint32_t root;
	uint32_t wholes;  /* whole stacks there were, up to 2 */
	bool since;       /* last_ns is known */
	uint64_t last_ns; /* of the last sample */
	uint64_t told_ns; /* of the last event */
	bool is_off;      /* since off.from */
	bool off_told;    /* its span is open already */
	struct ky_stack_off off;
	struct ky_stack_off offs[KY_STACK_OFFS_MAX];
	uint32_t offs_count;
	uint64_t left_out; /* frames that were too deep */
};

struct ky_stack_sample {
	uint64_t ns;
	const struct ky_stack_frame *frames; /* the outermost first */
	uint32_t count;
	bool whole; /* the first is the thread's first function */
};

void ky_stack_join_free(struct ky_stack_join *join);
/* The thread has begun. */
void ky_stack_join_begin(struct ky_stack_join *join, uint64_t ns);
void ky_stack_join_sample(struct ky_stack_join *join, const struct ky_stack_sample *sample,
			  const struct ky_stack_sink *sink);
/* It goes off the CPU (KY_STACK_OFF_CPU, or KY_STACK_PREEMPTED when it could have gone on), and on again. */
void ky_stack_join_off(struct ky_stack_join *join, uint64_t ns, uint32_t function,
		       const struct ky_stack_sink *sink);
void ky_stack_join_on(struct ky_stack_join *join, uint64_t ns, const struct ky_stack_sink *sink);
/* Tells all that is known, for somebody looks now: as if a sample had shown the same stack. */
void ky_stack_join_settle(struct ky_stack_join *join, const struct ky_stack_sink *sink);
/* The thread has ended, or begins another program: all its spans end. */
void ky_stack_join_end(struct ky_stack_join *join, uint64_t ns, const struct ky_stack_sink *sink);

#endif
