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

#include "model/intake.h"

#include "formats/load.h"
#include <babeltrace2/babeltrace.h>

/* ---- events: ctf_event.c ---- */

/* The thread that runs on a CPU, by its switches. */
struct ky_ctf_events {
	struct ky_trace *trace;
	int32_t *running; /* by CPU: tid + 1, 0: not known */
	uint64_t running_room;
};

void ky_ctf_event(struct ky_ctf_events *events, const bt_event *event, int64_t ts);
void ky_ctf_events_free(struct ky_ctf_events *events);

/* ---- fields as arguments: ctf_field.c ---- */

/* Add the field to the set being made; it may be NULL. */
void ky_ctf_args(struct ky_trace *trace, const bt_field *field);
/* Return the member of a structure by its name, or NULL; structure may be NULL. */
const bt_field *ky_ctf_member(const bt_field *structure, const char *name);
/* Get its value as an integer; false when it is not one. */
bool ky_ctf_integer(const bt_field *field, int64_t *value);
/* Return its value as text: a string, or an array of characters copied to text; NULL for anything else. */
const char *ky_ctf_text(const bt_field *field, char *text, size_t bytes);

/* ---- reading in a child first: ctf_sandbox.c ---- */

/*
 * bytes: of the trace's files. 0 when read() came to an end in the child, with whatever result; -EBADMSG and a message
 * when it did not; -errno, or what progress returned.
 */
int ky_ctf_rehearse(struct ky_load *load, uint64_t bytes,
		    int (*read)(struct ky_load *load, uint64_t bytes));

#endif
