/* SPDX-License-Identifier: MIT */
/*
 * patch_parts.h: the inside of the engine patch.
 *
 *   patch_modules.c        mapped files ─▶ modules, each with its functions
 *   agent_memory.c         home, states, table, directory, stub regions, drum: made there, or found and taken over
 *   agent_memory_trim.c    what of it is given back at the end
 *   patch_plan.c           wanted functions ─▶ entries of the table, stubs
 *   patch_table.c          the table of entries; counts, and functions that are called too often
 *   patch_instrumented.c   programs compiled with -finstrument-functions
 *   patch_edits.c          bytes to overwrite, put together by pages while it runs, written while it is stopped
 *   patch_threads.c        gs, threads inside what is overwritten, hooks on stacks
 *   patch_undo.c           takes jumps and hooks out, also those that others left behind
 *   patch.c                open, round, close: the order of all this
 *
 * home in the program, one private mapping of a memfd:
 *
 *   0        struct ky_agent_home                      rw
 *   KEEP     struct ky_patch_keep: kymo's own          rw
 *   ROOM     for arguments of system calls             rw
 *   UNWIND   .eh_frame of the stubs                    rw
 *   GADGET   code that makes system calls              r-x
 *   CODE     the agent                                 r-x
 *
 * An entry of the table is made once for a function at an address and a kind of stub, and the next kymo to attach finds
 * it again: its number, which is also that of its count, and its stub stay the same. Invariants: an entry is written
 * there before its jump is; a stub that was ever jumped to keeps its place, its form and the instructions that were
 * moved there as long as the process lives, because it may be on a stack. Another library at the same address gets
 * entries of its own.
 */
#ifndef KY_FUNCTRACE_PATCH_PARTS_H
#define KY_FUNCTRACE_PATCH_PARTS_H

#include "base/map.h"
#include "functrace/agent_abi.h"
#include "functrace/made_drum.h"
#include "functrace/patch.h"
#include "functrace/remote.h"
#include "functrace/stub.h"

#define KY_PATCH_KEEP_AT 20480u
#define KY_PATCH_ROOM_AT 28672u
#define KY_PATCH_UNWIND_AT 32768u
#define KY_PATCH_GADGET_AT 36864u
#define KY_PATCH_CODE_AT 40960u
#define KY_PATCH_REGIONS_MAX 128u
#define KY_PATCH_PAGE UINT64_C(4096)

/* Memory for stubs near a module. */
struct ky_patch_region {
	uint64_t at, bytes, used;
};

/*
 * Code that was made writable while it is patched: the kernel sets no uprobe there. A uprobe on a jump would carry out
 * the file's instruction instead and go on behind it, in the middle of the jump.
 */
#define KY_PATCH_GUARDS_MAX 256u
struct ky_patch_guard {
	uint64_t from, bytes;
};

struct ky_patch_keep {
	uint64_t magic; /* changes with the layout of this struct */
	uint32_t regions_count;
	int32_t drum_fd; /* its number in the process; -1: none */
	uint64_t drum_inode;
	struct ky_patch_region regions[KY_PATCH_REGIONS_MAX];
	uint64_t guards_count;
	struct ky_patch_guard guards[KY_PATCH_GUARDS_MAX];
};
#define KY_PATCH_KEEP_MAGIC UINT64_C(0x3470656b6f6d796b)

#define KY_PATCH_HELPERS 5u
struct ky_patch_module {
	uint64_t device, inode;
	uint64_t bias; /* from the file's addresses to the process's */
	uint64_t from, to;
	const struct ky_functions *functions; /* shared; NULL: unreadable */
	char *name;                           /* base name; NULL: the module is gone */
	bool planned, seen;
	bool led;          /* its calls of __cyg_profile_func_enter and _exit go to the agent */
	uint8_t led_again; /* so often, because the loader has resolved them since */
	uint32_t *wants;   /* functions to patch, by their index */
	uint32_t wants_count;
	uint32_t region; /* index in keep; KY_PATCH_REGIONS_MAX: none */
	/* _Unwind_Find_FDE, the loader's r_brk, prctl(), syscall(), arch_prctl(); an empty prologue: missing */
	struct ky_function helpers[KY_PATCH_HELPERS];
};

