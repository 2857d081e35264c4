/* SPDX-License-Identifier: MIT */
/*
 * task.c: the life of a task.
 *
 *	          ┌──── conflict ───┐
 *	          ▼                 │
 *	create ─▶ queued ───────▶ running ─▶ completed
 *	          ▲                 │
 *	          └─── suspended ◀──┘
 *
 * Each run is one transaction. When it cannot be committed, the task goes back to where the run began
 * and is queued again: nobody has seen anything of it.
 *
 * How it is traced. A task is created on one thread, runs on others and is at times on none: an async
 * span by the task's id, and in it one nested async span for each phase. What a worker does is spans
 * of its thread, under "run". A flow leads from the thread that created the task through its runs to
 * the reply, and a second one from the reply to the client, who may be another process.
 */
#include "task.h"

#include <stdlib.h>

#include "clock.h"

#include <kymo/kymo.h>

const char *const task_phase_names[] = {
	[TASK_QUEUED] = "queued",
	[TASK_RUNNING] = "running",
	[TASK_SUSPENDED] = "suspended",
};

static void begin_phase(struct task *task, enum task_phase phase)
{
	task->phase = phase;
	KYMO_ASYNC_BEGIN_DYN("task", task_phase_names[phase], task->id, "runs", task->runs);
}

static void end_phase(const struct task *task)
{
	KYMO_ASYNC_END_DYN("task", task_phase_names[task->phase], task->id);
}

static void queue(struct task *task)
{
	task->queued_ns = clock_now_ns();
	begin_phase(task, TASK_QUEUED);
}

struct task *task_create(uint64_t id, const struct link_request *request, int link)
{
	struct task *task = calloc(1, sizeof(*task));
	if (!task)
		return NULL;
	const struct verb *verb = world_verb(request->verb);
	task->id = id;
	task->request = *request;
	task->link = link;
	vm_start(&task->vm, id, request->id, verb, request->args);
	KYMO_ASYNC_BEGIN("task", "task", id, "verb", verb->name, "request", request->id);
	KYMO_FLOW_BEGIN("task", "task", id);
	queue(task);
	return task;
}

/* One transaction: done, suspended, or undone. */
static enum task_phase run_transaction(struct task *task, struct db *db)
{
	const struct vm before = task->vm;
	struct db_transaction transaction;
	db_begin(db, &transaction);
	const enum vm_status status = vm_run(&task->vm, &transaction, &task->work);
	if (!db_commit(&transaction)) {
		task->vm = before;
		return TASK_QUEUED;
	}
	return status == VM_DONE ? TASK_COMPLETED : TASK_SUSPENDED;
}

enum task_phase task_run(struct task *task, struct db *db)
{
	end_phase(task);
	begin_phase(task, TASK_RUNNING);
	task->runs++;
	KYMO_SCOPE("task", "run", "task", task->id, "runs", task->runs);
	KYMO_FLOW_STEP("task", "task", task->id);
	const enum task_phase next = run_transaction(task, db);
	end_phase(task);
	if (next == TASK_QUEUED) {
		KYMO_ASYNC_INSTANT("task", "retry", task->id, "runs", task->runs);
		queue(task);
	} else if (next == TASK_SUSPENDED) {
		task->due_ns = clock_now_ns() + task->vm.suspend_ms * NS_PER_MS;
		begin_phase(task, TASK_SUSPENDED);
	}
	return next;
}

void task_resume(struct task *task)
{
	end_phase(task);
	KYMO_ASYNC_INSTANT("task", "resumed", task->id, "late_ns", clock_now_ns() - task->due_ns);
	queue(task);
}

void task_finish(struct task *task)
{
	KYMO_SCOPE("task", "reply", "task", task->id, "request", task->request.id);
	const struct link_reply reply = {task->request.id, vm_result(&task->vm)};
	KYMO_FLOW_END("task", "task", task->id);
	KYMO_FLOW_BEGIN("request", "reply", reply.id);
	if (!link_send(task->link, &reply, sizeof(reply)))
		KYMO_INSTANT("task", "client is gone", "task", task->id);
	KYMO_ASYNC_END("task", "task", task->id, "result", reply.result, "runs", task->runs);
	free(task);
}
