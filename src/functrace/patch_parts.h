/* SPDX-License-Identifier: MIT */
/*
 * patch_parts.h: the engine patch from inside.
 *
 *   patch_modules.c   what is mapped there ─▶ modules, each with its functions
 *   agent_memory.c      home, states, table, directory, stub regions, drum: made there, or found and taken over
 *   patch_plan.c      functions that are wanted ─▶ entries of the table, stubs
 *   patch_instrumented.c       programs compiled with -finstrument-functions
 *   patch_edits.c     bytes to be overwritten, put together by pages while it runs, written while it is stopped
 *   patch_threads.c   gs, threads inside what is overwritten
 *   patch_hooks.c     hooks on stacks
 *   patch_hot.c       counts, and functions that are called too often
 *   patch_undo.c      jumps and hooks are taken out
 *   patch_recover.c   what others left behind
 *   patch.c           open, round, close: the order of all this
 *
 * home in the program, one private mapping of a memfd:
 *
 *   0        struct ky_agent_home                      rw
 *   KEEP     struct ky_patch_keep: kymo's own          rw
 *   ROOM     for arguments of system calls             rw
 *   UNWIND   .eh_frame of the stubs                    rw
 *   DESK     code that makes system calls              r-x
 *   CODE     the agent                                 r-x
 *
 * An entry of the table is made once for an address and a kind of stub, and is found again by whoever attaches next: its number,
 * which is that of its count, and its stub stay the same. Invariants: an entry is written there before its jump is; a
 * stub that was ever jumped to keeps its place and its form as long as the process lives, for it may be on a stack.
 */
#ifndef KY_FUNCTRACE_PATCH_PARTS_H
#define KY_FUNCTRACE_PATCH_PARTS_H

#include "functrace/agent_abi.h"
#include "functrace/made_drum.h"
#include "functrace/patch.h"
#include "functrace/remote.h"
#include "functrace/stub.h"

#define KY_PATCH_KEEP_AT 20480u
#define KY_PATCH_ROOM_AT 24576u
#define KY_PATCH_UNWIND_AT 28672u
#define KY_PATCH_DESK_AT 32768u
#define KY_PATCH_CODE_AT 36864u
#define KY_PATCH_REGIONS_MAX 128u
#define KY_PATCH_PAGE UINT64_C(4096)

/* Stubs near a module. */
struct ky_patch_region {
	uint64_t at, bytes, used;
};

struct ky_patch_keep {
	uint64_t magic; /* changes when anything here does */
	uint32_t regions_count;
	int32_t drum_fd; /* there; -1: none */
	uint64_t drum_inode;
	struct ky_patch_region regions[KY_PATCH_REGIONS_MAX];
};
#define KY_PATCH_KEEP_MAGIC UINT64_C(0x3370656b6f6d796b)

#define KY_PATCH_HELPERS 4u
struct ky_patch_module {
	uint64_t device, inode;
	uint64_t bias; /* from the file's addresses to the process's */
	uint64_t from, to;
	const struct ky_functions *functions; /* shared; NULL: could not be read */
	char *name;                           /* base name; NULL: it is gone */
	bool planned, seen;
	bool led;        /* its calls of __cyg_profile_func_enter and _exit come to the agent */
	uint32_t *wants; /* functions that are to be patched, by their index */
	uint32_t wants_count;
	uint32_t region; /* in keep; KY_PATCH_REGIONS_MAX: none */
	struct ky_function helpers
		[KY_PATCH_HELPERS]; /* _Unwind_Find_FDE, the loader's r_brk, prctl(), syscall(); no window: none */
};

/* Beside each entry of the table. */
struct ky_patch_spot {
	const struct ky_function *function; /* NULL: not wanted now, or no function */
	uint32_t module;
	uint8_t window; /* bytes that the jump makes unusable */
	bool wanted;
	bool hot;
	uint64_t calls;      /* until now */
	uint64_t calls_then; /* when the rate was last looked at */
};

