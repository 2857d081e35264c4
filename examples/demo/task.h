/* SPDX-License-Identifier: MIT */
/* task.h: a request being worked on; see task.c. */
#ifndef DEMO_TASK_H
#define DEMO_TASK_H

#include <stdint.h>

#include "db.h"
#include "link.h"
#include "vm.h"

enum task_phase { TASK_QUEUED, TASK_RUNNING, TASK_SUSPENDED, TASK_COMPLETED };

/* Of the phases that last, for the trace. */
extern const char *const task_phase_names[];

struct task {
	uint64_t id;
	struct link_request request;
	int link; /* where the reply goes */
	enum task_phase phase;
	int runs;
	struct vm vm;
	struct vm_work work;
	int64_t queued_ns; /* when it was queued */
	int64_t due_ns;    /* when it is to be resumed */
	struct task *next; /* of the list it is in */
};

/* A new task in phase TASK_QUEUED, or NULL without memory. */
struct task *task_create(uint64_t id, const struct link_request *request, int link);

/* Runs until it completed, was suspended, or lost to another transaction: then it is queued again. */
enum task_phase task_run(struct task *task, struct db *db);

/* A suspended task's time has come. */
void task_resume(struct task *task);

/* Sends the reply and frees a completed task. */
void task_finish(struct task *task);

#endif /* DEMO_TASK_H */
