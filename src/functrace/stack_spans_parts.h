/* SPDX-License-Identifier: MIT */
/*
 * stack_spans_parts.h: the inside of the engine sample.
 *
 *   rings, one for each CPU ─ stack_spans_rings.c: in the order of time ─▶ record ─ stack_spans_take.c ─┬─▶ process: its mappings
 *                                                                                                    └─▶ thread: its frames
 *   thread ─ stack_join.h ─▶ spans ─ stack_spans_process.c ─▶ drum of the process
 *
 * All of it happens under one lock: in the engine's own thread, which waits for the rings, or in a caller that asks
 * for everything. Records stay in the kernel's rings until they are spans: when kymo cannot keep up the rings
 * overflow, and the kernel counts the losses. Nothing else grows with the number of samples.
 */
#ifndef KY_FUNCTRACE_STACK_SPANS_PARTS_H
#define KY_FUNCTRACE_STACK_SPANS_PARTS_H

#include "base/stack_join.h"
#include "functrace/made_drum.h"
#include "functrace/stack_names.h"
#include "functrace/stack_spans.h"
#include "functrace/unwinder.h"
#include "process/perf_events.h"

#include <pthread.h>

#define KY_STACK_BUCKETS 1024u

/* A drum of a process, or of one that has ended. */
struct ky_stack_drum {
	struct ky_stack_drum *next;
	pid_t pid;
	struct ky_made_drum drum;
	bool told;       /* reported to the owner */
	bool closed;     /* nothing more will be written */
	uint32_t *sites; /* by function; 0: none yet */
	uint32_t sites_room;
	uint32_t full_site; /* for functions without room */
};

struct ky_stack_process {
	struct ky_stack_process *next; /* in its bucket */
	pid_t pid;
	uint32_t threads; /* alive */
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
	struct ky_stack_spans_options options;
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
	bool loss_told;                           /* the loss of samples was reported */
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

/* ---- stack_spans_take.c ---- */

void ky_stack_spans_take(struct ky_stack_spans *spans, const struct perf_event_header *head);

/* ---- stack_spans_rings.c ---- */

/*
 * Take the records of the rings; without all, not those of the last moment: records of other CPUs may still come
 * before them.
 */
void ky_stack_spans_drain(struct ky_stack_spans *spans, bool all);
int ky_stack_spans_start(struct ky_stack_spans *spans);
void ky_stack_spans_stop(struct ky_stack_spans *spans);

/* ---- stack_spans_events.c ---- */

int ky_stack_spans_open_events(struct ky_stack_spans *spans,
			       char message[KY_FUNCTRACE_MESSAGE_BYTES]);
/* Put events on all threads of a process that have none yet. Return 0, or -errno with a message. */
int ky_stack_spans_watch(struct ky_stack_spans *spans, struct ky_stack_process *process,
			 char message[KY_FUNCTRACE_MESSAGE_BYTES]);
/* Copy more of the stacks from now on, if too many did not reach their end. Report whether it does. */
bool ky_stack_spans_widen(struct ky_stack_spans *spans);

uint64_t ky_stack_spans_now(void); /* CLOCK_MONOTONIC, as the samples */

#endif
