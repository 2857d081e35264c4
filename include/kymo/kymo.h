/* SPDX-License-Identifier: MIT */
/*
 * kymo.h: trace points for C11, C++11 and later.
 *
 *	#include <kymo/kymo.h>
 *
 *	void recv_packet(struct peer *peer, size_t bytes)
 *	{
 *		KYMO_SCOPE("net", "recv_packet", "bytes", bytes, "peer", peer->name);
 *		...
 *	}
 *
 * Categories, names and keys are string literals. A macro whose name ends in _DYN takes the name from
 * a variable and copies it. "..." is up to KYMO_ARGS_MAX pairs of a key and a value; the compiler
 * finds the value's type: integer (also a bit-field), enum, floating point, bool, pointer, C string; in
 * C++ also std::string, anything with data() and size() of characters, and objects that convert to a
 * number. A mistake is a static assertion that begins with "kymo:". A value is evaluated only when the
 * event is recorded. Strings are copied into the event, at most KYMO_STRING_MAX bytes of each; a longer
 * one is marked as cut. Before C++23 a constexpr function can have no trace point, as it can have no
 * static variable.
 *
 * Cost. Off: a load, the test of one byte and a branch not taken. On: a trace point reads the CPU's
 * counter and stores 8 bytes, plus 8 per argument, in this thread's ring buffer. It takes no lock,
 * allocates nothing, makes no system call and leaves errno alone, also in a signal handler. The first
 * event of a trace point registers it and the first event of a thread takes a ring: both cost more and
 * make a few system calls, with the same guarantees otherwise.
 *
 * -DKYMO_DISABLE compiles all trace points out: no code is left and no argument is evaluated.
 * -DKYMO_STATIC_CATEGORIES='"net","db"' keeps only the trace points of the named categories.
 * -DKYMO_EMBEDDED is for libraries that must not depend on libkymo: see embed.h.
 *
 * Names that begin with KYMO_I_ or kymo_i_ are private.
 */
#ifndef KYMO_KYMO_H
#define KYMO_KYMO_H

#include <stddef.h>
#include <stdint.h>

#if UINTPTR_MAX < UINT64_MAX && !defined(KYMO_DISABLE)
#error "kymo: trace points need 64-bit pointers: build for 64 bits, or define KYMO_DISABLE"
#define KYMO_DISABLE /* so that the compiler says no more */
#endif

/* The maximum number of key and value pairs in one event. */
#define KYMO_ARGS_MAX 8
/* The maximum number of bytes kept of one string value, dynamic name or %s. */
#define KYMO_STRING_MAX 255

/*
 * KYMO_SCOPE(cat, name, ...): a span until the end of the enclosing block, however control leaves it.
 * In C no goto or case label may jump over it into its block, as with every variable that has a
 * cleanup: clang rejects that, gcc does not notice.
 */
#define KYMO_SCOPE(cat, ...)                                                                       \
	KYMO_I_CHECK(cat, KYMO_I_FIRST(__VA_ARGS__), "use KYMO_SCOPE_DYN", 0, __VA_ARGS__)         \
	KYMO_I_SCOPE(0, cat, KYMO_I_FIRST(__VA_ARGS__), 0, __VA_ARGS__)
#define KYMO_SCOPE_DYN(cat, ...)                                                                   \
	KYMO_I_CHECK(cat, "", "", 1, KYMO_I_NAME_FIRST(__VA_ARGS__))                               \
	KYMO_I_SCOPE(KYMO_SITE_NAME, cat, "", 1, KYMO_I_NAME_FIRST(__VA_ARGS__))

/*
 * KYMO_SCOPE_OVER(cat, name, min_ns, ...): the same, and ask for a snapshot when the span lasted longer
 * than min_ns. The name given to the _DYN variant must live until the end of the block.
 */
#define KYMO_SCOPE_OVER(cat, name, ...)                                                            \
	KYMO_I_CHECK(cat, name, "use KYMO_SCOPE_OVER_DYN", 0, __VA_ARGS__)                         \
	KYMO_I_SCOPE_OVER(0, cat, name, KYMO_I_FIRST(__VA_ARGS__), name, 0, __VA_ARGS__)
#define KYMO_SCOPE_OVER_DYN(cat, name, ...)                                                        \
	KYMO_I_CHECK(cat, "", "", 0, __VA_ARGS__)                                                  \
	KYMO_I_SCOPE_OVER_DYN(cat, name, KYMO_I_FIRST(__VA_ARGS__), __VA_ARGS__)

