/* SPDX-License-Identifier: MIT */
/*
 * source.h: the sources of a capture, behind one interface, and the state that they share.
 *
 * A source is a part that a capture opens, reads in rounds and closes. source.c has those that only forward; each other is one file, source_NAME.c:
 *
 *   samples     perf rings of call stacks ──────────────────────────▶ bundle
 *   kernel      ftrace pages ───────────────────────────────────────▶ bundle
 *   functions   calls of functions ─▶ drums that it makes ─┐
 *   processes   /proc and the mailbox ─▶ drums found ──────┤   (adds processes to all sources)
 *   drums       the programs' events ◀─────────────────────┴────────▶ bundle; fires span: gap: counter: api
 *   probes      uprobes and breakpoints                               fires symbol: line:
 *   crash       a tracing process                                     fires crash
 *
 *          │ fork                exec │ each turn of the loop  │ each snapshot
 *     open │ forked ─ add (program) ─ │ round                  │ window         ─▶ facts ─▶ close
 *          │                          │ add, ended (processes) │
 *
 * The order above holds for everything but open and close, which go from the last to the first:
 * - The crash watch forks, which must happen before another source makes threads.
 * - Functions are patched before probes and the crash watch are set on a program.
 * - A process's last events are read, and fire, before its crash does.
 * - Closing samples may take seconds, in which a user may press Ctrl-C again. By then the kernel's instance and the drums'
 *   slots are given back.
 */
#ifndef KY_CAPTURE_SOURCE_H
#define KY_CAPTURE_SOURCE_H

#include "capture/capture.h"
#include "capture/child.h"
#include "capture/signals.h"
#include "capture/snapshots.h"

enum ky_source_id {
	KY_SOURCE_SAMPLES,
	KY_SOURCE_KERNEL,
	KY_SOURCE_FUNCTIONS,
	KY_SOURCE_PROCESSES,
	KY_SOURCE_DRUMS,
	KY_SOURCE_PROBES,
	KY_SOURCE_CRASH,
	KY_SOURCES_COUNT
};

/* How a process came to a capture. */
enum ky_source_process {
	KY_SOURCE_PROGRAM,  /* run: the program, held at its entry point */
	KY_SOURCE_GIVEN,    /* attach: it will appear with the first round */
	KY_SOURCE_EXISTING, /* it appeared, and ran before the capture did */
	KY_SOURCE_NEW       /* it appeared, and inherited what its parent has */
};

struct ky_source {
	const struct ky_source_ops *ops;
	struct ky_capture *capture;
	void *state; /* NULL: not wanted, or unavailable; open and forked alone are called then */
	int fd;      /* to poll; -1: none */
	bool ready;  /* fd was readable */
	uint64_t due_ns; /* when it is to be read without being polled */
	pid_t paused;    /* crash: the process that it let go of for a moment; 0: none */
};

/* All but open or forked, and close, may be NULL. */
struct ky_source_ops {
	/* Open, before the program is forked. Return 0, or -errno, which ends the capture, with its message. */
	int (*open)(struct ky_source *source);
	/* Open what needs the program's pid (0: none is run). Report what is unavailable in a note. */
	void (*forked)(struct ky_source *source, pid_t program);
	/* Add a process. Return 0, or -errno with a message when the capture cannot have this process. */
	int (*add)(struct ky_source *source, pid_t pid, enum ky_source_process how,
		   char message[KY_MESSAGE_BYTES]);
	/* Read what is new, or with all everything there is. Return when the next round is due, in ns from now. */
	uint64_t (*round)(struct ky_source *source, bool all);
	/* Write what was recorded from from_ns to to_ns, unless an earlier window held it. */
	void (*window)(struct ky_source *source, uint64_t from_ns, uint64_t to_ns);
	/* Read the last of a process that ended; status is as waitpid() has it, -1: unknown. */
	void (*ended)(struct ky_source *source, pid_t pid, int status);
	void (*facts)(const struct ky_source *source, struct ky_capture_facts *facts);
	/* Read to the end and free the state. */
	void (*close)(struct ky_source *source);
	bool holds; /* the program must be held at its entry point for add */
};

extern const struct ky_source_ops ky_source_samples, ky_source_kernel, ky_source_functions,
	ky_source_processes, ky_source_drums, ky_source_probes, ky_source_crash;

