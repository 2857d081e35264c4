/* SPDX-License-Identifier: MIT */
/*
 * flight.c: see flight.h. Snapshots that wait for the end of their window are in a list in the
 * order in which they fired, which is nearly that of their ends. The list is bounded: a trigger
 * that fires faster than snapshots are written is counted.
 */
#include "capture/flight.h"

#include "os/os.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WAITING_MAX 1024u

struct waiting_snapshot {
	struct ky_bundle_snapshot snapshot;
	char *trigger, *reason, *stack;
	struct waiting_snapshot *next;
};

struct ky_flight {
	struct ky_flight_options options;
	struct waiting_snapshot *first, **last;
	struct waiting_snapshot *handed; /* the caller has it */
	uint32_t waiting;
	uint32_t taken;
	uint32_t written;
	uint64_t passed_over;
	uint64_t last_ns; /* when the last was taken */
};

int ky_flight_open(struct ky_flight **out, const struct ky_flight_options *options)
{
	struct ky_flight *const flight = calloc(1, sizeof(*flight));
	*out = flight;
	if (!flight)
		return -ENOMEM;
	flight->options = *options;
	flight->last = &flight->first;
	return 0;
}

static void waiting_free(struct waiting_snapshot *one)
{
	if (!one)
		return;
	free(one->trigger);
	free(one->reason);
	free(one->stack);
	free(one);
}

void ky_flight_close(struct ky_flight **at)
{
	struct ky_flight *const flight = *at;
	if (!flight)
		return;
	while (flight->first) {
		struct waiting_snapshot *const one = flight->first;
		flight->first = one->next;
		waiting_free(one);
	}
	waiting_free(flight->handed);
	free(flight);
	*at = NULL;
}

static bool is_wanted(const struct ky_flight *flight, uint64_t time_ns)
{
	const struct ky_flight_options *const o = &flight->options;
	if (o->snapshots_max && flight->taken >= o->snapshots_max)
		return false;
	if (flight->waiting >= WAITING_MAX)
		return false;
	/* Two that fire at once may be reported in any order. */
	const uint64_t apart = time_ns > flight->last_ns ? time_ns - flight->last_ns : 0;
	return !flight->taken || !o->cooldown_ns || apart >= o->cooldown_ns;
}

static char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

static struct waiting_snapshot *waiting_new(const struct ky_fired *fired)
{
	struct waiting_snapshot *const one = calloc(1, sizeof(*one));
	if (!one)
		return NULL;
	one->trigger = copy(fired->trigger ? fired->trigger->text : NULL);
	one->reason = copy(fired->reason);
	one->stack = copy(fired->stack);
	one->snapshot = (struct ky_bundle_snapshot){
		.time_ns = fired->time_ns,
		.noticed_ns = ky_os_boottime(),
		.pid = fired->pid,
		.tid = fired->tid,
		.args_count = fired->args_count < 2 ? fired->args_count : 2,
		.args = {fired->args[0], fired->args[1]},
		.trigger = one->trigger ? one->trigger : "snapshot",
		.reason = one->reason ? one->reason : "",
		.stack = one->stack,
	};
	return one;
}

bool ky_flight_fired(struct ky_flight *flight, const struct ky_fired *what, uint64_t since_ns,
		     uint64_t before_ns)
{
	/*
	 * A program may write any time into its drum. A time in the future would be waited for and
	 * delay the others.
	 */
	const uint64_t now_ns = ky_os_boottime();
	struct ky_fired now = *what;
	now.time_ns = what->time_ns < now_ns ? what->time_ns : now_ns;
	const struct ky_fired *const fired = &now;
	struct waiting_snapshot *const one =
		is_wanted(flight, fired->time_ns) ? waiting_new(fired) : NULL;
	if (!one) {
		flight->passed_over++;
		return false;
	}
	const uint64_t before = before_ns ? before_ns : flight->options.before_ns;
	uint64_t from = fired->time_ns > before ? fired->time_ns - before : 0;
	if (since_ns > from && since_ns <= fired->time_ns)
		from = since_ns;
	one->snapshot.from_ns = from;
	one->snapshot.to_ns = fired->time_ns + flight->options.after_ns;
	*flight->last = one;
	flight->last = &one->next;
	flight->waiting++;
	flight->taken++;
	flight->last_ns = fired->time_ns;
	return true;
}

const struct ky_bundle_snapshot *ky_flight_due(struct ky_flight *flight, uint64_t now_ns)
{
	waiting_free(flight->handed);
	flight->handed = NULL;
	for (struct waiting_snapshot **at = &flight->first; *at; at = &(*at)->next) {
		struct waiting_snapshot *const one = *at;
		if (one->snapshot.to_ns > now_ns)
			continue;
		*at = one->next;
		if (flight->last == &one->next)
			flight->last = at;
		flight->waiting--;
		flight->written++;
		flight->handed = one;
		return &one->snapshot;
	}
	return NULL;
}

uint64_t ky_flight_due_ns(const struct ky_flight *flight)
{
	uint64_t due = UINT64_MAX;
	for (const struct waiting_snapshot *one = flight->first; one; one = one->next) {
		if (one->snapshot.to_ns < due)
			due = one->snapshot.to_ns;
	}
	return due;
}

void ky_flight_cut(struct ky_flight *flight, uint64_t now_ns)
{
	for (struct waiting_snapshot *one = flight->first; one; one = one->next) {
		if (one->snapshot.to_ns > now_ns)
			one->snapshot.to_ns = now_ns;
	}
}

uint32_t ky_flight_count(const struct ky_flight *flight)
{
	return flight->written;
}

uint64_t ky_flight_passed_over(const struct ky_flight *flight)
{
	return flight->passed_over;
}

bool ky_flight_is_done(const struct ky_flight *flight)
{
	const uint32_t most = flight->options.snapshots_max;
	return most && flight->written >= most;
}
