/* SPDX-License-Identifier: MIT */
/* scheduler.h: which task runs where and when; see scheduler.c. */
#ifndef DEMO_SCHEDULER_H
#define DEMO_SCHEDULER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "db.h"
#include "task.h"

#define SCHEDULER_WORKERS_MAX 64

/* What was done in all. */
struct scheduler_totals {
	uint64_t tasks;
	uint64_t runs;
	struct vm_work work;
};

struct scheduler_worker {
	struct scheduler *scheduler;
	int number;
	pthread_t thread;
};

struct scheduler {
	struct db *db;
	pthread_t timer;
	int workers_count;
	struct scheduler_worker workers[SCHEDULER_WORKERS_MAX];
	pthread_mutex_t lock;  /* guards everything below */
	pthread_cond_t work;   /* there is a task in the queue, or nothing left to do */
	pthread_cond_t timers; /* there is a new first sleeper, or nothing left to do */
	struct task *queue_first;
	struct task *queue_last;
	struct task *sleepers; /* by the time they are due */
	int active;
	int queued;
	int suspended;
	bool closing;
	struct scheduler_totals totals;
};

/* Starts the threads. */
void scheduler_open(struct scheduler *scheduler, struct db *db, int workers);

/* Takes the task over. From any thread. */
void scheduler_submit(struct scheduler *scheduler, struct task *task);

/* Waits until every task has completed and the threads are gone. */
void scheduler_close(struct scheduler *scheduler);

#endif /* DEMO_SCHEDULER_H */
