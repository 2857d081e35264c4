/* SPDX-License-Identifier: MIT */
/*
 * agent_memory_trim.c: gives memory back when tracing has ended, and completes it when it begins again: see patch_parts.h.
 *
 *   return slots   of stacks that no thread is on now (coroutines): their hooks are taken out, too
 *   trimmed        untouched pages of return slots and table; all states but the first; the drum
 *   stays          what was touched: a stack that was copied may still have a hook, and its return slot
 *
 * What is trimmed has no memory and no access, but its addresses stay ours: the drum's alone are given back.
 *
 * Nothing is trimmed when a signal handler has interrupted a stub on any stack: it goes on where it was, and writes.
 *
 * Memory of ours is never locked, even when the program has asked for all of its memory to be.
 */
#include "functrace/patch_parts.h"

#include "core/drum.h"
#include "functrace/agent_abi.h"
#include "process/proc.h"
#include "process/proc_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE KY_PATCH_PAGE
#define SLOTS_OF_PAGE (KY_PATCH_PAGE / sizeof(struct ky_agent_call))
#define STACK_OF_PAGE (SLOTS_OF_PAGE * sizeof(uint64_t))
#define PATCHES_BYTES(home)                                                                        \
	(((home)->patches_max * sizeof(struct ky_agent_patch) + PAGE - 1) & ~(PAGE - 1))
#define PIECE_BYTES (sizeof(struct ky_agent_call) << (KY_AGENT_PIECE_SHIFT - 3))
/* A signal's frame is this far below the lowest return address of its stack, at most. */
#define BELOW_BYTES 8192u
/* Words of a signal's frame from the instruction pointer to the code segment, which is that of 64-bit programs. */
#define FRAME_TO_SEGMENT 2u
#define USER_CODE 0x33u
#define PAGEMAP_HAS (UINT64_C(3) << 62) /* in memory, or swapped out */
#define PAGEMAP_CHUNK 512u
/* Any process can claim to have more; these are the stacks of some thousand threads. */
#define PIECES_MAX 16384u
/* Pages with return slots: half a gigabyte. Pieces may be the same pages again and again. */
#define PAGES_MAX (1u << 17)

struct trimming {
	struct ky_patch *patch;
	int pagemap;
	int error;
	uint32_t pages;   /* looked at so far; nothing is trimmed when there are too many */
	bool interrupted; /* a stub or the agent, by a signal handler that has not returned */
};

typedef void (*page_fn)(struct trimming *trimming, void *context, uint64_t page,
			const uint64_t *words);

static uint64_t call(struct trimming *trimming, long number, uint64_t at, uint64_t bytes)
{
	const uint64_t arguments[6] = {at, bytes};
	return (uint64_t)ky_remote_call(&trimming->patch->remote, number, arguments);
}

static int64_t protect(struct ky_patch *patch, uint64_t from, uint64_t bytes, int protection)
{
	const uint64_t arguments[6] = {from, bytes, (uint64_t)protection};
	return ky_remote_call(&patch->remote, SYS_mprotect, arguments);
}

static bool is_zero(const uint64_t *words)
{
	uint64_t any = 0;
	for (size_t i = 0; i < PAGE / 8; i++)
		any |= words[i];
	return !any;
}

/* Call back for each page of a range that was touched. */
static void each_touched(struct trimming *trimming, uint64_t from, uint64_t bytes, page_fn one,
			 void *context)
{
	uint64_t has[PAGEMAP_CHUNK], words[PAGE / 8];
	for (uint64_t page = from / PAGE;
	     page < (from + bytes) / PAGE && trimming->pages < PAGES_MAX; page += PAGEMAP_CHUNK) {
		const uint64_t left = (from + bytes) / PAGE - page;
		const size_t count = left < PAGEMAP_CHUNK ? left : PAGEMAP_CHUNK;
		if (pread(trimming->pagemap, has, count * 8, (off_t)(page * 8)) !=
		    (ssize_t)(count * 8))
			return;
		for (size_t i = 0; i < count && trimming->pages < PAGES_MAX; i++)
			if ((has[i] & PAGEMAP_HAS) && trimming->pages++ < PAGES_MAX &&
			    !ky_remote_read(&trimming->patch->remote, (page + i) * PAGE, words,
					    sizeof(words)) &&
			    !is_zero(words))
				one(trimming, context, (page + i) * PAGE, words);
	}
}

/* ---- trimming ---- */

struct kept {
	uint64_t from; /* what is before was trimmed, or is kept */
};

/*
 * Give the memory of a range back and keep its addresses: when they were free, the program would map memory of its own
 * there, which the next kymo would take for ours.
 */
