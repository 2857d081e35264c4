/* SPDX-License-Identifier: MIT */
/*
 * session.h: record to a file, a descriptor, a callback or ftrace, from inside the program.
 *
 *	struct kymo_session *session;
 *	struct kymo_options options = {.size = sizeof(options), .path = "out.pftrace"};
 *	int error = kymo_session_start(&session, &options);
 *	...
 *	error = kymo_session_stop(&session);
 *
 * Functions return 0 or more on success, else a negative errno or an enum kymo_error; kymo_strerror() has the text. All
 * functions may be called from any thread, none from a signal handler. A session never stops, blocks or ends the program:
 * when its file cannot be written, the session ends and keeps the error for kymo_session_error() and kymo_session_stop(),
 * and the program continues.
 *
 * Without any code: KYMO_TRACE=out.pftrace ./program starts a session when the library is loaded.
 */
#ifndef KYMO_SESSION_H
#define KYMO_SESSION_H

#include <stddef.h>
#include <stdint.h>

#include <kymo/kymo.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Errors other than the system's: name, number, text. */
#define KYMO_ERRORS(X)                                                                             \
	X(KYMO_EFORMAT, -4096,                                                                     \
	  "no output format has that suffix: use .json, .json.gz, .pftrace, "                      \
	  ".perfetto-trace, .fxt, .fxt.gz or .kymo, or set format")                                \
	X(KYMO_EZLIB, -4097,                                                                       \
	  "compressing needs libz.so.1, which could not be loaded: install "                       \
	  "zlib, or choose a name without .gz")                                                    \
	X(KYMO_ECONFIG, -4098, "the Perfetto trace config is not a valid TraceConfig message")     \
	X(KYMO_EMARKER, -4099,                                                                     \
	  "ftrace's trace_marker cannot be opened for writing: mount "                             \
	  "tracefs (mount -t tracefs tracefs /sys/kernel/tracing) and run "                        \
	  "as a user who may write there")                                                         \
	X(KYMO_EDRUM, -4100, "the shared memory for events could not be made")                     \
	X(KYMO_ESLOTS, -4101, "too many sessions and subscribers at once")                         \
	X(KYMO_EFORKED, -4102, "the session belongs to the parent process")                        \
	X(KYMO_EOPTIONS, -4103,                                                                    \
	  "kymo_options.size is not set, or the options contradict each other")

enum kymo_error {
#define KYMO_I_ERROR_ENUM(name, value, text) name = (value),
	KYMO_ERRORS(KYMO_I_ERROR_ENUM)
#undef KYMO_I_ERROR_ENUM
		KYMO_ERRORS_END = -4104
};

/* What a session writes. */
enum kymo_format {
	KYMO_FORMAT_AUTO = 0, /* by the suffix of path; .kymo for a descriptor */
	KYMO_FORMAT_JSON = 1, /* Chrome Trace Event JSON */
	KYMO_FORMAT_JSON_GZ = 2,
	KYMO_FORMAT_PFTRACE = 3, /* Perfetto protobuf */
	KYMO_FORMAT_FXT = 4,     /* Fuchsia trace format */
	KYMO_FORMAT_FXT_GZ = 5,
	KYMO_FORMAT_KYMO = 6, /* kymo's own: smallest and fastest */
	/* Write each event to ftrace's trace_marker as it happens: a system call per event. */
	KYMO_FORMAT_MARKER = 7,        /* "<id> <category> Enter: name - (arg: val)" */
	KYMO_FORMAT_MARKER_ATRACE = 8, /* "B|pid|name": Perfetto and Android tools see slices */
	KYMO_FORMAT_NONE = 9 /* nothing: the rings are a flight recorder for later readers */
};

/* When a session writes. */
enum kymo_mode {

	KYMO_MODE_STREAM = 0, /* write all the time */
	KYMO_MODE_RING =
		1 /* keep the newest events; write them at kymo_snapshot(), flush and stop */
};

/*
 * What to record, and where. Zero everything, then set size and what you need. Strings are copied.
 */
struct kymo_options {
	size_t size;      /* sizeof(struct kymo_options) */
	const char *path; /* output file; ${pid} and ${rotation} are filled in */
			  /*
	 * When path is NULL: an open descriptor, which is duplicated; 0 means no descriptor. A pipe that is not read for
	 * seconds ends the session.
	 */
	int fd;
	int format;             /* enum kymo_format */
	int mode;               /* enum kymo_mode */
	const char *categories; /* globs, comma-separated, '-' before one excludes; NULL is all */
	size_t ring_bytes; /* ring of each thread; 0 is the default; rounded up to a power of two */
	size_t total_bytes;   /* all rings together; 0 is the default */
	uint32_t flush_ms;    /* the longest time until an event is in the file; 0 is 5000 */
	uint32_t duration_ms; /* the session ends by itself after this time; 0 is never */
	/* The size at which the next file begins (with ${rotation} in the path) or the session ends; 0 is no limit. */
	uint64_t max_bytes;
	/* A serialized perfetto.protos.TraceConfig instead of the options above; those that are set win. */
	const void *perfetto_config;
	size_t perfetto_config_bytes;
	/*
	 * KYMO_MODE_STREAM: rather than overwrite events that the session has not read, a thread waits for it, for at most so
	 * long; 0 is not at all. Events in signal handlers that interrupted an event do not wait. Holds for two sessions at once.
	 */
	uint32_t stall_ms;
};

struct kymo_session;

