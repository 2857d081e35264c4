/* SPDX-License-Identifier: MIT */
/*
 * functrace_parts.h: function tracing from inside: functrace.c (processes, rounds, facts) and functrace_choose.c (which
 * engine).
 *
 *   ky_functrace ─┬─ traced[]   engines patch and nops: a ky_patch for each process
 *                 ├─ pt         engine pt: one for all processes
 *                 ├─ samples    engine sample: the same
 *                 ├─ switches   when threads were off the CPU; of patch and nops, the others see that themselves
 *                 └─ past       what is known of processes that ended: facts, functions that were hot
 *
 * The engine is chosen with the first process and stays: a trace whose processes were seen in different ways would be hard to read.
 */
#ifndef KY_FUNCTRACE_FUNCTRACE_PARTS_H
#define KY_FUNCTRACE_FUNCTRACE_PARTS_H

#include "functrace/functrace.h"
#include "functrace/off_cpu.h"
#include "functrace/pt.h"
#include "functrace/stack_spans.h"

struct ky_functrace_process {
	pid_t pid;
	struct ky_patch *
		patch; /* NULL: another engine, or it is gone, or a forked child that has its parent's */
	uint64_t image;    /* of its program: another after exec; 0: not known */
	uint64_t again_ns; /* after exec: when the new program is patched; 0: it is */
};

struct ky_functrace_hot_one {
	char *name;
	uint64_t calls;
};

struct ky_functrace {
	struct ky_functrace_options options;
	struct ky_selection *selection;
	enum ky_functrace_engine engine; /* KY_FUNCTRACE_AUTO: not chosen yet */
	char why[KY_FUNCTRACE_MESSAGE_BYTES];
	struct ky_functrace_process *processes;
	uint32_t count, room;
	struct ky_pt *pt;
	struct ky_stack_spans *samples;
	struct ky_off_cpu *switches;
	bool switches_tried;
	uint64_t began_ticks;   /* when the first process was traced, as /proc/PID/stat has times */
	uint64_t looked_ns;     /* for exec, last */
	uint32_t executed_told; /* lines about it */
	struct ky_patch_facts past;
	struct ky_functrace_hot_one *hot; /* of processes that ended */
	uint32_t hot_count, hot_room;
};

/* ---- functrace.c ---- */

/* Sets the chosen engine on a process. 0, or -errno with a message. */
int ky_functrace_begin(struct ky_functrace *functrace, enum ky_functrace_engine engine, pid_t pid,
		       char message[KY_FUNCTRACE_MESSAGE_BYTES]);
int ky_functrace_begin_patch(struct ky_functrace *functrace, enum ky_functrace_engine engine,
			     pid_t pid, struct ky_patch **patch,
			     char message[KY_FUNCTRACE_MESSAGE_BYTES]);
/* Takes the patch out of a process, or forgets it when that is gone; what is known of it is kept. */
void ky_functrace_close_patch(struct ky_functrace *functrace, struct ky_functrace_process *process,
			      bool gone);
void ky_functrace_note(const struct ky_functrace *functrace, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- functrace_exec.c ---- */

/* A number that is another after exec, 0 when there is none to be had. */
uint64_t ky_functrace_image(pid_t pid);
/* The process runs another program since a moment: which is patched before long. */
void ky_functrace_executed(struct ky_functrace_process *process);
/* Looks whether processes have called exec; new programs are patched. */
void ky_functrace_follow_exec(struct ky_functrace *functrace);

/* ---- functrace_choose.c ---- */

/*
 * Sets the first process going with the engine that was asked for, or the first that works; functrace->engine and why are set
 * then. 0; -ENOTSUP or another -errno with a message.
 */
int ky_functrace_choose(struct ky_functrace *functrace, pid_t pid,
			char message[KY_FUNCTRACE_MESSAGE_BYTES]);

#endif
