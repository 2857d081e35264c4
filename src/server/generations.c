/* SPDX-License-Identifier: MIT */
/* generations.c: see generations.h. */
#include "server/generations.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* How long a page waits for another generation, and for progress while the first one is loaded. */
#define WAIT_NS (20 * KY_CLOCK_SECOND_NS)
#define WAIT_LOADING_NS (250 * KY_CLOCK_MS_NS)

int ky_generations_open(struct ky_generations *generations)
{
	pthread_condattr_t clock;
	*generations = (struct ky_generations){.stage = "opening"};
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	const int error = pthread_cond_init(&generations->changed, &clock);
	pthread_condattr_destroy(&clock);
	pthread_mutex_init(&generations->mutex, NULL);
	return -error;
}

/* ---- generations ---- */

static void close_generation(struct ky_generation *generation)
{
	ky_api_close(&generation->api);
	ky_view_close(&generation->view);
	free(generation);
}

/* Drop a reference, with the mutex held. Return the generation to close without the mutex, or NULL. */
static struct ky_generation *drop(struct ky_generations *generations,
				  struct ky_generation *generation)
{
	if (!generation || --generation->holders)
		return NULL;
	for (struct ky_generation **at = &generations->all; *at; at = &(*at)->next) {
		if (*at == generation) {
			*at = generation->next;
			break;
		}
	}
	return generation;
}

int ky_generations_show(struct ky_generations *generations, struct ky_view *view)
{
	struct ky_generation *const generation = calloc(1, sizeof(*generation));
	if (!generation || ky_api_open(&generation->api, view) != 0) {
		free(generation);
		ky_view_close(&view);
		return -ENOMEM;
	}
	generation->view = view;
	generation->holders = 1;
	pthread_mutex_lock(&generations->mutex);
	struct ky_generation *const old = drop(generations, generations->current);
	generation->next = generations->all;
	generations->all = generations->current = generation;
	pthread_cond_broadcast(&generations->changed);
	pthread_mutex_unlock(&generations->mutex);
	if (old)
		close_generation(old);
	return 0;
}

void ky_generations_close(struct ky_generations *generations)
{
	ky_generations_release(generations, generations->current);
	pthread_cond_destroy(&generations->changed);
	pthread_mutex_destroy(&generations->mutex);
}

struct ky_generation *ky_generations_hold(struct ky_generations *generations)
{
	pthread_mutex_lock(&generations->mutex);
	struct ky_generation *const generation = generations->current;
	if (generation)
		generation->holders++;
	pthread_mutex_unlock(&generations->mutex);
	return generation;
}

void ky_generations_release(struct ky_generations *generations, struct ky_generation *generation)
{
	pthread_mutex_lock(&generations->mutex);
	struct ky_generation *const last = drop(generations, generation);
	pthread_mutex_unlock(&generations->mutex);
	if (last)
		close_generation(last);
}

void ky_generations_interrupt_old(struct ky_generations *generations)
{
	pthread_mutex_lock(&generations->mutex);
	for (struct ky_generation *at = generations->all; at; at = at->next)
		if (at != generations->current)
			ky_api_interrupt(at->api);
	pthread_mutex_unlock(&generations->mutex);
}

void ky_generations_stop(struct ky_generations *generations)
{
	pthread_mutex_lock(&generations->mutex);
	generations->stopped = true;
	for (struct ky_generation *at = generations->all; at; at = at->next)
		ky_api_interrupt(at->api);
	pthread_cond_broadcast(&generations->changed);
	pthread_mutex_unlock(&generations->mutex);
}

/* ---- progress ---- */

void ky_generations_progress(struct ky_generations *generations, const char *stage, uint64_t done,
			     uint64_t of)
{
	pthread_mutex_lock(&generations->mutex);
	snprintf(generations->stage, sizeof(generations->stage), "%s", stage);
	generations->done = done;
	generations->of = of;
	pthread_mutex_unlock(&generations->mutex);
}

static bool is_news(const struct ky_generations *generations, uint32_t generation)
{
	return generations->stopped ||
	       (generations->current && generations->current->view->generation != generation);
}

void ky_generations_wait(struct ky_generations *generations, uint32_t generation)
{
	pthread_mutex_lock(&generations->mutex);
	const struct timespec end = ky_clock_timespec(
		ky_clock_monotonic() + (generations->current ? WAIT_NS : WAIT_LOADING_NS));
	int over = 0;
	while (!over && !is_news(generations, generation))
		over = pthread_cond_timedwait(&generations->changed, &generations->mutex, &end);
	pthread_mutex_unlock(&generations->mutex);
}

static int64_t since_base(const struct ky_view *view, int64_t ns)
{
	int64_t since;
	if (!view || __builtin_sub_overflow(ns, view->base_ns, &since))
		return 0;
	return since;
}

void ky_generations_status(struct ky_generations *generations, struct ky_json_out *json)
{
	pthread_mutex_lock(&generations->mutex);
	const struct ky_view *const view = generations->current ? generations->current->view : NULL;
	ky_json_out_begin(json, NULL, '{');
	ky_json_out_uint(json, "generation", view ? view->generation : 0);
	ky_json_out_bool(json, "live", view && view->live);
	ky_json_out_int(json, "begin", since_base(view, view ? view->trace->begin_ns : 0));
	ky_json_out_int(json, "end", since_base(view, view ? view->trace->end_ns : 0));
	ky_json_out_text(json, "stage", view ? "" : generations->stage);
	ky_json_out_uint(json, "done", view ? 0 : generations->done);
	ky_json_out_uint(json, "all", view ? 0 : generations->of);
	ky_json_out_end(json, '}');
	pthread_mutex_unlock(&generations->mutex);
}