/* Bytes to be overwritten. */
struct ky_patch_edit {
	uint64_t address;
	uint32_t entry;
	uint8_t bytes, window;
	uint8_t checked; /* bytes that must be as expected */
	bool data;       /* no code: written by itself, as the program writes around it */
	uint8_t expect[KY_WINDOW_MAX + 1], put[16];
	bool good; /* they were as expected */
};
struct ky_patch_run {
	uint64_t address;
	size_t bytes;
	uint8_t *image;
};
struct ky_patch_edits {
	struct ky_patch_edit *items; /* by address when they are prepared */
	uint32_t count, room;
	struct ky_patch_run *runs;
	uint32_t runs_count;
};

/* A stub of an earlier attach, whose bytes must change while all are stopped. */
struct ky_patch_rewrite {
	uint64_t at;
	uint32_t bytes;
	uint8_t code[KY_STUB_MAX];
};

struct ky_patch {
	struct ky_patch_options options;
	struct ky_remote remote;
	uint64_t home_at;
	struct ky_agent_home home; /* as it is there */
	struct ky_patch_keep keep;
	uint64_t
		promised[KY_PATCH_REGIONS_MAX]; /* bytes of the regions, to modules being planned */
	struct ky_made_drum drum;
	bool drum_open;
	bool gone;       /* the process ended or runs another program */
	bool left;       /* it was said that the program has turned the counter off */
	bool entry_only; /* as asked for, or because returns cannot be seen here */

	struct ky_patch_module *modules;
	uint32_t modules_count;
	struct ky_agent_patch *table; /* as it is there */
	struct ky_patch_spot *spots;
	uint32_t table_count, table_room;
	uint32_t *by_address; /* entries, in a hash table; UINT32_MAX: free */
	uint32_t by_address_mask;
	struct ky_patch_rewrite *rewrites;
	uint32_t rewrites_count;

	struct ky_patch_facts facts;
	uint64_t rated_ns; /* when rates were last looked at */
	uint32_t *counts;  /* a state's, while they are summed */
};