static void reserve(struct trimming *trimming, uint64_t from, uint64_t bytes)
{
	const uint64_t arguments[6] = {from, bytes, PROT_NONE,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
				       UINT64_MAX};
	(void)ky_remote_call(&trimming->patch->remote, SYS_mmap, arguments);
	if (trimming->patch->home.unlocks)
		call(trimming, SYS_munlock, from, bytes);
}

static void keep(struct trimming *trimming, void *context, uint64_t page, const uint64_t *words)
{
	struct kept *kept = context;
	(void)words;
	if (page > kept->from)
		reserve(trimming, kept->from, page - kept->from);
	kept->from = page + PAGE;
}

static void trim(struct trimming *trimming, uint64_t from, uint64_t bytes)
{
	struct kept kept = {from};
	each_touched(trimming, from, bytes, keep, &kept);
	if (kept.from < from + bytes && trimming->pages < PAGES_MAX)
		reserve(trimming, kept.from, from + bytes - kept.from);
}

/* Make a range accessible again. Return 0 or -errno: not all of it is mapped. */
static int refill(struct ky_patch *patch, uint64_t from, uint64_t bytes)
{
	const uint64_t whole[6] = {from, bytes, MADV_DONTDUMP};
	/* What is locked would be filled when it becomes accessible. */
	if (patch->home.unlocks)
		(void)ky_remote_call(&patch->remote, SYS_munlock, whole);
	(void)ky_remote_call(&patch->remote, SYS_madvise, whole);
	return (int)protect(patch, from, bytes, PROT_READ | PROT_WRITE);
}

/* ---- return slots ---- */

/* Report whether a word is the instruction pointer of a signal's frame, in a stub or the agent. */
static bool is_interrupted(const struct ky_patch *patch, const uint64_t *words, size_t left)
{
	return left > FRAME_TO_SEGMENT && (words[FRAME_TO_SEGMENT] & 0xffff) == USER_CODE &&
	       ky_patch_threads_inside(patch, words[0]);
}

static void look_for_frames(struct trimming *trimming, uint64_t stack)
{
	uint64_t words[(BELOW_BYTES + STACK_OF_PAGE) / 8 + FRAME_TO_SEGMENT + 1];
	uint64_t from = stack - BELOW_BYTES;
	size_t bytes = sizeof(words);
	/* The stack may begin in between, or end. */
	while (ky_remote_read(&trimming->patch->remote, from, words, bytes)) {
		const uint64_t next = (from | (PAGE - 1)) + 1;
		if (next >= stack + STACK_OF_PAGE)
			return;
		bytes = next > stack ? PAGE : bytes - (next - from);
		from = next;
	}
	for (size_t i = 0; i < bytes / 8; i++)
		trimming->interrupted |= is_interrupted(trimming->patch, words + i, bytes / 8 - i);
}

/* Take the hooks of a page of return slots out of the stack. */
static void unhook(struct trimming *trimming, void *context, uint64_t page, const uint64_t *words)
{
	const uint64_t biased = *(const uint64_t *)context;
	const struct ky_agent_call *calls = (const void *)words;
	const uint64_t stack = (page - biased) / 4;
	uint64_t there[SLOTS_OF_PAGE];
	look_for_frames(trimming, stack);
	if (ky_remote_read(&trimming->patch->remote, stack, there, sizeof(there)))
		return;
	for (size_t i = 0; i < SLOTS_OF_PAGE; i++)
		if (calls[i].hook && there[i] == calls[i].hook)
			(void)ky_remote_write(&trimming->patch->remote, stack + i * 8,
					      &calls[i].returns, sizeof(calls[i].returns));
}

struct pieces {
	uint64_t leaf, first; /* its address, and the number of its first piece */
	void (*one)(struct trimming *trimming, uint64_t at, uint64_t biased);
	uint32_t count;
};

static void each_entry(struct trimming *trimming, void *context, uint64_t page,
		       const uint64_t *words)
{
	struct pieces *pieces = context;
	for (size_t i = 0; i < PAGE / 8; i++) {
		const uint64_t number = pieces->first + (page - pieces->leaf) / 8 + i;
		if (words[i] && pieces->count++ < PIECES_MAX)
			pieces->one(trimming, words[i] + (number << KY_AGENT_PIECE_SHIFT) * 4,
				    words[i]);
	}
}

static void each_piece(struct trimming *trimming,
		       void (*one)(struct trimming *trimming, uint64_t at, uint64_t biased),
		       void (*with_leaf)(struct trimming *trimming, uint64_t leaf))
{
	const struct ky_patch *patch = trimming->patch;
	uint64_t roots[KY_AGENT_ROOTS];
	struct pieces pieces = {.one = one};
	if (ky_remote_read(&patch->remote, patch->home.directory, roots, sizeof(roots)))
		return;
	for (uint64_t i = 0; i < KY_AGENT_ROOTS; i++) {
		if (roots[i] == ky_agent_leaf_empty(patch->home.directory))
			continue;
		pieces.leaf = roots[i];
		pieces.first = i * KY_AGENT_LEAF_PIECES;
		if (with_leaf)
			with_leaf(trimming, pieces.leaf);
		each_touched(trimming, pieces.leaf, KY_AGENT_LEAF_BYTES, each_entry, &pieces);
	}
}

