/* SPDX-License-Identifier: MIT */
/*
 * drums.h: the drums of other processes, read while they are written.
 *
 *   fd of a drum ─▶ mapped, read only ──────▶ ky_stream ── stream: every round ───────────▶ bundle
 *        │                                         └────── flight: ky_drums_window() ────▶ bundle
 *        │                                   ky_stream ── event(): decoded, for triggers
 *        └────────▶ mapped, writable: header and categories ─▶ a recorder's slot, categories on
 *
 * In stream mode every round moves what is new into the bundle. In flight mode nothing is written
 * until ky_drums_window(): the programs' own rings are the flight recorder, so it reaches back as
 * far as they do.
 *
 * The memory is the target's, who may write anything into it at any time: all reading goes through
 * ky_drum_view and ky_stream, which trust nothing; what is written (slot, category words) is at offsets
 * that were checked once, against the size of the mapping. A drum that is a file (KYMO_DRUM_DIR)
 * can be cut short while mapped: the pages behind its end are replaced by zeros when they are
 * touched (SIGBUS).
 *
 * A slot names the process that took it and when that began. One whose process is gone is freed by
 * whoever attaches next, and its categories are switched off where nobody else wants them.
 */
#ifndef KY_CAPTURE_DRUMS_H
#define KY_CAPTURE_DRUMS_H

#include "capture/bundle.h"

#include <sys/types.h>

struct ky_drums;

struct ky_drums_options {
	struct ky_bundle *bundle; /* may be NULL: only events */
	const char *categories;   /* globs, NULL: all */
	bool flight;
	bool switch_on; /* take a slot and switch the categories on; else only read what others wanted */
	uint64_t
		ring_bytes; /* of rings that are made from now on, at least; 0: as the program has it */
	uint64_t total_bytes; /* the same of all rings of a process */
	uint64_t before_ns;   /* flight: how long a process that ended is still of interest */
	/*
	 * Each event of each drum, soon after it was recorded, in the order of time within the
	 * drum; NULL: not wanted.
	 */
	void (*event)(void *context, pid_t pid, const struct ky_event *event);
	const char *event_categories; /* globs of what event() is for; NULL: all that is recorded */
	void *context;
	/* A process that writes into the drum of another, whose child it is; NULL: not wanted. */
	void (*child)(void *context, pid_t pid);
	void *child_context;
};

int ky_drums_open(struct ky_drums **drums, const struct ky_drums_options *options);
/* Reads what is left, gives back the slots, closes. */
void ky_drums_close(struct ky_drums **drums);

/*
 * A drum of its descriptor, which is duplicated; pid as this process sees it. A drum that is there
 * already (same file) is not added again. 0, also when only its categories could not be switched,
 * which the message tells then; 1 when it was there; -EAGAIN when it is still being made; or -errno
 * with a message. The message is empty when there is none.
 */
int ky_drums_add(struct ky_drums *drums, int fd, pid_t pid, char message[KY_CAPTURE_MESSAGE_BYTES]);
/*
 * The same of a drum that this kymo has made: several processes may write into it, and say which they are. Of others that is not
 * believed.
 */
int ky_drums_add_made(struct ky_drums *drums, int fd, pid_t pid,
		      char message[KY_CAPTURE_MESSAGE_BYTES]);
/*
 * All drums of a process that are its own, through /proc/PID/fd. The number added, or -errno;
 * messages as above.
 */
int ky_drums_add_process(struct ky_drums *drums, pid_t pid, char message[KY_CAPTURE_MESSAGE_BYTES]);
/*
 * The process ended: its drums are read to the last event and, once they are no longer of interest,
 * closed. Those that kymo made go on as long as anybody writes into them: children may, for longer; what they hold is read first,
 * for it may be of that process.
 */
void ky_drums_ended(struct ky_drums *drums, pid_t pid);
/* A process that has a drum and is gone, of which nobody has told; 0: none. To be asked now and then. */
pid_t ky_drums_gone(const struct ky_drums *drums);

/*
 * A round: reads what is new in all drums, or with all everything that was recorded before the
 * call. Returns how soon the next should be, in microseconds: the fuller the rings, the sooner.
 */
uint32_t ky_drums_round(struct ky_drums *drums, bool all);
/* flight: writes all events from from_ns to to_ns (CLOCK_BOOTTIME) that no earlier window held. */
void ky_drums_window(struct ky_drums *drums, uint64_t from_ns, uint64_t to_ns);
/* The latest kymo_mark_start() of any drum in CLOCK_BOOTTIME, that is after since_ns; 0: none. */
uint64_t ky_drums_mark(struct ky_drums *drums, uint64_t since_ns);

/*
 * ---- what is there, for progress lines and `kymo list` ----
 *
 * Drums that were closed stay, with what was known of them last, behind those that are open; the
 * oldest of thousands are one of pid 0.
 */

struct ky_drums_facts {
	pid_t pid;
	char name[64];
	bool ended;
	uint32_t threads;    /* that have a ring now */
	uint32_t categories; /* and how many of them are on */
	uint32_t categories_on;
	uint64_t events;    /* ever recorded in the rings, as far as they tell */
	uint64_t lost;      /* of this reader, and what never got into a ring */
	uint64_t damaged;   /* places that are not as a recorder leaves them: somebody scribbled */
	uint32_t pressure;  /* percent of the fullest ring that waits to be read */
	uint32_t recorders; /* slots in use */
};
uint32_t ky_drums_count(const struct ky_drums *drums);
bool ky_drums_facts(const struct ky_drums *drums, uint32_t index, struct ky_drums_facts *facts);
/* Category number i of a drum, copied; false when there are no more. */
bool ky_drums_category(const struct ky_drums *drums, uint32_t index, uint32_t category, char *name,
		       size_t room, bool *on);

#endif
