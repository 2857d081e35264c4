/* SPDX-License-Identifier: MIT */
/*
 * pt_process.h: a traced process: what is in it (pt_space.h), and the drum that its calls are told to.
 *
 *   window of a thread ─▶ pt_decode ─▶ begin(address) ─▶ site of the function ─▶ span drum, the thread's ring
 *
 * Sites are made when a function is first told of. Gaps and instants have sites by their text: few, and of texts with an address
 * in them only as many as there is room for; then one that says less.
 */
#ifndef KY_FUNCTRACE_PT_PROCESS_H
#define KY_FUNCTRACE_PT_PROCESS_H

#include "functrace/made_drum.h"
#include "functrace/pt_decode.h"
#include "functrace/pt_space.h"

#define KY_PT_TEXTS_MAX 256u

struct ky_pt_text {
	char *text;
	int kind;
	uint32_t site;
};

/* Functions in no file, by their address. */
struct ky_pt_place {
	uint64_t address;
	uint32_t site;
};
#define KY_PT_PLACES 4096u /* a power of two; beyond it they share one name */

struct ky_pt_process {
	pid_t pid;
	struct ky_pt_space space;
	struct ky_span_drum drum;
	struct ky_pt_text texts[KY_PT_TEXTS_MAX];
	uint32_t texts_count;
	struct ky_pt_place places[KY_PT_PLACES];
	uint32_t places_count;
	uint32_t nameless, nameless_instant; /* for what has no room */
	struct ky_pt_facts facts;            /* of all windows */
};

struct ky_pt_process_options {
	const struct ky_selection *selection;
	uint64_t ring_bytes, total_bytes;
	pid_t pid_inside; /* as it sees itself */
};

/* 0 or -errno. */
int ky_pt_process_open(struct ky_pt_process *process, pid_t pid,
		       const struct ky_pt_process_options *options);
void ky_pt_process_close(struct ky_pt_process *process);
/* Tells a thread's window. Until when (0: nothing was decoded), for since_ns of the next; -ENOMEM, -EINVAL. */
int ky_pt_process_tell(struct ky_pt_process *process, pid_t tid_inside,
		       const struct ky_pt_window *window, uint64_t *until_ns);

#endif
