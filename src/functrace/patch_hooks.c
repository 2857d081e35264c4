/* SPDX-License-Identifier: MIT */
/*
 * patch_hooks.c: return addresses are put back to where stubs took them from: see patch_parts.h.
 *
 * A word on a stack is taken for a hook when the frame of that very slot says so. Frames stay when a call has returned, so a
 * copy of a hook's address that happens to lie where the same function was once called from looks like one as well. An
 * unwinder has such copies, and goes astray when they change under its hands. Its own, which lie side by side,
 *
 *   struct _Unwind_Context { ...; cfa; ra; ... }     cfa is S + 8, ra is the hook of S: what it asks about next
 *
 * are told by that; others, in registers or saved ones, only by the thread's being inside the unwinder. So a thread that is
 * keeps its hooks for now. What looks as an unwinder's may also have been left behind by one, in locals that were never
 * written: a thread that waits in the kernel is not believed as long as one that runs.
 *
 * What is the unwinder's code is told by its file, where that has nothing else, or by the names of functions. Without names,
 * and in processes whose modules were never read, it is what lies near _Unwind_Find_FDE; there may be ordinary code as well
 * then (a static program has main's caller there), and it is not believed for long.
 */
#include "functrace/patch_parts.h"

#include "process/program_map.h"

#include <string.h>

#define UNWINDERS_MAX 16u
#define NEAR_BYTES UINT64_C(32768) /* to either side of _Unwind_Find_FDE: all of libgcc's */
#define NEAR_TRIES 20u
#define UNWINDER_STACK 4096u /* its own frames, or a personality's called by it */
#define WAITING_TRIES 20u

/* Whether an address is in a stub or in the agent. */
static bool is_inside(const struct ky_patch *patch, uint64_t address)
{
	const struct ky_agent_home *home = &patch->home;
	if (address - home->code_at < home->code_bytes)
		return true;
	for (uint32_t i = 0; i < patch->keep.regions_count; i++)
		if (address - patch->keep.regions[i].at < patch->keep.regions[i].used)
			return true;
	return false;
}

/* A thread's stack. */
struct stack {
	uint64_t piece_index, piece; /* of the directory, the last that was read; 0: none */
	bool hooks, contexts;        /* were seen */
};

/* Whether a word is the hook of a slot, and that slot's frame. */
static bool is_hook_of(const struct ky_patch *patch, struct stack *stack, uint64_t slot,
		       uint64_t word, struct ky_agent_frame *frame)
{
	const uint64_t index = slot >> KY_AGENT_PIECE_SHIFT;
	if (!is_inside(patch, word) || index >= KY_AGENT_PIECES || slot % 8)
		return false;
	if (!stack->piece || stack->piece_index != index) {
		stack->piece = 0;
		stack->piece_index = index;
		(void)ky_remote_read(&patch->remote,
				     patch->home.directory + index * sizeof(stack->piece),
				     &stack->piece, sizeof(stack->piece));
	}
	return stack->piece &&
	       !ky_remote_read(&patch->remote, stack->piece + slot * 4, frame, sizeof(*frame)) &&
	       frame->hook == word;
}

/* It lies below the frames that it tells of. */
static bool is_context(const struct ky_patch *patch, struct stack *stack, uint64_t at,
		       uint64_t word)
{
	struct ky_agent_frame frame;
	uint64_t cfa = 0;
	return !ky_remote_read(&patch->remote, at - sizeof(cfa), &cfa, sizeof(cfa)) && cfa > at &&
	       is_hook_of(patch, stack, cfa - 8, word, &frame);
}

static void see(struct ky_patch *patch, void *context, uint64_t at, uint64_t word)
{
	struct stack *stack = context;
	struct ky_agent_frame frame;
	stack->hooks = stack->hooks || is_hook_of(patch, stack, at, word, &frame);
	stack->contexts = stack->contexts || is_context(patch, stack, at, word);
}

