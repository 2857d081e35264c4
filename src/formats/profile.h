/* SPDX-License-Identifier: MIT */
/*
 * profile.h: a trace as a profile: call stacks with what was spent in each, for the exporters of flame graphs.
 *
 *   samples ──▶ callsites ────────────────────┐
 *                                             ├──▶ nodes (parent, name) ◀── rows (node, thread, event, count, value)
 *   spans ────▶ paths of names, self time ────┘
 *
 * A node is a stack: its innermost frame, and the node of its caller. Of a trace with samples, nodes are the callsites, and
 * a row's value is the weight of its samples. Otherwise a node is a path of spans, and the value the time in the innermost
 * one without its children. Both at once would count the same time twice.
 */
#ifndef KY_FORMATS_PROFILE_H
#define KY_FORMATS_PROFILE_H

#include "core/event.h"
#include "formats/export.h"

struct ky_profile_row {
	uint32_t node;    /* KY_NONE: a sample without a stack */
	uint32_t thread;  /* or KY_NONE */
	uint32_t process; /* or KY_NONE */
	uint32_t event;   /* number in events */
	uint64_t count;   /* samples or spans */
	double value;     /* of the event's unit */
};

struct ky_profile_event {
	uint32_t name; /* string; 0: unknown */
	uint64_t count;
	bool time; /* its unit is a nanosecond */
};

struct ky_profile {
	const struct ky_trace *trace;
	bool spans;
	struct ky_profile_row *rows;
	uint32_t rows_count, rows_room;
	struct ky_profile_event *events; /* of spans there is one */
	uint32_t events_count, events_room;
	/* Of spans: */
	struct ky_profile_node {
		uint32_t parent, name;
	} * nodes;
	uint32_t nodes_count, nodes_room;
};

/* Return whether the profile of that job is one of spans: it is asked for, or there are no samples. */
bool ky_profile_of_spans(const struct ky_export_job *job);
/* Make the profile of the job's selection; count in its left what a profile has no place for. Return 0 or -ENOMEM. */
int ky_profile_make(struct ky_profile *profile, const struct ky_export_job *job);
void ky_profile_free(struct ky_profile *profile);
/* Count the rows of the trace that a profile has no place for. */
void ky_profile_count_left(const struct ky_export_job *job);
/* Return the number of the event with the most samples. */
uint32_t ky_profile_main_event(const struct ky_profile *profile);

/* Return the caller's node, or KY_NONE. */
uint32_t ky_profile_parent(const struct ky_profile *profile, uint32_t node);
/* Return what identifies the node's function: a frame, or of spans the string of the name. */
uint32_t ky_profile_frame(const struct ky_profile *profile, uint32_t node);
/* Return its name; room is for those that are made up. */
struct ky_text ky_profile_name(const struct ky_trace *trace, bool spans, uint32_t frame,
			       char room[64]);
/* Return the name of a thread, or of a process without one. */
struct ky_text ky_profile_owner(const struct ky_trace *trace, uint32_t thread, uint32_t process,
				char room[64]);
/* Report whether a sample is selected. */
bool ky_profile_sample(const struct ky_export_job *job, uint32_t sample);
/* Report whether the weights of an event's samples are nanoseconds. */
bool ky_profile_event_time(const struct ky_trace *trace, uint32_t event);
/* Return when a slice ends: one that never does, with the trace. */
int64_t ky_profile_end(const struct ky_trace *trace, uint32_t slice);

#endif
