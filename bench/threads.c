/* SPDX-License-Identifier: MIT */
/*
 * threads.c: one thread alone against two at once. Both begin each repetition together, and it took as
 * long as the slower of the two, so that one that ran while the other was descheduled does not count.
 */
#include "bench.h"
#include "repeat.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define TOGETHER 2u

static const struct report_column columns[] = {
	{"one_ns", "1T, ns/event", 2},
	{"two_ns", "2T, ns/event", 2},
	{"ratio", "2T/1T", 3},
	{"bare_ratio", "2T x bare", 3},
	{NULL, NULL, 0},
};

/* The loops compared; NULL is the bare one. */
static const char *const names[] = {NULL,          "scope",   "instant", "int2",
				    "int2_string", "counter", "async"};
#define NAMES_COUNT (sizeof(names) / sizeof(names[0]))

struct crew {
	loop_fn *runs[NAMES_COUNT];
	struct repetitions repetitions;
	atomic_uint arrived;  /* at the starts and ends of runs, ever */
	double *ns[TOGETHER]; /* of every run of each thread */
};

struct hand {
	struct crew *crew;
	uint32_t index;
	pthread_t thread;
	bool started;
};

/* Wait until both are here for the step-th time. Spin: a wake-up takes longer than a run. */
static void meet(struct crew *crew, uint32_t step)
{
	atomic_fetch_add(&crew->arrived, 1);
	for (uint32_t spins = 1; atomic_load(&crew->arrived) < TOGETHER * step; spins++)
		if (spins % 1024 == 0)
			sched_yield();
}

static void *work(void *context)
{
	const struct hand *hand = context;
	struct crew *crew = hand->crew;
	uint32_t step = 0;
	for (uint32_t turn = 0; turn < crew->repetitions.count; turn++) {
		for (size_t i = 0; i < NAMES_COUNT; i++) {
			meet(crew, ++step);
			crew->ns[hand->index][turn * NAMES_COUNT + i] =
				repeat_once(crew->runs[i], crew->repetitions.iterations);
		}
	}
	return NULL;
}

static void take_shortest(const struct crew *crew, double *shortest_ns)
{
	for (size_t i = 0; i < NAMES_COUNT; i++) {
		shortest_ns[i] = INFINITY;
		for (uint32_t turn = 0; turn < crew->repetitions.count; turn++) {
			const size_t at = turn * NAMES_COUNT + i;
			shortest_ns[i] =
				fmin(shortest_ns[i], fmax(crew->ns[0][at], crew->ns[1][at]));
		}
	}
}

/* Run with this thread as one of the two. Return false without a second one. */
static bool run_together(struct crew *crew, double *shortest_ns)
{
	const size_t runs = crew->repetitions.count * NAMES_COUNT;
	crew->ns[0] = calloc(runs, sizeof(double));
	crew->ns[1] = calloc(runs, sizeof(double));
	struct hand first = {.crew = crew}, second = {.crew = crew, .index = 1};
	if (crew->ns[0] && crew->ns[1])
		second.started = pthread_create(&second.thread, NULL, work, &second) == 0;
	if (second.started) {
		work(&first);
		pthread_join(second.thread, NULL);
		take_shortest(crew, shortest_ns);
	}
	free(crew->ns[0]);
	free(crew->ns[1]);
	return second.started;
}

static void show(struct report *report, const double *one_ns, const double *two_ns)
{
	double worst = 0;
	for (size_t i = 0; i < NAMES_COUNT; i++) {
		const struct loop *loop = names[i] ? loop_find(names[i]) : NULL;
		const double events = loop ? loop->events : 1, ratio = two_ns[i] / one_ns[i];
		report_row(report, loop ? loop->label : "bare loop",
			   (double[]){one_ns[i] / events, two_ns[i] / events, ratio,
				      two_ns[i] / events / two_ns[0]});
		worst = fmax(worst, loop ? ratio / (two_ns[0] / one_ns[0]) : 0);
	}
	/* The bare loops show what the machine itself costs. */
	report_target(report, worst, 1.1, "x", "two threads at once, the worst: beside one alone");
}

void threads_run(const struct settings *settings, struct report *report)
{
	struct crew crew = {.repetitions = repeat_many(settings->quick)};
	double one_ns[NAMES_COUNT], two_ns[NAMES_COUNT];
	for (size_t i = 0; i < NAMES_COUNT; i++)
		crew.runs[i] = names[i] ? loop_find(names[i])->on : loop_bare;
	report_begin(report, "threads", "one thread, and two at once", columns);
	if (sysconf(_SC_NPROCESSORS_ONLN) < (long)TOGETHER) {
		report_note(report, "skipped: this machine has one processor");
	} else {
		tracing_on();
		repeat_in_turns(crew.repetitions, crew.runs, NAMES_COUNT, one_ns);
		if (run_together(&crew, two_ns))
			show(report, one_ns, two_ns);
		else
			report_note(report, "skipped: a second thread could not be made");
	}
	report_end(report);
}
