/* SPDX-License-Identifier: MIT */
/*
 * stack_join.h: joins the consecutive call stacks of a thread into spans.
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
 * A frame continues from one sample to the next if its callers do and it is the same activation: the same function, at the
 * same address of the stack, with the same return address, as far as both samples know these. (A call from another line is
 * another call.) Calls between two samples are missed, and so are a return and a second call from the same place.
 *
 * A change between two samples is placed in the middle of the CPU time between them. Nothing changes while the thread is
 * off the CPU. The start of a thread counts as a sample of an empty stack; for a thread found later, the spans begin at
 * its first sample.
 *
 * functrace/stack_spans*.c joins stacks while it unwinds them, and server/sample_spans.c those of a loaded trace: both by this
 * rule, with what each knows.
 *
 *   open       the open spans, outermost first: the frames of the last sample
 *   root       how many of them were in every whole stack: they are assumed to continue when a stack is cut off
 *   offs       times off the CPU since the last sample: they become spans once their frames are known
 *
 * A stack that is cut off (it was longer than the copy of it) is joined where its outermost frame is open, by the frame's
 * address. Otherwise its frames go under "[truncated]".
 */
#ifndef KY_BASE_STACK_JOIN_H
#define KY_BASE_STACK_JOIN_H

#include <stdbool.h>
#include <stdint.h>

#define KY_STACK_DEPTH_MAX 2048u /* nested spans; deeper frames are dropped */
#define KY_STACK_OFFS_MAX 64u

/* Numbers of functions begin after these. */
enum ky_stack_special { KY_STACK_OFF_CPU, KY_STACK_PREEMPTED, KY_STACK_TRUNCATED, KY_STACK_FIRST };

struct ky_stack_frame {
	uint32_t function;
	uint64_t returns; /* return address; 0: unknown, or inlined */
	uint64_t place;   /* address on the stack (CFA); 0: unknown */
};

/* Receives the spans in time order. */
struct ky_stack_sink {
	void (*begin)(void *context, uint64_t ns, uint32_t function);
	void (*end)(void *context, uint64_t ns);
	void *context;
};

struct ky_stack_off {
	uint64_t from, to;
	uint32_t function; /* KY_STACK_OFF_CPU or KY_STACK_PREEMPTED */
};

/* A thread. All zero: nothing is known of it. */
struct ky_stack_join {
	struct ky_stack_frame *open;
	uint32_t count, room;
	uint32_t root;
	uint32_t wholes;  /* whole stacks so far, at most 2 */
	bool since;       /* last_ns is known */
	uint64_t last_ns; /* of the last sample */
	uint64_t sent_ns; /* of the last call of the sink */
	bool is_off;      /* since off.from */
	bool off_sent;    /* its span is open already */
	struct ky_stack_off off;
	struct ky_stack_off offs[KY_STACK_OFFS_MAX];
	uint32_t offs_count;
	uint64_t left_out; /* frames dropped: too deep, or no memory */
};

struct ky_stack_sample {
	uint64_t ns;
	const struct ky_stack_frame *frames; /* outermost first */
	uint32_t count;
	bool whole; /* not cut off */
};

void ky_stack_join_free(struct ky_stack_join *join);
/* The thread starts. */
void ky_stack_join_begin(struct ky_stack_join *join, uint64_t ns);
void ky_stack_join_sample(struct ky_stack_join *join, const struct ky_stack_sample *sample,
			  const struct ky_stack_sink *sink);
/* Return how many open spans continue in a whole sample. */
uint32_t ky_stack_join_kept(const struct ky_stack_join *join, const struct ky_stack_sample *sample);
/* The thread goes off the CPU (KY_STACK_OFF_CPU, or KY_STACK_PREEMPTED if it could have run on), and on again. */
void ky_stack_join_off(struct ky_stack_join *join, uint64_t ns, uint32_t function,
		       const struct ky_stack_sink *sink);
void ky_stack_join_on(struct ky_stack_join *join, uint64_t ns, const struct ky_stack_sink *sink);
/* Send everything known so far, as if a sample had shown the same stack. */
void ky_stack_join_settle(struct ky_stack_join *join, const struct ky_stack_sink *sink);
/* The thread ends or starts another program: all its spans end. */
void ky_stack_join_end(struct ky_stack_join *join, uint64_t ns, const struct ky_stack_sink *sink);

#endif
