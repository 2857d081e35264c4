/* SPDX-License-Identifier: MIT */
/*
 * intake.h: how a reader fills a trace.
 *
 *   reader ── ky_put_*() ──▶ stage: packed records ── ky_trace_finish(): in time order ──▶ builders ──▶ columns
 *
 * Events may come in any order; those of the same time keep theirs. Nothing is built before all have arrived, and
 * then record by record, whose memory is freed as the columns grow. A reader whose events come in the order of time
 * calls ky_trace_in_order(), and they are built at once.
 *
 * A reader need not check for errors here: without memory trace->error is set, further events are dropped, and
 * ky_load() reports it. The numbers returned (strings, threads, tracks, sets) are always safe to pass on.
 *
 * Strings are numbers of trace->strings. Nesting follows Perfetto's slice tracker: docs/formats.
 */
#ifndef KY_MODEL_INTAKE_H
#define KY_MODEL_INTAKE_H

#include "model/trace.h"

/* Promise that events come in the order of time, so that they are built at once. Before the first event. */
void ky_trace_in_order(struct ky_trace *trace);

/* Called now and then while finishing, with the records done and all records; a result other than 0 ends it. */
typedef int (*ky_progress_fn)(void *context, uint64_t done, uint64_t all);
/* Build everything. 0, -ENOMEM, or the result of progress. */
int ky_trace_finish(struct ky_trace *trace, ky_progress_fn progress, void *context);

/* A stretch of time. */
struct ky_window {
	int64_t from_ns;
	int64_t to_ns;
};
/*
 * Declare the stretches of time that a flight recorder kept, ordered and not touching. Kernel events outside of them
 * are dropped, and nothing that runs, waits or is open in one is carried to the next. Before the first event.
 */
void ky_trace_windows(struct ky_trace *trace, const struct ky_window *windows, uint32_t count);
/* Return the first window that does not end before ts, or NULL. */
const struct ky_window *ky_window_of(const struct ky_window *windows, uint32_t count, int64_t ts);

/* ---- texts ---- */

static inline uint32_t ky_string(struct ky_trace *trace, const char *text, size_t bytes)
{
	return ky_strings_add_utf8(&trace->strings, text, bytes);
}

static inline uint32_t ky_string_z(struct ky_trace *trace, const char *text)
{
	return text ? ky_strings_add_utf8(&trace->strings, text, strlen(text)) : 0;
}

