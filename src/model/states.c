/* SPDX-License-Identifier: MIT */
/* states.c: states of threads that an input has as such, as rows of thread_states and sched. */
#include "model/build.h"
#include "model/kernel.h"

static void add_sched(struct ky_trace *trace, const struct ky_state_span *span)
{
	struct ky_sched *sched = &trace->sched;
	const uint32_t row = ky_append(trace, sched);
	if (row == KY_NONE)
		return;
	sched->ts[row] = span->ts;
	sched->dur[row] = span->dur;
	sched->cpu[row] = span->cpu;
	sched->thread[row] = span->thread;
	sched->end_state[row] = 0;
	sched->priority[row] = 0;
}

void ky_put_state_span(struct ky_trace *trace, const struct ky_state_span *span)
{
	struct ky_thread_states *states = &trace->thread_states;
	const char *state = ky_text_of(trace, span->state);
	const bool running = state && strcmp(state, "Running") == 0 && span->cpu != KY_NONE;
	const uint32_t row = ky_append(trace, states);

	trace->events++;
	if (row == KY_NONE)
		return;
	states->ts[row] = span->ts;
	states->dur[row] = span->dur;
	states->thread[row] = span->thread;
	states->state[row] = span->state;
	states->cpu[row] = running ? span->cpu : KY_NONE;
	states->waker[row] = KY_NONE;
	states->io_wait[row] = span->io_wait;
	states->blocked_function[row] = span->blocked_function;
	if (running)
		add_sched(trace, span);
}