/* kymo's own data of an entry of the table. */
struct ky_patch_spot {
	const struct ky_function *function; /* NULL: not wanted now, or not a function */
	uint32_t module;
	uint8_t prologue; /* bytes that the jump makes unusable */
	bool wanted;
	bool hot;
	uint64_t calls;      /* so far */
	uint64_t calls_then; /* at the last check of the rate */
	uint64_t recent;     /* calls between the last two checks */
	/* patch_overhead.c: how often its jump was taken out, when last, and its calls a nanosecond then */
	uint32_t outs;
	uint32_t counter; /* trace point of the counter of its rate while it is out; 0: none */
	uint64_t out_since;
	double rate;
	double missed; /* calls while it was out, about */
};

/* What the thread of a state had done at the last look. */
struct ky_patch_load {
	uint32_t tid, calls;
	uint64_t cpu_ns;
};

/* Bytes to overwrite. */
struct ky_patch_edit {
	uint64_t address;
	uint32_t entry;
	uint8_t bytes, prologue;
	uint8_t checked; /* number of bytes that must be as expected */
	bool data;       /* not code: written separately, because the program writes around it */
	uint8_t expect[KY_PROLOGUE_MAX + 1], put[16];
	bool good; /* the bytes were as expected */
};
struct ky_patch_run {
	uint64_t address;
	size_t bytes;
	uint8_t *image;
};
struct ky_patch_edits {
	struct ky_patch_edit *items; /* sorted by address once prepared */
	uint32_t count, room;
	struct ky_patch_run *runs;
	uint32_t runs_count, runs_room;
	bool again; /* jumps that were there before: it does not matter if one is dropped */
};

/* A stub of an earlier attach, whose bytes must change while all threads are stopped. */
struct ky_patch_rewrite {
	uint64_t at;
	uint32_t bytes;
	uint8_t code[KY_STUB_MAX];
};

struct ky_patch {
	struct ky_functrace_options options;
	struct ky_remote remote;
	uint64_t home_at;
	struct ky_agent_home home; /* a copy of the process's */
	struct ky_patch_keep keep;
	/* bytes of the regions that are reserved for modules being planned */
	uint64_t promised[KY_PATCH_REGIONS_MAX];
	struct ky_made_drum drum;
	bool drum_open;
	bool gone;       /* the process has ended or runs another program */
	bool left;       /* kymo has reported that the program turned the counter off */
	bool entry_only; /* as asked for, or because returns cannot be seen here */
	bool late;       /* kymo has reported that it did not patch a library in time */
	bool crowded;    /* kymo has reported that there are too many threads */
	bool switches;   /* returns are hooked, and must not be any more */

	struct ky_patch_module *modules;
	uint32_t modules_count, modules_room;
	struct ky_agent_patch *table; /* a copy of the process's */
	struct ky_patch_spot *spots;
	uint32_t table_count, table_room, spots_room;
	struct ky_hash_index by_address; /* entries, by address and form */
	struct ky_patch_rewrite *rewrites;
	uint32_t rewrites_count, rewrites_room;

	struct ky_patch_facts facts;
	uint64_t rated_ns;  /* time of the last check of the rates */
	uint64_t looked_ns; /* and of the last look at locked memory */
	size_t counts_room;
	uint32_t *counts; /* counts of a state, while they are summed */
	uint32_t *totals; /* of each state, the sum of its counts */
	uint32_t totals_count, totals_room;

	/* patch_overhead.c: the looks so far, up to a limit, and what was known at the last */
	struct ky_patch_load *loads;
	uint32_t loads_room, looks;
	uint64_t cpu_ns, calls_then;
	double call_ns; /* cost of a call */
};

/* Read a member of the process's home into a variable of its type, or write that of the copy. Return 0 or -errno. */
#define KY_PATCH_HOME_READ(patch, member, into)                                                    \
	ky_remote_read(&(patch)->remote,                                                           \
		       (patch)->home_at + offsetof(struct ky_agent_home, member), into,            \
		       sizeof(*(into)))
#define KY_PATCH_HOME_WRITE(patch, member)                                                         \
	ky_remote_write(&(patch)->remote,                                                          \
			(patch)->home_at + offsetof(struct ky_agent_home, member),                 \
			&(patch)->home.member, sizeof((patch)->home.member))

