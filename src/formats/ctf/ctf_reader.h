/* SPDX-License-Identifier: MIT */
/*
 * ctf_reader.h: the parts of the CTF reader, on top of babeltrace2's library.
 *
 * LTTng's kernel events of scheduling, tasks, interrupts and system calls become that; messages become logs; all
 * others are instants of the thread that their context names, or of their CPU. Structures and variants are arguments
 * with dotted keys, arrays with indices, enumerations by their labels.
 *
 * The library ends the program when a trace violates its assumptions, or makes it ask for more memory than there is.
 * So a child reads the trace first, with memory in proportion to it.
 */
#ifndef KY_FORMATS_CTF_CTF_READER_H
#define KY_FORMATS_CTF_CTF_READER_H

#include "formats/load.h"

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
