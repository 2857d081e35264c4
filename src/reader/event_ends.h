/* SPDX-License-Identifier: MIT */
/*
 * event_ends.h: when threads ended, which one drum tells, and what was open then, which others do. A function that never
 * returns (_exit, pthread_exit, the program's own main when it is killed) lasts until its thread's end, not to that of the trace.
 */
#ifndef KY_READER_EVENT_ENDS_H
#define KY_READER_EVENT_ENDS_H

#include "intake.h"

/* What a drum of threads off the CPU calls the instant. */
#define KY_THREAD_ENDED "thread ended"

struct ky_event_ends {
	struct ky_open_span {
		uint32_t thread, track, category, name;
		int64_t last_ns; /* of the thread */
	} * spans;               /* of a thread the outer before the inner */
	uint32_t spans_count, spans_room;
	struct ky_thread_end {
		uint32_t thread;
		int64_t ns;
	} * ends;
	uint32_t ends_count, ends_room;
};

/* False without memory. */
bool ky_event_ends_open(struct ky_event_ends *ends, const struct ky_open_span *span);
bool ky_event_ends_thread(struct ky_event_ends *ends, uint32_t thread, int64_t ns);
/* All drums were read: ends what was open when its thread ended. */
void ky_event_ends_put(struct ky_event_ends *ends, struct ky_trace *trace);
void ky_event_ends_free(struct ky_event_ends *ends);

#endif
