/* SPDX-License-Identifier: MIT */
/*
 * probe.h: symbol: and line: triggers: the kernel tells when a thread gets there, with the function's first two
 * arguments.
 *
 *   uprobe       perf_event_open on the file's instruction, in every process that maps it; root
 *   breakpoint   a debug register of each thread (four in all), inherited by threads to come; an ordinary user's own processes
 *
 * A hit is a record in a ring of the event's CPU: time, pid, tid, registers. It wakes nobody, which would cost the program
 * ten times as much: the rings are to be looked at every few milliseconds. Nothing stays behind when kymo ends, for the
 * events end with their descriptors.
 */
#ifndef KY_CAPTURE_PROBE_H
#define KY_CAPTURE_PROBE_H

#include "capture/trigger.h"

struct ky_probes;

enum ky_probe_engine { KY_PROBE_AUTO, KY_PROBE_UPROBE, KY_PROBE_BREAKPOINT };

struct ky_probes_options {
	const struct ky_trigger
		*triggers; /* stay the caller's; those of other kinds are passed over */
	uint32_t count;
	enum ky_probe_engine engine;
	bool patched; /* functions may begin with a jump: see probe_places.c */
	ky_fired_fn fired;
	void *context;
};
int ky_probes_open(struct ky_probes **probes, const struct ky_probes_options *options);
void ky_probes_close(struct ky_probes **probes);
/*
 * Sets the probes in a process: symbols are looked for in its program and libraries. Returns how many of the triggers have a
 * place now; -ENOENT with a message that names symbols alike when none has; other -errno with the remedy. Called again when
 * libraries were loaded, or another program was executed: what is set stays. message is not NULL and on success is empty, or
 * a line to note: that a name means several places, or that not all could be set.
 */
int ky_probes_add(struct ky_probes *probes, pid_t pid, char message[KY_CAPTURE_MESSAGE_BYTES]);
/*
 * A program that this process is about to start: uprobes are set in its file and in the libraries that its loader names, and
 * hits of this process's children are told. Breakpoints wait for ky_probes_add(). How many of the triggers have a place
 * now, which may be 0: more libraries may be loaded; or -errno with a message.
 */
int ky_probes_add_file(struct ky_probes *probes, const char *path,
		       char message[KY_CAPTURE_MESSAGE_BYTES]);
/*
 * The next trigger, from *at on, that never had a place in any process: true, with a message as of ky_probes_add(), and *at
 * behind it.
 */
bool ky_probes_missing(const struct ky_probes *probes, uint32_t *at, pid_t pid,
		       char message[KY_CAPTURE_MESSAGE_BYTES]);
int ky_probes_fd(const struct ky_probes *probes); /* to poll: a ring is half full */
void ky_probes_round(struct ky_probes *probes);
/* The process has ended: tells its last hits, and gives back what it had. Its children keep theirs. */
void ky_probes_ended(struct ky_probes *probes, pid_t pid);
/* "uprobe" or "breakpoint". */
const char *ky_probes_engine(const struct ky_probes *probes);
/* Why it is breakpoints where uprobes were not ruled out by the caller: a line to note; "" else. */
const char *ky_probes_why(const struct ky_probes *probes);
/* Hits so far of the processes added and their children, also those that found the ring full and were not told. */
uint64_t ky_probes_hits(const struct ky_probes *probes);

#endif
