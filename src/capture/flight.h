/* SPDX-License-Identifier: MIT */
/*
 * flight.h: which snapshots a flight recorder takes, of which time, and when.
 *
 *   fired at t ──▶ [t - before ──────── t ──── t + after]   due once t + after is over
 *                        ▲
 *                  not before kymo_mark_start(), for one that the program requested
 *
 * A trigger that fires within the cooldown, or after the last snapshot that is wanted, takes none.
 * Windows may overlap: the sources leave out what an earlier one held.
 */
#ifndef KY_CAPTURE_FLIGHT_H
#define KY_CAPTURE_FLIGHT_H

#include "capture/trigger.h"

struct ky_flight;

struct ky_flight_options {
	uint64_t before_ns;
	uint64_t after_ns;
	uint64_t cooldown_ns;
	uint32_t snapshots_max; /* 0: no limit */
};

int ky_flight_open(struct ky_flight **flight, const struct ky_flight_options *options);
void ky_flight_close(struct ky_flight **flight);
/*
 * Take a snapshot of what fired, unless it is too soon or there are enough. It reaches back no
 * further than since_ns, and by before_ns, if not 0, instead of the option. Return whether it was
 * taken.
 */
bool ky_flight_fired(struct ky_flight *flight, const struct ky_fired *fired, uint64_t since_ns,
		     uint64_t before_ns);
/*
 * Return the next snapshot whose window is over, for the caller to write; valid until the next
 * call. NULL: none.
 */
const struct ky_bundle_snapshot *ky_flight_due(struct ky_flight *flight, uint64_t now_ns);
/* Return when that will be; UINT64_MAX: none waits. */
uint64_t ky_flight_due_ns(const struct ky_flight *flight);
/* End all windows now, so that all are due: the capture ends. */
void ky_flight_cut(struct ky_flight *flight, uint64_t now_ns);
/* Return how many were taken and written, and how many were not taken. */
uint32_t ky_flight_count(const struct ky_flight *flight);
uint64_t ky_flight_passed_over(const struct ky_flight *flight);
/* Report whether all that are wanted are written. */
bool ky_flight_is_done(const struct ky_flight *flight);

#endif
