/* SPDX-License-Identifier: MIT */
/*
 * target.h: a process that traces on command, for the tests that look at it from outside.
 */
#ifndef KY_TESTS_TARGET_H
#define KY_TESTS_TARGET_H

#include "core/layout.h"

#include <stdbool.h>
#include <sys/types.h>

struct target {
	pid_t pid;
	int to, from;
	int drum; /* a descriptor of its drum */
	const struct ky_drum_header *header;
	const struct ky_drum_category *categories;
};

enum target_command {
	TARGET_NET,      /* count events "net", numbered on from the last */
	TARGET_DB,       /* the same of "db" */
	TARGET_LATE,     /* a category "net.late" that was not there before */
	TARGET_THREADS,  /* so many threads at once, 1000 events "net" each */
	TARGET_MARK,     /* kymo_mark_start() */
	TARGET_LOSE,     /* counts so many losses for each cause */
	TARGET_SCRIBBLE, /* writes anything into its drum from now on; does not answer */
	TARGET_KILL,     /* kills itself with SIGKILL after as many events "net"; does not answer */
};

/* Starts one. categories as KYMO_CATEGORIES, NULL: all off; dir as KYMO_DRUM_DIR, NULL: a memfd. */
void target_start(struct target *target, const char *categories, const char *dir);
/* Does it, and waits for the answer where there is one. */
void target_do(struct target *target, enum target_command command, uint32_t count);
/* Waits for its end; the status of waitpid(). */
int target_wait(struct target *target);
/* Kills it, if it still is there, and closes what belongs to it. */
void target_end(struct target *target);

/*
 * Somebody else on the machine may record all processes, and so the target: what is asked for is what
 * the recorders of this test did.
 */
/* How many recorders' slots that process holds. */
uint32_t target_slots(const struct target *target, pid_t recorder);
/* Whether it wants the category, and that is on. Fails when there is no such category. */
bool target_is_wanted(const struct target *target, const char *category, pid_t recorder);
/* Whether this process has no slot, and no category a bit of a slot that nobody has. */
bool target_is_restored(const struct target *target);

#endif
