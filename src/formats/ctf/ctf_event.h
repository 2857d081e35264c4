/* SPDX-License-Identifier: MIT */
/*
 * ctf_event.h: the meaning of CTF events. LTTng's kernel events of scheduling, tasks, interrupts and system
 * calls become that; messages become logs; all others are instants of the thread that their context
 * names, or of their CPU.
 */
#ifndef KY_FORMATS_CTF_CTF_EVENT_H
#define KY_FORMATS_CTF_CTF_EVENT_H

#include "model/intake.h"

#include <babeltrace2/babeltrace.h>

/* The thread that runs on a CPU, by its switches. */
struct ky_ctf_events {
	struct ky_trace *trace;
	int32_t *running; /* by CPU: tid + 1, 0: not known */
	uint64_t running_room;
};

void ky_ctf_event(struct ky_ctf_events *events, const bt_event *event, int64_t ts);
void ky_ctf_events_free(struct ky_ctf_events *events);

#endif
