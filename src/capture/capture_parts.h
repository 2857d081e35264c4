/* SPDX-License-Identifier: MIT */
/*
 * capture_parts.h: a capture from inside: what capture.c (the loop), capture_sources.c (opening,
 * reading and closing the sources), capture_processes.c (what is set on a process),
 * capture_functions.c (calls of functions) and capture_snapshots.c (signals, ends, snapshots) share.
 *
 * Parts that are not wanted or could not be had are NULL.
 */
#ifndef KY_CAPTURE_CAPTURE_PARTS_H
#define KY_CAPTURE_CAPTURE_PARTS_H

#include "base/map.h"
#include "capture/capture.h"
#include "capture/capture_flight.h"
#include "capture/capture_output.h"
#include "capture/capture_run.h"
#include "capture/capture_signals.h"
#include "capture/crash_watch.h"
#include "capture/drums.h"
#include "capture/kernel_trace.h"
#include "capture/stack_samples.h"
#include "capture/watch.h"

/* A drum that came before its process had finished it. */
#define KY_CAPTURE_UNFINISHED 64
struct ky_unfinished {
	pid_t pid; /* 0: none */
	int fd;
	uint32_t tries;
};

struct ky_capture {
	const struct ky_capture_options *options;
	struct ky_capture_facts *facts;
	char *message; /* of the error that ends it */
	struct ky_signals signals;
	struct ky_capture_output output;
	struct ky_child child;
	bool child_told;        /* its end was noticed by all */
	char program[PATH_MAX]; /* run: its file */
	char *categories;       /* the user's and the triggers'; NULL: all */
	struct ky_bundle *bundle;
	struct ky_flight *flight; /* NULL: everything is written */
	struct ky_processes *processes;
	struct ky_watch *watch;
	struct ky_drums *drums;
	struct ky_kernel_trace *kernel;
	struct ky_stack_samples *samples;
	struct ky_probes *probes;
	struct ky_crash_watch *crash;
	pid_t crash_left; /* a process that it let go of for a moment; 0: none */
	struct ky_functrace *functions;
	const struct ky_trigger *on_exit, *on_interrupt;
	uint32_t drums_told; /* lines about drums that could not be had as they should */
	pid_t *recorded;     /* processes that have a drum: their end may be of interest */
	uint32_t recorded_count, recorded_room;
	struct ky_u64_map children; /* pids that have none: they write into their parent's */
	struct ky_unfinished unfinished[KY_CAPTURE_UNFINISHED];
	bool drums_refused; /* there was no room for one more */
	uint64_t begin_ns;  /* CLOCK_BOOTTIME, as all times here */
	uint64_t looked_ns; /* when the processes were last looked for */
	uint64_t progress_ns, flush_ns, kernel_ns, probes_ns, gone_ns; /* when these are due */
	uint64_t probes_wait_ns;
	bool probes_placed, probes_told, missing_told;
	char probes_missing[KY_CAPTURE_MESSAGE_BYTES]; /* why none has a place so far */
	uint32_t interrupts;                           /* of the terminal */
	bool stop;
	int error; /* that ended it */
};

uint64_t ky_capture_now(void);
/* A line for the user and for whoever opens the file. */
void ky_capture_note(struct ky_capture *capture, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- capture_sources.c ---- */

/* Opens everything; a program waits to be let go then. 0, or -errno with the message. */
int ky_capture_open(struct ky_capture *capture);
/* Lets the program go, or takes up the processes that were given. */
int ky_capture_start(struct ky_capture *capture);
/*
 * Reads what is new in all sources, or with all everything there is. When the next round should
 * be, in ns from now.
 */
uint64_t ky_capture_round(struct ky_capture *capture, bool all);
void ky_capture_window(struct ky_capture *capture, uint64_t from_ns, uint64_t to_ns);
void ky_capture_gather(struct ky_capture *capture);
/* Reads to the end and closes; the facts are final then. */
void ky_capture_close(struct ky_capture *capture);

/* ---- capture_processes.c ---- */

/* For processes: one appeared; a drum of it. */
void ky_capture_appeared(void *capture, pid_t pid);
void ky_capture_drum(void *capture, pid_t pid, int fd);
/* The same of a drum that kymo has made; a child of its process that writes into it; which has ended. */
void ky_capture_made_drum(void *capture, pid_t pid, int fd);
void ky_capture_child(void *capture, pid_t pid);
void ky_capture_child_ended(void *capture, pid_t pid);
void ky_capture_add_probes(struct ky_capture *capture, pid_t pid);
void ky_capture_add_crash_watch(struct ky_capture *capture, pid_t pid);
/* A line about probes; only the first is told. */
void ky_capture_note_probes(struct ky_capture *capture, const char *line);
/* Of several triggers: those that have no place though others have. Once. */
void ky_capture_tell_missing(struct ky_capture *capture);
/* Tries once more to find a place for probes, when it is time. */
void ky_capture_probe(struct ky_capture *capture, uint64_t now);
/* Tries drums again that were still being made. */
void ky_capture_try_drums(struct ky_capture *capture);
void ky_capture_forget_processes(struct ky_capture *capture);

/* ---- capture_functions.c ---- */

int ky_capture_open_functions(struct ky_capture *capture);
/* A process that is there, or the program at its entry point. 0, or -errno with a message. */
int ky_capture_add_functions(struct ky_capture *capture, pid_t pid,
			     char message[KY_CAPTURE_MESSAGE_BYTES]);
void ky_capture_round_functions(struct ky_capture *capture, bool all);
void ky_capture_gather_functions(struct ky_capture *capture);
/* Programs are as they were; once. */
void ky_capture_take_out_functions(struct ky_capture *capture);

/* ---- capture_snapshots.c ---- */

void ky_capture_fired(void *capture, const struct ky_fired *fired);
/* A child that wrote into its parent's drum has ended: what waits for that. */
void ky_capture_child_ends(struct ky_capture *capture, pid_t pid);
void ky_capture_signals(struct ky_capture *capture);
/* For processes: one ended. */
void ky_capture_ended(void *capture, pid_t pid, int status);
/* Writes the snapshots whose windows are over. */
void ky_capture_snapshots(struct ky_capture *capture, uint64_t now);

#endif
