/* SPDX-License-Identifier: MIT */
/*
 * scheduler.c: a queue of tasks that can run, a list of those that sleep, worker threads that take
 * from the queue, and the scheduler's own thread that puts sleepers back when their time has come.
 *
 * At any time every task is counted in exactly one of active, queued and suspended; when closing and
 * all three are 0, the threads leave.
 *
 * How it is traced. The three numbers are counters, recorded while the lock is held: an event takes
 * some nanoseconds and no lock, so it may be there, and the values come in their true order. How long
 * tasks waited in the queue is a counter of type double.
 */
#include "scheduler.h"

#include <stdio.h>

#include "clock.h"
#include "thread.h"

#include <kymo/kymo.h>

/* The functions from here to append() are called with the lock held. */

static void count_active(struct scheduler *scheduler, int change)
{
	scheduler->active += change;
	KYMO_COUNTER("scheduler", "active", scheduler->active);
}

static void count_queued(struct scheduler *scheduler, int change)
{
	scheduler->queued += change;
	KYMO_COUNTER("scheduler", "queued", scheduler->queued);
}

static void count_suspended(struct scheduler *scheduler, int change)
{
	scheduler->suspended += change;
	KYMO_COUNTER("scheduler", "suspended", scheduler->suspended);
}

static bool is_finished(const struct scheduler *scheduler)
{
	return scheduler->closing && scheduler->active + scheduler->queued == 0 &&
	       scheduler->suspended == 0;
}

static void wake_all_if_finished(struct scheduler *scheduler)
{
	if (!is_finished(scheduler))
		return;
	pthread_cond_broadcast(&scheduler->work);
	pthread_cond_broadcast(&scheduler->timers);
}

static void append(struct scheduler *scheduler, struct task *task)
{
	task->next = NULL;
	if (scheduler->queue_first)
		scheduler->queue_last->next = task;
	else
		scheduler->queue_first = task;
	scheduler->queue_last = task;
	count_queued(scheduler, 1);
	pthread_cond_signal(&scheduler->work);
}

static void put_to_sleep(struct scheduler *scheduler, struct task *task)
{
	struct task **place = &scheduler->sleepers;
	while (*place && (*place)->due_ns <= task->due_ns)
		place = &(*place)->next;
	task->next = *place;
	*place = task;
	count_suspended(scheduler, 1);
	pthread_cond_signal(&scheduler->timers);
}

/* Takes the first task of the queue, or NULL when there will be no more. */
static struct task *take(struct scheduler *scheduler)
{
	pthread_mutex_lock(&scheduler->lock);
	while (!scheduler->queue_first && !is_finished(scheduler))
		pthread_cond_wait(&scheduler->work, &scheduler->lock);
	struct task *task = scheduler->queue_first;
	if (task) {
		scheduler->queue_first = task->next;
		count_queued(scheduler, -1);
		count_active(scheduler, 1);
		KYMO_COUNTER("scheduler", "queue_wait_ms",
			     (double)(clock_now_ns() - task->queued_ns) / NS_PER_MS);
	}
	pthread_mutex_unlock(&scheduler->lock);
	return task;
}

/* Put a task that has run where it belongs now. Queueing a task gives it away. */
static void settle(struct scheduler *scheduler, struct task *task, enum task_phase phase)
{
	pthread_mutex_lock(&scheduler->lock);
	count_active(scheduler, -1);
	scheduler->totals.runs++;
	if (phase == TASK_QUEUED) {
		append(scheduler, task);
	} else if (phase == TASK_SUSPENDED) {
		put_to_sleep(scheduler, task);
	} else {
		scheduler->totals.tasks++;
		scheduler->totals.work.verb_spans += task->work.verb_spans;
		scheduler->totals.work.builtin_calls += task->work.builtin_calls;
	}
	wake_all_if_finished(scheduler);
	pthread_mutex_unlock(&scheduler->lock);
	if (phase == TASK_COMPLETED)
		task_finish(task);
}

static void *run_worker(void *context)
{
	const struct scheduler_worker *worker = context;
	struct scheduler *scheduler = worker->scheduler;
	char name[32];
	snprintf(name, sizeof(name), "worker %d", worker->number);
	kymo_thread_name(name);
	struct task *task;
	while ((task = take(scheduler)))
		settle(scheduler, task, task_run(task, scheduler->db));
	return NULL;
}

static void start_worker(struct scheduler *scheduler, int number)
{
	struct scheduler_worker *worker = &scheduler->workers[number];
	*worker = (struct scheduler_worker){.scheduler = scheduler, .number = number};
	thread_start(&worker->thread, run_worker, worker);
}

/* Moves the sleepers whose time has come to the queue. With the lock held. */
static void wake_due(struct scheduler *scheduler)
{
	KYMO_SCOPE("scheduler", "tick", "suspended", scheduler->suspended);
	const int64_t now_ns = clock_now_ns();
	while (scheduler->sleepers && scheduler->sleepers->due_ns <= now_ns) {
		struct task *task = scheduler->sleepers;
		scheduler->sleepers = task->next;
		count_suspended(scheduler, -1);
		task_resume(task);
		append(scheduler, task);
	}
}

/* Waits until the first sleeper is due or there is another first one. With the lock held. */
static void wait_for_timer(struct scheduler *scheduler)
{
	if (!scheduler->sleepers) {
		pthread_cond_wait(&scheduler->timers, &scheduler->lock);
		return;
	}
	const int64_t due_ns = scheduler->sleepers->due_ns;
	const struct timespec due = {due_ns / NS_PER_S, due_ns % NS_PER_S};
	pthread_cond_timedwait(&scheduler->timers, &scheduler->lock, &due);
}

static void *run_timer(void *context)
{
	struct scheduler *scheduler = context;
	kymo_thread_name("scheduler");
	pthread_mutex_lock(&scheduler->lock);
	while (!is_finished(scheduler)) {
		wake_due(scheduler);
		wait_for_timer(scheduler);
	}
	pthread_mutex_unlock(&scheduler->lock);
	return NULL;
}

void scheduler_open(struct scheduler *scheduler, struct db *db, int workers)
{
	*scheduler = (struct scheduler){.db = db, .workers_count = workers};
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&scheduler->lock, NULL);
	pthread_cond_init(&scheduler->work, NULL);
	pthread_cond_init(&scheduler->timers, &monotonic);
	pthread_condattr_destroy(&monotonic);
	thread_start(&scheduler->timer, run_timer, scheduler);
	for (int i = 0; i < workers; i++)
		start_worker(scheduler, i);
}

void scheduler_submit(struct scheduler *scheduler, struct task *task)
{
	pthread_mutex_lock(&scheduler->lock);
	append(scheduler, task);
	pthread_mutex_unlock(&scheduler->lock);
}

void scheduler_close(struct scheduler *scheduler)
{
	KYMO_SCOPE("scheduler", "close");
	pthread_mutex_lock(&scheduler->lock);
	scheduler->closing = true;
	wake_all_if_finished(scheduler);
	pthread_mutex_unlock(&scheduler->lock);
	for (int i = 0; i < scheduler->workers_count; i++)
		pthread_join(scheduler->workers[i].thread, NULL);
	pthread_join(scheduler->timer, NULL);
	pthread_cond_destroy(&scheduler->timers);
	pthread_cond_destroy(&scheduler->work);
	pthread_mutex_destroy(&scheduler->lock);
}
