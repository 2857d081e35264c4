/* SPDX-License-Identifier: MIT */
/*
 * patch.h: the engines patch and nops: every function of a process leads to a stub, and later no longer.
 *
 *   open     finds modules and functions, makes the drum, maps memory there (a first short stop), writes stubs while it runs,
 *            then stops it once more to set the jumps: threads that are inside a window are moved
 *   round    patches libraries that were loaded since; takes the jumps out of functions that are called too often
 *   close    puts all code back. What is on stacks returns by itself
 *
 * What a kymo that was killed left behind is found by its mapping and taken over: nothing grows with the number of attaches.
 */
#ifndef KY_FUNCTRACE_PATCH_H
#define KY_FUNCTRACE_PATCH_H

#include "functrace/functions.h"

#include <sys/types.h>

struct ky_patch;

struct ky_patch_options {
	const struct ky_selection *selection;
	bool entry_only;
	bool nops_only; /* engine nops: only functions that were compiled for it */
	uint64_t
		hot_per_second; /* calls of one function; more: it is left alone from then on. 0: never */
	uint64_t ring_bytes, total_bytes; /* of the drum, per thread and in all */
	/* A drum of the process: its descriptor stays the patch's. */
	void (*drum)(void *context, pid_t pid, int fd);
	/*
	 * Its threads are about to be stopped (true), or go on again (false): who else traces them lets go of them meanwhile, for
	 * a thread has one tracer. May be NULL.
	 */
	void (*stops)(void *context, pid_t pid, bool begins);
	void (*note)(void *context, const char *line);
	void *context;
};

struct ky_patch_facts {
	uint32_t modules, functions; /* found and wanted */
	uint32_t patched;            /* of these, now */
	uint32_t left_out[KY_WHY_COUNT];
	uint32_t hot;          /* left alone because they were called too often */
	uint64_t calls;        /* counted in all threads */
	uint64_t analysed_ns;  /* how long finding out took, */
	uint64_t stopped_ns;   /* how long the threads were stopped to set the jumps, */
	uint64_t unstopped_ns; /* and to take them out; the longest stop, where it takes several */
};

/* held: it is stopped (SIGSTOP) at its entry point. 0 or -errno with a message; nothing is left there then. */
int ky_patch_open(struct ky_patch **patch, pid_t pid, const struct ky_patch_options *options,
		  char message[KY_FUNCTRACE_MESSAGE_BYTES]);
/* What is to be done meanwhile, some ten times a second. */
void ky_patch_round(struct ky_patch *patch);
/* Puts all back. gone: the process has ended already. facts may be NULL. */
void ky_patch_close(struct ky_patch **patch, bool gone, struct ky_patch_facts *facts);
void ky_patch_facts(const struct ky_patch *patch, struct ky_patch_facts *facts);
/* Functions that are left alone for being called too often, with how often until then; false: no more. */
bool ky_patch_hot(const struct ky_patch *patch, uint32_t index, const char **name, uint64_t *calls);

/* When a process began, as of /proc/PID/stat; 0: there is none. */
uint64_t ky_patch_started(pid_t pid);
/* Whether a process has jumps of this kymo: its own, or those of the one that forked it. */
bool ky_patch_is_ours(pid_t pid);
/* Whether a kymo left its jumps in the process and is gone: takes them out. 1: it was so; 0; or -errno with a message. */
int ky_patch_recover(pid_t pid, char message[KY_FUNCTRACE_MESSAGE_BYTES]);
/* Lets go of threads that could not be stopped in time; to be called each round and at the end. How many are left. */
uint32_t ky_patch_release_late(void);
/*
 * Undoes it in all processes that still have jumps of this kymo: children that were forked off. For the very end. How many there
 * were; each is told of, with what went wrong.
 */
uint32_t ky_patch_close_children(void (*child)(void *context, pid_t pid, int error,
					       const char *message),
				 void *context);

#endif
