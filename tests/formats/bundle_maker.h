/* SPDX-License-Identifier: MIT */
/*
 * bundle_maker.h: small files of several sources for tests, through the writer that captures use. A drum here has a few
 * trace points; its counter is the nanosecond of CLOCK_BOOTTIME, so that times in tests are what is read.
 */
#ifndef KY_TESTS_BUNDLE_MAKER_H
#define KY_TESTS_BUNDLE_MAKER_H

#include "capture/bundle.h"

/* How far MONOTONIC is behind BOOTTIME, and REALTIME ahead. */
#define MADE_MONOTONIC_BEHIND UINT64_C(5000000)
#define MADE_REALTIME_AHEAD UINT64_C(1700000000000000000)
#define MADE_START_NS UINT64_C(1000000000)

enum made_site {
	MADE_SCOPE,
	MADE_TICK,
	MADE_SNAPSHOT,
	MADE_ASYNC_BEGIN, /* all of one id */
	MADE_ASYNC_END,
	MADE_SITES
};

struct made_drum {
	uint32_t source;
	struct ky_thread thread;
	struct ky_drum_view view;
	struct ky_sites sites;
	struct ky_site site[MADE_SITES];
	uint64_t blocks;
	uint64_t words[KY_BLOCK_WORDS];
	uint32_t count;
	uint32_t events;
};

struct made_bundle {
	struct ky_bundle *bundle;
	int fd;
	uint8_t *data; /* after made_close() */
	size_t bytes;
};

void made_open(struct made_bundle *made);
/* The file is in made->data then. */
void made_close(struct made_bundle *made);
void made_free(struct made_bundle *made);

/* A drum of a process with one thread, whose spans have that name. */
void made_drum(struct made_bundle *made, struct made_drum *drum, int32_t pid, int32_t tid,
	       const char *name);
/* The same, of a drum that kymo made beside the process's own: enum ky_drum_layer. */
void made_drum_beside(struct made_bundle *made, struct made_drum *drum, int32_t pid, int32_t tid,
		      const char *name, uint32_t layer);
/* An event at that time; a scope's end with end. */
void made_event(struct made_drum *drum, enum made_site site, bool end, uint64_t ns);
/* What was recorded since the last time, into the file. */
void made_flush(struct made_bundle *made, struct made_drum *drum, uint64_t lost);
void made_drum_end(struct made_bundle *made, struct made_drum *drum, uint64_t lost);
void made_drum_free(struct made_drum *drum);

#endif