/* KYMO_BEGIN(cat, name, ...): begin a span. */
#define KYMO_BEGIN(cat, ...)                                                                       \
	KYMO_I_OPEN KYMO_I_CHECK(cat, KYMO_I_FIRST(__VA_ARGS__), "use KYMO_BEGIN_DYN", 0,          \
				 __VA_ARGS__)                                                      \
		KYMO_I_KEYED(KYMO_KIND_BEGIN, 0, cat, KYMO_I_FIRST(__VA_ARGS__), 0, __VA_ARGS__)   \
			KYMO_I_CLOSE
#define KYMO_BEGIN_DYN(cat, ...)                                                                   \
	KYMO_I_OPEN KYMO_I_CHECK(cat, "", "", 1, KYMO_I_NAME_FIRST(__VA_ARGS__))                   \
		KYMO_I_KEYED(KYMO_KIND_BEGIN, KYMO_SITE_NAME, cat, "", 1,                          \
			     KYMO_I_NAME_FIRST(__VA_ARGS__)) KYMO_I_CLOSE

/* KYMO_END(cat, ...): end the thread's innermost open span. */
#define KYMO_END(...)                                                                              \
	KYMO_I_OPEN KYMO_I_CHECK(KYMO_I_FIRST(__VA_ARGS__), "", "", 0, __VA_ARGS__)                \
		KYMO_I_KEYED(KYMO_KIND_END, 0, KYMO_I_FIRST(__VA_ARGS__), "", 0, __VA_ARGS__)      \
			KYMO_I_CLOSE

/* KYMO_INSTANT(cat, name, ...): a point in time. */
#define KYMO_INSTANT(cat, ...)                                                                     \
	KYMO_I_OPEN KYMO_I_CHECK(cat, KYMO_I_FIRST(__VA_ARGS__), "use KYMO_INSTANT_DYN", 0,        \
				 __VA_ARGS__)                                                      \
		KYMO_I_KEYED(KYMO_KIND_INSTANT, 0, cat, KYMO_I_FIRST(__VA_ARGS__), 0, __VA_ARGS__) \
			KYMO_I_CLOSE
#define KYMO_INSTANT_DYN(cat, ...)                                                                 \
	KYMO_I_OPEN KYMO_I_CHECK(cat, "", "", 1, KYMO_I_NAME_FIRST(__VA_ARGS__))                   \
		KYMO_I_KEYED(KYMO_KIND_INSTANT, KYMO_SITE_NAME, cat, "", 1,                        \
			     KYMO_I_NAME_FIRST(__VA_ARGS__)) KYMO_I_CLOSE

/* KYMO_COUNTER(cat, name, value): a value of the process over time; integer or floating point. */
#define KYMO_COUNTER(cat, name, value)                                                             \
	KYMO_I_OPEN KYMO_I_CHECK(cat, name, "use KYMO_COUNTER_DYN", 0, 0, "value", value)          \
		KYMO_I_KEYED(KYMO_KIND_COUNTER, 0, cat, name, 0, 0, "value", value) KYMO_I_CLOSE
#define KYMO_COUNTER_DYN(cat, name, value)                                                         \
	KYMO_I_OPEN KYMO_I_CHECK(cat, "", "", 1, KYMO_I_NAME_FIRST(name, "value", value))          \
		KYMO_I_KEYED(KYMO_KIND_COUNTER, KYMO_SITE_NAME, cat, "", 1,                        \
			     KYMO_I_NAME_FIRST(name, "value", value)) KYMO_I_CLOSE

/*
 * KYMO_ASYNC_BEGIN(cat, name, id, ...), KYMO_ASYNC_INSTANT, KYMO_ASYNC_END: a span that may cross
 * threads and overlap others. Events with the same category and id belong together and nest. The id is
 * an integer or a pointer.
 */
#define KYMO_ASYNC_BEGIN(cat, name, ...)                                                           \
	KYMO_I_OPEN KYMO_I_CHECK(cat, name, "use KYMO_ASYNC_BEGIN_DYN", 1, 0, "", __VA_ARGS__)     \
		KYMO_I_KEYED(KYMO_KIND_ASYNC_BEGIN, KYMO_SITE_ID, cat, name, 1, 0, "",             \
			     __VA_ARGS__) KYMO_I_CLOSE
#define KYMO_ASYNC_INSTANT(cat, name, ...)                                                         \
	KYMO_I_OPEN KYMO_I_CHECK(cat, name, "use KYMO_ASYNC_INSTANT_DYN", 1, 0, "", __VA_ARGS__)   \
		KYMO_I_KEYED(KYMO_KIND_ASYNC_INSTANT, KYMO_SITE_ID, cat, name, 1, 0, "",           \
			     __VA_ARGS__) KYMO_I_CLOSE
