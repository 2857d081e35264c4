/* SPDX-License-Identifier: MIT */
/*
 * attached_drum.h: one drum of another process that is being read: its memory, the recorder's slot in
 * it, and the streams.
 *
 *   pieces    a ky_stream with block(): what goes into the bundle. In flight mode it is not read:
 *             it gives the window its trace points, clock and categories
 *   events    a ky_stream with event(): what triggers look at
 */
#ifndef KY_CAPTURE_ATTACHED_DRUM_H
#define KY_CAPTURE_ATTACHED_DRUM_H

#include "capture/drum_clock.h"
#include "capture/drum_map.h"
#include "capture/drum_threads.h"
#include "capture/drum_window.h"
#include "capture/drums.h"
#include "capture/recorder_slot.h"

struct ky_attached_drum {
	const struct ky_drums_options *options; /* the drums' */
	pid_t pid;
	uint64_t made_ns; /* as the drum says; with the file, which drum it is */
	uint64_t image;   /* of the program that made it: another after an exec */
	uint32_t layer;   /* enum ky_drum_layer */
	bool made;        /* by this kymo: children of the process may write into it, too */
	char name[64];    /* "process 41: drum", for messages */
	char process[64]; /* the last name of the process that was seen */
	struct ky_drum_map map;
	struct ky_recorder_life own;
	uint32_t slot; /* KY_DRUM_NO_SLOT: none */
	const struct ky_clock_map *ours;

	struct ky_stream pieces;
	struct ky_drum_threads piece_threads;
	uint32_t part;                        /* in the bundle; 0: nothing was written yet */
	struct ky_tick_reading clock_written; /* the last; ticks are 0 before the first */
	uint64_t clock_rate;                  /* of the last two, as struct ky_clock_map has it */
	uint32_t name_written;                /* the record of the process's name */
	uint32_t names_written;               /* beside the first */
	struct ky_drum_window window;
	uint64_t window_ns; /* how far windows have reached */

	struct ky_stream events;
	bool has_events;
	struct ky_drum_threads event_threads;

	uint64_t lost_before; /* what never got into a ring before we came */
	uint64_t damaged;     /* beside what the streams count */
	bool given_up;        /* it lies too much to be read on */
	bool backed;          /* when it was last looked at */
	bool left;            /* by its process; others write into it: its children, or kymo */
	bool ended;
	uint64_t ended_ns;
};

/*
 * since_ns: a drum that was made later is read from its first event on, any other from now on. 0,
 * also when only the categories could not be switched: message has a line then, else it is empty.
 * -errno with a message.
 */
int ky_attached_drum_open(struct ky_attached_drum **drum, int fd, pid_t pid, bool made,
			  const struct ky_drums_options *options,
			  const struct ky_drum_clocks *clocks, const struct ky_recorder_life *own,
			  uint64_t since_ns, char message[KY_CAPTURE_MESSAGE_BYTES]);
/* Gives back the slot and ends the drum in the bundle. */
void ky_attached_drum_close(struct ky_attached_drum **drum);

/* Gives the slot back: the process records no more for us. */
void ky_attached_drum_leave(struct ky_attached_drum *drum);
/* Takes over new samples of the clocks. */
void ky_attached_drum_follow_clock(struct ky_attached_drum *drum);
/* Reads what is new; all: without staying behind, and without a limit to the work. */
void ky_attached_drum_read(struct ky_attached_drum *drum, bool all);
void ky_attached_drum_window(struct ky_attached_drum *drum, uint64_t from_ns, uint64_t to_ns);
/* Percent of the fullest ring that waits to be read. */
uint32_t ky_attached_drum_pressure(const struct ky_attached_drum *drum);
/* CLOCK_BOOTTIME of the last kymo_mark_start(), 0: none. */
uint64_t ky_attached_drum_mark(struct ky_attached_drum *drum);
/*
 * Events that are missing: overwritten before they were read, and what never got into a ring since
 * we came.
 */
uint64_t ky_attached_drum_lost(const struct ky_attached_drum *drum);
uint64_t ky_attached_drum_damaged(const struct ky_attached_drum *drum);

/* Whether there is memory behind all blocks that the rings claim to have written. */
bool ky_attached_drum_is_backed(const struct ky_attached_drum *drum);

/* drums_facts.c */
void ky_attached_drum_facts(const struct ky_attached_drum *drum, struct ky_drums_facts *facts);
bool ky_attached_drum_category(const struct ky_attached_drum *drum, uint32_t category, char *name,
			       size_t room, bool *on);
/* Copies a text for people: what would move a terminal's cursor becomes '?'. */
void ky_attached_drum_text(char *to, size_t room, struct ky_text text);

#endif
