/* SPDX-License-Identifier: MIT */
/* victim.h: the traced process: threads that record, and what happens to them. */
#ifndef KY_TESTS_VICTIM_H
#define KY_TESTS_VICTIM_H

#include "ledger.h"

#define WORKERS_MAX 16u

struct torment {
	uint32_t seed;
	uint32_t workers;
	uint32_t short_threads; /* in all; they come and go while the workers record */
	uint32_t ms;            /* how long the workers record */
	uint32_t pause;         /* one event in so many is followed by a pause; 0: none */
	bool signals;           /* handlers interrupt events, and record */
	bool nested;            /* and interrupt themselves */
	bool jumps;             /* handlers leave by siglongjmp() */
	bool forks;             /* children record, and read back what they recorded */
	bool handler_forks;     /* a handler that interrupted an event does */
	const char *plugin;     /* loaded and unloaded all the time; NULL: none */
	const char *session;    /* a session streams to this file; NULL: none */
	const char *categories; /* of the session and the subscriber */
	bool subscriber;
};

/* Be the traced process: the recorder is configured. Does not return. */
_Noreturn void victim_run(struct ledger *ledger, const struct torment *torment);

#endif
