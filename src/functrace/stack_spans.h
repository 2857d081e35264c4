/* SPDX-License-Identifier: MIT */
/*
 * stack_spans.h: the engine sample: call stacks, taken many times a second, joined to spans.
 *
 *   perf_event: registers and the stack's top (or frame pointers) ─▶ unwound with libdw ─▶ functions, with inlined ones
 *       stack at t1:  main  serve  parse            main   ├──────────────────┤
 *       stack at t2:  main  serve  parse     ─▶     serve  ├──────────────────┤
 *       stack at t3:  main  serve  write            parse  ├─────────┤ write  ├─
 *
 * A frame that is in two samples in a row, with the same frames around it, is one span. A thread that goes off and on
 * the CPU (context-switch records) cuts nothing: "off CPU" is a span inside.
 */
#ifndef KY_FUNCTRACE_STACK_SPANS_H
#define KY_FUNCTRACE_STACK_SPANS_H

#include "functrace/functions.h"

#include <sys/types.h>

struct ky_stack_spans;

struct ky_stack_spans_options {
	uint32_t per_second; /* at most 10000 */
	const struct ky_selection *selection;
	uint64_t ring_bytes, total_bytes;
	void (*drum)(void *context, pid_t pid, int fd);
	void (*note)(void *context, const char *line);
	void *context;
};
struct ky_stack_spans_facts {
	uint64_t samples, lost;
	uint64_t unwound_whole; /* reached the thread's first function */
};

/*
 * Open the engine. Return 0; -ENOTSUP on CPUs other than x86-64; or -errno with a message: this user may not, or the
 * kernel lacks it. A thread of kymo's own takes the samples from then on; the callers of these functions call
 * options' functions, that thread never does.
 */
int ky_stack_spans_open(struct ky_stack_spans **spans, const struct ky_stack_spans_options *options,
			char message[KY_FUNCTRACE_MESSAGE_BYTES]);
/* Sample a process with its threads, those it makes, and its children. A known process stays as it is. */
int ky_stack_spans_add(struct ky_stack_spans *spans, pid_t pid,
		       char message[KY_FUNCTRACE_MESSAGE_BYTES]);
/* Do the periodic work. all: everything sampled before the call is in the drums afterwards. */
void ky_stack_spans_round(struct ky_stack_spans *spans, bool all);
void ky_stack_spans_ended(struct ky_stack_spans *spans, pid_t pid);
void ky_stack_spans_facts(struct ky_stack_spans *spans, struct ky_stack_spans_facts *facts);
/* Close the engine. facts, which may be NULL, are final. */
void ky_stack_spans_close(struct ky_stack_spans **spans, struct ky_stack_spans_facts *facts);

#endif
