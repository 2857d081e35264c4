/* SPDX-License-Identifier: MIT */
/* serve_shown.c: see serve_shown.h. */
#include "server/serve_shown.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* So long a page waits for another generation, and for news while the first one is loaded. */
#define WAIT_NS INT64_C(20000000000)
#define WAIT_LOADING_NS INT64_C(250000000)

int ky_shown_open(struct ky_shown *shown)
{
	pthread_condattr_t clock;
	*shown = (struct ky_shown){.stage = "opening"};
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	const int error = pthread_cond_init(&shown->changed, &clock);
	pthread_condattr_destroy(&clock);
	pthread_mutex_init(&shown->mutex, NULL);
	return -error;
}

/* ---- generations ---- */

static void close_generation(struct ky_generation *generation)
{
	ky_answers_close(&generation->answers);
	ky_view_close(&generation->view);
	free(generation);
}

/* Under the mutex. The one to close, outside of it, or NULL. */
static struct ky_generation *drop(struct ky_shown *shown, struct ky_generation *generation)
{
	if (!generation || --generation->holders)
		return NULL;
	for (struct ky_generation **at = &shown->all; *at; at = &(*at)->next) {
		if (*at == generation) {
			*at = generation->next;
			break;
		}
	}
	return generation;
}

int ky_shown_set(struct ky_shown *shown, struct ky_view *view)
{
	struct ky_generation *const generation = calloc(1, sizeof(*generation));
	if (!generation || ky_answers_open(&generation->answers, view) != 0) {
		free(generation);
		ky_view_close(&view);
		return -ENOMEM;
	}
	generation->view = view;
	generation->holders = 1;
	pthread_mutex_lock(&shown->mutex);
	struct ky_generation *const old = drop(shown, shown->current);
	generation->next = shown->all;
	shown->all = shown->current = generation;
	pthread_cond_broadcast(&shown->changed);
	pthread_mutex_unlock(&shown->mutex);
	if (old)
		close_generation(old);
	return 0;
}

void ky_shown_close(struct ky_shown *shown)
{
	ky_shown_let_go(shown, shown->current);
	pthread_cond_destroy(&shown->changed);
	pthread_mutex_destroy(&shown->mutex);
}

struct ky_generation *ky_shown_hold(struct ky_shown *shown)
{
	pthread_mutex_lock(&shown->mutex);
	struct ky_generation *const generation = shown->current;
	if (generation)
		generation->holders++;
	pthread_mutex_unlock(&shown->mutex);
	return generation;
}

void ky_shown_let_go(struct ky_shown *shown, struct ky_generation *generation)
{
	pthread_mutex_lock(&shown->mutex);
	struct ky_generation *const last = drop(shown, generation);
	pthread_mutex_unlock(&shown->mutex);
	if (last)
		close_generation(last);
}

void ky_shown_interrupt_old(struct ky_shown *shown)
{
	pthread_mutex_lock(&shown->mutex);
	for (struct ky_generation *at = shown->all; at; at = at->next)
		if (at != shown->current)
			ky_answers_interrupt(at->answers);
	pthread_mutex_unlock(&shown->mutex);
}

void ky_shown_stop(struct ky_shown *shown)
{
	pthread_mutex_lock(&shown->mutex);
	shown->stopped = true;
	for (struct ky_generation *at = shown->all; at; at = at->next)
		ky_answers_interrupt(at->answers);
	pthread_cond_broadcast(&shown->changed);
	pthread_mutex_unlock(&shown->mutex);
}

/* ---- how far it is ---- */

void ky_shown_progress(struct ky_shown *shown, const char *stage, uint64_t done, uint64_t of)
{
	pthread_mutex_lock(&shown->mutex);
	snprintf(shown->stage, sizeof(shown->stage), "%s", stage);
	shown->done = done;
	shown->of = of;
	pthread_mutex_unlock(&shown->mutex);
}

static struct timespec after(int64_t ns)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	ns += time.tv_nsec;
	time.tv_sec += (time_t)(ns / 1000000000);
	time.tv_nsec = (long)(ns % 1000000000);
	return time;
}

static bool is_news(const struct ky_shown *shown, uint32_t generation)
{
	return shown->stopped || (shown->current && shown->current->view->generation != generation);
}

void ky_shown_wait(struct ky_shown *shown, uint32_t generation)
{
	pthread_mutex_lock(&shown->mutex);
	const struct timespec end = after(shown->current ? WAIT_NS : WAIT_LOADING_NS);
	int over = 0;
	while (!over && !is_news(shown, generation))
		over = pthread_cond_timedwait(&shown->changed, &shown->mutex, &end);
	pthread_mutex_unlock(&shown->mutex);
}

static int64_t since_base(const struct ky_view *view, int64_t ns)
{
	int64_t since;
	if (!view || __builtin_sub_overflow(ns, view->base_ns, &since))
		return 0;
	return since;
}

void ky_shown_status(struct ky_shown *shown, struct ky_buffer *out)
{
	pthread_mutex_lock(&shown->mutex);
	const struct ky_view *const view = shown->current ? shown->current->view : NULL;
	ky_json_begin(out, '{');
	ky_json_key(out, "generation");
	ky_json_uint(out, view ? view->generation : 0);
	ky_json_key(out, "live");
	ky_json_bool(out, view && view->live);
	ky_json_key(out, "begin");
	ky_json_int(out, since_base(view, view ? view->trace->begin_ns : 0));
	ky_json_key(out, "end");
	ky_json_int(out, since_base(view, view ? view->trace->end_ns : 0));
	ky_json_key(out, "stage");
	ky_json_text(out, view ? "" : shown->stage);
	ky_json_key(out, "done");
	ky_json_uint(out, view ? 0 : shown->done);
	ky_json_key(out, "all");
	ky_json_uint(out, view ? 0 : shown->of);
	ky_json_end(out, '}');
	pthread_mutex_unlock(&shown->mutex);
}
