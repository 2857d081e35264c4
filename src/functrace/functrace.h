/* SPDX-License-Identifier: MIT */
/*
 * functrace.h: records every call of every function of unmodified programs, as spans in drums: the interface for a
 * capture.
 *
 *   engine    when                                               how
 *   pt        the CPU has Intel PT and the kernel offers it      hardware; the program is not changed
 *   nops      the program was compiled for it                    as patch, but only there
 *   patch     x86-64, and the process may be traced (ptrace)     patch.h
 *   sample    otherwise                                          perf_event call stacks, joined
 */
#ifndef KY_FUNCTRACE_FUNCTRACE_H
#define KY_FUNCTRACE_FUNCTRACE_H

#include "functrace/patch.h"

const char *ky_functrace_engine_name(enum ky_functrace_engine engine);

struct ky_functrace;

struct ky_functrace_facts {
	enum ky_functrace_engine engine; /* of the first process */
	char why[KY_MESSAGE_BYTES];      /* one line: why this engine and no other */
	struct ky_patch_facts patch;     /* sums over the processes */
	uint64_t samples, samples_lost;
	/* after the end: forked children may have jumps, if they began since then (/proc/PID/stat); 0: none have */
	uint64_t children_since;
	bool orphaned; /* all processes that forked them have ended, and with them the trace */
};

int ky_functrace_open(struct ky_functrace **functrace, const struct ky_functrace_options *options,
		      char message[KY_MESSAGE_BYTES]);
/*
 * Before a program is started that cannot be held at its entry point, because ptrace is refused with that error: return
 * 0 when an engine is left that may trace it all the same, or -ENOTSUP with a message.
 */
int ky_functrace_unheld(struct ky_functrace *functrace, int error, char message[KY_MESSAGE_BYTES]);
/*
 * Trace a process from now on. Return 0; -ENOTSUP: the engine asked for is impossible here (exit 77); or -errno with
 * a message. A process that is traced already, or a child whose parent is traced and that writes into its drum, stays
 * as it is until it executes another program.
 */
int ky_functrace_add(struct ky_functrace *functrace, pid_t pid, char message[KY_MESSAGE_BYTES]);
void ky_functrace_round(struct ky_functrace *functrace);
/* Call this before a time window is taken from the drums. */
void ky_functrace_flush(struct ky_functrace *functrace);
void ky_functrace_ended(struct ky_functrace *functrace, pid_t pid);
/*
 * Restore all programs but for children that were forked off, which have the jumps, too. facts, which may be NULL, are
 * final.
 */
void ky_functrace_close(struct ky_functrace **functrace, struct ky_functrace_facts *facts);
/*
 * Restore these children, with the facts of the end. All processes of the machine are looked at: write the trace before.
 */
void ky_functrace_restore_children(const struct ky_functrace_facts *facts,
				   void (*note)(void *context, const char *line), void *context);
void ky_functrace_facts(const struct ky_functrace *functrace, struct ky_functrace_facts *facts);
/* Call back with the names of all functions that the engine knows of the processes, wanted or not. */
void ky_functrace_names(const struct ky_functrace *functrace, ky_patch_name_fn one, void *context);
bool ky_functrace_hot(const struct ky_functrace *functrace, uint32_t index,
		      struct ky_patch_hot *hot);

/* ---- the inside: shared by functrace.c and functrace_choose.c ---- */

/*
 *   ky_functrace ─┬─ traced[]   engines patch and nops: a ky_patch for each process
 *                 ├─ pt         engine pt: one for all processes
 *                 ├─ samples    engine sample: the same
 *                 ├─ switches   times of threads off the CPU; for patch and nops, the others see that themselves
 *                 └─ past       facts of processes that ended, functions that were hot
 *
 * The engine is chosen with the first process and stays: a trace whose processes were seen in different ways would be
 * hard to read.
 */
struct ky_functrace_process {
	pid_t pid;
	/* NULL: another engine, or it is gone, or a forked child that has its parent's */
	struct ky_patch *patch;
	uint64_t image;    /* identifies its program: changes with exec; 0: unknown */
	uint64_t again_ns; /* after exec: time to patch the new program; 0: it is patched */
};

struct ky_functrace {
	struct ky_functrace_options options;
	struct ky_selection *selection;
	enum ky_functrace_engine engine; /* KY_FUNCTRACE_AUTO: not chosen yet */
	char why[KY_MESSAGE_BYTES];
	struct ky_functrace_process *processes;
	uint32_t count, room;
	struct ky_pt *pt;
	struct ky_stack_spans *samples;
	struct ky_off_cpu *switches;
	bool switches_tried;
	uint64_t began_ticks;    /* start of the first trace, in the units of /proc/PID/stat */
	uint64_t looked_ns;      /* last check for exec */
	uint32_t executed_lines; /* number of lines about it */
	struct ky_patch_facts past;
	struct ky_patch_hot *hot; /* of processes that ended; the names are ours */
	uint32_t hot_count, hot_room;
};

/* ---- functrace.c ---- */

/* Start the chosen engine on a process. Return 0, or -errno with a message. */
int ky_functrace_begin(struct ky_functrace *functrace, enum ky_functrace_engine engine, pid_t pid,
		       char message[KY_MESSAGE_BYTES]);
/* Open the engine sample, without a process. Return 0, or -errno with a message. */
int ky_functrace_open_samples(struct ky_functrace *functrace, char message[KY_MESSAGE_BYTES]);

/* ---- functrace_choose.c ---- */

/*
 * Trace the first process with the engine that was asked for, or the first that works; set functrace->engine and why.
 * Return 0; -ENOTSUP or another -errno with a message.
 */
int ky_functrace_choose(struct ky_functrace *functrace, pid_t pid, char message[KY_MESSAGE_BYTES]);

#endif
