/* SPDX-License-Identifier: MIT */
/*
 * serve_shown.h: what a server shows: nothing while it is loaded, then a generation, and when it is live the next
 * ones. Who answers holds the generation that was shown when it was asked; one that is not shown any more is closed
 * by the last who lets go of it.
 *
 *   shown ──▶ generation 3 (shown, 2 answers are made)
 *             generation 2 (1 answer is made)      generation 1: closed
 */
#ifndef KY_SERVER_SERVE_SHOWN_H
#define KY_SERVER_SERVE_SHOWN_H

#include "server/answer.h"

#include <pthread.h>

#define KY_SHOWN_STAGE_BYTES 64

struct ky_generation {
	struct ky_generation *next; /* of all that are not closed */
	uint32_t holders;           /* who answers, and 1 while it is shown */
	struct ky_view *view;
	struct ky_answers *answers;
};

struct ky_shown {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct ky_generation *current; /* NULL: nothing yet */
	struct ky_generation *all;
	bool stopped;
	char stage[KY_SHOWN_STAGE_BYTES]; /* what is being done */
	uint64_t done, of;
};

/* 0 or -errno. */
int ky_shown_open(struct ky_shown *shown);
/* Nobody holds a generation any more. */
void ky_shown_close(struct ky_shown *shown);
/* Takes the view, also when it fails. 0 or -ENOMEM. */
int ky_shown_set(struct ky_shown *shown, struct ky_view *view);
void ky_shown_progress(struct ky_shown *shown, const char *stage, uint64_t done, uint64_t of);

/* The generation that is shown, or NULL; to be let go of. */
struct ky_generation *ky_shown_hold(struct ky_shown *shown);
void ky_shown_let_go(struct ky_shown *shown, struct ky_generation *generation);

/* Returns when another generation than this one is shown, it was stopped, or the time is over. */
void ky_shown_wait(struct ky_shown *shown, uint32_t generation);
/* JSON of Status in viewer/src/protocol.ts. */
void ky_shown_status(struct ky_shown *shown, struct ky_buffer *out);

/* Ends what takes long in generations that are not shown any more. */
void ky_shown_interrupt_old(struct ky_shown *shown);
/* Ends what takes long in all, and all waiting, for good. */
void ky_shown_stop(struct ky_shown *shown);

#endif
