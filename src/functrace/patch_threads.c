/* SPDX-License-Identifier: MIT */
/*
 * patch_threads.c: changes to threads while they are stopped: see patch_parts.h.
 *
 *   gs       leads to the states; must have been 0, or ours. fs:0 must be the thread's own address, by which states know it
 *   rip      inside the bytes to overwrite: goes on in the moved copy
 *   stack    a word that leads inside the bytes to overwrite was put there by a signal: that function is not patched
 *   hooks    the return addresses are put back into the stack words that stubs took them from
 *
 * A word on a stack counts as a hook when the return slot of that very address has this hook. Return slots stay after
 * a call has returned, so a copy of a hook's address that happens to lie where the same function was once called from
 * looks like a hook as well. An unwinder has such copies, and goes astray when they change under its hands. Its own
 * context, whose words lie side by side,
 *
 *   struct _Unwind_Context { ...; cfa; ra; ... }     cfa is S + 8, ra is the hook of S: the next address it looks up
 *
 * is recognised by that; other copies, in registers or saved ones, only by the thread's being inside the unwinder. So
 * a thread that unwinds keeps its hooks for now. Words that look like an unwinder's may also be left over from one,
 * in locals that were never written: a thread that waits in the kernel is not believed as long as one that runs.
 *
 * The unwinder's code is recognised by its file, if that contains nothing else, or by the names of functions. Without
 * names, and in processes whose modules were never read, it is the code near _Unwind_Find_FDE; ordinary code may be
 * there as well (a static program has main's caller there), so this is not believed for long.
 */
#include "base/array.h"
#include "base/file.h"
#include "functrace/patch_parts.h"
#include "process/proc_maps.h"
#include "process/program_file.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define USER_CODE 0x33u /* cs of a thread in 64-bit mode */
#define STACK_MAX (UINT64_C(64) << 20)
#define CHUNK_BYTES 65536u

static bool is_ours(const struct ky_patch *patch, uint64_t gs)
{
	const struct ky_agent_home *home = &patch->home;
	return home->states && gs - home->states < home->states_max * home->state_bytes;
}

int ky_patch_threads_check(struct ky_patch *patch, char message[KY_MESSAGE_BYTES])
{
	for (uint32_t i = 0; i < patch->remote.count; i++) {
		const struct user_regs_struct *r = &patch->remote.threads[i].registers;
		uint64_t self = 0;
		const char *why = NULL;
		if (r->cs != USER_CODE)
			why = "runs 32-bit code";
		else if (r->gs || (r->gs_base && !is_ours(patch, r->gs_base)))
			why = "uses the gs register itself (as Wine does)";
		else if (!r->fs_base ||
			 ky_remote_read(&patch->remote, r->fs_base, &self, sizeof(self)) ||
			 self != r->fs_base)
			why = "has no thread pointer of the usual kind (as Go programs)";
		if (!why)
			continue;
		return ky_fail(message, -ENOTSUP,
			       "Cannot patch process %d: thread %d %s; use --engine sample",
			       (int)patch->remote.pid, (int)patch->remote.threads[i].tid, why);
	}
	return 0;
}

void ky_patch_threads_gs(struct ky_patch *patch)
{
	for (uint32_t i = 0; i < patch->remote.count; i++) {
		struct ky_remote_thread *thread = &patch->remote.threads[i];
		/* A thread may be in the middle of a stub: its state stays. */
		if (is_ours(patch, thread->registers.gs_base))
			continue;
		thread->registers.gs_base = patch->home.states;
		thread->changed = true;
	}
}

/* ---- stacks ---- */

static void stacks_read(struct ky_patch_stacks *stacks, pid_t pid)
{
	struct ky_proc_maps maps;
	struct ky_proc_mapping mapping;
	*stacks = (struct ky_patch_stacks){0};
	(void)ky_proc_maps_open(&maps, pid);
	while (ky_proc_maps_next(&maps, &mapping)) {
		if (!(mapping.protection & PROT_WRITE))
			continue;
		if (!KY_ARRAY_GROW(stacks->mappings, stacks->room, stacks->count + 1))
			break;
		stacks->mappings[stacks->count].from = mapping.start;
		stacks->mappings[stacks->count++].to = mapping.end;
	}
	ky_proc_maps_close(&maps);
}

static uint64_t end_of(const struct ky_patch_stacks *stacks, uint64_t address)
{
	for (uint32_t i = 0; i < stacks->count; i++)
		if (address >= stacks->mappings[i].from && address < stacks->mappings[i].to)
			return stacks->mappings[i].to;
	return address;
}

static void stacks_free(struct ky_patch_stacks *stacks)
{
	KY_ARRAY_FREE(stacks->mappings, stacks->room);
}

