/* SPDX-License-Identifier: MIT */
/*
 * event_intake.h: events of kymo's own recorder into the model: of a .kymo file or of a drum. What each kind becomes
 * is what our Perfetto trace of the same events becomes (docs/formats/pftrace.md), so that it does not matter which
 * of them was recorded.
 */
#ifndef KY_READER_EVENT_INTAKE_H
#define KY_READER_EVENT_INTAKE_H

#include "event.h"
#include "intake.h"

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
void ky_event_intake_clocks(struct ky_event_intake *intake, const struct ky_clock_sample *samples,
			    uint32_t count);

#endif