void ky_patch_note(const struct ky_patch *patch, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Free all that kymo itself has of it. */
void ky_patch_free(struct ky_patch *patch);
/* Stop and resume the process, with options.stops called around it. */
int ky_patch_stop(struct ky_patch *patch, char message[KY_MESSAGE_BYTES]);
void ky_patch_go(struct ky_patch *patch);

/* ---- patch_modules.c ---- */

/* Add modules that are newly mapped, drop those that are gone. Return how many are new, or -errno. */
int ky_patch_modules_read(struct ky_patch *patch, char message[KY_MESSAGE_BYTES]);
void ky_patch_modules_free(struct ky_patch *patch);
/* Set ranges and check_callers of home. */
void ky_patch_modules_ranges(struct ky_patch *patch);
uint32_t ky_patch_modules_functions(const struct ky_patch *patch);
/* Return the address of the loader's struct r_debug; 0: none. */
uint64_t ky_patch_modules_r_debug(const struct ky_patch *patch);

/* ---- agent_memory.c ---- */

/* Return the address of home in a process; 0: none. */
uint64_t ky_agent_memory_find(pid_t pid);
/*
 * Read home and keep, not the table, which may be large: look at whose it is first. Return 0; -ENOENT: there is no home;
 * -EPROTO: it is of another version, or cannot be true; or -errno.
 */
int ky_agent_memory_read(struct ky_patch *patch);
/* Report whether this kymo made the home: it has a number in it that only this kymo knows. */
bool ky_agent_memory_is_mine(const struct ky_agent_home *home);
/* Report whether the kymo that attached there is still running. */
bool ky_agent_memory_owned(const struct ky_agent_home *home);
/*
 * While all threads are stopped: map what is missing, make the drum, take the home over. Return 0, or -errno with a
 * message.
 */
int ky_agent_memory_make(struct ky_patch *patch, char message[KY_MESSAGE_BYTES]);
/* Say why memory cannot be made or taken over; return the error. */
int ky_agent_memory_refuse(const struct ky_patch *patch, int error, char message[KY_MESSAGE_BYTES]);
int ky_agent_memory_write(struct ky_patch *patch);
/* While all threads are stopped: read again how much memory the agent has mapped. */
void ky_agent_memory_sizes(struct ky_patch *patch);
/* Call back for each part of the drum that is mapped. */
typedef void (*ky_agent_part_fn)(struct ky_patch *patch, uint64_t at, uint64_t bytes);
void ky_agent_memory_drum(struct ky_patch *patch, ky_agent_part_fn one);
/*
 * While all threads are stopped: return a region near a module with that many bytes free, and map it if necessary;
 * KY_PATCH_REGIONS_MAX: none.
 */
uint32_t ky_agent_memory_region(struct ky_patch *patch, const struct ky_patch_module *module,
				uint64_t bytes);
/* While all threads are stopped: map memory that costs nothing until it is touched; 0: failed. */
uint64_t ky_agent_memory_map(struct ky_patch *patch, uint64_t bytes);
/* Have states wiped in forked children, and left out of core files. Return 0 or -errno. */
int ky_agent_memory_wipe(struct ky_patch *patch, uint64_t states, uint64_t bytes);
/* Report whether the process has locked memory. */
bool ky_agent_memory_locked(const struct ky_patch *patch);
/* While all threads are stopped: make this kymo the owner of what is set there, or leave it without an owner. */
void ky_agent_memory_own(struct ky_patch *patch, bool ours);
/* While all threads are stopped and no jump is set: record nothing from now on. */
void ky_agent_memory_off(struct ky_patch *patch);
/* Report whether the program has turned the CPU's counter off, or is about to: then no jump may be set any more. */
bool ky_agent_memory_left(const struct ky_patch *patch);
/* While all threads are stopped, after home is made: report whether the first thread may read the counter. */
bool ky_agent_memory_has_counter(struct ky_patch *patch);
/* While all threads are stopped: resume a thread that waits for a library to be patched. */
void ky_agent_memory_resume(struct ky_patch *patch);
/*
 * While all threads are stopped, after it is off: close the drum's descriptor and, unless a thread may be about to
 * write into it, unmap its memory.
 */
void ky_agent_memory_give_back(struct ky_patch *patch, bool busy);

/* ---- agent_memory_trim.c ---- */

/*
 * While all threads are stopped, tracing is off and no thread is in a stub: take hooks off stacks that no thread is on, and
 * give back what nobody can need any more, except its addresses. ky_agent_memory_refill() makes it accessible again.
 * Return 0 or -errno.
 */
void ky_agent_memory_trim(struct ky_patch *patch);
int ky_agent_memory_refill(struct ky_patch *patch);
/* While all threads are stopped: unlock all memory of ours, after the program has locked all that it has. */
void ky_agent_memory_unlock(struct ky_patch *patch);

/* While all threads are stopped: make the code of modules that will be patched writable, or as it was. */
void ky_agent_memory_guard(struct ky_patch *patch);
void ky_agent_memory_unguard(struct ky_patch *patch);

/* ---- patch_plan.c ---- */

/* While it runs: choose the functions of modules that are not planned yet. Return 0 or -errno. */
int ky_patch_plan_choose(struct ky_patch *patch);
/* While all threads are stopped: make room for their stubs. */
void ky_patch_plan_rooms(struct ky_patch *patch);
/* While it runs: write entries and stubs of these modules there and add the jumps to edits. Return 0 or -errno. */
int ky_patch_plan(struct ky_patch *patch, struct ky_patch_edits *edits);
/*
 * After the edits were prepared: take back the entries of those that are not good, write the table. Return 0 or
 * -errno.
 */
int ky_patch_plan_settle(struct ky_patch *patch, const struct ky_patch_edits *edits);

/* After the edits were written: forget the entries that hooked returns, where others took their places. */
void ky_patch_plan_switched(struct ky_patch *patch, const struct ky_patch_edits *edits);

/* Return the address where a thread at rip, inside the bytes that an entry overwrites, can go on; 0: nowhere. */
uint64_t ky_patch_plan_moved(const struct ky_patch *patch, uint32_t entry, uint64_t rip);

/* ---- patch_instrumented.c ---- */

/* Return how many of the wanted functions it handles. */
uint32_t ky_patch_instrumented_count(const struct ky_patch *patch,
				     const struct ky_patch_module *module);
/* While all threads are stopped: make room for all of them. Return 0 or -errno. */
int ky_patch_instrumented_room(struct ky_patch *patch);
/* While it runs, after room in the table was reserved: plan them. Return 0 or -errno. */
int ky_patch_instrumented_plan(struct ky_patch *patch, struct ky_patch_edits *edits);
/* Report whether calls of a module that went to the agent do so no longer: then they are to be planned again. */
bool ky_patch_instrumented_lost(struct ky_patch *patch);

/* ---- patch_table.c ---- */

/* The form of a stub: its kind, and whether it checks callers. Kept in an entry's pad. */
#define KY_PATCH_FORM_CHECKS 0x100u
#define KY_PATCH_FORM_KIND 0xffu
#define KY_PATCH_FORM_KNOWN 0x200u /* no stub: patch_instrumented.c */

/* Make room for that many entries in all, locally. Return 0 or -ENOMEM. */
int ky_patch_table_reserve(struct ky_patch *patch, uint32_t count);
/* Return an entry of an address and a form; UINT32_MAX: none. */
uint32_t ky_patch_table_find(const struct ky_patch *patch, uint64_t address, uint32_t form);
/*
 * The entries of an address and a form, one after the other. There are several when libraries took turns there: each has
 * the stub of its own function, which may be longer than the others'.
 */
#define KY_PATCH_SAME_MAX 64u
struct ky_hash_probe ky_patch_table_probe(const struct ky_patch *patch, uint64_t address,
					  uint32_t form);
uint32_t ky_patch_table_next(const struct ky_patch *patch, struct ky_hash_probe *probe,
			     uint64_t address, uint32_t form);
/* Return the number of an entry's count. */
uint32_t ky_patch_table_count_of(const struct ky_patch *patch, uint32_t entry);
/* Add an entry; room was reserved. */
uint32_t ky_patch_table_add(struct ky_patch *patch, uint64_t address, uint32_t form);
/* Read or write all of it in the process. Return 0 or -errno. */
int ky_patch_table_read(struct ky_patch *patch);
int ky_patch_table_write(struct ky_patch *patch);
/* Set whether an entry's code is `after`, here and in the process. */
void ky_patch_table_set(struct ky_patch *patch, uint32_t entry, bool set);
/* Add the calls since the last time to those of the entries. */
void ky_patch_table_count(struct ky_patch *patch);
/* Now and then, count the calls, and take the jumps out of functions that are called too often. */
void ky_patch_table_cool(struct ky_patch *patch);
/* Take the jumps of entries out for now, or put them back. spot.hot tells which are out afterwards. */
void ky_patch_table_take_out(struct ky_patch *patch, const uint32_t *entries, uint32_t count);
void ky_patch_table_put_back(struct ky_patch *patch, const uint32_t *entries, uint32_t count);
/* Write into the trace that an entry's function is left out, with its rate, or is not any more. */
void ky_patch_table_left_out(struct ky_patch *patch, uint32_t entry);

/* ---- patch_overhead.c ---- */

/* Report whether it is time to count the calls. rests: so much time has passed that counting costs little. */
bool ky_patch_overhead_due(struct ky_patch *patch, uint64_t elapsed_ns, bool rests);
/* After the calls were counted: take jumps out, or put them back. */
void ky_patch_overhead_look(struct ky_patch *patch);

/* ---- patch_edits.c ---- */

/* Add an edit that puts bytes where others are expected, and return it; NULL without memory. */
struct ky_patch_edit *ky_patch_edits_add(struct ky_patch_edits *edits, uint64_t address,
					 uint32_t entry, const void *expect, const void *put,
					 uint8_t bytes);
/*
 * While it runs: read the present bytes; edits whose bytes are not as expected become not good. Pages become the
 * process's own.
 */
int ky_patch_edits_prepare(struct ky_patch_edits *edits, const struct ky_remote *remote);
/*
 * While all threads are stopped: write the edits. Others may have changed the code since it was read: those whose bytes are
 * not as expected any more are not good.
 */
int ky_patch_edits_write(struct ky_patch_edits *edits, const struct ky_remote *remote);
/* Drop an edit, before it is written. */
void ky_patch_edits_drop(struct ky_patch_edits *edits, struct ky_patch_edit *edit);
/* Return the edit whose bytes, except the first, contain the address; NULL: none. */
struct ky_patch_edit *ky_patch_edits_inside(struct ky_patch_edits *edits, uint64_t address);
void ky_patch_edits_free(struct ky_patch_edits *edits);

/* ---- patch_threads.c ---- */

/* While all threads are stopped: check that they can be patched at all. */
int ky_patch_threads_check(struct ky_patch *patch, char message[KY_MESSAGE_BYTES]);
/* Report whether an address is in a stub or in the agent. */
bool ky_patch_threads_inside(const struct ky_patch *patch, uint64_t address);
/* Set gs of all threads. */
void ky_patch_threads_gs(struct ky_patch *patch);
/*
 * Move threads that are in the middle of what will be overwritten; drop the edits of functions that others will
 * return into.
 */
void ky_patch_threads_move(struct ky_patch *patch, struct ky_patch_edits *edits);

/* The stacks of a stopped process. */
struct ky_patch_stacks {
	struct {
		uint64_t from, to;
	} * mappings; /* only the writable ones */
	uint32_t count, room;
};
typedef void (*ky_patch_word_fn)(struct ky_patch *patch, void *context, uint64_t at, uint64_t word);

/*
 * While all threads are stopped and no jump is set: put return addresses back, except in threads that unwind, which
 * may be done later. Report whether all are back and no thread is inside a stub or the agent. Try this up to
 * KY_PATCH_QUIET_TRIES times, with pauses; the last try ignores signs of unwinding.
 */
#define KY_PATCH_QUIET_TRIES 100u
bool ky_patch_threads_unhook(struct ky_patch *patch, uint32_t tries);
/* Report whether a signal handler came while its thread was in the agent, and has not returned; it may never return. */
bool ky_patch_threads_interrupted(const struct ky_patch *patch);

/* ---- patch_undo.c: leftovers of a killed kymo ---- */

/*
 * Undo it in all other processes with a home of the same owner, which is gone: children of the process that has this
 * home. They are all younger than the owner.
 */
void ky_patch_recover_left(const struct ky_agent_home *left);

/* ---- patch_undo.c ---- */

/*
 * While it runs: take out all that the table has as set, as far as the bytes are still ours, and wait until no thread
 * needs the agent's answers to the unwinder. Return 0; -EBUSY: another kymo came in between; or -errno.
 */
int ky_patch_undo(struct ky_patch *patch, char message[KY_MESSAGE_BYTES]);
/* Report whether any jump of ours is set. */
bool ky_patch_undo_needed(const struct ky_patch *patch);
/*
 * While all threads are stopped: check that nothing else has changed home since it was read. Return 0, -EBUSY with a
 * message, or -errno.
 */
int ky_patch_undo_check(const struct ky_patch *patch, char message[KY_MESSAGE_BYTES]);
/* Sleep, longer with each try. */
void ky_patch_undo_pause(uint32_t tries);

#endif
