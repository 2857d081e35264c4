/* SPDX-License-Identifier: MIT */
/*
 * generations.h: the generations of a live trace that a server shows: none while the first one is loaded, then the latest. A
 * request holds the generation that was current when it came; the last holder of an old one closes it.
 *
 *   current ──▶ generation 3 (2 requests hold it)
 *               generation 2 (1 request holds it)      generation 1: closed
 */
#ifndef KY_SERVER_GENERATIONS_H
#define KY_SERVER_GENERATIONS_H

#include "server/api.h"

#include <pthread.h>

#define KY_GENERATIONS_STAGE_BYTES 64

struct ky_generation {
	struct ky_generation *next; /* of all that are not closed */
	uint32_t holders;           /* requests, and 1 while it is current */
	struct ky_view *view;
	struct ky_api *api;
};

struct ky_generations {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct ky_generation *current; /* NULL: none yet */
	struct ky_generation *all;
	bool stopped;
	char stage[KY_GENERATIONS_STAGE_BYTES]; /* of loading */
	uint64_t done, of;
};

/* Return 0 or -errno. */
int ky_generations_open(struct ky_generations *generations);
/* Close; no request may hold a generation. */
void ky_generations_close(struct ky_generations *generations);
/* Make a view the current generation. Takes the view, even on failure. Return 0 or -ENOMEM. */
int ky_generations_show(struct ky_generations *generations, struct ky_view *view);
/* Note the progress of loading. */
void ky_generations_progress(struct ky_generations *generations, const char *stage, uint64_t done,
			     uint64_t of);

/* Hold the current generation and return it, or NULL; release it afterwards. */
struct ky_generation *ky_generations_hold(struct ky_generations *generations);
void ky_generations_release(struct ky_generations *generations, struct ky_generation *generation);

/* Wait until the current generation is another one, all is stopped, or the time is over. */
void ky_generations_wait(struct ky_generations *generations, uint32_t generation);
/* Write Status of viewer/src/protocol.ts. */
void ky_generations_status(struct ky_generations *generations, struct ky_json_out *json);

/* Interrupt SQL and searches in old generations. */
void ky_generations_interrupt_old(struct ky_generations *generations);
/* Interrupt SQL and searches in all generations, and end all waiting for good. */
void ky_generations_stop(struct ky_generations *generations);

#endif
