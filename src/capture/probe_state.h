/* SPDX-License-Identifier: MIT */
/*
 * probe_state.h: the state of probes, for probe*.c.
 *
 *   trigger ─ probe_places.c ─▶ places in files
 *   places ─ probe_places.c ──▶ uprobe: an event for each place and CPU
 *                               breakpoint: an event for each place, thread and CPU
 *   events ─▶ a ring for each CPU ─ probe_rings.c ─▶ forks and exits, hits in the order of time ─▶
 * fired()
 *
 * Uprobes are set for the whole machine, not for each thread: an event of a thread would set and
 * remove a uprobe at each fork and exit, which takes the kernel milliseconds. So hits of other
 * processes come too and are ignored. The processes that count are those added and what they
 * forked, which the rings report, since forks are recorded in them.
 *
 * Breakpoints belong to threads and are inherited; the same records show which processes have them
 * already. A thread found in the task list may have inherited its breakpoints in the meantime and
 * then has them twice. Both report a hit in the same trap, right after each other: the second is
 * ignored.
 *
 * The events of a process are needed as long as a process lives that inherited them: they are
 * closed when the last process of the same image, which is what forks have in common, has ended or
 * runs another program.
 */
#ifndef KY_CAPTURE_PROBE_STATE_H
#define KY_CAPTURE_PROBE_STATE_H

#include "base/map.h"
#include "base/nearest.h"
#include "capture/probe.h"
#include "capture/symbol_list.h"
#include "process/perf_events.h"
#include "process/program_file.h"

#define KY_PROBE_PLACES_MAX 32u    /* of one trigger in one file */
#define KY_PROBE_RECENT 4096u      /* a power of two */
#define KY_PROBE_ADDRESSES_MAX 16u /* more than any CPU has debug registers */

struct ky_probe_place {
	uint32_t trigger;
	uint64_t offset;
};

/* A file that was searched for all triggers. */
struct ky_probe_file {
	uint64_t device, inode;
	struct ky_probe_place *places;
	uint32_t count, room;
	bool set; /* uprobes are */
};

struct ky_probe_process {
	uint64_t image; /* changes with each exec, not with a fork; 0: unknown */
	bool ending;    /* one of its threads ended: perhaps all did */
	uint64_t addresses[KY_PROBE_ADDRESSES_MAX];
	uint32_t count;
};

struct ky_probe_event {
	int fd; /* -1: closed, to be reused */
	uint32_t trigger;
	uint64_t id;
	uint64_t address; /* breakpoints; closed: 1 + the next closed one */
	uint64_t image;   /* breakpoints: of the process that they were set in */
};

/* A fork of a process (not of a thread), or an end. */
struct ky_probe_task {
	uint64_t time_ns;
	int32_t pid, parent;
	bool is_end;
	bool waited; /* for the fork of the parent */
};

struct ky_probe_hit {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t event;   /* index */
	int32_t pid, tid;
	uint32_t cpu;
	uint32_t args_count;
	uint64_t args[2];
	bool waited; /* for the fork of its process */
};

/* The last hit of a thread at an address, until another takes its place. */
struct ky_probe_recent {
	uint64_t address;
	uint64_t event;
	uint64_t time_ns;
	int32_t tid;
	uint32_t cpu;
};

/* What is known of a line: trigger, for the message that it was not found. */
struct ky_probe_line {
	uint32_t before, after;
	bool has_lines, has_file;
};

struct ky_probes {
	struct ky_probes_options options;
	struct ky_probe_line *lines; /* by trigger */
	struct ky_nearest *alike;    /* the same */
	bool *placed;                /* the same: whether it ever had a place */
	enum ky_probe_engine engine; /* never AUTO */
	char why[256];               /* a line to note why not the other */
	int uprobe_type;
	struct ky_probe_file *files;
	uint32_t files_count, files_room;
	struct ky_pair_map mapped; /* device and inode as maps has them → 1 + index of the file */
	struct ky_pair_map processes; /* pid → struct ky_probe_process * */
	struct ky_perf_events rings;
	struct ky_probe_event *events;
	uint64_t events_count, events_room;
	uint64_t events_closed;      /* 1 + the first closed one */
	struct ky_pair_map event_of; /* id → 1 + index */
	struct ky_probe_task *tasks;
	uint64_t tasks_count, tasks_room;
	uint64_t ends; /* since the last sweep */
	struct ky_probe_hit *hits;
	uint64_t hits_count, hits_room;
	struct ky_probe_recent recent[KY_PROBE_RECENT];
	uint64_t lost;
};

/*
 * probe_places.c: search a file, if it is new, and return its index, or -errno. fstat() identifies
 * it, not maps, because some file systems have two numbers for a device.
 */
int ky_probe_places_find(struct ky_probes *probes, int fd);

/* probe_rings.c */
int ky_probe_rings_open(struct ky_probes *probes);
void ky_probe_rings_close(struct ky_probes *probes);
/* Open an event into the CPU's ring and remember it; attr is completed. Return 0 or -errno. */
struct perf_event_attr;
int ky_probe_rings_event(struct ky_probes *probes, struct perf_event_attr *attr, pid_t tid,
			 const struct ky_perf_cpu *cpu, const struct ky_probe_event *event);
/* Read all records; hits wait in hits. */
void ky_probe_rings_read(struct ky_probes *probes);
/* Report the hits that wait. Return true when some wait for records of forks. */
bool ky_probe_rings_fire(struct ky_probes *probes);
/* Return the process, added if it is new; NULL without memory. */
struct ky_probe_process *ky_probe_rings_process(struct ky_probes *probes, pid_t pid);
void ky_probe_rings_remove(struct ky_probes *probes, pid_t pid);
/* Remove processes that ended without a report. */
void ky_probe_rings_sweep(struct ky_probes *probes);
/* Close the events of an image that no process has any more. */
void ky_probe_rings_image_left(struct ky_probes *probes, uint64_t image);

/* probe_places.c: set what is not set yet. Return 0, or -errno with a message. */
int ky_probe_uprobe_type(void); /* or -errno: unavailable here or for this user */
int ky_probe_uprobe_set(struct ky_probes *probes, struct ky_probe_file *file, int fd,
			char message[KY_MESSAGE_BYTES]);
/* event has the trigger, address and image. -ENOSPC: no debug register is left. */
int ky_probe_breakpoint_set(struct ky_probes *probes, pid_t pid, const struct ky_probe_event *event,
			    char message[KY_MESSAGE_BYTES]);

#endif
