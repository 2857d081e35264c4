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
 * The target may write anything into its memory at any time: all reading goes through ky_drum_view and
 * ky_stream, which trust nothing, and writes (slot, category words) go to offsets that were checked
 * once against the size of the mapping. A drum that is a file (KYMO_DRUM_DIR) can be cut short while
 * mapped: the pages after its end are replaced by zeros when they are touched (SIGBUS).
 *
 * A slot names the process that took it and when that began. If that process is gone, the next recorder
 * that attaches frees the slot, and switches off the categories that no other recorder wants.
 */
#ifndef KY_CAPTURE_DRUMS_H
#define KY_CAPTURE_DRUMS_H

#include "capture/bundle.h"

#include <sys/types.h>

struct ky_drums;

struct ky_drums_options {
	struct ky_bundle *bundle; /* NULL: only event() is wanted */
	const char *categories;   /* globs, NULL: all */
	bool flight;
	bool switch_on;       /* take a slot and switch the categories on; else only read */
	uint64_t ring_bytes;  /* minimum size of new rings; 0: as the program has it */
	uint64_t stall_ns;    /* how long a thread waits for a stream to be read; 0: not at all */
	uint64_t total_bytes; /* the same for all rings of a process */
	uint64_t before_ns;   /* flight: how long a window may need a process that ended */
	/*
	 * Called for each event of each drum, soon after it was recorded, in the order of time
	 * within the drum; NULL: not wanted.
	 */
	void (*event)(void *context, pid_t pid, const struct ky_event *event);
	const char *event_categories; /* globs of what event() gets; NULL: all that is recorded */
	void *context;
	/* Called for a process that writes into the drum of its parent; NULL: not wanted. */
	void (*child)(void *context, pid_t pid);
	void *child_context;
};

int ky_drums_open(struct ky_drums **drums, const struct ky_drums_options *options);
/* Give back the slots, read the rest, close. */
void ky_drums_close(struct ky_drums **drums);

/*
 * Add a drum by its descriptor, which is duplicated; pid is as this process sees it. A drum that was added before (same
 * file) is not added again. Return 0; 1 when it was there; -EAGAIN when it is still being made; or -errno with a
 * message. When only its categories could not be switched, return 0 and a message; else the message is empty.
 */
int ky_drums_add(struct ky_drums *drums, int fd, pid_t pid, char message[KY_MESSAGE_BYTES]);
/*
 * Add a drum that this kymo has made: several processes may write into it and name themselves,
 * which is not trusted in other drums.
 */
int ky_drums_add_made(struct ky_drums *drums, int fd, pid_t pid, char message[KY_MESSAGE_BYTES]);
/* Add all drums that a process owns, through /proc/PID/fd. Return the number added, or -errno; messages as above. */
int ky_drums_add_process(struct ky_drums *drums, pid_t pid, char message[KY_MESSAGE_BYTES]);
/*
 * Handle the end of a process: read its drums to the last event, and close them when no window can
 * need them. Those that kymo made stay open as long as any process writes into them, such as
 * children; they are read first, because they may hold events of that process.
 */
void ky_drums_ended(struct ky_drums *drums, pid_t pid);
/* Return a process that has a drum and is gone, but whose end was not reported; 0: none. To be called now and then. */
pid_t ky_drums_gone(const struct ky_drums *drums);

/*
 * Read what is new in all drums, or with all everything that was recorded before the call. Return
 * how soon the next round should be, in microseconds: the fuller the rings, the sooner.
 */
uint32_t ky_drums_round(struct ky_drums *drums, bool all);
/* flight: write all events from from_ns to to_ns (CLOCK_BOOTTIME) that no earlier window held. */
void ky_drums_window(struct ky_drums *drums, uint64_t from_ns, uint64_t to_ns);
/* Return the latest kymo_mark_start() of any drum, in CLOCK_BOOTTIME, that is after since_ns; 0: none. */
uint64_t ky_drums_mark(struct ky_drums *drums, uint64_t since_ns);

/*
 * ---- facts, for progress lines and `kymo list` ----
 *
 * Drums that were closed stay in the list after the open ones, with their last facts; the oldest of
 * thousands are summed up as one of pid 0.
 */

struct ky_drums_facts {
	pid_t pid;
	char name[64];
	bool ended;
	uint32_t threads;    /* that have a ring now */
	uint32_t categories; /* and how many of them are on */
	uint32_t categories_on;
	uint64_t events;    /* recorded in the rings so far, as far as known */
	uint64_t lost;      /* by this reader, and those that never got into a ring */
	uint64_t damaged;   /* corrupt places */
	uint32_t pressure;  /* percent of the fullest ring that waits to be read */
	uint32_t recorders; /* slots in use */
};
uint32_t ky_drums_count(const struct ky_drums *drums);
bool ky_drums_facts(const struct ky_drums *drums, uint32_t index, struct ky_drums_facts *facts);
/* Copy the name of a category of a drum; return false when there are no more. */
bool ky_drums_category(const struct ky_drums *drums, uint32_t index, uint32_t category, char *name,
		       size_t room, bool *on);

/*
 * ---- the processes' own lists of categories (KYMO_CATEGORIES) ----
 *
 * What is switched there stays so when this process ends, until the program does or it is switched back. A program's forked children
 * begin with the list that it was started with.
 */

/* Switch categories (globs; NULL: all) of all open drums on or off. Return 0, or the first -errno with a message. */
int ky_drums_edit_own(struct ky_drums *drums, const char *categories, bool on,
		      char message[KY_MESSAGE_BYTES]);
/* Switch off what recorders that are gone left on. */
void ky_drums_tidy(struct ky_drums *drums);

#endif