static void unhook(struct ky_patch *patch, void *context, uint64_t at, uint64_t word)
{
	struct stack *stack = context;
	struct ky_agent_frame frame;
	if (is_hook_of(patch, stack, at, word, &frame) && !is_context(patch, stack, at, word))
		(void)ky_remote_write(&patch->remote, at, &frame.returns, sizeof(frame.returns));
}

/* ---- whether a thread unwinds ---- */

static bool holds_hook(const struct ky_patch *patch, const struct user_regs_struct *r)
{
	const uint64_t all[] = {r->rax, r->rbx, r->rcx, r->rdx, r->rsi, r->rdi, r->rbp, r->r8,
				r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (is_inside(patch, all[i]))
			return true;
	return false;
}

/* Where the code of unwinders is. */
struct unwinder {
	struct ky_code_range range;           /* all that is in it, */
	const struct ky_patch_module *module; /* and functions of this one, by name. NULL: none */
};
struct unwinders {
	struct unwinder items[UNWINDERS_MAX];
	uint32_t count;
};

static bool is_of_unwinder_only(const char *name)
{
	return strncmp(name, "libgcc_s", 8) == 0 || strncmp(name, "libunwind", 9) == 0;
}

/* Of all its functions: those that are exported are not enough. */
static bool has_names(const struct ky_functions *functions)
{
	return functions->names_from && strcmp(functions->names_from, ".dynsym") != 0;
}

static bool is_in_module(const struct ky_patch_module *module, uint64_t address)
{
	return module->functions && address - module->from < module->to - module->from;
}

static const struct ky_patch_module *module_at(const struct ky_patch *patch, uint64_t address)
{
	for (uint32_t i = 0; i < patch->modules_count; i++)
		if (is_in_module(&patch->modules[i], address))
			return &patch->modules[i];
	return NULL;
}

/* The mapping of a file that has nothing else, where the modules were never read. */
static struct ky_code_range mapping_at(const struct ky_patch *patch, uint64_t address)
{
	struct ky_code_range range = {0};
	struct ky_program_map map;
	if (ky_program_map_read(&map, patch->remote.pid))
		return range;
	for (uint32_t i = 0; i < map.count; i++) {
		const struct ky_proc_mapping *mapping = &map.mappings[i];
		const char *slash = strrchr(mapping->path, '/');
		if (address - mapping->start < mapping->end - mapping->start &&
		    is_of_unwinder_only(slash ? slash + 1 : mapping->path))
			range = (struct ky_code_range){mapping->start,
						       mapping->end - mapping->start};
	}
	ky_program_map_free(&map);
	return range;
}

static struct unwinder unwinder_at(const struct ky_patch *patch, uint64_t find_fde, uint32_t tries)
{
	struct unwinder unwinder = {.module = module_at(patch, find_fde)};
	const struct ky_patch_module *module = unwinder.module;
	if (!module)
		unwinder.range = mapping_at(patch, find_fde);
	else if (is_of_unwinder_only(module->name))
		unwinder.range = (struct ky_code_range){module->from, module->to - module->from};
	const bool known = unwinder.range.bytes || (module && has_names(module->functions));
	if (!known && tries < NEAR_TRIES)
		unwinder.range = (struct ky_code_range){find_fde - NEAR_BYTES, 2 * NEAR_BYTES};
	return unwinder;
}

static void find_unwinders(const struct ky_patch *patch, uint32_t tries,
			   struct unwinders *unwinders)
{
	unwinders->count = 0;
	for (uint32_t i = 0; i < patch->table_count && unwinders->count < UNWINDERS_MAX; i++)
		if (patch->table[i].pad == KY_STUB_FIND_FDE)
			unwinders->items[unwinders->count++] =
				unwinder_at(patch, patch->table[i].address, tries);
}

static bool is_unwinder(const struct unwinders *unwinders, uint64_t address)
{
	for (uint32_t i = 0; i < unwinders->count; i++) {
		const struct unwinder *one = &unwinders->items[i];
		if (address - one->range.from < one->range.bytes)
			return true;
		if (!one->module || !is_in_module(one->module, address))
			continue;
		const struct ky_function *function =
			ky_functions_over(one->module->functions, address - one->module->bias);
		if (function && ky_function_unwinds(function))
			return true;
	}
	return false;
}

static bool is_in_unwinder(const struct ky_patch *patch, const struct unwinders *unwinders,
			   const struct user_regs_struct *registers)
{
	uint64_t words[UNWINDER_STACK / 8] = {0};
	const uint64_t room = KY_PATCH_PAGE - registers->rsp % KY_PATCH_PAGE;
	/* The stack may end with this page. */
	if (ky_remote_read(&patch->remote, registers->rsp, words, sizeof(words)))
		(void)ky_remote_read(&patch->remote, registers->rsp, words, room);
	bool in = is_unwinder(unwinders, registers->rip);
	for (size_t i = 0; !in && i < sizeof(words) / sizeof(words[0]); i++)
		in = is_unwinder(unwinders, words[i] - 1); /* the call, not what follows it */
	return in;
}

/* Whether it unwinds, or may be about to, through a stub. */
static bool unwinds(const struct ky_patch *patch, const struct unwinders *unwinders,
		    const struct user_regs_struct *registers, const struct stack *stack)
{
	const bool holds = holds_hook(patch, registers);
	return stack->contexts || holds ||
	       (stack->hooks && is_in_unwinder(patch, unwinders, registers));
}

bool ky_patch_hooks_off(struct ky_patch *patch, uint32_t tries)
{
	const uint64_t range[2] = {patch->home.stubs_from, patch->home.stubs_to};
	struct ky_patch_stacks stacks;
	struct unwinders unwinders;
	bool off = true;
	find_unwinders(patch, tries, &unwinders);
	ky_patch_stacks_read(&stacks, patch->remote.pid);
	for (uint32_t i = 0; i < patch->remote.count; i++) {
		const struct user_regs_struct *registers = &patch->remote.threads[i].registers;
		struct stack stack = {0};
		off = off && !is_inside(patch, registers->rip);
		if (!patch->home.directory || range[0] >= range[1])
			continue;
		ky_patch_stacks_scan(patch, &stacks, registers->rsp, range, see, &stack);
		const bool waits = (int64_t)registers->orig_rax >= 0;
		const uint32_t patience = waits ? WAITING_TRIES : KY_PATCH_QUIET_TRIES - 1;
		if (tries < patience && unwinds(patch, &unwinders, registers, &stack))
			off = false;
		else if (stack.hooks)
			ky_patch_stacks_scan(patch, &stacks, registers->rsp, range, unhook, &stack);
	}
	ky_patch_stacks_free(&stacks);
	return off;
}

/* ---- threads that were interrupted ---- */

/* A thread that ended in the agent leaves its state busy for good. Another pid namespace has other numbers: who knows. */
static bool is_alive(const struct ky_patch *patch, uint32_t tid)
{
	if (patch->home.pid != (uint32_t)patch->remote.pid)
		return true;
	for (uint32_t i = 0; i < patch->remote.count; i++)
		if ((uint32_t)patch->remote.threads[i].tid == tid)
			return true;
	return false;
}

bool ky_patch_hooks_interrupted(const struct ky_patch *patch)
{
	const struct ky_agent_home *home = &patch->home;
	uint32_t used = 0;
	bool busy = false;
	(void)ky_remote_read(&patch->remote,
			     patch->home_at + offsetof(struct ky_agent_home, states_used), &used,
			     sizeof(used));
	for (uint32_t i = 1; !busy && i < used && i < home->states_max; i++) {
		struct ky_agent_state state;
		busy = !ky_remote_read(&patch->remote, home->states + i * home->state_bytes, &state,
				       offsetof(struct ky_agent_state, ring)) &&
		       state.busy && is_alive(patch, state.tid);
	}
	return busy;
}
