/* SPDX-License-Identifier: MIT */
/*
 * task_state.c: the states of tasks: their letters from the bits of sched_switch, and rows of inputs that hold states
 * instead of switches. The meaning of the bits changed with the kernel:
 *
 *           0x01 0x02 0x04 0x08 0x10 0x20 0x40 0x80 0x100 0x200 0x400 0x800 0x1000
 *   4.14 on  S    D    T    t    X    Z    P    I    +
 *   4.8      S    D    T    t    X    Z    x    K    W     P     N           +
 *   before   S    D    T    t    X    Z    x    K    W     P     N     +
 */
#include "model/build.h"
#include "model/kernel.h"

struct bit_letter {
	uint16_t bit;
	char letter;
};

/* Letters in the order in which they are written. */
static const struct bit_letter modern[] = {{0x01, 'S'}, {0x02, 'D'}, {0x04, 'T'}, {0x08, 't'},
					   {0x10, 'X'}, {0x20, 'Z'}, {0x40, 'P'}, {0x80, 'I'}};
static const struct bit_letter old[] = {{0x01, 'S'}, {0x02, 'D'},  {0x04, 'T'},  {0x08, 't'},
					{0x10, 'X'}, {0x20, 'Z'},  {0x200, 'P'}, {0x40, 'x'},
					{0x80, 'K'}, {0x100, 'W'}, {0x400, 'N'}};

#define RELEASE(major, minor) ((major) << 8 | (minor))
/* An uninterruptible sleep that does not count as load: idle. */
#define OLD_IDLE 0x402u
#define OLD_BITS 0x7FFu

static uint32_t write_letters(struct ky_trace *trace, uint32_t mask, const struct bit_letter *bits,
			      size_t count)
{
	char text[16];
	size_t used = 0;
	for (size_t i = 0; i < count; i++)
		if (mask & bits[i].bit)
			text[used++] = bits[i].letter;
	return ky_string(trace, text, used);
}

uint32_t ky_task_state(struct ky_trace *trace, uint64_t mask, uint32_t release)
{
	uint32_t bits = (uint32_t)(mask & 0xFFFF);
	bool is_modern = release >= RELEASE(4, 14);
	uint32_t preempted = is_modern ? 0x100 : release >= RELEASE(4, 8) ? 0x1000 : 0x800;
	uint32_t known = is_modern ? 0xFFu : OLD_BITS;
	if (is_modern && bits & 0xFE00)
		return 0;
	if (!(bits & known))
		return ky_string_z(trace, bits & preempted ? "R+" : "R");
	if (!is_modern && (bits & OLD_BITS) == OLD_IDLE)
		return ky_string_z(trace, "I");
	return is_modern ? write_letters(trace, bits, modern, sizeof(modern) / sizeof(modern[0]))
			 : write_letters(trace, bits, old, sizeof(old) / sizeof(old[0]));
}

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
