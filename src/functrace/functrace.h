/* SPDX-License-Identifier: MIT */
/*
 * functrace.h: every call of every function of unmodified programs, as spans in drums: what a capture sees of it.
 *
 *   engine    when                                               how
 *   pt        the CPU has Intel PT and the kernel gives it       hardware; nothing of the program is touched
 *   nops      the program was compiled for it                    as patch, but only there
 *   patch     x86-64, and the process may be traced (ptrace)     patch.h
 *   sample    else                                               perf_event call stacks, joined
 */
#ifndef KY_FUNCTRACE_FUNCTRACE_H
#define KY_FUNCTRACE_FUNCTRACE_H

#include "functrace/patch.h"

#include <sys/types.h>

enum ky_functrace_engine {
	KY_FUNCTRACE_AUTO,
	KY_FUNCTRACE_PT,
	KY_FUNCTRACE_NOPS,
	KY_FUNCTRACE_PATCH,
	KY_FUNCTRACE_SAMPLE
};
const char *ky_functrace_engine_name(enum ky_functrace_engine engine);

struct ky_functrace;

struct ky_functrace_options {
	enum ky_functrace_engine engine;
	const char *functions; /* as of ky_selection_parse(); NULL: all */
	uint64_t min_bytes;
	bool entry_only;
	uint64_t hot_per_second; /* ky_patch_options; 0: never */
	uint32_t samples_per_second;
	uint64_t ring_bytes, total_bytes;
	/* A drum of the process has appeared; the descriptor stays this part's. */
	void (*drum)(void *context, pid_t pid, int fd);
	void (*stops)(void *context, pid_t pid, bool begins); /* ky_patch_options; may be NULL */
	void (*note)(void *context, const char *line);
	/* A process has ended, perhaps a child that nobody had noticed; may be NULL. */
	void (*ended)(void *context, pid_t pid);
	void *context;
};

struct ky_functrace_facts {
	enum ky_functrace_engine engine;      /* of the first process */
	char why[KY_FUNCTRACE_MESSAGE_BYTES]; /* it and no other: one line */
	struct ky_patch_facts patch;          /* sums over the processes */
	uint64_t samples, samples_lost;
};

int ky_functrace_open(struct ky_functrace **functrace, const struct ky_functrace_options *options,
		      char message[KY_FUNCTRACE_MESSAGE_BYTES]);
/*
 * A process, from now on. 0; -ENOTSUP: the engine asked for is impossible here (exit 77), -errno with a message. One that
 * is there already, or a child whose parent is traced and that writes into its drum, is left as it is until it executes another program.
 */
int ky_functrace_add(struct ky_functrace *functrace, pid_t pid,
		     char message[KY_FUNCTRACE_MESSAGE_BYTES]);
void ky_functrace_round(struct ky_functrace *functrace);
/* Before a window is taken from the drums. */
void ky_functrace_flush(struct ky_functrace *functrace);
void ky_functrace_ended(struct ky_functrace *functrace, pid_t pid);
/* Lets all programs be as they were. facts, which may be NULL, are final. */
void ky_functrace_close(struct ky_functrace **functrace, struct ky_functrace_facts *facts);
void ky_functrace_facts(const struct ky_functrace *functrace, struct ky_functrace_facts *facts);
bool ky_functrace_hot(const struct ky_functrace *functrace, uint32_t index, const char **name,
		      uint64_t *calls);

#endif
