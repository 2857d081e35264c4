/* SPDX-License-Identifier: MIT */
/*
 * kernel_parts.h: the parts of the kernel's trace. Private to kernel_*.c.
 *
 *   kernel_instance.c   tracefs, the instance of this capture, and those that killed ones left
 *   kernel_guard.c      who removes the instance when kymo is killed
 *   kernel_events.c     which tracepoints the user's words mean
 *   kernel_files.c      what a reader must know of the kernel: formats, tasks, symbols, as records of the stream
 *   kernel_pages.c      the rings of the CPUs, page by page, into the stream or into memory
 *   kernel_trace.c      all of it together
 */
#ifndef KY_CAPTURE_KERNEL_PARTS_H
#define KY_CAPTURE_KERNEL_PARTS_H

#include "capture/bundle.h"

#include <sys/types.h>

struct tracefs_instance;

/* ---- kernel_instance.c ---- */

/* Where tracefs is, never mounting it; 0, or -errno and what to do. Tells libtracefs too. */
int ky_kernel_tracefs(char message[KY_CAPTURE_MESSAGE_BYTES]);
/* A new instance with tracing off. 0 or -errno with a message. */
int ky_kernel_instance_make(struct tracefs_instance **instance,
			    char message[KY_CAPTURE_MESSAGE_BYTES]);
/* Nothing of it may be open. NULL is allowed. */
void ky_kernel_instance_remove(struct tracefs_instance **instance);
/* Writes a value into a file of it. 0 or -errno with a message, which may be NULL. */
int ky_kernel_instance_set(struct tracefs_instance *instance, const char *file, const char *value,
			   char message[KY_CAPTURE_MESSAGE_BYTES]);

/* ---- kernel_guard.c ---- */

struct ky_kernel_guard {
	pid_t pid; /* 0: there is none */
	int fd;    /* its end tells the guard that kymo is gone */
};

/* Without one, for want of a process, the next kymo removes the instance. */
void ky_kernel_guard_start(struct ky_kernel_guard *guard, struct tracefs_instance *instance);
/* After the instance was removed. */
void ky_kernel_guard_end(struct ky_kernel_guard *guard);

/* ---- kernel_events.c ---- */

struct ky_kernel_event {
	char *system;
	char *name;
	bool failed; /* the kernel does not switch it on */
};

struct ky_kernel_events {
	struct ky_kernel_event *events; /* each once */
	uint32_t count;
	bool print; /* trace_marker too */
};

/* What the words mean. 0; -ENOENT with names that are alike; other -errno with a message. */
int ky_kernel_events_select(struct ky_kernel_events *events, const char *const *words,
			    uint32_t count, char message[KY_CAPTURE_MESSAGE_BYTES]);
/* Switches them on. Those that fail are marked; a failure when none works. */
int ky_kernel_events_enable(struct ky_kernel_events *events, struct tracefs_instance *instance,
			    char message[KY_CAPTURE_MESSAGE_BYTES]);
void ky_kernel_events_free(struct ky_kernel_events *events);

/* ---- kernel_files.c ---- */

/* Where records go. */
struct ky_kernel_stream {
	struct ky_bundle *bundle;
	uint32_t source;
};

/* All that pages need to be understood. */
void ky_kernel_files_formats(const struct ky_kernel_stream *stream,
			     struct tracefs_instance *instance,
			     const struct ky_kernel_events *events);
/* Which tasks there are now: the processes and names of threads that were there before the events. */
void ky_kernel_files_tasks(const struct ky_kernel_stream *stream);
/* Names that the kernel kept, also of tasks that are gone. */
void ky_kernel_files_comms(const struct ky_kernel_stream *stream);
/* Which tasks are recorded, when not all are. */
void ky_kernel_files_pids(const struct ky_kernel_stream *stream, struct tracefs_instance *instance);
/* per_cpu/cpuN/stats: the number of losses is the difference of the first and the last in the file. */
void ky_kernel_files_stats(const struct ky_kernel_stream *stream, struct tracefs_instance *instance,
			   uint32_t cpu);

/* ---- kernel_pages.c ---- */

struct ky_kernel_pages;

struct ky_kernel_pages_options {
	const struct ky_kernel_stream *stream; /* stays the caller's */
	bool flight;
	uint64_t before_ns;
};

/* 0 or -errno with a message. */
int ky_kernel_pages_open(struct ky_kernel_pages **pages, struct tracefs_instance *instance,
			 const struct ky_kernel_pages_options *options,
			 char message[KY_CAPTURE_MESSAGE_BYTES]);
/* Closes the rings; drops pages that wait. */
void ky_kernel_pages_close(struct ky_kernel_pages **pages);
int ky_kernel_pages_fd(const struct ky_kernel_pages *pages);
/* Takes what waits where there is enough of it, or it has waited long enough; with all, everything. */
void ky_kernel_pages_round(struct ky_kernel_pages *pages, bool all);
void ky_kernel_pages_window(struct ky_kernel_pages *pages, uint64_t from_ns, uint64_t to_ns);
uint64_t ky_kernel_pages_taken(const struct ky_kernel_pages *pages);
/* Events of a flight recorder that were young enough, but for which there was no memory. */
uint64_t ky_kernel_pages_dropped(const struct ky_kernel_pages *pages);
/* The CPUs that have a ring. */
uint32_t ky_kernel_pages_cpus(const struct ky_kernel_pages *pages);
uint32_t ky_kernel_pages_cpu(const struct ky_kernel_pages *pages, uint32_t index);

#endif
