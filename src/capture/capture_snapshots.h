/* SPDX-License-Identifier: MIT */
/*
 * capture_snapshots.h: what happens in a capture (signals, processes that end, triggers that fire), and the snapshots that
 * follow.
 */
#ifndef KY_CAPTURE_CAPTURE_SNAPSHOTS_H
#define KY_CAPTURE_CAPTURE_SNAPSHOTS_H

#include "capture/source.h"

/* Return the last trigger of that kind, or NULL. */
const struct ky_trigger *ky_capture_snapshots_trigger(const struct ky_capture_options *options,
						      enum ky_trigger_kind kind);
/* Take a snapshot of what fired. context: the capture. */
void ky_capture_snapshots_fired(void *context, const struct ky_fired *fired);
/* Handle the end of a process in all sources. context: the capture. */
void ky_capture_snapshots_ended(void *context, pid_t pid, int status);
/* Fire the exit trigger, if there is one. */
void ky_capture_snapshots_exit(struct ky_capture *capture, pid_t pid, int status);
/* Handle all signals that arrived. */
void ky_capture_snapshots_signals(struct ky_capture *capture);
/* Write the snapshots whose windows are over. */
void ky_capture_snapshots_write(struct ky_capture *capture, uint64_t now);

#endif
