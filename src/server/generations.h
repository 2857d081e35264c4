/* SPDX-License-Identifier: MIT */
/*
 * generations.h: what a server shows: nothing while it is loaded, then a generation, and when it is live the next
 * ones. Who api holds the generation that was generations when it was asked; one that is not generations any more is closed
 * by the last who lets go of it.
 *
 *   generations ──▶ generation 3 (generations, 2 api are made)
 *             generation 2 (1 answer is made)      generation 1: closed
 */
#ifndef KY_SERVER_SERVE_SHOWN_H
#define KY_SERVER_SERVE_SHOWN_H

#include "server/api.h"

#include <pthread.h>

#define KY_GENERATIONS_STAGE_BYTES 64

struct ky_generation {
	struct ky_generation *next; /* of all that are not closed */
	uint32_t holders;           /* who api, and 1 while it is generations */
	struct ky_view *view;
	struct ky_api *api;
};

struct ky_generations {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct ky_generation *current; /* NULL: nothing yet */
	struct ky_generation *all;
	bool stopped;
	char stage[KY_GENERATIONS_STAGE_BYTES]; /* what is being done */
	uint64_t done, of;
};

/* 0 or -errno. */
int ky_generations_open(struct ky_generations *generations);
/* Nobody holds a generation any more. */
void ky_generations_close(struct ky_generations *generations);
/* Takes the view, also when it fails. 0 or -ENOMEM. */
int ky_generations_show(struct ky_generations *generations, struct ky_view *view);
void ky_generations_progress(struct ky_generations *generations, const char *stage, uint64_t done,
			     uint64_t of);

/* The generation that is generations, or NULL; to be let go of. */
struct ky_generation *ky_generations_hold(struct ky_generations *generations);
void ky_generations_release(struct ky_generations *generations, struct ky_generation *generation);

/* Returns when another generation than this one is generations, it was stopped, or the time is over. */
void ky_generations_wait(struct ky_generations *generations, uint32_t generation);
/* JSON of Status in viewer/src/protocol.ts. */
void ky_generations_status(struct ky_generations *generations, struct ky_json_out *json);

/* Ends what takes long in generations that are not generations any more. */
void ky_generations_interrupt_old(struct ky_generations *generations);
/* Ends what takes long in all, and all waiting, for good. */
void ky_generations_stop(struct ky_generations *generations);

#endif
