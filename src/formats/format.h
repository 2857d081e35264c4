/* SPDX-License-Identifier: MIT */
/*
 * format.h: what an output format is: a const vtable, found in one array (format.c).
 *
 * The sink calls open once a file, then the others in any order, then finish, then close. Events of
 * one thread come in the order of their times, and nearly so across threads; spans of a thread are
 * balanced but for those still open at the end (the sink makes up lost begins and drops ends that
 * have none). All text is any bytes: a writer makes it valid for its format.
 *
 * A function returns nothing when all it can do is append to the buffer, whose error says the rest.
 */
#ifndef KY_FORMATS_FORMAT_H
#define KY_FORMATS_FORMAT_H

#include "core/event.h"
#include "formats/out.h"

struct ky_kymo_pack;
struct ky_kymo_chunks;

/* Facts that are known before the first event. */
struct ky_trace_info {
	int32_t pid;
	struct ky_text process; /* its name */
	struct ky_text command; /* the program's path, may be empty */
	struct ky_tick_reading clock;
	uint64_t ticks_per_s; /* rough, for information */
	uint32_t layer;       /* .kymo: enum ky_drum_layer */
	uint32_t source;      /* .kymo: its number in a file of several sources; 0: it is alone */
	/* And what it may use of the others, who never write at the same time; NULL: has its own. */
	struct ky_kymo_pack *pack;
	struct ky_kymo_chunks *chunks;
};

struct ky_block; /* ring_read.h: a piece of a ring as it is */
struct ky_sites; /* sites.h: the trace points that its words name */

struct ky_format {
	const char *name;
	int id;             /* enum kymo_format without compression */
	const char *suffix; /* ".json" */
	/* Allocates the writer and writes the head of the file. 0 or -ENOMEM. */
	int (*open)(void **writer, struct ky_out *out, const struct ky_trace_info *info);
	/* The process's name changed. */
	void (*process)(void *writer, int32_t pid, struct ky_text name);
	/* A thread's first event is about to come, or its name changed. */
	void (*thread)(void *writer, const struct ky_thread *thread);
	/* One event; LOST and those with begin_lost too. */
	void (*event)(void *writer, const struct ky_event *event);
	/* A moment in all clocks, about once a second. May be NULL. */
	void (*clock)(void *writer, const struct ky_tick_reading *sample);
	/* A piece of a ring as it is, instead of its events: only where this is not NULL. */
	void (*block)(void *writer, const struct ky_block *block, const struct ky_thread *thread,
		      struct ky_sites *sites);
	/* The thread has ended, with all its spans: where this is NULL, their ends come as events. */
	void (*end)(void *writer, const struct ky_thread *thread, uint64_t time_ns);
	/* Puts what the writer still gathers into the buffer: it is about to be pushed. May be NULL. */
	void (*flush)(void *writer);
	/* So much is missing for a cause (losses.h) that no event shows. Before finish. */
	void (*loss)(void *writer, const char *what, uint64_t count);
	/* Ends the file; lost is the number of events missing in all. */
	void (*finish)(void *writer, uint64_t lost);
	void (*close)(void *writer);
};

/*
 * The formats that kymo writes, X(name) for each and SEP between them. Each has a ky_format, with which a session
 * writes it, and a ky_exporter (export.h), with which a trace is converted. A file's suffix is the name.
 */
#define KY_FORMATS_WRITTEN(X, SEP)                                                                 \
	X(json) SEP X(pftrace)                                                                     \
	SEP X(fxt)                                                                                 \
	SEP X(kymo)

#define KY_FORMAT_NAME(name) #name
#define KY_FORMAT_SUFFIX(name) "." #name
#define KY_FORMAT_DECLARE(name) extern const struct ky_format ky_format_##name;
/* What Perfetto's own tools call a .pftrace. */
#define KY_FORMAT_PERFETTO_SUFFIX ".perfetto-trace"
/* "json, pftrace, ..." and ".json, .pftrace, ...", for help and messages. */
#define KY_FORMAT_NAMES KY_FORMATS_WRITTEN(KY_FORMAT_NAME, ", ")
#define KY_FORMAT_SUFFIXES KY_FORMATS_WRITTEN(KY_FORMAT_SUFFIX, ", ")

KY_FORMATS_WRITTEN(KY_FORMAT_DECLARE, )

/* Return the format of that id (enum kymo_format, compressed ones too), or NULL. */
const struct ky_format *ky_format_by_id(int id);
/* Return the id for a file name's suffix, or 0. */
int ky_format_by_name(const char *path);

#endif
