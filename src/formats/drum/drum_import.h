/* SPDX-License-Identifier: MIT */
/*
 * drum_import.h: events of kymo's own recorder into the model: of a .kymo file or of a drum. What each kind becomes
 * is what our Perfetto trace of the same events becomes (docs/formats/pftrace.md), so that it does not matter which
 * of them was recorded.
 */
#ifndef KY_FORMATS_DRUM_DRUM_IMPORT_H
#define KY_FORMATS_DRUM_DRUM_IMPORT_H

#include "base/map.h"
#include "core/event.h"
#include "core/span_stack.h"
#include "formats/out.h"
#include "model/intake.h"
#include "process/thread_ends.h"

struct ky_event_intake;

/*
 * ordered: what comes is built at once (ky_trace_in_order). Then an event that would have to go back in time ends
 * it: ky_event_intake_is_done() is true, the rest is dropped, and it has to be done again with a new trace,
 * not ordered. 0 or -ENOMEM.
 */
int ky_event_intake_open(struct ky_event_intake **intake, struct ky_trace *trace, bool ordered);
void ky_event_intake_close(struct ky_event_intake **intake);
bool ky_event_intake_is_done(const struct ky_event_intake *intake);

/* As a stream's sink has them; context is the intake. */
void ky_event_intake_thread(void *context, const struct ky_thread *thread);
void ky_event_intake_event(void *context, const struct ky_event *event);
void ky_event_intake_thread_end(void *context, const struct ky_thread *thread, uint64_t time_ns);
bool ky_event_intake_words(void *context, const struct ky_thread *thread,
			   const struct ky_site *site, const uint64_t *words, uint64_t time_ns);

void ky_event_intake_process(struct ky_event_intake *intake, int32_t pid, struct ky_text name,
			     struct ky_text command);
/*
 * From here on all threads are of that process, whatever they say: its pid as its own pid namespace has it may be
 * another's here. pid is that of the process, whose current life it is.
 */
void ky_event_intake_owner(struct ky_event_intake *intake, int64_t pid, uint32_t process);
/*
 * There are other drums of the same threads: an end ends only a span of this one. own: it is the program's own; else the names it
 * has are the system's.
 */
void ky_event_intake_beside(struct ky_event_intake *intake, bool own);
/* After the last event: that process has executed another program then, and nothing of it is open any more. */
void ky_event_intake_cut(struct ky_event_intake *intake, int64_t pid);
/* Of these processes (by pid) its spans do not nest in those of the other drums: they are on tracks of their own. */
void ky_event_intake_apart(struct ky_event_intake *intake, const struct ky_u64_map *processes);
/* When threads end; tells: the drum is one that says so. */
void ky_event_intake_ends(struct ky_event_intake *intake, const struct ky_thread_ends *ends,
			  bool has_ends);
void ky_event_intake_clocks(struct ky_event_intake *intake, const struct ky_tick_reading *samples,
			    uint32_t count);

/* ---- flight recorders ---- */

/*
 * Before the first event: only these parts of the time are there, ordered, not touching. Spans that are open at the end of
 * one end there, and an end without a begin begins with its window. They stay the caller's, as long as it is open.
 */
void ky_event_intake_windows(struct ky_event_intake *intake, const struct ky_window *windows,
			     uint32_t count);
/* After the last event. */
void ky_event_intake_end(struct ky_event_intake *intake);

/* A snapshot of which there is a record: the event that asked for it is not shown beside it. */
struct ky_event_snapshot {
	int64_t ns;
	int32_t tid; /* 0: not known */
	bool by_api; /* asked for by an event, whatever the reason says */
	struct ky_text reason;
};
/* Ordered by time. */
void ky_event_intake_snapshots(struct ky_event_intake *intake,
			       const struct ky_event_snapshot *snapshots, uint32_t count);

/* Return the track of all snapshots of a trace. */
uint32_t ky_event_snapshots_track(struct ky_trace *trace);

/* ---- inside: drum_import.c takes every event, drum_import_fast.c the most frequent by a shorter way ---- */

/* File, function and line. */
#define KY_LOCATION_ARGS 3

struct ky_known_site {
	bool known;
	bool plain; /* of a span or instant: nothing but the name, on the thread's track */
	bool quick; /* a plain begin */
	bool ends;  /* a plain end: of the innermost span, whatever it is */
	uint8_t args;
	uint8_t set_args; /* with those of the location */
	uint32_t category;
	uint32_t name;
	uint32_t location; /* set of arguments, 0: not known where it is */
	uint32_t file, function;
	uint32_t counters_of;             /* process + 1 of the tracks below */
	uint32_t counters[KYMO_ARGS_MAX]; /* track + 1 */
	uint32_t keys[KYMO_ARGS_MAX + KY_LOCATION_ARGS];
	uint8_t types[KYMO_ARGS_MAX + KY_LOCATION_ARGS]; /* enum ky_arg_type */
	uint64_t location_values[KY_LOCATION_ARGS];
};

