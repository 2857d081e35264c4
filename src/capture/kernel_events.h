/* SPDX-License-Identifier: MIT */
/* kernel_events.h: which tracepoints the user's words mean, and the files that a reader needs to understand them. */
#ifndef KY_CAPTURE_KERNEL_EVENTS_H
#define KY_CAPTURE_KERNEL_EVENTS_H

#include "capture/bundle.h"
#include "capture/fail.h"

struct tracefs_instance;

struct ky_kernel_event {
	char *system;
	char *name;
	bool failed; /* the kernel refused to switch it on */
};

struct ky_kernel_events {
	struct ky_kernel_event *events; /* each once */
	uint32_t count, room;
	bool print; /* trace_marker too */
};

/* Find what the words mean. Return 0; -ENOENT with similar names; another -errno with a message. */
int ky_kernel_events_select(struct ky_kernel_events *events, const char *const *words,
			    uint32_t count, char message[KY_CAPTURE_MESSAGE_BYTES]);
/* Switch them on, and mark those that fail. Fail when none works. */
int ky_kernel_events_enable(struct ky_kernel_events *events, struct tracefs_instance *instance,
			    char message[KY_CAPTURE_MESSAGE_BYTES]);
void ky_kernel_events_free(struct ky_kernel_events *events);

/* ---- files, as records of the stream ---- */

/* Where records go. */
struct ky_kernel_stream {
	struct ky_bundle *bundle;
	uint32_t part;
};

/* Write everything that pages need to be understood. */
void ky_kernel_events_formats(const struct ky_kernel_stream *stream,
			      struct tracefs_instance *instance,
			      const struct ky_kernel_events *events);
/* Write which tasks exist now: the processes and names of threads that came before the events. */
void ky_kernel_events_tasks(const struct ky_kernel_stream *stream);
/* Write the names that the kernel saved, including those of tasks that have ended. */
void ky_kernel_events_comms(const struct ky_kernel_stream *stream);
/* Write which tasks are recorded, when not all are. */
void ky_kernel_events_pids(const struct ky_kernel_stream *stream,
			   struct tracefs_instance *instance);
/* Write per_cpu/cpuN/stats. The losses are the difference between the first and the last in the file. */
void ky_kernel_events_stats(const struct ky_kernel_stream *stream,
			    struct tracefs_instance *instance, uint32_t cpu);

#endif
