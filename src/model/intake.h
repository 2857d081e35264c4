/* SPDX-License-Identifier: MIT */
/*
 * intake.h: how a reader fills a trace.
 *
 *   reader ── ky_put_*() ──▶ stage: packed records ── ky_trace_finish(): in time order ──▶ builders ──▶ columns
 *
 * Events may come in any order; those of the same time keep theirs. Nothing is built before all are
 * there, and then record after record, whose memory goes as the columns grow. A reader whose events
 * come in the order of their times anyway says so with ky_trace_in_order(), and they are built at once.
 *
 * No function here fails in a way that a reader must look at: when memory is short, trace->error is
 * set, what comes is dropped, and ky_load() reports it. What numbers (strings, threads, tracks, sets)
 * they return is always safe to pass on.
 *
 * Strings are numbers of trace->strings. Rules of nesting are Perfetto's slice tracker's: docs/formats.
 */
#ifndef KY_MODEL_INTAKE_H
#define KY_MODEL_INTAKE_H

#include "model/trace.h"

/* Events come in the order of their times from here on: build them at once. Before the first event. */
void ky_trace_in_order(struct ky_trace *trace);

/* Called now and then while finishing: done of all. Not 0 ends it with that. */
typedef int (*ky_progress_fn)(void *context, uint64_t done, uint64_t all);
/* Builds everything. 0, -ENOMEM, or what progress returned. */
int ky_trace_finish(struct ky_trace *trace, ky_progress_fn progress, void *context);

/* A part of the time. */
struct ky_window {
	int64_t from_ns;
	int64_t to_ns;
};
/*
 * Of a flight recorder: only these parts of the time are there, ordered, not touching. What the kernel says of other times
 * is dropped, and nothing that runs, waits or is open there is carried from one to the next. Before the first event.
 */
void ky_trace_windows(struct ky_trace *trace, const struct ky_window *windows, uint32_t count);
/* The first that does not end before ts; NULL when it is behind the last. */
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

/* ---- processes and threads ---- */

/* Where a name comes from: a later one of the same or a higher rank replaces an earlier one. */
enum ky_name_from {
	KY_NAME_NONE,
	KY_NAME_KERNEL_OTHER, /* comm of a switch or wakeup */
	KY_NAME_KERNEL,       /* comm of a rename, or a new task */
	KY_NAME_SYSTEM,       /* /proc, process tree */
	KY_NAME_TRACE         /* the traced program itself says so */
};

/* Made when there is none. The life of that pid that is current. */
uint32_t ky_process(struct ky_trace *trace, int64_t pid);
/* A new life of that pid, also when there is one. */
uint32_t ky_process_new(struct ky_trace *trace, int64_t pid);
void ky_process_name(struct ky_trace *trace, uint32_t process, uint32_t name,
		     enum ky_name_from from);

/*
 * The current life of that tid in that process, made when there is none. A thread whose process was not
 * known gets it. tid == pid is the main thread.
 */
uint32_t ky_thread(struct ky_trace *trace, int64_t pid, int64_t tid);
/* The same without knowing the process (kernel events). */
uint32_t ky_thread_by_tid(struct ky_trace *trace, int64_t tid);
/* A new life. process may be KY_NONE. */
uint32_t ky_thread_new(struct ky_trace *trace, uint32_t process, int64_t tid);
void ky_thread_name(struct ky_trace *trace, uint32_t thread, uint32_t name, enum ky_name_from from);
/* Says whose thread it is, when that comes to be known later. */
void ky_thread_set_process(struct ky_trace *trace, uint32_t thread, uint32_t process);

/*
 * The kernel is heard twice (ftrace and perf): a task that begins while it is known to have begun just now is the same,
 * and not another that has the same number.
 */
void ky_trace_kernel_twice(struct ky_trace *trace);
bool ky_trace_is_kernel_twice(const struct ky_trace *trace);
/*
 * The first event that the program itself tells of: a task that the kernel says is new before that is this one, and not
 * another that has the same number.
 */
void ky_thread_expect(struct ky_trace *trace, uint32_t thread, int64_t first_ts);

/* From here on new processes and threads, and look-ups, are of that machine (0 is the first). */
void ky_trace_machine(struct ky_trace *trace, uint32_t machine);

/* ---- tracks ---- */

/* What tells a track apart: equal specs are one track. Fields that do not matter are 0 (owner: KY_NONE). */
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
/* Never found again by its spec: for formats that have their own keys. */
uint32_t ky_track_new(struct ky_trace *trace, const struct ky_track_spec *spec);
/* A thread's or process's own track. */
uint32_t ky_track_of_thread(struct ky_trace *trace, uint32_t thread);
uint32_t ky_track_of_process(struct ky_trace *trace, uint32_t process);
uint32_t ky_track_global(struct ky_trace *trace, uint32_t name);
/* A counter's: kind KY_TRACK_COUNTER and on. */
uint32_t ky_track_counter(struct ky_trace *trace, enum ky_track_kind kind, uint32_t owner,
			  uint32_t name);

/* ---- arguments ---- */

