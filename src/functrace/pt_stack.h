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

#include <stdbool.h>
#include <stdint.h>

/* ---- a stretch of trace ---- */

/*
 * The calls of a stretch of trace, kept until their nesting and their times are known.
 *
 *   lost    functions that were running when the stretch began: each is found when it is returned to, the outermost last
 *   marks   begins and ends as they were decoded, each with the time of the last packet that had one
 *
 *   trace:   ... ret  call g  ret  ret ...         flushed:   h ├────────────────────┤
 *                 │                  │                        f ├──────────────┤
 *           f was running       h was, too                            g ├──┤
 *
 * Flushing passes the lost ones on first, with the start of the stretch as their beginning. Calls between two packets
 * with a time are spread evenly: the packets contain no more. Time that is known to have been spent elsewhere (a
 * system call) is left out of the spreading. Later packets of the same ring have calls of earlier ones: those
 * before `since` are not passed on again.
 */
#define KY_PT_MARKS_MAX (1u << 21) /* of a stretch: a longer one is cut in two */

/* A function, as the decoder knows it. */
struct ky_pt_function {
	uint64_t start;    /* identifies it: also parts of it that lie elsewhere (.cold) */
	uint64_t from, to; /* the addresses around the one asked for; both 0: unknown */
	bool shown;        /* its calls are passed on */
};

struct ky_pt_calls {
	/*
	 * Find the function that contains an address; false: unknown, and `shown` is whether it is named by its
	 * address.
	 */
	bool (*function)(void *context, uint64_t address, struct ky_pt_function *function);
	/* lost: it was running before. */
	void (*begin)(void *context, uint64_t ns, uint64_t start, bool lost);
	void (*gap)(void *context, uint64_t ns, const char *what); /* a span: "[syscall]" */
	void (*end)(void *context, uint64_t ns);                   /* of the last of both */
	void (*instant)(void *context, uint64_t ns, const char *text);
	void *context;
};

enum ky_pt_mark_kind {
	KY_PT_BEGIN,
	KY_PT_GAP,
	KY_PT_END,
	KY_PT_GAP_END,
	KY_PT_INSTANT,
};

struct ky_pt_mark {
	uint64_t ns;
	union {
		uint64_t start;
		const char *what; /* GAP: not owned */
		char *text;       /* INSTANT */
	};
	uint8_t kind;
	bool lost;
};

struct ky_pt_segment {
	const struct ky_pt_calls *calls;
	uint64_t since; /* marks before it are left out */
	bool passed;    /* since is over */
	struct ky_pt_mark *marks;
	uint32_t count, room;
	struct ky_pt_mark *lost;
	uint32_t lost_count, lost_room;
	struct ky_pt_mark *held; /* open when since came */
	uint32_t held_count, held_room;
	uint64_t began_ns;
	bool failed; /* no memory: the rest is left out */
};

/* Add a mark; times never go back. */
void ky_pt_segment_instant(struct ky_pt_segment *segment, uint64_t ns, const char *text);

/* ---- the functions that are running ---- */

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
