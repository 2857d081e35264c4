/* SPDX-License-Identifier: MIT */
/*
 * snapshots.h: which snapshots a flight recorder takes, of which time, and when; and what happens in a capture that
 * makes it take them: signals, processes that end, triggers that fire.
 *
 *   fired at t ──▶ [t - before ──────── t ──── t + after]   due once t + after is over
 *                        ▲
 *                  not before kymo_mark_start(), for one that the program requested
 *
 * A trigger that fires within the cooldown, or after the last snapshot that is wanted, takes none.
 * Windows may overlap: the sources leave out what an earlier one held.
 */
#ifndef KY_CAPTURE_SNAPSHOTS_H
#define KY_CAPTURE_SNAPSHOTS_H

#include "capture/trigger.h"

struct ky_capture;
struct ky_snapshots;

struct ky_snapshots_options {
	uint64_t before_ns;
	uint64_t after_ns;
	uint64_t cooldown_ns;
	uint32_t snapshots_max; /* 0: no limit */
};

int ky_snapshots_open(struct ky_snapshots **flight, const struct ky_snapshots_options *options);
void ky_snapshots_close(struct ky_snapshots **flight);
/*
 * Take a snapshot of what fired, unless it is too soon or there are enough. It reaches back no further than since_ns,
 * and by before_ns, if not 0, instead of the option. Return whether it was taken.
 */
bool ky_snapshots_take(struct ky_snapshots *flight, const struct ky_fired *fired, uint64_t since_ns,
		       uint64_t before_ns);
/* Return the next snapshot whose window is over, for the caller to write; valid until the next call. NULL: none. */
const struct ky_bundle_snapshot *ky_snapshots_due(struct ky_snapshots *flight, uint64_t now_ns);
/* Return when that will be; UINT64_MAX: none waits. */
uint64_t ky_snapshots_due_ns(const struct ky_snapshots *flight);
/* End all windows now, so that all are due: the capture ends. */
void ky_snapshots_cut(struct ky_snapshots *flight, uint64_t now_ns);
/* Return how many were taken and written, and how many were not taken. */
uint32_t ky_snapshots_count(const struct ky_snapshots *flight);
uint64_t ky_snapshots_passed_over(const struct ky_snapshots *flight);
/* Report whether all that are wanted are written. */
bool ky_snapshots_is_done(const struct ky_snapshots *flight);

/* ---- in a capture ---- */

/* Take a snapshot of what fired. context: the capture. */
void ky_snapshots_fired(void *context, const struct ky_fired *fired);
/* Handle the end of a process in all sources. context: the capture. */
void ky_snapshots_ended(void *context, pid_t pid, int status);
/* Fire the exit trigger, if there is one. */
void ky_snapshots_exit(struct ky_capture *capture, pid_t pid, int status);
/* Handle all signals that arrived. */
void ky_snapshots_signals(struct ky_capture *capture);
/* Write the snapshots whose windows are over. */
void ky_snapshots_write(struct ky_capture *capture, uint64_t now);

#endif