/* Asynchronous spans that are open, and the end of the window that the last of them began in. */
struct ky_open_async {
	uint32_t track;
	uint32_t depth;
	int64_t window_ns;
};

#define KY_EVENT_ANEW (-1)
/*
 * Deeper spans are counted and left out, with their ends: the model takes no more slices in each other than 32768, of all drums of
 * a thread, and an end whose begin it left out would end another.
 */
#define KY_EVENT_DEPTH_MAX 32000u

/* A span of the stack is its trace point alone. */
#define KY_EVENT_ITEM_BYTES sizeof(const struct ky_site *)

struct ky_known_thread {
	bool known;
	uint32_t thread;
	uint32_t process;
	int64_t pid, tid;
	uint32_t track;
	struct ky_span_stack stack; /* of trace points; deeper ones are kept, too */
	uint32_t made_up;           /* beginnings, since then */
	int64_t first_ns;           /* begins are made up before it */
	int64_t last_ns;
	int64_t until_ns;  /* later events start again; KY_EVENT_ANEW: the next does */
	int64_t end_ns;    /* of the thread, after its last event; INT64_MAX: not known */
	int64_t window_ns; /* end of the window that it is in; KY_EVENT_ANEW: in none yet */
};

struct ky_event_intake {
	struct ky_trace *trace;
	bool ordered;
	bool done;
	bool owned;                        /* all threads are of one process */
	bool beside;                       /* other drums have spans of the same threads */
	const struct ky_thread_ends *ends; /* NULL: nobody tells when threads end */
	bool has_ends;                     /* it is this drum */
	const struct ky_u64_map *apart;    /* of these processes its own are on other tracks */
	enum ky_name_from names;
	uint32_t owner;
	int64_t owner_pid;
	const struct ky_window *windows; /* NULL: all of the time */
	uint32_t windows_count;
	const struct ky_event_snapshot *snapshots;
	uint32_t snapshots_count;
	int64_t last_ns;
	struct ky_table sites;
	struct ky_table threads;
	struct ky_table asyncs;     /* struct ky_open_async, with windows */
	struct ky_u64_map async_of; /* track: which of them */
	struct ky_out clean;        /* scratch; its error is that of the tables as well */
	uint32_t source_file, source_function, source_line;
	uint32_t begin_lost, begin_lost_name;
	uint32_t process_track_type, counter_track_type;
};

/*
 * Take the innermost open span off the stack. Return false when the model does not have it: it is too deep. Else set the category
 * and name that its end needs, where there are other drums of the same threads.
 */
static inline bool ky_event_pop(struct ky_event_intake *intake, struct ky_known_thread *t,
				uint32_t *category, uint32_t *name)
{
	const struct ky_site *const site =
		*(const struct ky_site **)ky_span_stack_pop(&t->stack, KY_EVENT_ITEM_BYTES);
	*category = *name = 0;
	if (__builtin_expect(t->stack.depth >= KY_EVENT_DEPTH_MAX, 0))
		return false;
	if (__builtin_expect(intake->beside, 0)) {
		const struct ky_known_site *const known = ky_table_at(&intake->sites, site->index);
		*category = known->category;
		*name = site->flags & KYMO_SITE_NAME ? 0 : known->name;
	}
	return true;
}

/* End the innermost open span: of this drum, where there are others of the same threads. */
static inline void ky_event_end(struct ky_event_intake *intake, struct ky_known_thread *t,
				int64_t ns, uint32_t args)
{
	uint32_t category, name;
	if (ky_event_pop(intake, t, &category, &name))
		ky_put_end(intake->trace, ns, t->track, category, name, args);
}

/* ---- drum_import_window.c ---- */

/* All that is open ends with its thread, or at the latest then. */
void ky_event_end_open(struct ky_event_intake *intake, struct ky_known_thread *t,
		       int64_t latest_ns);

/* The thread's first event, or the first since a loss or in another window. */
void ky_event_begin(struct ky_event_intake *intake, struct ky_known_thread *t, int64_t ns);
/* With windows: an asynchronous span begins or ends. */
void ky_event_async(struct ky_event_intake *intake, uint32_t track, const struct ky_event *e,
		    uint32_t category, uint32_t name, int64_t ns);
/* Report whether a record describes the snapshot that the event asks for. */
bool ky_event_is_known_snapshot(const struct ky_event_intake *intake, const struct ky_event *e,
				int64_t ns);

#endif
