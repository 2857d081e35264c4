/* SPDX-License-Identifier: MIT */
/*
 * functrace_parts.h: the inside of function tracing: functrace.c (processes, rounds, facts), functrace_choose.c (the
 * engine) and functrace_exec.c (processes that call exec).
 *
 *   ky_functrace ─┬─ traced[]   engines patch and nops: a ky_patch for each process
 *                 ├─ pt         engine pt: one for all processes
 *                 ├─ samples    engine sample: the same
 *                 ├─ switches   times of threads off the CPU; for patch and nops, the others see that themselves
 *                 └─ past       facts of processes that ended, functions that were hot
 *
 * The engine is chosen with the first process and stays: a trace whose processes were seen in different ways would be
 * hard to read.
 */
#ifndef KY_FUNCTRACE_FUNCTRACE_PARTS_H
#define KY_FUNCTRACE_FUNCTRACE_PARTS_H

#include "functrace/functrace.h"
#include "functrace/off_cpu.h"
#include "functrace/pt.h"
#include "functrace/stack_spans.h"

struct ky_functrace_process {
	pid_t pid;
	/* NULL: another engine, or it is gone, or a forked child that has its parent's */
	struct ky_patch *patch;
	uint64_t image;    /* identifies its program: changes with exec; 0: unknown */
	uint64_t again_ns; /* after exec: time to patch the new program; 0: it is patched */
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
	uint64_t began_ticks;   /* start of the first trace, in the units of /proc/PID/stat */
	uint64_t looked_ns;     /* last check for exec */
	uint32_t executed_told; /* number of lines about it */
	struct ky_patch_facts past;
	struct ky_functrace_hot_one *hot; /* of processes that ended */
	uint32_t hot_count, hot_room;
};

/* ---- functrace.c ---- */

/* Start the chosen engine on a process. Return 0, or -errno with a message. */
int ky_functrace_begin(struct ky_functrace *functrace, enum ky_functrace_engine engine, pid_t pid,
		       char message[KY_FUNCTRACE_MESSAGE_BYTES]);
int ky_functrace_begin_patch(struct ky_functrace *functrace, enum ky_functrace_engine engine,
			     pid_t pid, struct ky_patch **patch,
			     char message[KY_FUNCTRACE_MESSAGE_BYTES]);
/* Take the patch out of a process, or drop it when the process is gone; keep its facts. */
void ky_functrace_close_patch(struct ky_functrace *functrace, struct ky_functrace_process *process,
			      bool gone);
void ky_functrace_note(const struct ky_functrace *functrace, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- functrace_exec.c ---- */

/* Return a number that changes with exec; 0: unavailable. */
uint64_t ky_functrace_image(pid_t pid);
/* Note that the process runs another program, which is to be patched soon. */
void ky_functrace_executed(struct ky_functrace_process *process);
/* Check whether processes have called exec, and patch new programs. */
void ky_functrace_follow_exec(struct ky_functrace *functrace);

/* ---- functrace_choose.c ---- */

/*
 * Trace the first process with the engine that was asked for, or the first that works; set functrace->engine and why.
 * Return 0; -ENOTSUP or another -errno with a message.
 */
int ky_functrace_choose(struct ky_functrace *functrace, pid_t pid,
			char message[KY_FUNCTRACE_MESSAGE_BYTES]);

#endif