/* Return the string that printf would make of the format; at most 2047 bytes. */
uint32_t ky_string_format(struct ky_trace *trace, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- processes and threads ---- */

/* The source of a name: a later name of the same or a higher rank replaces an earlier one. */
enum ky_name_from {
	KY_NAME_NONE,
	KY_NAME_KERNEL_OTHER, /* comm of a switch or wakeup */
	KY_NAME_KERNEL,       /* comm of a rename, or a new task */
	KY_NAME_SYSTEM,       /* /proc, process tree */
	KY_NAME_TRACE         /* the traced program itself says so */
};

/* Return the current process of a pid, made on first use. */
uint32_t ky_process(struct ky_trace *trace, int64_t pid);
/* Add a process of a pid that is used again. */
uint32_t ky_process_new(struct ky_trace *trace, int64_t pid);
void ky_process_name(struct ky_trace *trace, uint32_t process, uint32_t name,
		     enum ky_name_from from);

/*
 * Return the current thread of a tid in a process, made on first use. A thread whose process was
 * unknown gets it. tid == pid is the main thread.
 */
uint32_t ky_thread(struct ky_trace *trace, int64_t pid, int64_t tid);
/* Do the same without knowing the process (kernel events). */
uint32_t ky_thread_by_tid(struct ky_trace *trace, int64_t tid);
/* Add a thread of a tid that is used again. process may be KY_NONE. */
uint32_t ky_thread_new(struct ky_trace *trace, uint32_t process, int64_t tid);
void ky_thread_name(struct ky_trace *trace, uint32_t thread, uint32_t name, enum ky_name_from from);
/* Set the process of a thread, when it becomes known later. */
void ky_thread_set_process(struct ky_trace *trace, uint32_t thread, uint32_t process);

/*
 * Declare that kernel events come from two sources (ftrace and perf): a task that starts twice at
 * about the same time is one task.
 */
void ky_trace_kernel_twice(struct ky_trace *trace);
bool ky_trace_is_kernel_twice(const struct ky_trace *trace);
/*
 * Set the time of the first event that the program itself recorded: a task that the kernel reports
 * as new before that is this one.
 */
void ky_thread_expect(struct ky_trace *trace, uint32_t thread, int64_t first_ts);

/* Make new processes and threads, and look-ups, those of a machine (0 is the first) from here on. */
void ky_trace_machine(struct ky_trace *trace, uint32_t machine);

/* ---- tracks ---- */

/* The identity of a track: equal specs are one track. Unused fields are 0 (owner: KY_NONE). */
struct ky_track_spec {
	uint8_t kind;  /* enum ky_track_kind */
	uint8_t flags; /* KY_TRACK_ */
	uint32_t owner;
	uint32_t name;
	uint32_t category; /* async: part of the key, not shown */
	uint32_t type;     /* string; 0: the usual one of its kind */
	uint64_t id;
};

uint32_t ky_track(struct ky_trace *trace, const struct ky_track_spec *spec);
/* Add a track that is not found again by its spec: for formats that have their own keys. */
uint32_t ky_track_new(struct ky_trace *trace, const struct ky_track_spec *spec);
/* Return the track of a thread or process itself. */
uint32_t ky_track_of_thread(struct ky_trace *trace, uint32_t thread);
uint32_t ky_track_of_process(struct ky_trace *trace, uint32_t process);
uint32_t ky_track_global(struct ky_trace *trace, uint32_t name);
/* Return the track of a counter; kind is KY_TRACK_COUNTER or a later one. */
uint32_t ky_track_counter(struct ky_trace *trace, enum ky_track_kind kind, uint32_t owner,
			  uint32_t name);

/* ---- arguments ---- */

/* Add the arguments of one set, in order, between begin and end. A set without arguments is 0. */
void ky_args_begin(struct ky_trace *trace);
void ky_arg_int(struct ky_trace *trace, uint32_t key, int64_t value);
void ky_arg_uint(struct ky_trace *trace, uint32_t key, uint64_t value);
void ky_arg_real(struct ky_trace *trace, uint32_t key, double value);
void ky_arg_bool(struct ky_trace *trace, uint32_t key, bool value);
void ky_arg_pointer(struct ky_trace *trace, uint32_t key, uint64_t value);
void ky_arg_string(struct ky_trace *trace, uint32_t key, uint32_t value);
void ky_arg_json(struct ky_trace *trace, uint32_t key, uint32_t value);
void ky_arg_null(struct ky_trace *trace, uint32_t key);
/* Add an argument of any type; the value is as in struct ky_args. */
void ky_args_add(struct ky_trace *trace, uint32_t key, enum ky_arg_type type, uint64_t value);
uint32_t ky_args_end(struct ky_trace *trace);
/* Add a set of one argument, as ky_args_add() does. */
uint32_t ky_args_one(struct ky_trace *trace, uint32_t key, enum ky_arg_type type, uint64_t value);
/* Add a whole set; types are enum ky_arg_type, values as in struct ky_args. */
uint32_t ky_args_set(struct ky_trace *trace, uint32_t count, const uint32_t *keys,
		     const uint8_t *types, const uint64_t *values);

/* ---- events; name, category and args may be 0 ---- */

void ky_put_begin(struct ky_trace *trace, int64_t ts, uint32_t track, uint32_t category,
		  uint32_t name, uint32_t args);
/*
 * End the innermost open slice that fits, as ky_put_end() does, but at a time that may be before that of the last event, though not
 * before one of the track: when it is known late. No event says so, and none is counted.
 */
void ky_put_end_late(struct ky_trace *trace, int64_t ts, uint32_t track, uint32_t category,
		     uint32_t name);
/*
 * End the innermost open slice that fits: name and category must match where they are not 0. args join the slice's own.
 */
void ky_put_end(struct ky_trace *trace, int64_t ts, uint32_t track, uint32_t category,
		uint32_t name, uint32_t args);
/* A negative dur is counted as a problem. */
void ky_put_complete(struct ky_trace *trace, int64_t ts, int64_t dur, uint32_t track,
		     uint32_t category, uint32_t name, uint32_t args);
void ky_put_instant(struct ky_trace *trace, int64_t ts, uint32_t track, uint32_t category,
		    uint32_t name, uint32_t args);
/*
 * Put events in Chrome JSON's order for equal times, from the first complete event on: ends first,
 * then complete events, the longest first, then the others.
 */
void ky_put_end_first(struct ky_trace *trace, int64_t ts, uint32_t track, uint32_t category,
		      uint32_t name, uint32_t args);
void ky_put_complete_longest(struct ky_trace *trace, int64_t ts, int64_t dur, uint32_t track,
			     uint32_t category, uint32_t name, uint32_t args);

void ky_put_counter(struct ky_trace *trace, int64_t ts, uint32_t track, double value);
void ky_put_counter_args(struct ky_trace *trace, int64_t ts, uint32_t track, double value,
			 uint32_t args);

/* The slice of the track that a flow event binds to. */
enum ky_flow_bind {
	KY_BIND_ENCLOSING, /* the innermost one open at that moment */
	KY_BIND_NEXT,      /* the next one to begin */
	KY_BIND_LAST       /* the last one to begin, including instants: the event just put */
};

enum ky_flow_step {
	KY_FLOW_BEGIN,  /* arrows leave here */
	KY_FLOW_STEP,   /* one arrives, the next leaves */
	KY_FLOW_END,    /* one arrives; further ends may follow (Chrome) */
	KY_FLOW_ANY,    /* the first one in time begins it, later ones are steps (Perfetto) */
	KY_FLOW_ANY_END /* one arrives, and the id may be used again */
};

/*
 * Put a flow event. id identifies the flow within the trace; ky_flow_key() makes one of several
 * parts (Chrome: category, name, id).
 */
void ky_put_flow(struct ky_trace *trace, int64_t ts, uint32_t track, enum ky_flow_step step,
		 enum ky_flow_bind bind, uint64_t id);
/* Put a flow event of the event that ky_put_complete_longest() just put (KY_BIND_LAST); it stays with it. */
void ky_put_flow_longest(struct ky_trace *trace, int64_t ts, int64_t dur, uint32_t track,
			 enum ky_flow_step step, uint64_t id);
/* Return a number for the parts, the same for equal parts, and keep them for flows.id, name and category. */
uint64_t ky_flow_key(struct ky_trace *trace, uint64_t id, uint32_t category, uint32_t name,
		     uint64_t scope);

/* priority as in struct ky_logs. thread may be KY_NONE. */
void ky_put_log(struct ky_trace *trace, int64_t ts, uint32_t thread, uint8_t priority, uint32_t tag,
		uint32_t message);

/* ---- samples ---- */

struct ky_mapping_spec {
	uint32_t build_id;
	uint32_t name;
	uint64_t start, end, offset, load_bias;
};
/* Return a mapping or frame; equal ones are one. */
uint32_t ky_mapping(struct ky_trace *trace, const struct ky_mapping_spec *spec);
uint32_t ky_frame(struct ky_trace *trace, uint32_t mapping, uint64_t rel_pc, uint32_t name,
		  uint32_t file, uint32_t line);
/* Return the callsite of a frame called from parent (KY_NONE: the outermost frame). */
uint32_t ky_callsite(struct ky_trace *trace, uint32_t parent, uint32_t frame);
void ky_put_sample(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t callsite,
		   uint32_t cpu, enum ky_cpu_mode mode, double weight, uint32_t event);

/* ---- around the events ---- */

/* A program of the process ended, as the process did or at an execve: what was open then ends there. */
void ky_put_program_end(struct ky_trace *trace, int64_t ts, uint32_t process);

/* Why events are lost, as users read it in `kymo info`, its JSON, SQL and the page, and as formats keep it. */
#define KY_LOSSES(X)                                                                               \
	X(RING, "ring overwritten")                                                                \
	X(NO_RING, "no buffer for their thread")                                                   \
	X(NESTED, "in signal handlers, too deep")                                                  \
	X(UNFINISHED, "a signal handler jumped out of them")                                       \
	X(DAMAGED, "damaged")                                                                      \
	X(FILE_DAMAGED, "damaged part of the file")                                                \
	X(FTRACE, "ftrace ring buffer")                                                            \
	X(FTRACE_OVERWRITTEN, "ftrace ring buffer, overwritten")                                   \
	X(FTRACE_DROPPED, "ftrace ring buffer, dropped")                                           \
	X(FTRACE_OVERRUN, "ftrace buffer overrun")                                                 \
	X(PERF, "perf: ring buffer")                                                               \
	X(PERF_SAMPLES, "perf: hardware samples")                                                  \
	X(PERF_OVERRUN, "perf ring buffer overrun")                                                \
	X(PERF_DECODER, "perf: instruction trace error")                                           \
	X(CTF_EVENTS, "tracer discarded events")                                                   \
	X(CTF_PACKETS, "tracer discarded packets")                                                 \
	X(FXT_BUFFER, "provider's buffer was full")                                                \
	X(PACKETS, "packets of trace writers")                                                     \
	X(SEQUENCE, "packets of a sequence dropped")                                               \
	X(UFTRACE, "uftrace")

#define KY_LOSS_NAME(name, text) KY_LOSS_##name,
enum ky_loss { KY_LOSSES(KY_LOSS_NAME) KY_LOSS_COUNT };

/* Record lost events. ts may be KY_TIME_NONE, thread and cpu KY_NONE, events 0 when unknown. */
void ky_put_lost(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t cpu, uint64_t events,
		 enum ky_loss cause);
/* Do the same with the words that a file has for the cause. */
void ky_put_lost_text(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t cpu,
		      uint64_t events, const char *cause);
/*
 * Record what a file says is missing for a cause. Return how many events: names, texts and trace points that a recorder had no
 * room for are a problem.
 */
uint64_t ky_put_missing(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t cpu,
			uint64_t count, const char *cause);
/* Something that is missing, as a file says it: a row of the losses, or a problem that ky_put_missing() made. */
struct ky_missing {
	int64_t ts;      /* KY_TIME_NONE: not known */
	uint32_t thread; /* KY_NONE: of none */
	uint32_t cpu;    /* KY_NONE: of none */
	uint64_t count;
	const char *what;
};
/* Get the one of that number, from 0 on; false after the last. */
bool ky_missing_at(const struct ky_trace *trace, uint32_t number, struct ky_missing *missing);
/* How formats that have nothing else show a loss: an instant of this name and category (losses.c). */
#define KY_LOSS_MARKER "events lost"
#define KY_LOSS_MARKER_CATEGORY "kymo"
bool ky_is_loss_marker(const struct ky_trace *trace, uint32_t category, uint32_t name);
/* Record what a marker with these arguments stands for; return its number of events. */
uint64_t ky_put_loss_marker(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t args);
/* Add a clock snapshot to the table and to trace->clocks. ts is in the trace's clock. */
void ky_put_clocks(struct ky_trace *trace, int64_t ts, const struct ky_clock_reading *readings,
		   uint32_t count);
void ky_put_metadata(struct ky_trace *trace, const char *key, uint32_t text);
void ky_put_metadata_number(struct ky_trace *trace, const char *key, int64_t number);

/*
 * Count a problem. name is its kind, one of a few; the text describes the first one, and later
 * texts are ignored. at is the byte of the input or KY_NO_PLACE.
 */
void ky_problem(struct ky_trace *trace, const char *name, enum ky_severity severity, uint64_t at,
		const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Count a problem several times. */
void ky_problems(struct ky_trace *trace, const char *name, enum ky_severity severity, uint64_t at,
		 uint64_t number);

#endif
