/* SPDX-License-Identifier: MIT */
/*
 * pt_stack.h: the functions that are running, from the branches that were taken.
 *
 *   frames   outermost first
 *            ┌ function ┬ called_at: the call instruction that made it ┬ resume: where a signal came, of handlers ┐
 *
 *   call     a frame more
 *   return   ends the frame whose call is just before its target, and all in it: longjmp, exceptions. None: the
 *            innermost frame of the target's function; none: all end, and that function was running before
 *   jump     to the start of another function: a tail call, the frame becomes that function's. Into the middle of one that
 *            is running: longjmp, the calls in it end
 *   stop, go tracing ends and begins again: a system call, an interrupt; or a signal handler, when it goes on at another
 *            place, and the end of one, when it goes on where a handler came
 *
 * The length of a call instruction is unknown here, only its address: a return address is at most an instruction's
 * length behind it.
 */
#ifndef KY_FUNCTRACE_PT_STACK_H
#define KY_FUNCTRACE_PT_STACK_H

#include "functrace/pt_segment.h"

#define KY_PT_FRAMES_MAX (1u << 18)

struct ky_pt_frame {
	struct ky_pt_function function;
	/* the function is known; otherwise it is only the address of its entry */
	bool known;
	uint64_t called_at; /* 0: not seen */
	uint64_t resume;    /* 0: not a handler */
};

struct ky_pt_stack {
	struct ky_pt_segment segment;
	struct ky_pt_frame *frames;
	uint32_t count, room;
	bool stopped;        /* a gap is open */
	uint64_t stopped_at; /* 0: unknown */
};

void ky_pt_stack_open(struct ky_pt_stack *stack, const struct ky_pt_calls *calls, uint64_t since);
void ky_pt_stack_close(struct ky_pt_stack *stack);

/* Execute an instruction there: it gives the function, when nothing is known yet. */
void ky_pt_stack_at(struct ky_pt_stack *stack, uint64_t ns, uint64_t address);
void ky_pt_stack_call(struct ky_pt_stack *stack, uint64_t ns, uint64_t from, uint64_t to);
void ky_pt_stack_return(struct ky_pt_stack *stack, uint64_t ns, uint64_t to);
void ky_pt_stack_jump(struct ky_pt_stack *stack, uint64_t ns, uint64_t to);
/* Stop tracing. what: the name of the span until it goes on. at: the last instruction, 0: unknown. */
void ky_pt_stack_stop(struct ky_pt_stack *stack, uint64_t ns, const char *what, uint64_t at);
/* Go on. resumed: surely where it stopped. */
void ky_pt_stack_go(struct ky_pt_stack *stack, uint64_t ns, uint64_t to, bool resumed);
/* Take a branch that no instruction made. */
void ky_pt_stack_interrupt(struct ky_pt_stack *stack, uint64_t ns, uint64_t from, uint64_t to);
/* End all: nothing is known any more. */
void ky_pt_stack_reset(struct ky_pt_stack *stack, uint64_t ns);

#endif