/* Call back for each word, from `at` on, that is between two values. */
static void stacks_scan(struct ky_patch *patch, const struct ky_patch_stacks *stacks, uint64_t from,
			const uint64_t range[2], ky_patch_word_fn word, void *context)
{
	static uint64_t words[CHUNK_BYTES / 8];
	uint64_t to = end_of(stacks, from);
	from &= ~UINT64_C(7);
	if (to - from > STACK_MAX)
		to = from + STACK_MAX;
	for (uint64_t at = from; at < to; at += CHUNK_BYTES) {
		const size_t bytes = to - at < CHUNK_BYTES ? to - at : CHUNK_BYTES;
		if (ky_remote_read(&patch->remote, at, words, bytes))
			return;
		for (size_t i = 0; i < bytes / 8; i++)
			if (words[i] >= range[0] && words[i] < range[1])
				word(patch, context, at + i * 8, words[i]);
	}
}

/* ---- moving ---- */

struct moving {
	struct ky_patch_edits *edits;
	uint32_t left_alone;
};

static void drop(struct ky_patch *patch, struct moving *moving, struct ky_patch_edit *edit)
{
	ky_patch_edits_drop(moving->edits, edit);
	if (moving->edits->again)
		return;
	ky_patch_table_set(patch, edit->entry, false);
	patch->spots[edit->entry].wanted = false;
	moving->left_alone++;
}

static void leave_alone(struct ky_patch *patch, void *context, uint64_t at, uint64_t word)
{
	struct moving *moving = context;
	struct ky_patch_edit *edit = ky_patch_edits_inside(moving->edits, word);
	(void)at;
	if (edit)
		drop(patch, moving, edit);
}

void ky_patch_threads_move(struct ky_patch *patch, struct ky_patch_edits *edits)
{
	struct moving moving = {.edits = edits};
	if (!edits->count)
		return;
	const uint64_t range[2] = {edits->items[0].address,
				   edits->items[edits->count - 1].address + KY_PROLOGUE_MAX};
	struct ky_patch_stacks stacks;
	stacks_read(&stacks, patch->remote.pid);
	for (uint32_t i = 0; i < patch->remote.count; i++)
		stacks_scan(patch, &stacks, patch->remote.threads[i].registers.rsp, range,
			    leave_alone, &moving);
	stacks_free(&stacks);
	for (uint32_t i = 0; i < patch->remote.count; i++) {
		struct ky_remote_thread *thread = &patch->remote.threads[i];
		struct ky_patch_edit *edit = ky_patch_edits_inside(edits, thread->registers.rip);
		if (!edit)
			continue;
		const uint64_t moved =
			ky_patch_plan_moved(patch, edit->entry, thread->registers.rip);
		if (!moved) {
			drop(patch, &moving, edit);
			continue;
		}
		thread->registers.rip = moved;
		thread->changed = true;
	}
	patch->facts.left_out[KY_WHY_STRANGE] += moving.left_alone;
	if (moving.left_alone)
		ky_patch_note(patch,
			      "%u functions are not traced: a thread was just inside their first "
			      "instructions",
			      moving.left_alone);
}

/* ---- hooks ---- */

#define UNWINDERS_MAX 16u
/* on either side of _Unwind_Find_FDE: all of libgcc's unwinder */
#define NEAR_BYTES UINT64_C(32768)
#define NEAR_TRIES 20u
/* its own stack frames, or those of a personality routine called by it */
#define UNWINDER_STACK 4096u
#define WAITING_TRIES 20u

bool ky_patch_threads_inside(const struct ky_patch *patch, uint64_t address)
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
	uint64_t piece_index, piece; /* of a leaf, the last one read; 0: none */
	bool hooks, contexts;        /* seen on this stack */
};

/* Report whether a word is the hook of an address, and return that return slot. */
static bool is_hook_of(const struct ky_patch *patch, struct stack *stack, uint64_t slot,
		       uint64_t word, struct ky_agent_call *call)
{
	const uint64_t index = slot >> KY_AGENT_PIECE_SHIFT, root = slot >> KY_AGENT_ROOT_SHIFT;
	uint64_t leaf;
	if (!ky_patch_threads_inside(patch, word) || root >= KY_AGENT_ROOTS || slot % 8)
		return false;
	if (!stack->piece || stack->piece_index != index) {
		stack->piece = 0;
		stack->piece_index = index;
		if (!ky_remote_read(&patch->remote, patch->home.directory + root * sizeof(leaf),
				    &leaf, sizeof(leaf)))
			(void)ky_remote_read(&patch->remote,
					     leaf + index % KY_AGENT_LEAF_PIECES *
							     sizeof(stack->piece),
					     &stack->piece, sizeof(stack->piece));
	}
	return stack->piece &&
	       !ky_remote_read(&patch->remote, stack->piece + slot * 4, call, sizeof(*call)) &&
	       call->hook == word;
}

/* Report whether it is an unwinder's context. It lies below the stack frames that it describes. */
static bool is_context(const struct ky_patch *patch, struct stack *stack, uint64_t at,
		       uint64_t word)
{
	struct ky_agent_call call;
	uint64_t cfa = 0;
	return !ky_remote_read(&patch->remote, at - sizeof(cfa), &cfa, sizeof(cfa)) && cfa > at &&
	       is_hook_of(patch, stack, cfa - 8, word, &call);
}

