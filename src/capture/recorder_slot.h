/* SPDX-License-Identifier: MIT */
/*
 * recorder_slot.h: switch the categories of another process on, and back exactly as they were.
 * recorder_slot.c has the rules that several recorders and the process itself follow.
 */
#ifndef KY_CAPTURE_RECORDER_SLOT_H
#define KY_CAPTURE_RECORDER_SLOT_H

#include "capture/drum_map.h"
#include "core/stream.h"

#define KY_DRUM_NO_SLOT 0u

/* The process that holds a slot. */
struct ky_recorder_slot_owner {
	uint32_t pid;
	uint64_t started_ns; /* since boot; 0: unknown */
	uint64_t namespaces; /* of pids and of time; 0: unknown */
};

/* Return this process as an owner. */
struct ky_recorder_slot_owner ky_recorder_slot_self(void);
/* Report whether it is certain that the owner is gone. own is this process. */
bool ky_recorder_slot_is_over(const struct ky_recorder_slot_owner *life,
			      const struct ky_recorder_slot_owner *own);

/*
 * Free the slots of recorders that are gone, take one, and switch on what the globs select (NULL: all), now and when
 * the process adds categories later. Return the slot's number, not 0, or -errno with a message.
 */
int ky_recorder_slot_on(const struct ky_drum_map *map, const struct ky_drum_view *view,
			const struct ky_recorder_slot_owner *own, const char *globs,
			const char *name, char message[KY_MESSAGE_BYTES]);
/* Switch them off where no other recorder wants them, and free the slot. */
void ky_recorder_slot_off(const struct ky_drum_map *map, const struct ky_drum_view *view,
			  uint32_t slot, const struct ky_recorder_slot_owner *own);
/*
 * Switch categories of the process's own list (KYMO_CATEGORIES) on or off: they stay so when this process ends. entries: globs,
 * NULL: all. Return 0, or -errno with a message.
 */
int ky_recorder_slot_edit_own(const struct ky_drum_map *map, const struct ky_drum_view *view,
			      const char *entries, bool on, const char *name,
			      char message[KY_MESSAGE_BYTES]);
/* Report whether a recorder is gone and its categories are still on. */
bool ky_recorder_slot_left(const struct ky_drum_header *header,
			   const struct ky_recorder_slot_owner *own);
/* Switch off what recorders that are gone wanted. */
void ky_recorder_slot_tidy(const struct ky_drum_map *map, const struct ky_drum_view *view,
			   const struct ky_recorder_slot_owner *own);
/* Return how many recorders hold a slot, without those that are gone and were not put away so far. */
uint32_t ky_recorder_slot_count(const struct ky_drum_header *header,
				const struct ky_recorder_slot_owner *own);
/* Set a minimum for each new ring and for all rings, as far as there is space. It stays. */
void ky_recorder_slot_grow(const struct ky_drum_map *map, const struct ky_drum_view *view,
			   uint64_t ring_bytes, uint64_t total_bytes);
/*
 * Let the program's threads wait, at most so long, rather than overwrite what the stream has not read; and its rings
 * grow before (core/stall.h). Return a number for ky_recorder_slot_unstall(), or -1.
 */
int ky_recorder_slot_stall(const struct ky_drum_map *map, const struct ky_drum_view *view,
			   uint64_t stall_ns, struct ky_stream *stream);
void ky_recorder_slot_unstall(const struct ky_drum_map *map, int reader);

#endif