struct ky_capture {
	const struct ky_capture_options *options;
	struct ky_capture_facts *facts;
	char *message; /* of the error that ends it */
	struct ky_signals signals;
	struct ky_capture_output output;
	struct ky_child child;
	bool child_end_reported; /* the sources know that it ended */
	bool began;              /* everything is set, and the loop runs */
	char program[PATH_MAX];  /* run: its file */
	char *categories;        /* the user's and the triggers'; NULL: all */
	struct ky_bundle *bundle;
	struct ky_snapshots *flight; /* NULL: everything is written */
	struct ky_process_list
		*processes; /* the state of that source: all sources may look at it */
	struct ky_source sources[KY_SOURCES_COUNT];
	const struct ky_trigger *on_exit, *on_interrupt;
	uint64_t begin_ns;              /* CLOCK_BOOTTIME, as all times here */
	uint64_t looked_ns;             /* when the processes were last looked for */
	uint64_t progress_ns, flush_ns; /* when these are due */
	uint32_t interrupts;            /* of the terminal */
	bool stop;
	int error; /* that ended it */
};

/* ---- one source ---- */

/* How long a source rests when nothing makes it hurry. */
#define KY_SOURCE_REST_NS UINT64_C(50000000)

/* Return the state of a source, or NULL when it is off. */
void *ky_source_state(const struct ky_capture *capture, enum ky_source_id id);
/* Close a source, if it is on. */
void ky_source_close(struct ky_capture *capture, enum ky_source_id id);
/* Return how far back a window may reach when it is written. */
uint64_t ky_source_reach_ns(const struct ky_capture_options *options);
/* Print a line for the user, and write it to the file. */
void ky_source_note(struct ky_capture *capture, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Do the same with what the user named and nothing matches, and count it. */
void ky_source_unmatched(struct ky_capture *capture, const char *line);

/* ---- all sources ---- */

int ky_source_open_all(struct ky_capture *capture);
void ky_source_forked_all(struct ky_capture *capture);
int ky_source_add_all(struct ky_capture *capture, pid_t pid, enum ky_source_process how,
		      char message[KY_MESSAGE_BYTES]);
uint64_t ky_source_round_all(struct ky_capture *capture, bool all);
void ky_source_window_all(struct ky_capture *capture, uint64_t from_ns, uint64_t to_ns);
void ky_source_ended_all(struct ky_capture *capture, pid_t pid, int status);
void ky_source_facts_all(struct ky_capture *capture);
void ky_source_close_all(struct ky_capture *capture);
/* Report whether a source needs the program held at its entry point. */
bool ky_source_any_holds(const struct ky_capture *capture);

/* ---- what sources ask of each other ---- */

/* source_drums.c: add a drum that was found in a process, or that kymo made for it. context: the capture. */
void ky_source_drums_found(void *context, pid_t pid, int fd);
void ky_source_drums_made(void *context, pid_t pid, int fd);
/* Handle the end of a child that wrote into its parent's drum. context: the capture. */
void ky_source_drums_child_ended(void *context, pid_t pid);
/* Report whether a process has a drum; forget that it has. */
bool ky_source_drums_has(const struct ky_capture *capture, pid_t pid);
void ky_source_drums_forget(struct ky_capture *capture, pid_t pid);
/* Return the latest kymo_mark_start() after since_ns; 0: none. */
uint64_t ky_source_drums_mark(const struct ky_capture *capture, uint64_t since_ns);

/*
 * source_functions.c: the program cannot be held at its entry point (error). Return 0 when functions can be traced
 * all the same, or are not; otherwise -ENOTSUP with the capture's message.
 */
int ky_source_functions_unheld(struct ky_capture *capture, int error);
/* source_functions.c: restore children that were forked off, after the file was written. */
void ky_source_functions_restore(struct ky_capture *capture);
/* source_functions.c: handle the end of a process that the processes did not report. */
void ky_source_functions_ended(struct ky_capture *capture, pid_t pid);

/* Return the pid of the tracer; 0: none. */
pid_t ky_source_crash_tracer(const struct ky_capture *capture);
/* Let go of a process while another traces it; a thread has one tracer. */
void ky_source_crash_pause(struct ky_capture *capture, pid_t pid, bool begins);

#endif