static void see(struct ky_patch *patch, void *context, uint64_t at, uint64_t word)
{
	struct stack *stack = context;
	struct ky_agent_call call;
	stack->hooks = stack->hooks || is_hook_of(patch, stack, at, word, &call);
	stack->contexts = stack->contexts || is_context(patch, stack, at, word);
}

static void unhook(struct ky_patch *patch, void *context, uint64_t at, uint64_t word)
{
	struct stack *stack = context;
	struct ky_agent_call call;
	if (is_hook_of(patch, stack, at, word, &call) && !is_context(patch, stack, at, word))
		(void)ky_remote_write(&patch->remote, at, &call.returns, sizeof(call.returns));
}

/* ---- threads that unwind ---- */

static bool holds_hook(const struct ky_patch *patch, const struct user_regs_struct *r)
{
	const uint64_t all[] = {r->rax, r->rbx, r->rcx, r->rdx, r->rsi, r->rdi, r->rbp, r->r8,
				r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (ky_patch_threads_inside(patch, all[i]))
			return true;
	return false;
}

/* The address range of an unwinder's code. */
struct unwinder {
	struct ky_code_range range; /* all code in this range, */
	/* and functions of this module, by name. NULL: none */
	const struct ky_patch_module *module;
};
struct unwinders {
	struct unwinder items[UNWINDERS_MAX];
	uint32_t count;
};

static bool is_of_unwinder_only(const char *name)
{
	return strncmp(name, "libgcc_s", 8) == 0 || strncmp(name, "libunwind", 9) == 0;
}

/* Report whether all its functions have names: the exported ones are not enough. */
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

/* Return the mapping of a file that contains nothing else, where the modules were never read. */
static struct ky_code_range mapping_at(const struct ky_patch *patch, uint64_t address)
{
	struct ky_code_range range = {0};
	struct ky_program_map map;
	if (ky_program_map_read(&map, patch->remote.pid))
		return range;
	for (uint32_t i = 0; i < map.count; i++) {
		const struct ky_proc_mapping *mapping = &map.mappings[i];
		if (address - mapping->start < mapping->end - mapping->start &&
		    is_of_unwinder_only(ky_file_name(mapping->path)))
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
	/* the call, not the instruction after it */
	for (size_t i = 0; !in && i < sizeof(words) / sizeof(words[0]); i++)
		in = is_unwinder(unwinders, words[i] - 1);
	return in;
}

/* Report whether it unwinds, or may be about to, through a stub. */
static bool unwinds(const struct ky_patch *patch, const struct unwinders *unwinders,
		    const struct user_regs_struct *registers, const struct stack *stack)
{
	const bool holds = holds_hook(patch, registers);
	return stack->contexts || holds ||
	       (stack->hooks && is_in_unwinder(patch, unwinders, registers));
}

bool ky_patch_threads_unhook(struct ky_patch *patch, uint32_t tries)
{
	const uint64_t range[2] = {patch->home.stubs_from, patch->home.stubs_to};
	struct ky_patch_stacks stacks;
	struct unwinders unwinders;
	bool off = true;
	find_unwinders(patch, tries, &unwinders);
	stacks_read(&stacks, patch->remote.pid);
	for (uint32_t i = 0; i < patch->remote.count; i++) {
		const struct user_regs_struct *registers = &patch->remote.threads[i].registers;
		struct stack stack = {0};
		off = off && !ky_patch_threads_inside(patch, registers->rip);
		if (!patch->home.directory || range[0] >= range[1])
			continue;
		stacks_scan(patch, &stacks, registers->rsp, range, see, &stack);
		const bool waits = (int64_t)registers->orig_rax >= 0;
		const uint32_t patience = waits ? WAITING_TRIES : KY_PATCH_QUIET_TRIES - 1;
		if (tries < patience && unwinds(patch, &unwinders, registers, &stack))
			off = false;
		else if (stack.hooks)
			stacks_scan(patch, &stacks, registers->rsp, range, unhook, &stack);
	}
	stacks_free(&stacks);
	return off;
}

/* ---- threads that were interrupted ---- */

/*
 * Report whether a thread lives: one that ended in the agent leaves its state busy for good. A thread in another pid
 * namespace has another number and counts as alive.
 */
static bool is_alive(const struct ky_patch *patch, uint32_t tid)
{
	if (patch->home.pid != (uint32_t)patch->remote.pid)
		return true;
	for (uint32_t i = 0; i < patch->remote.count; i++)
		if ((uint32_t)patch->remote.threads[i].tid == tid)
			return true;
	return false;
}

bool ky_patch_threads_interrupted(const struct ky_patch *patch)
{
	const struct ky_agent_home *home = &patch->home;
	uint32_t used = 0;
	bool busy = false;
	(void)KY_PATCH_HOME_READ(patch, states_used, &used);
	for (uint32_t i = 1; !busy && i < used && i < home->states_max; i++) {
		struct ky_agent_state state;
		busy = !ky_remote_read(&patch->remote, home->states + i * home->state_bytes, &state,
				       offsetof(struct ky_agent_state, ring)) &&
		       state.busy && is_alive(patch, state.tid);
	}
	return busy;
}
