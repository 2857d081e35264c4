/* SPDX-License-Identifier: MIT */
/*
 * pt_process.h: a traced process: its contents (pt_space.h), and the drum for its calls.
 *
 *   packets of a thread ─▶ pt_decode ─▶ begin(address) ─▶ site of the function ─▶ made drum, the thread's ring
 *
 * Sites are made at a function's first event. Gaps and instants have sites by their text: few, and for texts that
 * contain an address only as many as there is room for; further ones share a less precise site.
 */
#ifndef KY_FUNCTRACE_PT_PROCESS_H
#define KY_FUNCTRACE_PT_PROCESS_H

#include "base/map.h"
#include "functrace/made_drum.h"
#include "functrace/pt.h"
#include "functrace/pt_decode.h"
#include "functrace/pt_machine.h"
#include "functrace/pt_space.h"

#define KY_PT_TEXTS_MAX 256u

struct ky_pt_text {
	char *text;
	int kind;
	uint32_t site;
};

#define KY_PT_PLACES_MAX 2048u

struct ky_pt_process {
	pid_t pid;
	struct ky_pt_space space;
	struct ky_made_drum drum;
	struct ky_pt_text texts[KY_PT_TEXTS_MAX];
	uint32_t texts_count;
	/* sites of functions in no file, by their address; beyond KY_PT_PLACES_MAX they share one */
	struct ky_u64_map places;
	uint32_t nameless, nameless_instant; /* for events without room */
	struct ky_pt_facts facts;            /* of all packets */
};

struct ky_pt_process_options {
	const struct ky_selection *selection;
	uint64_t ring_bytes, total_bytes;
	pid_t pid_inside; /* as it sees itself */
};

/* Open a process. Return 0 or -errno. */
int ky_pt_process_open(struct ky_pt_process *process, pid_t pid,
		       const struct ky_pt_process_options *options);
void ky_pt_process_close(struct ky_pt_process *process);
/* Write a thread's packets. Return their end (0: nothing was decoded), for since_ns of the next; -ENOMEM, -EINVAL. */
int ky_pt_process_write(struct ky_pt_process *process, pid_t tid_inside,
			const struct ky_pt_packets *packets, uint64_t *until_ns);

/* ---- the inside of the engine ---- */

struct ky_pt_traced {
	struct ky_pt_traced *next;
	struct ky_pt_process process;
	struct ky_pt_thread *threads;
	uint32_t count, room;
	bool ended;
	bool look; /* something was mapped */
};

struct ky_pt {
	struct ky_functrace_options options;
	struct ky_pt_machine machine;
	struct ky_pt_traced *first;
	uint64_t aux_bytes; /* of each thread */
	uint64_t aux_all;   /* of all, now */
	bool noted_threads, noted_lost, noted_time, noted_memory;
};

#endif