#define KYMO_ASYNC_END(cat, name, ...)                                                             \
	KYMO_I_OPEN KYMO_I_CHECK(cat, name, "use KYMO_ASYNC_END_DYN", 1, 0, "", __VA_ARGS__)       \
		KYMO_I_KEYED(KYMO_KIND_ASYNC_END, KYMO_SITE_ID, cat, name, 1, 0, "", __VA_ARGS__)  \
			KYMO_I_CLOSE
#define KYMO_ASYNC_BEGIN_DYN(cat, name, ...)                                                       \
	KYMO_I_OPEN KYMO_I_CHECK(cat, "", "", 1, 0, "", __VA_ARGS__)                               \
		KYMO_I_ID_DYN(KYMO_KIND_ASYNC_BEGIN, cat, name, __VA_ARGS__) KYMO_I_CLOSE
#define KYMO_ASYNC_INSTANT_DYN(cat, name, ...)                                                     \
	KYMO_I_OPEN KYMO_I_CHECK(cat, "", "", 1, 0, "", __VA_ARGS__)                               \
		KYMO_I_ID_DYN(KYMO_KIND_ASYNC_INSTANT, cat, name, __VA_ARGS__) KYMO_I_CLOSE
#define KYMO_ASYNC_END_DYN(cat, name, ...)                                                         \
	KYMO_I_OPEN KYMO_I_CHECK(cat, "", "", 1, 0, "", __VA_ARGS__)                               \
		KYMO_I_ID_DYN(KYMO_KIND_ASYNC_END, cat, name, __VA_ARGS__) KYMO_I_CLOSE

/*
 * KYMO_FLOW_BEGIN(cat, name, id), KYMO_FLOW_STEP, KYMO_FLOW_END: an arrow from the span that is open at
 * its beginning to those that are open at its steps and at its end. Events with the same category, name
 * and id are one flow.
 */
#define KYMO_FLOW_BEGIN(cat, name, id)                                                             \
	KYMO_I_OPEN KYMO_I_CHECK(cat, name, "use KYMO_FLOW_BEGIN_DYN", 1, 0, "", id)               \
		KYMO_I_KEYED(KYMO_KIND_FLOW_BEGIN, KYMO_SITE_ID, cat, name, 1, 0, "", id)          \
			KYMO_I_CLOSE
#define KYMO_FLOW_STEP(cat, name, id)                                                              \
	KYMO_I_OPEN KYMO_I_CHECK(cat, name, "use KYMO_FLOW_STEP_DYN", 1, 0, "", id)                \
		KYMO_I_KEYED(KYMO_KIND_FLOW_STEP, KYMO_SITE_ID, cat, name, 1, 0, "", id)           \
			KYMO_I_CLOSE
#define KYMO_FLOW_END(cat, name, id)                                                               \
	KYMO_I_OPEN KYMO_I_CHECK(cat, name, "use KYMO_FLOW_END_DYN", 1, 0, "", id)                 \
		KYMO_I_KEYED(KYMO_KIND_FLOW_END, KYMO_SITE_ID, cat, name, 1, 0, "", id)            \
			KYMO_I_CLOSE
#define KYMO_FLOW_BEGIN_DYN(cat, name, id)                                                         \
	KYMO_I_OPEN KYMO_I_CHECK(cat, "", "", 1, 0, "", id)                                        \
		KYMO_I_ID_DYN(KYMO_KIND_FLOW_BEGIN, cat, name, id) KYMO_I_CLOSE
#define KYMO_FLOW_STEP_DYN(cat, name, id)                                                          \
	KYMO_I_OPEN KYMO_I_CHECK(cat, "", "", 1, 0, "", id)                                        \
		KYMO_I_ID_DYN(KYMO_KIND_FLOW_STEP, cat, name, id) KYMO_I_CLOSE
#define KYMO_FLOW_END_DYN(cat, name, id)                                                           \
	KYMO_I_OPEN KYMO_I_CHECK(cat, "", "", 1, 0, "", id)                                        \
		KYMO_I_ID_DYN(KYMO_KIND_FLOW_END, cat, name, id) KYMO_I_CLOSE

/*
 * KYMO_PRINT(cat, fmt, ...): a message as printf formats it, of up to KYMO_ARGS_MAX values. Only the
 * values are recorded; the reader of the trace formats them.
 */
#define KYMO_PRINT(cat, ...)                                                                       \
	KYMO_I_OPEN KYMO_I_CHECK_PRINT(cat, __VA_ARGS__) KYMO_I_PRINT(cat, __VA_ARGS__) KYMO_I_CLOSE

/* KYMO_ENABLED(cat): 1 while the category is on, else 0; for work done only to trace. */
#define KYMO_ENABLED(cat) KYMO_I_ENABLED(cat)

