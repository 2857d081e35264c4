/* SPDX-License-Identifier: MIT */
/*
 * fake_bundle.h: in the place of the bundle, for the tests of the drums: keeps nothing, but looks
 * at each event that would be written. Targets number their events (target.h): so it can tell that
 * each came once and in order.
 */
#ifndef KY_TESTS_FAKE_BUNDLE_H
#define KY_TESTS_FAKE_BUNDLE_H

#include "capture/bundle.h"

#define FAKE_SOURCES_MAX 64

struct fake_source {
	int32_t pid;
	char process[64];
	uint64_t events;
	uint64_t net, db;     /* of the categories, without snapshots and marks */
	uint64_t first, last; /* numbers of "net" */
	uint64_t
		out_of_order; /* numbers of "net" of a thread that did not follow on the one before */
	uint64_t lost;        /* as the pieces tell */
	uint64_t lost_in_all;
	char losses[512]; /* "CAUSE: COUNT\n" */
	uint32_t threads, clocks;
	struct ky_thread thread; /* the last; without its name */
	bool ended;
	uint64_t next[4096]; /* by thread: the number that comes next */
};

struct ky_bundle {
	uint32_t count;
	struct fake_source sources[FAKE_SOURCES_MAX];
};

#endif
