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

/* ---- symbols of a program, for symbol:? and for messages ---- */

struct ky_symbol_list;
struct ky_symbol_entry {
	const char *name;   /* demangled */
	const char *linked; /* as the file has it */
	const char *module; /* the file */
	uint64_t offset;    /* in the file */
	uint64_t bytes;
};
/*
 * All functions of the process's files, of a file, or of a program and the libraries that it will load; sorted by name.
 * 0 or -errno with a message.
 */
int ky_symbol_list_open_pid(struct ky_symbol_list **list, pid_t pid,
			    char message[KY_CAPTURE_MESSAGE_BYTES]);
int ky_symbol_list_open_file(struct ky_symbol_list **list, const char *path,
			     char message[KY_CAPTURE_MESSAGE_BYTES]);
int ky_symbol_list_open_program(struct ky_symbol_list **list, const char *path,
				char message[KY_CAPTURE_MESSAGE_BYTES]);
uint32_t ky_symbol_list_count(const struct ky_symbol_list *list);
const struct ky_symbol_entry *ky_symbol_list_at(const struct ky_symbol_list *list, uint32_t index);
void ky_symbol_list_close(struct ky_symbol_list **list);

#endif