#ifdef __cplusplus
extern "C" {
#endif

/* Exported by libkymo. With -DKYMO_PRIVATE a plugin that has a copy of its own exports nothing of it. */
#ifdef KYMO_PRIVATE
#define KYMO_API __attribute__((__visibility__("hidden")))
#else
#define KYMO_API __attribute__((__visibility__("default")))
#endif
/* The same, but inline in programs that are built without libkymo. */
#if defined(KYMO_DISABLE) || defined(KYMO_EMBEDDED)
#define KYMO_I_API static inline __attribute__((__unused__))
#else
#define KYMO_I_API KYMO_API
#endif

/*
 * kymo_thread_name(name): name the calling thread in every trace. The name is copied and cut at
 * KYMO_STRING_MAX. A thread without one has the kernel's name (pthread_setname_np). Safe in signal
 * handlers.
 */
KYMO_I_API void kymo_thread_name(const char *);

/* kymo_process_name(name): name the process in every trace. Copied; cut at KYMO_STRING_MAX. */
KYMO_I_API void kymo_process_name(const char *);

/*
 * kymo_snapshot(reason, arg): ask all recorders to keep what led here: an attached recorder takes a
 * snapshot, and this process's ring sessions write their files, in threads of their own. Never blocks.
 * The reason is copied and shown with arg on the snapshots track.
 */
KYMO_I_API void kymo_snapshot(const char *, uint64_t);

/* Make the next snapshot reach back to this moment and no further. */
KYMO_I_API void kymo_mark_start(void);

/* What an event means. The numbers are part of the layout of recordings: they are never reused. */
enum kymo_kind {
	KYMO_KIND_NONE = 0,
	KYMO_KIND_BEGIN = 1,       /* a span begins on this thread */
	KYMO_KIND_END = 2,         /* the innermost open span of this thread ends */
	KYMO_KIND_INSTANT = 3,     /* a point in time */
	KYMO_KIND_COUNTER = 4,     /* a value over time */
	KYMO_KIND_ASYNC_BEGIN = 5, /* a span that may cross threads; category and id identify it */
	KYMO_KIND_ASYNC_INSTANT = 6,    /* a point on an asynchronous span */
	KYMO_KIND_ASYNC_END = 7,        /* the asynchronous span ends */
	KYMO_KIND_FLOW_BEGIN = 8,       /* an arrow leaves the enclosing span */
	KYMO_KIND_FLOW_STEP = 9,        /* it passes through the enclosing span */
	KYMO_KIND_FLOW_END = 10,        /* it arrives in the enclosing span */
	KYMO_KIND_PRINT = 11,           /* a formatted message; the name is the format */
	KYMO_KIND_OBJECT_NEW = 12,      /* an object appears (trace_event.h) */
	KYMO_KIND_OBJECT_SNAPSHOT = 13, /* its state */
	KYMO_KIND_OBJECT_DELETE = 14,   /* it disappears */
	KYMO_KIND_METADATA = 15,        /* a fact about the process */
	KYMO_KIND_CLOCK_SYNC = 16,      /* a mark that ties the clocks of two tracing systems */
	KYMO_KIND_SAMPLE = 17,          /* a point at which something was sampled */
	KYMO_KIND_SNAPSHOT = 18,        /* kymo_snapshot() was called */
	KYMO_KIND_MARK = 19,            /* kymo_mark_start() was called */
	KYMO_KIND_LOST = 20             /* made by readers: events are missing here */
};

/* The type of a value. */
enum kymo_type {
	KYMO_TYPE_NONE = 0,
	KYMO_TYPE_INT = 1,
	KYMO_TYPE_UINT = 2,
	KYMO_TYPE_DOUBLE = 3,
	KYMO_TYPE_BOOL = 4,
	KYMO_TYPE_POINTER = 5,
	KYMO_TYPE_STRING = 6
};

/* Flags of a trace point. The first four name the items before its arguments, in this order. */
#define KYMO_SITE_TIME 0x01u     /* explicit CLOCK_MONOTONIC time, in nanoseconds */
#define KYMO_SITE_TID 0x02u      /* explicit thread id */
#define KYMO_SITE_NAME 0x04u     /* the name, a string */
#define KYMO_SITE_ID 0x08u       /* 64-bit id of an async span, flow or object */
#define KYMO_SITE_SCOPE 0x10u    /* one trace point for beginning and end of a span */
#define KYMO_SITE_PROCESS 0x20u  /* instant: concerns the whole process */
#define KYMO_SITE_GLOBAL 0x40u   /* instant: concerns the whole machine */
#define KYMO_SITE_LOCAL_ID 0x80u /* the id has a meaning in this process alone */

#ifdef __cplusplus
} /* extern "C" */
#endif

#include "kymo_impl.h"

#endif /* KYMO_KYMO_H */
