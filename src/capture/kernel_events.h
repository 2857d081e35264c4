/* SPDX-License-Identifier: MIT */
/* kernel_events.h: which tracepoints the user's words mean, and the files that a reader needs to understand them. */
#ifndef KY_CAPTURE_KERNEL_EVENTS_H
#define KY_CAPTURE_KERNEL_EVENTS_H

#include "base/fail.h"
#include "capture/bundle.h"

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
			    uint32_t count, char message[KY_MESSAGE_BYTES]);
/* Switch them on, and mark those that fail. Fail when none works. */
int ky_kernel_events_enable(struct ky_kernel_events *events, struct tracefs_instance *instance,
			    char message[KY_MESSAGE_BYTES]);
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

/* ---- kernel_pages.c: the rings of the CPUs, page by page, into the stream or into memory ---- */

struct ky_kernel_pages;

struct ky_kernel_pages_options {
	const struct ky_kernel_stream *stream; /* stays the caller's */
	bool flight;
	uint64_t before_ns;
};

/* Open the rings. Return 0, or -errno with a message. */
int ky_kernel_pages_open(struct ky_kernel_pages **pages, struct tracefs_instance *instance,
			 const struct ky_kernel_pages_options *options,
			 char message[KY_MESSAGE_BYTES]);
/* Close the rings and drop pages that wait. */
void ky_kernel_pages_close(struct ky_kernel_pages **pages);
int ky_kernel_pages_fd(const struct ky_kernel_pages *pages);
/* Take the pages of each ring that holds enough or has waited long enough; with all, everything. */
void ky_kernel_pages_round(struct ky_kernel_pages *pages, bool all);
void ky_kernel_pages_window(struct ky_kernel_pages *pages, uint64_t from_ns, uint64_t to_ns);
uint64_t ky_kernel_pages_taken(const struct ky_kernel_pages *pages);
/* Return how many events of a flight recorder were young enough, but had no memory. */
uint64_t ky_kernel_pages_dropped(const struct ky_kernel_pages *pages);
/* Return how many CPUs have a ring, and the number of each. */
uint32_t ky_kernel_pages_cpus(const struct ky_kernel_pages *pages);
uint32_t ky_kernel_pages_cpu(const struct ky_kernel_pages *pages, uint32_t index);

#endif
