/* SPDX-License-Identifier: MIT */
/*
 * capture.h: run, attach and record: one capture, with different processes and sources.
 *
 *     processes ─ appeared, drum, ended ─▶ drums ────┐
 *     kernel_trace ──────────────────────────────────┼─▶ bundle ─▶ .kymo ─ at the end ─▶ others
 *     stack_samples ─────────────────────────────────┘      ▲
 *     functrace ── drums that it makes ─▶ drums              │
 *     watch, probes, crash_watch, signals ─ fired ─▶ snapshot ┘  flight: windows of all sources
 *
 * A capture is one loop over poll() in one thread (the crash watch has a process of its own). With
 * triggers it is a flight recorder: nothing is written until one fires. Without, everything is, unless
 * the caller wants the events itself.
 * source.h has the interface of the sources.
 *
 * A source that is unavailable (no permission for ftrace or perf) is reported in a note on standard
 * error and in the file; the rest is recorded.
 */
#ifndef KY_CAPTURE_CAPTURE_H
#define KY_CAPTURE_CAPTURE_H

#include "base/file.h"
#include "capture/bundle.h"
#include "capture/probe.h"
#include "capture/processes.h"
#include "capture/trigger.h"
#include "functrace/functrace.h"

#include <limits.h>

/*
 * The default ring of each thread: some ten milliseconds of a thread that does nothing but record.
 */
#define KY_CAPTURE_RING_BYTES (UINT64_C(16) << 20)
/* Of all rings of a process: when half of it is used, further rings are smaller. */
#define KY_CAPTURE_TOTAL_BYTES (UINT64_C(1) << 30)

struct ky_capture_facts;

struct ky_capture_options {
	const char *path;       /* .kymo */
	int fd;                 /* when path is NULL */
	bool keep_old;          /* rename an existing file to PATH.old */
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
	/*
	 * Function calls; NULL: not wanted. The capture sets rings, samples per second and
	 * callbacks.
	 */
	const struct ky_functrace_options *functions;
	uint64_t before_ns;
	uint64_t after_ns;
	uint32_t snapshots_max; /* the capture ends after so many; 0: no limit */
	uint64_t cooldown_ns;   /* minimum time between two snapshots */
	uint64_t duration_ns;   /* 0: no limit */
	uint64_t max_bytes;
	uint32_t files_max;
	uint64_t ring_bytes;   /* minimum size of new rings; 0: KY_CAPTURE_RING_BYTES */
	uint64_t stall_ns;     /* how long a thread waits rather than overwrite what was not read */
	uint64_t buffer_bytes; /* of the kernel's buffer, per CPU */
	/*
	 * Called for each event of the programs and of traced functions, soon after it was recorded, in the order of time within
	 * a drum; the file then gets none. NULL: not wanted.
	 */
	void (*event)(void *context, pid_t pid, const struct ky_event *event);
	/* Called ten times a second. Return non-zero to stop, as the first Ctrl-C does. */
	int (*progress)(void *context, const struct ky_capture_facts *facts);
	bool quiet; /* note the engine of functions only in the file */
	/* Called with one line about what is unavailable, or what happened. */
	void (*note)(void *context, const char *line);
	void *context;
};

/* A function that was called too often to be traced further, with its calls until then. */
#define KY_CAPTURE_HOT_MAX 16u
struct ky_capture_hot {
	char name[256];
	uint64_t calls;  /* that were counted */
	uint64_t missed; /* about so many were left out for the sake of --overhead */
	bool limited;    /* left alone because of --hot */
};

struct ky_capture_facts {
	uint64_t elapsed_ns;
	uint64_t events;         /* of drums */
	uint64_t events_removed; /* of these, in files that --rotate has removed */
	uint64_t events_lost;
	uint64_t events_unwritten; /* read, but not in the file */
	uint64_t kernel_pages, kernel_lost;
	uint64_t samples, samples_lost;
	uint64_t bytes;
	uint32_t files;
	uint32_t processes; /* alive now */
	uint32_t drums;     /* ever */
	uint32_t snapshots;
	uint64_t damaged; /* places in drums that are corrupt */
	bool kernel_on, samples_on, functions_on;
	/* patch: names like those asked for, when no function had such a name so far; "": some had */
	char functions_alike[256];
	bool functions_impossible; /* on this machine or in this program; the message has the reason */
	struct ky_functrace_facts functions;
	struct ky_capture_hot hot[KY_CAPTURE_HOT_MAX];
	uint32_t hot_count, hot_all; /* those above, and all that there were */
	bool started;                /* run: the program ran */
	bool exec_failed;            /* run: it could not be executed */
	int status;                  /* run: as waitpid() has it; -1: unknown */
	uint32_t given;              /* processes that were requested and are recorded */
	uint32_t hidden;             /* processes that this user may not inspect, now */
	uint32_t
		crowded; /* processes that were not looked into: their users have too many descriptors */
	uint64_t missed;       /* processes with a drum that ended before it was found */
	uint64_t unseen;       /* processes and threads that came and went between two looks */
	bool mailbox_overflow; /* drums of short-lived children may be missing */
	uint32_t unmatched;    /* categories, functions, events that were named and do not exist */
	uint64_t snapshots_passed_over; /* triggers that fired within the cooldown */
	bool kept;                      /* there is a file */
	char path[4096];                /* the last one */
};

/*
 * Run the capture to its end. Return 0, or -errno with one line. facts are valid also on failure. A
 * program that was started has ended when this returns, even if the capture failed.
 */
int ky_capture(const struct ky_capture_options *options, struct ky_capture_facts *facts,
	       char message[KY_MESSAGE_BYTES]);
/*
 * Describe which functions were left out, by reason: "3 shorter than a jump, 1 ..."; "" when none
 * was.
 */
void ky_capture_left_out(const struct ky_patch_facts *facts, char *text, size_t room);

/* ---- its file ---- */

/*
 * The file has no name until there is something to keep. When the program could not be started, or no trigger fired, an
 * existing file of that name stays as it was, and nothing else is left. See base/file.h.
 *
 * Anything but a regular file (a FIFO, a terminal), and an output that rotates, has its name from the beginning.
 */

struct ky_capture_output {
	int fd;              /* to write to; -1: open the path */
	char path[PATH_MAX]; /* as the user named it */
	struct ky_file_replacer file;
	bool kept;
	bool nameless; /* it could not get its name: what has that name is another file */
};

/* Open it. keep_old: an existing file gets the name PATH.old. Return 0 or -errno, with a message. */
int ky_capture_output_open(struct ky_capture_output *output, const char *path, bool keep_old,
			   char message[KY_MESSAGE_BYTES]);
/* Give the file its name, because there is something to keep. Only the first call has an effect. */
int ky_capture_output_keep(struct ky_capture_output *output, char message[KY_MESSAGE_BYTES]);
/* Close the file, and remove it if it was not kept. */
void ky_capture_output_close(struct ky_capture_output *output);

#endif