static void unhook_piece(struct trimming *trimming, uint64_t at, uint64_t biased)
{
	each_touched(trimming, at, PIECE_BYTES, unhook, &biased);
}

static void trim_piece(struct trimming *trimming, uint64_t at, uint64_t biased)
{
	(void)biased;
	trim(trimming, at, PIECE_BYTES);
}

/* ---- all of it ---- */

static bool begin(struct trimming *trimming, struct ky_patch *patch)
{
	*trimming = (struct trimming){
		.patch = patch, .pagemap = ky_proc_open(patch->remote.pid, "pagemap", O_RDONLY)};
	return trimming->pagemap >= 0;
}

/* Lead all threads to the first state, which belongs to nobody. */
static int leave_states(struct ky_patch *patch)
{
	const struct ky_agent_home *home = &patch->home;
	for (uint32_t i = 0; i < patch->remote.count; i++) {
		struct ky_remote_thread *thread = &patch->remote.threads[i];
		const uint64_t gs = thread->registers.gs_base;
		if (gs == home->states || gs - home->states >= home->states_max * home->state_bytes)
			continue;
		thread->registers.gs_base = home->states;
		thread->changed = true;
	}
	return ky_remote_apply(&patch->remote);
}

static void unmap_part(struct ky_patch *patch, uint64_t at, uint64_t bytes)
{
	const uint64_t arguments[6] = {at, bytes};
	(void)ky_remote_call(&patch->remote, SYS_munmap, arguments);
}

void ky_agent_memory_trim(struct ky_patch *patch)
{
	struct ky_agent_home *home = &patch->home;
	struct trimming trimming;
	if (!home->directory || !home->states || !begin(&trimming, patch))
		return;
	each_piece(&trimming, unhook_piece, NULL);
	for (uint32_t i = 0; i < patch->remote.count; i++)
		look_for_frames(&trimming, patch->remote.threads[i].registers.rsp & ~UINT64_C(7));
	if (!trimming.interrupted && trimming.pages < PAGES_MAX && !leave_states(patch)) {
		reserve(&trimming, home->states + home->state_bytes,
			(home->states_max - 1) * home->state_bytes);
		ky_agent_memory_drum(patch, unmap_part);
		home->drum = home->drum_bytes = 0;
		home->drum_heap = home->drum_rings = home->drum_end = 0;
		(void)ky_agent_memory_write(patch);
		trim(&trimming, home->patches, PATCHES_BYTES(home));
		each_piece(&trimming, trim_piece, NULL);
	}
	close(trimming.pagemap);
}

static void refill_piece(struct trimming *trimming, uint64_t at, uint64_t biased)
{
	(void)biased;
	if (!trimming->error)
		trimming->error = refill(trimming->patch, at, PIECE_BYTES);
}

int ky_agent_memory_refill(struct ky_patch *patch)
{
	struct ky_agent_home *home = &patch->home;
	struct trimming trimming;
	const uint64_t states = home->states_max * home->state_bytes;
	if (!home->directory || !home->states)
		return 0;
	if (!begin(&trimming, patch))
		return -EACCES;
	trimming.error = refill(patch, home->patches, PATCHES_BYTES(home));
	if (!trimming.error)
		each_piece(&trimming, refill_piece, NULL);
	if (!trimming.error)
		trimming.error = refill(patch, home->states, states);
	close(trimming.pagemap);
	return trimming.error ? trimming.error : ky_agent_memory_wipe(patch, home->states, states);
}

/* ---- locked memory ---- */

bool ky_agent_memory_locked(const struct ky_patch *patch)
{
	struct ky_proc_status status;
	return ky_proc_status(patch->remote.pid, 0, &status) == 0 && status.locked_kb;
}

static void unlock_piece(struct trimming *trimming, uint64_t at, uint64_t biased)
{
	(void)biased;
	call(trimming, SYS_munlock, at, PIECE_BYTES);
}

static void unlock_part(struct ky_patch *patch, uint64_t at, uint64_t bytes)
{
	const uint64_t arguments[6] = {at, bytes};
	(void)ky_remote_call(&patch->remote, SYS_munlock, arguments);
}

static void unlock_leaf(struct trimming *trimming, uint64_t leaf)
{
	call(trimming, SYS_munlock, leaf, KY_AGENT_LEAF_BYTES);
}

