/* SPDX-License-Identifier: MIT */
/*
 * attached_drum.h: one drum of another process that is being read: its memory, the recorder's slot
 * in it, and the streams.
 *
 *   pieces    a ky_stream with block(): what goes into the bundle. In flight mode it is not read:
 * it
 *             gives the window its trace points, clock and categories
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
#include "core/losses.h"

/* Who wrote the last piece that was read of a ring. */
struct ky_ring_seen {
	uint64_t ticks; /* when its block began */
	uint32_t tid;
	int32_t here; /* as we see it; 0: none, or it has ended */
};

struct ky_attached_drum {
	const struct ky_drums_options *options; /* the drums' */
	pid_t pid;
	uint64_t made_ns; /* from the drum; with the file it identifies the drum */
	uint64_t image;   /* the program image that made it; exec changes it */
	uint32_t layer;   /* enum ky_drum_layer */
	bool made;        /* by this kymo: children of the process may write into it too */
	char name[64];    /* "process 41: buffer", for messages */
	char process[64]; /* the last name of the process that was seen */
	struct ky_drum_map map;
	struct ky_recorder_slot_owner own;
	uint32_t slot; /* KY_DRUM_NO_SLOT: none */
	int reader;    /* by ky_recorder_slot_stall(); -1: none */
	const struct ky_clock_map *ours;

	struct ky_stream pieces;
	struct ky_drum_threads piece_threads;
	struct ky_ring_seen *rings;
	uint32_t rings_count, rings_room;
	uint32_t ends_written;                /* of threads */
	uint32_t part;                        /* in the bundle; 0: nothing was written yet */
	struct ky_tick_reading clock_written; /* the last one; ticks are 0 before the first */
	uint64_t clock_rate;                  /* of the last two, as struct ky_clock_map has it */
	uint32_t name_written;                /* the record of the process's name */
	uint32_t names_written;               /* after the first */
	struct ky_drum_window window;
	uint64_t window_ns; /* how far windows have reached */

	struct ky_stream events;
	bool has_events;
	struct ky_drum_threads event_threads;

	struct ky_lost_counts lost_before; /* what it had counted before it was attached */
	uint64_t damaged;                  /* in addition to what the streams count */
	bool given_up;                     /* its contents are too inconsistent to read on */
	bool backed;                       /* there was memory behind its rings at the last look */
	bool left; /* its process ended, but its children or kymo write into it */
	bool ended;
	uint64_t ended_ns;
};

/*
 * Attach a drum. One that was made after since_ns is read from its first event on, any other from
 * now on. Return 0, or -errno with a message. When only its categories could not be switched,
 * return 0 and a message; else the message is empty.
 */
int ky_attached_drum_open(struct ky_attached_drum **drum, int fd, pid_t pid, bool made,
			  const struct ky_drums_options *options,
			  const struct ky_drum_clocks *clocks,
			  const struct ky_recorder_slot_owner *own, uint64_t since_ns,
			  char message[KY_MESSAGE_BYTES]);
/* Give back the slot and end the drum in the bundle. */
void ky_attached_drum_close(struct ky_attached_drum **drum);

/* Give the slot back, so that the process no longer records for this kymo. */
void ky_attached_drum_leave(struct ky_attached_drum *drum);
/* Take over new clock readings. */
void ky_attached_drum_follow_clock(struct ky_attached_drum *drum);
/* Read what is new. all: without delay, and without a limit to the work. */
void ky_attached_drum_read(struct ky_attached_drum *drum, bool all);
/* Write the events of a window; afterwards note the spans that were open when it began, and write them and the rest. */
void ky_attached_drum_window(struct ky_attached_drum *drum, uint64_t from_ns, uint64_t to_ns);
void ky_attached_drum_note_open(struct ky_attached_drum *drum, uint64_t from_ns,
				struct ky_open_order *order);
void ky_attached_drum_window_end(struct ky_attached_drum *drum, uint64_t from_ns, uint64_t to_ns,
				 const struct ky_open_order *order);
/* Return how much of the fullest ring waits to be read, in percent. */
uint32_t ky_attached_drum_pressure(const struct ky_attached_drum *drum);
/* Return the CLOCK_BOOTTIME of the last kymo_mark_start(); 0: none. */
uint64_t ky_attached_drum_mark(struct ky_attached_drum *drum);

/* Switch categories on or off in the process's own list. Return 0, or -errno with a message. */
int ky_attached_drum_edit_own(struct ky_attached_drum *drum, const char *categories, bool on,
			      char message[KY_MESSAGE_BYTES]);
/* Switch off what recorders that are gone left on, as far as this process may. */
void ky_attached_drum_tidy(struct ky_attached_drum *drum);

/* Return facts for progress lines and `kymo list`, read from the drum at each call. */
void ky_attached_drum_facts(const struct ky_attached_drum *drum, struct ky_drums_facts *facts);
bool ky_attached_drum_category(const struct ky_attached_drum *drum, uint32_t category, char *name,
			       size_t room, bool *on);

#endif
