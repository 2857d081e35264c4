/* SPDX-License-Identifier: MIT */
/*
 * probe.h: symbol: and line: triggers: the kernel reports when a thread gets there, with the
 * function's first two arguments.
 *
 *   uprobe       perf_event_open on the file's instruction, in every process that maps it; root
 *   breakpoint   a debug register of each thread (four in all), inherited by new threads; an
 * ordinary
 *                user's own processes
 *
 * A hit is a record in a ring of the event's CPU: time, pid, tid, registers. It does not wake kymo,
 * which would cost the program ten times as much: the rings are read every few milliseconds.
 * Nothing stays behind when kymo ends, because the events end with their descriptors.
 */
#ifndef KY_CAPTURE_PROBE_H
#define KY_CAPTURE_PROBE_H

#include "capture/trigger.h"

struct ky_probes;

enum ky_probe_engine { KY_PROBE_AUTO, KY_PROBE_UPROBE, KY_PROBE_BREAKPOINT };

struct ky_probes_options {
	const struct ky_trigger *triggers; /* stay the caller's; those of other kinds are ignored */
	uint32_t count;
	enum ky_probe_engine engine;
	bool patched; /* functions may begin with a jump: see probe_places.c */
	ky_fired_fn fired;
	void *context;
};
int ky_probes_open(struct ky_probes **probes, const struct ky_probes_options *options);
void ky_probes_close(struct ky_probes **probes);
/*
 * Set the probes in a process: search its program and libraries for the symbols. Return how many of the triggers have a
 * place now; -ENOENT with a message that names similar symbols when none has; another -errno with the remedy. To be
 * called again when libraries were loaded or another program was executed: what is set stays. On success the message is
 * empty or a line to note: that a name means several places, or that not all could be set.
 */
int ky_probes_add(struct ky_probes *probes, pid_t pid, char message[KY_MESSAGE_BYTES]);
/*
 * Prepare for a program that this process is about to start: set uprobes in its file and in the libraries that its
 * loader names, and report hits of this process's children. Breakpoints wait for ky_probes_add(). Return how many of
 * the triggers have a place now, which may be 0 because more libraries may be loaded; or -errno with a message.
 */
int ky_probes_add_file(struct ky_probes *probes, const char *path, char message[KY_MESSAGE_BYTES]);
/*
 * Find the next trigger, from *at on, that never had a place in any process. Return true with a
 * message like that of ky_probes_add(), and *at after it.
 */
bool ky_probes_missing(const struct ky_probes *probes, uint32_t *at, pid_t pid,
		       char message[KY_MESSAGE_BYTES]);
int ky_probes_fd(const struct ky_probes *probes); /* to poll: a ring is half full */
void ky_probes_round(struct ky_probes *probes);
/* Report the last hits of a process that ended, and free what it had. Its children keep theirs. */
void ky_probes_ended(struct ky_probes *probes, pid_t pid);
/* Return a line to note why breakpoints are used although the caller allowed uprobes; "" otherwise. */
const char *ky_probes_why(const struct ky_probes *probes);
/* Return the number of hits that were lost, because too many came at once; they may be of any process. */
uint64_t ky_probes_lost(const struct ky_probes *probes);

#endif