/*
 * Start a session and store it in *session; on failure *session is NULL. Return 0; KYMO_EOPTIONS, KYMO_EFORMAT,
 * KYMO_EZLIB, KYMO_ECONFIG, KYMO_EMARKER, KYMO_EDRUM, KYMO_ESLOTS; or the error of opening the file or making the thread.
 */
KYMO_API int kymo_session_start(struct kymo_session **session, const struct kymo_options *options);

/*
 * Wait until every event recorded before the call is written (in ring mode: write the file now). Return 0 or the
 * session's first error.
 */
KYMO_API int kymo_session_flush(struct kymo_session *session);

/* Return the session's first error so far, or 0. Does not wait. */
KYMO_API int kymo_session_error(const struct kymo_session *session);

/* Session statistics. */
struct kymo_stats {
	size_t size;         /* sizeof(struct kymo_stats), set by the caller */
	uint64_t events;     /* written so far */
	uint64_t lost;       /* overwritten before they were read, or without room for them */
	uint64_t bytes;      /* output so far, after compression */
	uint32_t files;      /* begun so far */
	uint64_t stalled;    /* events that waited for a session since the process began */
	uint64_t stalled_ns; /* how long, all together */
};
/* Fill in *stats. Return 0, or KYMO_EOPTIONS when size is not set. Does not wait. */
KYMO_API int kymo_session_stats(const struct kymo_session *session, struct kymo_stats *stats);

/*
 * Finish the file, free the session and set *session to NULL, even on failure; *session may be NULL. Return 0 or the
 * session's first error.
 */
KYMO_API int kymo_session_stop(struct kymo_session **session);

/* One argument of an event. Strings live until the callback returns. */
struct kymo_arg {
	const char *key;
	uint32_t type;         /* enum kymo_type */
	uint32_t string_bytes; /* of string, without the final NUL */
	int cut;               /* the string was longer than KYMO_STRING_MAX */
	union {
		int64_t i;  /* KYMO_TYPE_INT */
		uint64_t u; /* KYMO_TYPE_UINT, _BOOL, _POINTER */
		double d;   /* KYMO_TYPE_DOUBLE */
	} value;
	const char *string; /* KYMO_TYPE_STRING, else NULL */
};

/* One event. The struct only grows at the end: step through an array by its size field. */
struct kymo_event {
	uint32_t size;
	uint32_t kind;    /* enum kymo_kind */
	uint64_t time_ns; /* CLOCK_BOOTTIME */
	int32_t pid;
	int32_t tid;
	const char *thread; /* the thread's name */
	const char *category;
	const char *name; /* PRINT: the formatted message; END: of the trace point, may be empty */
	uint64_t id;      /* async, flow, object; LOST: how many events are missing */
	const struct kymo_arg *args;
	uint32_t args_count;
	uint32_t line;
	const char *file;
	const char *function;
	uint32_t flags; /* KYMO_SITE_: the optional parts that the trace point has */
	uint32_t pad;
};

/* A subscriber's callback. */
typedef void (*kymo_event_fn)(const struct kymo_event *events, size_t count, void *context);

/*
 * Call fn from a thread of the library with batches of events in the order of their times, until kymo_unsubscribe(). A
 * subscriber that is too slow does not hold up the program: it gets one event of kind KYMO_KIND_LOST for those that were
 * overwritten; and one, of no thread, for each other cause of losses, which is its name (id is 0 if what is missing is
 * no event, but a name; args has the number). fn does not get the events that it records itself. fn may call all functions of this header. The end of the
 * program does not wait for fn: what fn uses must stay valid, or unsubscribe first. categories as in kymo_options. Return
 * a number for kymo_unsubscribe(), 0 or more; or KYMO_EOPTIONS, KYMO_EDRUM, KYMO_ESLOTS.
 */
KYMO_API int kymo_subscribe(kymo_event_fn fn, void *context, const char *categories);

/*
 * End a subscription. Events recorded before the call are still delivered; when it returns, fn is not running and will not
 * be called again. Inside fn it returns at once, and fn is not called again after it returned. Return 0, or -ENOENT when
 * there is no such subscription.
 */
KYMO_API int kymo_unsubscribe(int subscription);

/* How a process is about to be confined. */
enum kymo_sandbox {
	KYMO_SANDBOX_FILTER = 0, /* a filter of system calls */
	/*
	 * SECCOMP_MODE_STRICT, which on x86 forbids reading the CPU's counter, too. Events then have a time that moves in
	 * steps of the kernel's tick, 1 to 10 milliseconds, and keep their order.
	 */
	KYMO_SANDBOX_STRICT = 1
};

/*
 * Do all that later events of the calling thread would need system calls for: make the shared memory, take and populate the
 * thread's rings, read the clocks, and begin the session of a forked child with KYMO_TRACE. Afterwards an event of the
 * thread makes no system call, except for write() with trace_marker. Other threads and forked children prepare themselves.
 * Return 0, KYMO_EOPTIONS, KYMO_EDRUM, -EAGAIN when there is no ring left, or -ENOSPC.
 */
KYMO_API int kymo_prepare(int sandbox);

/*
 * List the descriptors that a sandboxed child must keep for tracing to continue (the shared memory, trace_marker, the
 * sessions' files), as they are after kymo_prepare(). Store at most max in fds. Return how many there are.
 */
KYMO_API int kymo_descriptors(int *fds, size_t max);

/* Return the text for an error that a function of this library returned. Never NULL. */
KYMO_API const char *kymo_strerror(int error);

#ifdef __cplusplus
}
#endif

#endif /* KYMO_SESSION_H */