/* Between begin and end: the arguments of one set, in order. A set without arguments is 0. */
void ky_args_begin(struct ky_trace *trace);
void ky_arg_int(struct ky_trace *trace, uint32_t key, int64_t value);
void ky_arg_uint(struct ky_trace *trace, uint32_t key, uint64_t value);
void ky_arg_real(struct ky_trace *trace, uint32_t key, double value);
void ky_arg_bool(struct ky_trace *trace, uint32_t key, bool value);
void ky_arg_pointer(struct ky_trace *trace, uint32_t key, uint64_t value);
void ky_arg_string(struct ky_trace *trace, uint32_t key, uint32_t value);
void ky_arg_json(struct ky_trace *trace, uint32_t key, uint32_t value);
void ky_arg_null(struct ky_trace *trace, uint32_t key);
uint32_t ky_args_end(struct ky_trace *trace);
/* A whole set at once: types are enum ky_arg_type, values as struct ky_args has them. */
uint32_t ky_args_set(struct ky_trace *trace, uint32_t count, const uint32_t *keys,
		     const uint8_t *types, const uint64_t *values);

/* ---- events; name, category and args may be 0 ---- */

void ky_put_begin(struct ky_trace *trace, int64_t ts, uint32_t track, uint32_t category,
		  uint32_t name, uint32_t args);
/*
 * Ends the innermost open slice that fits: name and category must match where they are not 0. args join the
 * slice's own.
 */
void ky_put_end(struct ky_trace *trace, int64_t ts, uint32_t track, uint32_t category,
		uint32_t name, uint32_t args);
/* dur is 0 or more; less is a problem that is counted. */
void ky_put_complete(struct ky_trace *trace, int64_t ts, int64_t dur, uint32_t track,
		     uint32_t category, uint32_t name, uint32_t args);
void ky_put_instant(struct ky_trace *trace, int64_t ts, uint32_t track, uint32_t category,
		    uint32_t name, uint32_t args);
/*
 * Chrome JSON's order of events of the same time, from the first complete event on: ends first, then
 * complete events, the longest first, then the others.
 */
void ky_put_end_first(struct ky_trace *trace, int64_t ts, uint32_t track, uint32_t category,
		      uint32_t name, uint32_t args);
void ky_put_complete_longest(struct ky_trace *trace, int64_t ts, int64_t dur, uint32_t track,
			     uint32_t category, uint32_t name, uint32_t args);

void ky_put_counter(struct ky_trace *trace, int64_t ts, uint32_t track, double value);
void ky_put_counter_args(struct ky_trace *trace, int64_t ts, uint32_t track, double value,
			 uint32_t args);

/* Which slice of the track a flow event is about. */
enum ky_flow_bind {
	KY_BIND_ENCLOSING, /* the innermost one open at that moment */
	KY_BIND_NEXT,      /* the next one to begin */
	KY_BIND_LAST       /* the one that began last, instants too: of the event just put */
};

enum ky_flow_step {
	KY_FLOW_BEGIN,  /* arrows leave here */
	KY_FLOW_STEP,   /* one arrives, the next leaves */
	KY_FLOW_END,    /* one arrives; further ends may follow (Chrome) */
	KY_FLOW_ANY,    /* the first in time is where it begins, later ones are steps (Perfetto) */
	KY_FLOW_ANY_END /* one arrives, and the id may be used again */
};

/*
 * id tells flows apart within the trace; a key of several parts (Chrome: category, name, id) is made one by
 * ky_flow_key().
 */
void ky_put_flow(struct ky_trace *trace, int64_t ts, uint32_t track, enum ky_flow_step step,
		 enum ky_flow_bind bind, uint64_t id);
/* The same of the event that ky_put_complete_longest() just put, KY_BIND_LAST: stays with it. */
void ky_put_flow_longest(struct ky_trace *trace, int64_t ts, int64_t dur, uint32_t track,
			 enum ky_flow_step step, uint64_t id);
/* A number for the parts, the same for the same; remembers them for flows.id, name and category. */
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
/* The same for the same. */
uint32_t ky_mapping(struct ky_trace *trace, const struct ky_mapping_spec *spec);
uint32_t ky_frame(struct ky_trace *trace, uint32_t mapping, uint64_t rel_pc, uint32_t name,
		  uint32_t file, uint32_t line);
/* The callsite of a frame that was called from parent (KY_NONE: the outermost). */
uint32_t ky_callsite(struct ky_trace *trace, uint32_t parent, uint32_t frame);
void ky_put_sample(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t callsite,
		   uint32_t cpu, enum ky_cpu_mode mode, double weight, uint32_t event);

/* ---- around the events ---- */

/* ts may be KY_TIME_NONE, thread and cpu KY_NONE, events 0 when not known. what: "ring overwritten". */
void ky_put_lost(struct ky_trace *trace, int64_t ts, uint32_t thread, uint32_t cpu, uint64_t events,
		 const char *what);
/* A snapshot: goes into the table and into trace->clocks. ts is in the trace's clock. */
void ky_put_clocks(struct ky_trace *trace, int64_t ts, const struct ky_clock_reading *readings,
		   uint32_t count);
void ky_put_metadata(struct ky_trace *trace, const char *key, uint32_t text);
void ky_put_metadata_number(struct ky_trace *trace, const char *key, int64_t number);

/*
 * Counts a problem. name is one of a few and says what kind; the text, only looked at the first time, says
 * what was wrong there. at is the byte of the input or KY_NO_PLACE.
 */
void ky_problem(struct ky_trace *trace, const char *name, enum ky_severity severity, uint64_t at,
		const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The same, n times at once. */
void ky_problems(struct ky_trace *trace, const char *name, enum ky_severity severity, uint64_t at,
		 uint64_t number);

#endif
