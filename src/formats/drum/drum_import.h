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
			  bool tells);
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
struct ky_event_told {
	int64_t ns;
	int32_t tid; /* 0: not known */
	bool by_api; /* asked for by an event, whatever the reason says */
	struct ky_text reason;
};
/* Ordered by time. */
void ky_event_intake_told(struct ky_event_intake *intake, const struct ky_event_told *told,
			  uint32_t count);

/* Return the track of all snapshots of a trace. */
uint32_t ky_event_snapshots_track(struct ky_trace *trace);

#endif
