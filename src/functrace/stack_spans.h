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

#include "base/stack_join.h"
#include "functrace/made_drum.h"
#include "functrace/stack_names.h"
#include "functrace/unwinder.h"
#include "process/perf_events.h"

#include <pthread.h>
#include <sys/types.h>

struct ky_stack_spans;

struct ky_stack_spans_facts {
	uint64_t samples, lost;
	uint64_t unwound_whole; /* reached the thread's first function */
};

/*
 * Open the engine. Return 0; -ENOTSUP on CPUs other than x86-64; or -errno with a message: this user may not, or the
 * kernel lacks it. A thread of kymo's own takes the samples from then on; the callers of these functions call
 * options' functions, that thread never does.
 */
int ky_stack_spans_open(struct ky_stack_spans **spans, const struct ky_functrace_options *options,
			char message[KY_MESSAGE_BYTES]);
/* Sample a process with its threads, those it makes, and its children. A known process stays as it is. */
int ky_stack_spans_add(struct ky_stack_spans *spans, pid_t pid, char message[KY_MESSAGE_BYTES]);
/* Do the periodic work. all: everything sampled before the call is in the drums afterwards. */
void ky_stack_spans_round(struct ky_stack_spans *spans, bool all);
void ky_stack_spans_ended(struct ky_stack_spans *spans, pid_t pid);
void ky_stack_spans_facts(struct ky_stack_spans *spans, struct ky_stack_spans_facts *facts);
/* Close the engine. facts, which may be NULL, are final. */
void ky_stack_spans_close(struct ky_stack_spans **spans, struct ky_stack_spans_facts *facts);

/* ---- the inside of the engine ---- */

/*
 *   rings, one for each CPU ─ stack_spans_events.c: in the order of time ─▶ record ─ stack_spans.c ─┬─▶ process: its mappings
 *                                                                                                    └─▶ thread: its frames
 *   thread ─ stack_join.h ─▶ spans ─ stack_spans_process.c ─▶ drum of the process
 *
 * All of it happens under one lock: in the engine's own thread, which waits for the rings, or in a caller that asks
 * for everything. Records stay in the kernel's rings until they are spans: when kymo cannot keep up the rings
 * overflow, and the kernel counts the losses. Nothing else grows with the number of samples.
 */

#define KY_STACK_BUCKETS 1024u

/* A drum of a process, or of one that has ended. */
struct ky_stack_drum {
	struct ky_stack_drum *next;
	pid_t pid;
	struct ky_made_drum drum;
	bool reported;   /* reported to the owner */
	bool closed;     /* nothing more will be written */
	uint32_t *sites; /* by function; 0: none yet */
	uint32_t sites_room;
	uint32_t full_site; /* for functions without room */
};

struct ky_stack_process {
	struct ky_stack_process *next; /* in its bucket */
	pid_t pid;
	uint32_t threads; /* alive */
	uint32_t drums;   /* made so far: each program that it executes has another */
	struct ky_address_space space;
	struct ky_stack_jit jit;
	struct ky_stack_drum *drum; /* NULL: it has had no span yet */
};

struct ky_stack_thread {
	struct ky_stack_thread *next; /* in its bucket */
	pid_t tid;
	struct ky_stack_process *process;
	struct ky_stack_join join;
	char name[16];
	bool named; /* the drum has its name */
};

struct ky_stack_spans {
	struct ky_functrace_options options;
	struct ky_stack_spans_facts facts;
	pthread_mutex_t lock;
	pthread_t thread;
	bool has_thread;
	bool stopping;
	struct ky_perf_events events;
	struct ky_perf_set set;
	const struct perf_event_header **pending; /* for each ring: the next record */
	uint32_t stack_bytes;                     /* bytes copied with a sample */
	uint64_t recent_samples, recent_cut;      /* since the last check whether that is enough */
	bool loss_reported;                       /* the loss of samples was reported */
	bool restless; /* a process executed more programs than have drums */
	bool restless_reported;
	struct ky_stack_modules modules;
	struct ky_stack_names names;
	struct ky_unwinder *unwinder;
	struct ky_stack_process *processes[KY_STACK_BUCKETS];
	struct ky_stack_thread *threads[KY_STACK_BUCKETS];
	struct ky_stack_drum *drums;
	struct ky_unwound unwound[KY_UNWIND_FRAMES_MAX];
	struct ky_stack_frame frames[KY_STACK_DEPTH_MAX];
};

/* ---- stack_spans_process.c: NULL without memory ---- */

struct ky_stack_process *ky_stack_process_find(const struct ky_stack_spans *spans, pid_t pid);
/* Return the process, made if it is new; its mappings are then the caller's to add. */
struct ky_stack_process *ky_stack_process_make(struct ky_stack_spans *spans, pid_t pid);
/* End its threads, and drop it. */
void ky_stack_process_end(struct ky_stack_spans *spans, struct ky_stack_process *process,
			  uint64_t ns);
/* Start another program: spans from now on go into a drum of their own. */
void ky_stack_process_exec(struct ky_stack_spans *spans, struct ky_stack_process *process,
			   uint64_t ns);

struct ky_stack_thread *ky_stack_thread_find(const struct ky_stack_spans *spans, pid_t tid);
struct ky_stack_thread *ky_stack_thread_make(struct ky_stack_spans *spans,
					     struct ky_stack_process *process, pid_t tid);
void ky_stack_thread_end(struct ky_stack_spans *spans, struct ky_stack_thread *thread, uint64_t ns);
void ky_stack_thread_name(struct ky_stack_thread *thread, const char *name);
/* The destination of a thread's spans. */
struct ky_stack_writing {
	struct ky_stack_spans *spans;
	struct ky_stack_thread *thread;
};
struct ky_stack_sink ky_stack_thread_sink(struct ky_stack_writing *writing);
void ky_stack_thread_lost(struct ky_stack_spans *spans, struct ky_stack_thread *thread, uint64_t ns,
			  uint64_t lost);
void ky_stack_spans_flush(struct ky_stack_spans *spans);
/* Report new drums to the owner, and release those that are finished. */
void ky_stack_spans_report_drums(struct ky_stack_spans *spans);
void ky_stack_spans_free_all(struct ky_stack_spans *spans, uint64_t ns);

/* ---- stack_spans.c ---- */

/* Apply a record to the processes and threads. */
void ky_stack_spans_take(struct ky_stack_spans *spans, const struct perf_event_header *head);

/* ---- stack_spans_events.c ---- */

/*
 * Take the records of the rings; without all, not those of the last moment: records of other CPUs may still come
 * before them.
 */
void ky_stack_spans_drain(struct ky_stack_spans *spans, bool all);
int ky_stack_spans_start(struct ky_stack_spans *spans);
void ky_stack_spans_stop(struct ky_stack_spans *spans);

int ky_stack_spans_open_events(struct ky_stack_spans *spans, char message[KY_MESSAGE_BYTES]);
/* Put events on all threads of a process that have none yet. Return 0, or -errno with a message. */
int ky_stack_spans_watch(struct ky_stack_spans *spans, struct ky_stack_process *process,
			 char message[KY_MESSAGE_BYTES]);

uint64_t ky_stack_spans_now(void); /* CLOCK_MONOTONIC, as the samples */

#endif
