/* SPDX-License-Identifier: MIT */
/*
 * lives.h: for the tests of captures: what ky_processes tells, life by life, with the events of each drum; and the
 * programs that are watched, which are children of the test.
 */
#ifndef KY_TESTS_LIVES_H
#define KY_TESTS_LIVES_H

#include "capture/processes.h"

struct ky_drum_file;

#define LIVES_MAX 4096u
#define LIFE_DRUMS_MAX 4u

struct life {
	pid_t pid;
	bool ended;
	int status;
	uint32_t drums;
	uint64_t events; /* of all its drums, read when it ended */
	struct ky_drum_file *files[LIFE_DRUMS_MAX];
};

struct lives {
	struct ky_process_list *processes;
	struct life life[LIVES_MAX];
	uint32_t count;
	uint32_t mistakes; /* told in a wrong order, or twice */
};

void lives_begin(struct lives *lives, enum ky_processes_scope scope);
void lives_end(struct lives *lives);
/* Rounds until it holds; a test that waits for ever is ended by its timeout. */
#define LIVES_UNTIL(lives, condition)                                                              \
	do {                                                                                       \
		while (lives_round(lives), !(condition))                                           \
			lives_wait(lives);                                                         \
	} while (0)
void lives_round(struct lives *lives);
void lives_wait(struct lives *lives);
/* The newest life of that pid; NULL: none. */
struct life *lives_of(struct lives *lives, pid_t pid);
bool lives_ended(struct lives *lives, pid_t pid);
uint32_t lives_drums(struct lives *lives, pid_t pid);
uint32_t lives_all_ended(const struct lives *lives);

/* ---- programs ---- */

/* A child that traces from the start, with a small drum; mailbox may be NULL. Ends when the test does. */
pid_t start(void (*body)(void *context), void *context, const char *mailbox);
void trace_events(uint32_t count);
/* A place where both sides wait for each other. */
struct meeting {
	int to_child[2];
	int to_parent[2];
};
void meeting_open(struct meeting *meeting);
void meeting_close(struct meeting *meeting);
void arrive(const struct meeting *meeting);   /* the child: tells */
void await_go(const struct meeting *meeting); /* the child: waits */
void await_child(const struct meeting *meeting);
void let_go(const struct meeting *meeting);
/* Open descriptors of this process. */
uint32_t descriptors(void);

#endif
