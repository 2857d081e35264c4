/* SPDX-License-Identifier: MIT */
/* drain.c: the thread's loop: nap, work, wake those who wait. */
#include "sink/drain.h"

#include "core/assert.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

/*
 * The nap between two rounds grows from the first to the second while there is little to do. The rings of a streaming
 * session hold more than a thread can write at full speed in the longest nap.
 */
#define NAP_MIN_NS UINT64_C(1000000)
#define NAP_MAX_NS UINT64_C(4000000)

/* An event of one thread may still be on its way into its ring when later ones of others are there. */
#define LAG_PER_S 1000u /* a thousandth of a second */
#define HURRY_PERCENT 10u

uint64_t ky_drain_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Sleep until the nap is over or a thread asks for something. Called and left with the lock. */
static void nap(struct ky_drain *drain, uint64_t ns)
{
	ns += ky_drain_now_ns();
	const struct timespec until = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	while (!drain->stopping && drain->asked == drain->answered)
		if (pthread_cond_timedwait(&drain->wake, &drain->lock, &until) == ETIMEDOUT)
			break;
}

static void answer(struct ky_drain *drain, uint64_t asked, bool ended)
{
	pthread_mutex_lock(&drain->lock);
	KY_ASSERT(drain->answered <= asked && asked <= drain->asked && !drain->ended);
	drain->answered = asked;
	drain->ended = ended;
	pthread_cond_broadcast(&drain->done);
	pthread_mutex_unlock(&drain->lock);
}

static void *run(void *context)
{
	struct ky_drain *drain = context;
	uint64_t nap_ns = NAP_MIN_NS;
	prctl(PR_SET_NAME, "kymo-drain");
	for (;;) {
		pthread_mutex_lock(&drain->lock);
		if (nap_ns)
			nap(drain, nap_ns);
		const uint64_t asked = drain->asked;
		const bool flush = asked != drain->answered;
		const bool last = drain->stopping;
		pthread_mutex_unlock(&drain->lock);
		const enum ky_drain_wish wish = drain->round(drain->self, flush || last, last);
		const bool end = last || wish == KY_DRAIN_END;
		/* After the answer to the end, the thread that waited may free the drain. */
		void (*const gone)(void *) = drain->gone;
		void *const self = drain->self;
		if (flush || end)
			answer(drain, asked, end);
		if (end && gone)
			gone(self);
		if (end)
			return NULL;
		if (wish == KY_DRAIN_MORE)
			nap_ns = 0;
		else if (nap_ns < NAP_MAX_NS)
			nap_ns = nap_ns ? nap_ns * 2 : NAP_MIN_NS;
	}
}

static void destroy(struct ky_drain *drain)
{
	pthread_cond_destroy(&drain->wake);
	pthread_cond_destroy(&drain->done);
	pthread_mutex_destroy(&drain->lock);
}

int ky_drain_start(struct ky_drain *drain, void *self,
		   enum ky_drain_wish (*round)(void *self, bool flush, bool last))
{
	drain->self = self;
	drain->round = round;
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&drain->lock, NULL);
	pthread_cond_init(&drain->wake, &monotonic);
	pthread_cond_init(&drain->done, NULL);
	pthread_condattr_destroy(&monotonic);
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	const int error = pthread_create(&drain->thread, NULL, run, drain);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	drain->started = error == 0;
	if (error)
		destroy(drain);
	return -error;
}

bool ky_drain_is_self(const struct ky_drain *drain)
{
	return drain->started && pthread_equal(drain->thread, pthread_self());
}

void ky_drain_flush(struct ky_drain *drain)
{
	if (!drain->started || ky_drain_is_self(drain))
		return;
	pthread_mutex_lock(&drain->lock);
	const uint64_t mine = ++drain->asked;
	pthread_cond_signal(&drain->wake);
	while (drain->answered < mine && !drain->ended)
		pthread_cond_wait(&drain->done, &drain->lock);
	pthread_mutex_unlock(&drain->lock);
}

void ky_drain_finish(struct ky_drain *drain)
{
	if (!drain->started)
		return;
	const bool self = ky_drain_is_self(drain);
	pthread_mutex_lock(&drain->lock);
	drain->stopping = true;
	pthread_cond_signal(&drain->wake);
	while (!self && !drain->ended)
		pthread_cond_wait(&drain->done, &drain->lock);
	const bool join = !self && !drain->joined;
	drain->joined |= join;
	pthread_mutex_unlock(&drain->lock);
	if (join)
		pthread_join(drain->thread, NULL);
}

void ky_drain_stop(struct ky_drain *drain)
{
	if (!drain->started)
		return;
	KY_ASSERT(!ky_drain_is_self(drain));
	ky_drain_finish(drain);
	drain->started = false;
	destroy(drain);
}

void ky_drain_leave(struct ky_drain *drain, void (*gone)(void *self))
{
	pthread_detach(drain->thread);
	drain->gone = gone;
}

void ky_drain_read_clock(struct ky_drum *drum, const struct ky_stream *stream)
{
	ky_clock_take(drum, ky_drain_read_hurry(stream));
}

int ky_drain_read_news(struct ky_stream *stream)
{
	return ky_stream_read(stream, ky_clock_ticks_per_s(&stream->clock) / LAG_PER_S);
}

int ky_drain_read_all(struct ky_drum *drum, struct ky_stream *stream)
{
	const uint64_t now = ky_drum_ticks(drum);
	ky_clock_take(drum, true);
	const int error = ky_stream_read(stream, 0);
	/* No reading could be taken (a thread sleeps with the lock): do without. */
	if (error == 0 && ky_clock_horizon(&stream->clock) < now)
		return ky_stream_read_all(stream);
	return error;
}

bool ky_drain_read_hurry(const struct ky_stream *stream)
{
	return ky_stream_pressure(stream) > HURRY_PERCENT;
}