void ky_patch_note(const struct ky_patch *patch, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
uint64_t ky_patch_now_ns(void);
/* With options.stops around them. */
int ky_patch_stop(struct ky_patch *patch, char message[KY_FUNCTRACE_MESSAGE_BYTES]);
void ky_patch_go(struct ky_patch *patch);

/* ---- patch_modules.c ---- */

/* Adds what is mapped and not known yet, forgets what is no longer: how many are new, or -errno. */
int ky_patch_modules_read(struct ky_patch *patch, char message[KY_FUNCTRACE_MESSAGE_BYTES]);
void ky_patch_modules_free(struct ky_patch *patch);
/* Sets ranges and check_callers of home. */
void ky_patch_modules_ranges(struct ky_patch *patch);
uint32_t ky_patch_modules_functions(const struct ky_patch *patch);
/* The address of the loader's struct r_debug; 0: none. */
uint64_t ky_patch_modules_r_debug(const struct ky_patch *patch);

/* ---- agent_memory.c ---- */

/* The address of home in a process; 0: none. */
uint64_t ky_agent_memory_find(pid_t pid);
/* Reads home, keep and the table. 0; -ENOENT: none is there, -EPROTO: of another version, -errno. */
int ky_agent_memory_read(struct ky_patch *patch);
/* Whether the kymo that is attached there still is. */
bool ky_agent_memory_owned(const struct ky_agent_home *home);
/* All are stopped: maps what is not there, makes the drum, takes the home over. 0 or -errno with a message. */
int ky_agent_memory_make(struct ky_patch *patch, char message[KY_FUNCTRACE_MESSAGE_BYTES]);
int ky_agent_memory_write(struct ky_patch *patch);
/* All are stopped: a region near a module with that many bytes free, mapped if need be; KY_PATCH_REGIONS_MAX: none. */
uint32_t ky_agent_memory_region(struct ky_patch *patch, const struct ky_patch_module *module,
				uint64_t bytes);
/* All are stopped: memory that is not used until it is touched; 0: none. */
uint64_t ky_agent_memory_map(struct ky_patch *patch, uint64_t bytes);
/* All are stopped: this kymo answers for what is set there, or nobody need any more. */
void ky_agent_memory_own(struct ky_patch *patch, bool ours);
/* All are stopped, no jump is set any more: nothing is recorded from now on. */
void ky_agent_memory_off(struct ky_patch *patch);
/* Whether the program has turned the CPU's counter off, or is about to: no jump may be set any more. */
bool ky_agent_memory_left(const struct ky_patch *patch);
/* All are stopped, home is made: whether the first thread may read the counter. */
bool ky_agent_memory_has_counter(struct ky_patch *patch);
/* All are stopped: a thread that waits for a library to be patched goes on. */
void ky_agent_memory_resume(struct ky_patch *patch);
/* All are stopped, it is off: the drum's descriptor and, unless somebody may be about to write into it, its memory. */
void ky_agent_memory_give_back(struct ky_patch *patch, bool busy);

/* ---- patch_plan.c ---- */

/* It runs: which functions of the modules that are not planned yet are wanted. 0 or -errno. */
int ky_patch_plan_choose(struct ky_patch *patch);
/* All are stopped: room for their stubs. */
void ky_patch_plan_rooms(struct ky_patch *patch);
/* It runs: entries and stubs of these modules, written there; the jumps to be set are added to edits. 0 or -errno. */
int ky_patch_plan(struct ky_patch *patch, struct ky_patch_edits *edits);
/* The edits were prepared: entries of those that are not good are taken back, the table is written. 0 or -errno. */
int ky_patch_plan_settle(struct ky_patch *patch, const struct ky_patch_edits *edits);

/* ---- patch_stubs.c ---- */

/* How a stub looks: its kind, and whether it checks callers. Kept in an entry's pad. */
#define KY_PATCH_FORM_CHECKS 0x100u
#define KY_PATCH_FORM_KIND 0xffu
#define KY_PATCH_FORM_KNOWN 0x200u /* no stub: patch_instrumented.c */

/* What a jump leads to. */
struct ky_patch_stub {
	uint8_t code[KY_STUB_MAX];
	struct ky_stub_places places;
	struct ky_moved moved;
	uint64_t at;
};
/* Makes the stub of a function for an address. 0; -ERANGE, -EINVAL: it cannot be. */
int ky_patch_stub_make(const struct ky_patch *patch, uint32_t module,
		       const struct ky_function *function, uint32_t form, uint32_t number,
		       const uint32_t sites[2], uint64_t at, struct ky_patch_stub *stub);
/* The region's shared end of all stubs, at its beginning. */
uint32_t ky_patch_stub_exit(const struct ky_patch *patch, uint64_t at, uint8_t code[KY_STUB_MAX]);
/* Where a thread that is at rip, inside what an entry overwrites, goes on; 0: nowhere. */
uint64_t ky_patch_stub_moved(const struct ky_patch *patch, uint32_t entry, uint64_t rip);

/* ---- patch_instrumented.c ---- */

bool ky_patch_instrumented_uses(const struct ky_patch *patch, const struct ky_patch_module *module);
/* Functions that are known by it, of those that are wanted. */
uint32_t ky_patch_instrumented_count(const struct ky_patch *patch,
				     const struct ky_patch_module *module);
/* All are stopped: room for all of them. 0 or -errno. */
int ky_patch_instrumented_room(struct ky_patch *patch);
/* It runs; room in the table was reserved. 0 or -errno. */
int ky_patch_instrumented_plan(struct ky_patch *patch, struct ky_patch_edits *edits);

/* ---- patch_table.c ---- */

/* Room for so many entries in all, locally. 0 or -ENOMEM. */
int ky_patch_table_reserve(struct ky_patch *patch, uint32_t count);
/* An entry by address and form; UINT32_MAX: none. */
uint32_t ky_patch_table_find(const struct ky_patch *patch, uint64_t address, uint32_t form);
/* A new one; room was reserved. */
uint32_t ky_patch_table_add(struct ky_patch *patch, uint64_t address, uint32_t form);
/* Reads all of it from the process, or writes. 0 or -errno. */
int ky_patch_table_read(struct ky_patch *patch);
int ky_patch_table_write(struct ky_patch *patch);
/* Whether an entry's code is `after`, as the table says; there, too. */
void ky_patch_table_set(struct ky_patch *patch, uint32_t entry, bool set);

/* ---- patch_edits.c ---- */

/* NULL without memory. */
struct ky_patch_edit *ky_patch_edits_add(struct ky_patch_edits *edits);
/* It runs: reads what is there; edits whose bytes are not as expected are no longer good. Pages become the process's own. */
int ky_patch_edits_prepare(struct ky_patch_edits *edits, const struct ky_remote *remote);
/* All are stopped. */
int ky_patch_edits_write(struct ky_patch_edits *edits, const struct ky_remote *remote);
/* One will not be done. */
void ky_patch_edits_drop(struct ky_patch_edits *edits, struct ky_patch_edit *edit);
/* The one whose bytes, but for the first, have the address; NULL: none. */
struct ky_patch_edit *ky_patch_edits_inside(struct ky_patch_edits *edits, uint64_t address);
void ky_patch_edits_free(struct ky_patch_edits *edits);

/* ---- patch_threads.c ---- */

/* All are stopped: whether this can be done to them at all. */
int ky_patch_threads_check(struct ky_patch *patch, char message[KY_FUNCTRACE_MESSAGE_BYTES]);
/* Sets gs of all. */
void ky_patch_threads_gs(struct ky_patch *patch);
/* Moves those that are in the middle of what will be overwritten; functions that others will return into are left alone. */
void ky_patch_threads_move(struct ky_patch *patch, struct ky_patch_edits *edits);

/* The stacks of a stopped process. */
struct ky_patch_stacks {
	struct {
		uint64_t from, to;
	} * mappings; /* that can be written to */
	uint32_t count;
};
typedef void (*ky_patch_word_fn)(struct ky_patch *patch, void *context, uint64_t at, uint64_t word);
void ky_patch_stacks_read(struct ky_patch_stacks *stacks, pid_t pid);
void ky_patch_stacks_free(struct ky_patch_stacks *stacks);
/* Each word, from that one on, that lies between two values. */
void ky_patch_stacks_scan(struct ky_patch *patch, const struct ky_patch_stacks *stacks,
			  uint64_t from, const uint64_t range[2], ky_patch_word_fn word,
			  void *context);

/* ---- patch_hooks.c ---- */

/*
 * All are stopped, no jump is set any more: puts return addresses back, but not of threads that unwind: they may do so later.
 * Whether all are back, and nobody is inside a stub or the agent. To be tried up to KY_PATCH_QUIET_TRIES times, with pauses;
 * the last try believes nobody.
 */
#define KY_PATCH_QUIET_TRIES 100u
bool ky_patch_hooks_off(struct ky_patch *patch, uint32_t tries);
/* Whether a signal handler came while its thread was in the agent, and has not returned; it may never. */
bool ky_patch_hooks_interrupted(const struct ky_patch *patch);

/* ---- patch_hot.c ---- */

void ky_patch_hot_round(struct ky_patch *patch);
void ky_patch_hot_count(struct ky_patch *patch);

/* ---- patch_recover.c ---- */

/* Undoes it in all other processes with a home of the same owner, who is gone: children of the one that has this. */
void ky_patch_recover_left(const struct ky_agent_home *left);

/* ---- patch_undo.c ---- */

/*
 * It runs: all that the table knows as set is taken out, as far as its bytes are still ours, and nobody needs the unwinder's
 * answer any more. 0; -EBUSY: another kymo came in between; -errno.
 */
int ky_patch_undo(struct ky_patch *patch, char message[KY_FUNCTRACE_MESSAGE_BYTES]);
/* Whether anything of ours is set. */
bool ky_patch_undo_needed(const struct ky_patch *patch);
/* All are stopped. Whether nobody else has changed home since it was read: 0, -EBUSY with a message, -errno. */
int ky_patch_undo_check(const struct ky_patch *patch, char message[KY_FUNCTRACE_MESSAGE_BYTES]);
/* A while, longer with each try. */
void ky_patch_undo_pause(uint32_t tries);

#endif