/* Unlock the drum, and give back its rings that nobody has taken, which were filled. */
static void unlock_drum(struct trimming *trimming)
{
	const struct ky_patch *patch = trimming->patch;
	const uint64_t taken =
		__atomic_load_n(&patch->drum.drum.header->space_used, __ATOMIC_RELAXED);
	const uint64_t room = patch->home.drum_bytes;
	const uint64_t used =
		ky_made_drum_header(&patch->drum)->space_at + (taken < room ? taken : room);
	ky_agent_memory_drum(trimming->patch, unlock_part);
	if (used < patch->home.drum_bytes)
		(void)fallocate(patch->drum.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)used, (off_t)(patch->home.drum_bytes - used));
}

void ky_agent_memory_unlock(struct ky_patch *patch)
{
	struct ky_agent_home *home = &patch->home;
	struct trimming trimming;
	if (!begin(&trimming, patch))
		return;
	home->unlocks = 1;
	(void)KY_PATCH_HOME_WRITE(patch, unlocks);
	call(&trimming, SYS_munlock, patch->home_at, home->home_bytes);
	call(&trimming, SYS_munlock, home->patches, PATCHES_BYTES(home));
	call(&trimming, SYS_munlock, home->states, home->states_max * home->state_bytes);
	call(&trimming, SYS_munlock, home->directory, KY_AGENT_DIRECTORY_BYTES);
	for (uint32_t i = 0; i < patch->keep.regions_count; i++)
		call(&trimming, SYS_munlock, patch->keep.regions[i].at,
		     patch->keep.regions[i].bytes);
	each_piece(&trimming, unlock_piece, unlock_leaf);
	if (patch->drum_open && home->drum)
		unlock_drum(&trimming);
	close(trimming.pagemap);
}

/* ---- uprobes ---- */

static bool is_guarded(const struct ky_patch *patch, uint64_t from)
{
	for (uint32_t i = 0; i < patch->keep.guards_count; i++)
		if (from - patch->keep.guards[i].from < patch->keep.guards[i].bytes)
			return true;
	return false;
}

static bool is_to_be_patched(const struct ky_patch *patch, const struct ky_proc_mapping *mapping)
{
	for (uint32_t i = 0; i < patch->modules_count; i++) {
		const struct ky_patch_module *module = &patch->modules[i];
		if (module->name && module->region != KY_PATCH_REGIONS_MAX &&
		    mapping->start >= module->from && mapping->end <= module->to)
			return true;
	}
	return false;
}

void ky_agent_memory_guard(struct ky_patch *patch)
{
	struct ky_patch_keep *keep = &patch->keep;
	struct ky_proc_maps maps;
	struct ky_proc_mapping mapping;
	(void)ky_proc_maps_open(&maps, patch->remote.pid);
	while (ky_proc_maps_next(&maps, &mapping)) {
		const uint64_t bytes = mapping.end - mapping.start;
		if (keep->guards_count >= KY_PATCH_GUARDS_MAX || !mapping.inode ||
		    mapping.protection != (PROT_READ | PROT_EXEC) || mapping.flags != MAP_PRIVATE ||
		    is_guarded(patch, mapping.start) || !is_to_be_patched(patch, &mapping))
			continue;
		/* It is noted before it is done: another kymo may have to undo it. */
		keep->guards[keep->guards_count++] = (struct ky_patch_guard){mapping.start, bytes};
		if (ky_agent_memory_write(patch) ||
		    protect(patch, mapping.start, bytes, PROT_READ | PROT_WRITE | PROT_EXEC))
			keep->guards_count--;
	}
	ky_proc_maps_close(&maps);
	(void)ky_agent_memory_write(patch);
}

/* Report whether code is still mapped as it was guarded: a library may be gone, and others be there. */
static bool is_still(const struct ky_patch *patch, const struct ky_patch_guard *guard)
{
	struct ky_proc_maps maps;
	struct ky_proc_mapping mapping;
	bool still = false;
	(void)ky_proc_maps_open(&maps, patch->remote.pid);
	while (!still && ky_proc_maps_next(&maps, &mapping))
		still = mapping.inode && mapping.start <= guard->from &&
			mapping.end >= guard->from + guard->bytes &&
			mapping.protection == (PROT_READ | PROT_WRITE | PROT_EXEC);
	ky_proc_maps_close(&maps);
	return still;
}

void ky_agent_memory_unguard(struct ky_patch *patch)
{
	struct ky_patch_keep *keep = &patch->keep;
	for (uint32_t i = 0; i < keep->guards_count; i++)
		if (is_still(patch, &keep->guards[i]))
			protect(patch, keep->guards[i].from, keep->guards[i].bytes,
				PROT_READ | PROT_EXEC);
	keep->guards_count = 0;
	(void)ky_agent_memory_write(patch);
}
