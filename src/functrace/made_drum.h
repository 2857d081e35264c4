/* SPDX-License-Identifier: MIT */
/*
 * made_drum.h: drums that kymo makes for another process: a memfd with the layout of any drum.
 *
 *   patch     the agent in the program writes the events; kymo only the trace points (ky_made_drum_site)
 *   sample    kymo writes spans that it made of call stacks; ticks are CLOCK_MONOTONIC
 *   pt        the same from decoded instructions
 *
 * The drum's image number is random, so that no recorder in the program takes it for its own.
 */
#ifndef KY_FUNCTRACE_MADE_DRUM_H
#define KY_FUNCTRACE_MADE_DRUM_H

#include "functrace/functions.h"

#include "core/drum.h"

#include <sys/types.h>

struct ky_made_drum {
	struct ky_drum drum;
	/*
	 * Header, categories and heap of a drum that a program has mapped, which may write anything there: kymo looks only here,
	 * and copies what it adds. base is NULL when kymo alone has the drum.
	 */
	struct ky_drum tables;
	int fd;
	uint64_t lost; /* ends without a beginning, and events without a ring */
	void *threads; /* its writers */
};

struct ky_made_drum_options {
	pid_t pid; /* in the header: as the process sees itself */
	/*
	 * an existing memfd (the program's own, by descriptor), empty or of the size it must have; the drum's from
	 * then on. -1: make one
	 */
	int fd;
	bool ticks;         /* events have the CPU's counter; otherwise CLOCK_MONOTONIC */
	uint32_t functions; /* room in the heap for this many */
	uint32_t layer;     /* enum ky_drum_layer, for the header: not KY_DRUM_OWN */
	uint64_t ring_bytes, total_bytes;
	/* of the process; NULL: its present name, where pid is its number here, too */
	const char *name;
};
/*
 * Open a drum. Return 0; -ENOTSUP: the CPU's counter cannot be used; or -errno. On an error the given descriptor is
 * closed, too.
 */
int ky_made_drum_open(struct ky_made_drum *drum, const struct ky_made_drum_options *options);
void ky_made_drum_close(struct ky_made_drum *drum);
/* Return its header, in which places and sizes are right. */
const struct ky_drum_header *ky_made_drum_header(const struct ky_made_drum *drum);

/*
 * Add a trace point. Return its heap number, 0 when there is no room. category is the module's base name, with file,
 * line, and linked as its function. kind: KYMO_KIND_BEGIN (a call), _INSTANT, _END (names are NULL then).
 */
uint32_t ky_made_drum_site(struct ky_made_drum *drum, int kind, const char *module,
			   const char *name, const char *linked, const char *file, uint32_t line);

/* The rest is what kymo writes itself, into drums without ticks: in the order of time within a thread. */
/* Set the process of a thread from now on, where that is not the drum's own process. */
void ky_made_drum_process(struct ky_made_drum *drum, pid_t tid, pid_t pid);
void ky_made_drum_thread(struct ky_made_drum *drum, pid_t tid, const char *name);
void ky_made_drum_begin(struct ky_made_drum *drum, pid_t tid, uint64_t monotonic_ns, uint32_t site);
void ky_made_drum_end_span(struct ky_made_drum *drum, pid_t tid, uint64_t monotonic_ns);
void ky_made_drum_instant(struct ky_made_drum *drum, pid_t tid, uint64_t monotonic_ns,
			  uint32_t site);
/* Add a trace point of a counter; 0 when there is no room. */
uint32_t ky_made_drum_counter(struct ky_made_drum *drum, const char *category, const char *name);
/* Set the value of a counter now, in a drum with ticks, too. */
void ky_made_drum_count(struct ky_made_drum *drum, pid_t tid, uint32_t site, uint64_t value);
/* End a thread and its open spans. */
void ky_made_drum_gone(struct ky_made_drum *drum, pid_t tid, uint64_t monotonic_ns);

#endif
