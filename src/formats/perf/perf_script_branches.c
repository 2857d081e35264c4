/* SPDX-License-Identifier: MIT */
/*
 * perf_script_branches.c: branches of a thread (Intel PT, magic-trace) as slices: a call begins the function it goes
 * to, a return ends it, and a jump to the start of another function is a tail call. Returns from functions
 * that were entered before the trace began are ignored. Where the trace pauses (errors, filters), what was
 * entered stays open, as the trace goes on inside of it.
 */
#include "base/array.h"
#include "formats/perf/perf_script.h"

#include <errno.h>
#include <stdlib.h>

static struct ky_perf_script_stack *stack_of(struct ky_perf_script *script)
{
	bool made;
	uint32_t *number = ky_u64_map_add(&script->stack_of, script->thread, &made);
	if (!number)
		return NULL;
	if (made) {
		struct ky_perf_script_stack *stack = calloc(1, sizeof(*stack));
		*number = KY_NONE;
		if (!stack || !KY_ARRAY_GROW_ZERO(script->stacks, script->stacks_room,
						  script->stacks_count + 1ull)) {
			free(stack);
			script->trace->error = -ENOMEM;
			return NULL;
		}
		stack->track = ky_track_of_thread(script->trace, script->thread);
		script->stacks[script->stacks_count] = stack;
		*number = script->stacks_count++;
	}
	return *number == KY_NONE ? NULL : script->stacks[*number];
}

void ky_perf_script_branches_free(struct ky_perf_script *script)
{
	for (uint32_t i = 0; i < script->stacks_count; i++)
		free(script->stacks[i]);
	KY_ARRAY_FREE(script->stacks, script->stacks_room);
	ky_u64_map_free(&script->stack_of);
}

static bool begins_with(const struct ky_perf_text *text, const char *with)
{
	const size_t bytes = strlen(with);
	return text->bytes >= bytes && memcmp(text->text, with, bytes) == 0;
}

static void enter(struct ky_perf_script *script, struct ky_perf_script_stack *stack, uint32_t name)
{
	if (stack->depth == KY_PERF_SCRIPT_DEPTH_MAX) {
		ky_problem(script->trace, "perf_script_too_deep", KY_DATA_LOSS, KY_NO_PLACE,
			   "calls are nested deeper than %u", KY_PERF_SCRIPT_DEPTH_MAX);
		return;
	}
	stack->names[stack->depth++] = name;
	ky_put_begin(script->trace, script->head.time_ns, stack->track, script->category, name, 0);
}

static void leave(struct ky_perf_script *script, struct ky_perf_script_stack *stack)
{
	if (!stack->depth)
		return;
	stack->depth--;
	ky_put_end(script->trace, script->head.time_ns, stack->track, 0, 0, 0);
}

void ky_perf_script_branched(struct ky_perf_script *script,
			     const struct ky_perf_script_branch *branch)
{
	struct ky_perf_script_stack *stack = stack_of(script);
	const struct ky_perf_text *kind = &branch->kind;
	if (!stack)
		return;
	const uint32_t to =
		ky_string(script->trace, branch->to.symbol.text, branch->to.symbol.bytes);
	const uint32_t top = stack->depth ? stack->names[stack->depth - 1] : 0;
	if (begins_with(kind, "tr strt")) {
		if (top != to)
			enter(script, stack, to);
	} else if (begins_with(kind, "tr end")) {
		return;
	} else if (begins_with(kind, "call") || begins_with(kind, "syscall") ||
		   begins_with(kind, "int") || begins_with(kind, "hw int")) {
		enter(script, stack, to);
	} else if (begins_with(kind, "return") || begins_with(kind, "sysret") ||
		   begins_with(kind, "iret")) {
		leave(script, stack);
	} else if ((begins_with(kind, "jmp") || begins_with(kind, "jcc")) && top && top != to &&
		   branch->to.offset == 0) {
		leave(script, stack);
		enter(script, stack, to);
	}
}
