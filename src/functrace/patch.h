/* SPDX-License-Identifier: MIT */
/*
 * patch.h: the engines patch and nops. They make every function of a process jump to a stub, and undo that at the
 * end.
 *
 *   open     finds modules and functions, makes the drum, maps memory there (a first short stop), writes stubs while it runs,
 *            then stops it once more to set the jumps: threads that are inside a prologue are moved
 *   round    patches libraries that were loaded since; takes the jumps out of functions that are called too often
 *   close    puts all code back. Calls that are on stacks return normally
 *
 * kymo finds what a killed kymo left behind by its mapping and takes it over: nothing grows with the number of
 * attaches.
 */
#ifndef KY_FUNCTRACE_PATCH_H
#define KY_FUNCTRACE_PATCH_H

#include "functrace/functions.h"

struct ky_patch;

struct ky_patch_facts {
	uint32_t modules, functions; /* found and wanted */
	uint32_t patched;            /* of these, now */
	uint32_t left_out[KY_WHY_COUNT];
	char entry_only
		[160]; /* why returns are not recorded, although they were wanted; "": they are */
	uint32_t hot;  /* no longer traced because they were called too often */
	uint32_t strange; /* places whose code others have changed: they could not be put back */
	uint64_t calls;   /* counted in all threads */
	uint64_t analysed_ns; /* time of the analysis */
	uint64_t stopped_ns;  /* time that the threads were stopped to set the jumps */
	/* the same to take them out; the longest stop, where it takes several */
	uint64_t unstopped_ns;
};

/*
 * Patch a process. held: it is stopped (SIGSTOP) at its entry point. Return 0, or -errno with a message; nothing is
 * left there then.
 */
int ky_patch_open(struct ky_patch **patch, pid_t pid, const struct ky_functrace_options *options,
		  char message[KY_MESSAGE_BYTES]);
/* Do the periodic work, some ten times a second. */
void ky_patch_round(struct ky_patch *patch);
/* Put everything back. gone: the process has ended already. facts may be NULL. */
void ky_patch_close(struct ky_patch **patch, bool gone, struct ky_patch_facts *facts);
void ky_patch_facts(const struct ky_patch *patch, struct ky_patch_facts *facts);
/* A function that is not traced, or was not for a while, because it was called too often. */
struct ky_patch_hot {
	const char *name;
	uint64_t calls;  /* that were counted */
	uint64_t missed; /* about so many more, without its jump for the sake of overhead_percent */
	bool limited;    /* hot_per_second: nothing is known of its calls since */
};
/* Return one of them; false: no more. */
bool ky_patch_hot(const struct ky_patch *patch, uint32_t index, struct ky_patch_hot *hot);

/* Call back with the name of each function of each module, to suggest names when none of the wanted was found. */
typedef void (*ky_patch_name_fn)(void *context, const char *module, const char *function);
void ky_patch_names(const struct ky_patch *patch, ky_patch_name_fn one, void *context);

/* Return the start time of a process, as in /proc/PID/stat; 0: no such process. */
uint64_t ky_patch_started(pid_t pid);
/* Report whether a process has jumps of this kymo: its own, or those of the process that forked it. */
bool ky_patch_is_ours(pid_t pid);
/*
 * Take out the jumps that a kymo left in the process, if that kymo is gone. Return 1: done; 0: there were none; or
 * -errno with a message.
 */
int ky_patch_recover(pid_t pid, char message[KY_MESSAGE_BYTES]);
/*
 * Let go of threads that could not be stopped in time; call this each round and at the end. Return how many are left.
 */
uint32_t ky_patch_release_late(void);
/*
 * Undo it in all processes that still have jumps of this kymo: children that were forked off since then, a time as in
 * /proc/PID/stat. Call this at the very end. Return how many there were; `child` gets each, with the error if any.
 * whole: all processes of the machine were looked at, which takes a limited time.
 */
typedef void (*ky_patch_child_fn)(void *context, pid_t pid, int error, const char *message);
uint32_t ky_patch_close_children(uint64_t since, ky_patch_child_fn child, void *context,
				 bool *whole);

#endif
