/* SPDX-License-Identifier: MIT */
/*
 * capture.h: a capture from outside: run, attach and record are one, with other processes and other
 * sources.
 *
 *     processes ─ appeared, drum, ended ─▶ drums ────┐
 *     kernel_trace ──────────────────────────────────┼─▶ bundle ─▶ .kymo ─ at the end ─▶ others
 *     stack_samples ─────────────────────────────────┘      ▲
 *     functrace ── drums of its own making ─▶ drums         │
 *     watch, probes, crash_watch, signals ─ fired ─▶ snapshot ┘  flight: windows of all sources
 *
 * One loop over poll(), one thread (and a process of the crash watch). With triggers it is a flight
 * recorder: nothing is written until one fires; without, everything is.
 *
 * A part that cannot be had (no right to ftrace, no perf) is a note on standard error and in the
 * file; the rest is recorded. A capture without any source is a failure.
 */
#ifndef KY_CAPTURE_CAPTURE_H
#define KY_CAPTURE_CAPTURE_H

#include "capture/probe.h"
#include "capture/processes.h"
#include "capture/trigger.h"
#include "functrace/functrace.h"

/* Of each thread, unless told: some ten milliseconds of a thread that does nothing but record. */
#define KY_CAPTURE_RING_BYTES (UINT64_C(16) << 20)
/* Of all rings of a process: when half of it is used, further rings get smaller. */
#define KY_CAPTURE_TOTAL_BYTES (UINT64_C(1) << 30)

struct ky_capture_facts;

struct ky_capture_options {
	const char *path;       /* .kymo */
	int fd;                 /* when path is NULL */
	bool keep_old;          /* what had that name becomes PATH.old */
	const char *categories; /* globs, NULL: all */
	enum ky_processes_scope scope;
	char *const *command; /* run: the program and its arguments; NULL: none */
	const pid_t *pids;
	uint32_t pids_count;
	bool drums; /* off only for captures of the kernel alone */
	const char *const *kernel;
	uint32_t kernel_count; /* 0: no kernel events */
	uint32_t samples_per_second;
	const struct ky_trigger *triggers;
	uint32_t triggers_count;
	enum ky_probe_engine probe_engine;
	/* Calls of functions, NULL: not wanted. Rings, samples a second and callbacks are the capture's. */
	const struct ky_functrace_options *functions;
	uint64_t before_ns;
	uint64_t after_ns;
	uint32_t snapshots_max; /* then the capture ends; 0: no limit */
	uint64_t cooldown_ns;   /* no other snapshot so soon after one */
	uint64_t duration_ns;   /* 0: until it ends by itself or is stopped */
	uint64_t max_bytes;
	uint32_t files_max;
	uint64_t ring_bytes;   /* of rings that are made from now on; 0: KY_CAPTURE_RING_BYTES */
	uint64_t buffer_bytes; /* of the kernel's, per CPU */
	/* Ten times a second. Not 0: stop, as by the first Ctrl-C. */
	int (*progress)(void *context, const struct ky_capture_facts *facts);
	bool quiet; /* which engine sees the functions is only noted in the file */
	/* One line about something that could not be had, or that happened. */
	void (*note)(void *context, const char *line);
	void *context;
};

/* A function that is left alone for being called too often, with how often until then. */
#define KY_CAPTURE_HOT_MAX 16u
struct ky_capture_hot {
	char name[256];
	uint64_t calls;
};

struct ky_capture_facts {
	uint64_t elapsed_ns;
	uint64_t events; /* of drums */
	uint64_t events_lost;
	uint64_t kernel_pages, kernel_lost;
	uint64_t samples, samples_lost;
	uint64_t bytes;
	uint32_t files;
	uint32_t processes; /* alive now */
	uint32_t drums;     /* ever */
	uint32_t snapshots;
	uint64_t damaged; /* places in drums that were scribbled over */
	bool kernel_on, samples_on, functions_on;
	bool functions_impossible; /* not on this machine, or not in this program: the message says why */
	struct ky_functrace_facts functions;
	struct ky_capture_hot hot[KY_CAPTURE_HOT_MAX];
	uint32_t hot_count;
	bool started;                   /* run: the program ran */
	bool exec_failed;               /* run: and if not, this is why */
	int status;                     /* run: as waitpid() has it; -1: not known */
	uint32_t given;                 /* processes that were asked for and could be had */
	uint32_t hidden;                /* processes that this user may not look into, now */
	bool mailbox_overflow;          /* drums of children that lived shortly may be missing */
	uint64_t snapshots_passed_over; /* triggers that fired too soon after another */
	bool kept;                      /* there is a file */
	char path[4096];                /* the last one */
};

/*
 * Runs the capture to its end. 0; -errno with one line. facts tell what became of it, also on
 * failure. A program that was started has ended when this returns, whatever became of the capture.
 */
int ky_capture(const struct ky_capture_options *options, struct ky_capture_facts *facts,
	       char message[KY_CAPTURE_MESSAGE_BYTES]);
/* Which functions were left out, by reasons: "3 shorter than a jump, 1 ..."; "" when none was. */
void ky_capture_left_out(const struct ky_patch_facts *facts, char *text, size_t room);

#endif
