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
 * Categories, names and keys are string literals. After the name come up to KYMO_ARGS_MAX pairs of
 * a key and a value; the compiler finds the value's type (integer, floating point, bool, pointer,
 * C string). A value is evaluated only when the event is recorded. Strings are copied into the
 * event, at most KYMO_STRING_MAX bytes of them; a longer one is marked as cut.
 *
 * What a trace point costs. Off: a load, the test of one byte and a branch not taken. On: the CPU's
 * counter is read and 8 bytes plus 8 per argument are stored in the ring of this thread: no lock,
 * no allocation, no system call, errno untouched; also inside signal handlers. The first event of a
 * trace point registers it and the first event of a thread takes a ring: costlier, same guarantees
 * but for a few system calls. Compiled with -DKYMO_DISABLE nothing is left and nothing is evaluated.
 *
 * Everything that begins with KYMO_I_ or kymo_i_ is an implementation detail.
 */
#ifndef KYMO_KYMO_H
#define KYMO_KYMO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions and data that libkymo exports. */
#define KYMO_API __attribute__((visibility("default")))

/* At most this many key and value pairs in one event. */
#define KYMO_ARGS_MAX 8
/* At most this many bytes of one string value, dynamic name or %s are kept. */
#define KYMO_STRING_MAX 255

/* What an event means. The numbers are part of the drum's layout: they are never reused. */
enum kymo_kind {
	KYMO_KIND_NONE = 0,
	KYMO_KIND_BEGIN = 1,   /* a span begins on this thread */
	KYMO_KIND_END = 2,     /* the innermost open span of this thread ends */
	KYMO_KIND_INSTANT = 3, /* a point in time */
	KYMO_KIND_COUNTER = 4, /* a value over time */
	KYMO_KIND_ASYNC_BEGIN =
		5, /* a span that may cross threads; identified by category and id */
	KYMO_KIND_ASYNC_INSTANT = 6, /* a point on an asynchronous span */
	KYMO_KIND_ASYNC_END = 7,
	KYMO_KIND_FLOW_BEGIN = 8, /* an arrow leaves the enclosing span */
	KYMO_KIND_FLOW_STEP = 9,
	KYMO_KIND_FLOW_END = 10,
	KYMO_KIND_PRINT = 11,           /* a formatted message; the name is the format */
	KYMO_KIND_OBJECT_NEW = 12,      /* an object appears (trace_event.h) */
	KYMO_KIND_OBJECT_SNAPSHOT = 13, /* its state */
	KYMO_KIND_OBJECT_DELETE = 14,
	KYMO_KIND_METADATA = 15,   /* a fact about the process */
	KYMO_KIND_CLOCK_SYNC = 16, /* a mark that ties two tracing systems' clocks */
	KYMO_KIND_SAMPLE = 17,     /* a point at which something was sampled */
	KYMO_KIND_SNAPSHOT = 18,   /* kymo_snapshot() was called */
	KYMO_KIND_MARK = 19,       /* kymo_mark_start() was called */
	KYMO_KIND_LOST = 20        /* made by readers: events are missing here */
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

#if !defined(KYMO_DISABLE) && !defined(KYMO_EMBEDDED)

/*
 * Names the calling thread in every trace. Copied; cut at KYMO_STRING_MAX. Without it the thread has
 * the kernel's name (pthread_setname_np). Safe in signal handlers.
 */
KYMO_API void kymo_thread_name(const char *name);

/* Names the process in every trace. Copied; cut at KYMO_STRING_MAX. */
KYMO_API void kymo_process_name(const char *name);

/*
 * Asks whoever records to keep what led here: an attached recorder takes a snapshot, and ring
 * sessions of this process write their file. Never blocks; the file is written by their own
 * threads. reason is copied and shown with arg on the snapshots track.
 */
KYMO_API void kymo_snapshot(const char *reason, uint64_t arg);

/* The next snapshot reaches back to this moment and no further. */
KYMO_API void kymo_mark_start(void);

#elif defined(KYMO_DISABLE)
static inline void kymo_thread_name(const char *name)
{
	(void)name;
}
static inline void kymo_process_name(const char *name)
{
	(void)name;
}
static inline void kymo_snapshot(const char *reason, uint64_t arg)
{
	(void)reason;
	(void)arg;
}
static inline void kymo_mark_start(void)
{
}
#endif

/*
 * ------------------------------------------------------------------------------------------------
 * Private from here on: what the macros expand to.
 *
 *   struct kymo_i_site  (one per trace point, in .data)       the drum (shared memory)
 *   ┌──────────┬──────┬──────┐
 *   │ enabled ─┼──────┼──────┼──────────────────────────────▶ category's state byte
 *   │          │ word │      │  header word without time and length, 0 until registered
 *   │          │      │ info─┼─▶ struct kymo_site_info (read only)
 *   └──────────┴──────┴──────┘
 *   kymo_i_tls (one per thread) ─▶ struct kymo_i_writer ─ pos ─▶ current block of this thread's ring
 *
 * An event is a header word and then its items, one word each (strings: a length word and the
 * bytes, padded to words):
 *
 *    63          42 41      33 32  31               0
 *   ┌──────────────┬──────────┬───┬──────────────────┐
 *   │ site / 16    │ items in │end│ low half of the  │   word of 64 bits, little-endian
 *   │ in the drum  │ words    │   │ CPU's counter    │
 *   └──────────────┴──────────┴───┴──────────────────┘
 *
 * The header is stored last, in one piece: a non-zero header is a whole event. The words after the
 * last event of a block are zero. When the counter's high half differs from the writer's, the slow
 * path writes it out first.
 *
 * A signal handler may interrupt an event at any instruction. So an event first parks the writer: it
 * adds KYMO_I_BUSY to pos and reads pos in one instruction, which no signal can split (no lock
 * prefix: other threads never write there). A handler that finds the writer parked takes the slow
 * path and writes to a second ring of the same thread.
 * ------------------------------------------------------------------------------------------------
 */
#define KYMO_I_ABI 1
#define KYMO_I_BUSY ((uintptr_t)1 << 58)

/* Flags of a trace point: which items come before the arguments, in this order. */
#define KYMO_SITE_TIME 0x01u /* explicit CLOCK_MONOTONIC time, in nanoseconds */
#define KYMO_SITE_TID 0x02u  /* explicit thread id */
#define KYMO_SITE_NAME 0x04u /* the name, a string */
#define KYMO_SITE_ID 0x08u   /* 64-bit id of an async span, flow or object */
#define KYMO_SITE_SCOPE                                                                            \
	0x10u /* begin and end share the trace point; the end bit tells them apart */
#define KYMO_SITE_PROCESS 0x20u  /* instant: concerns the whole process */
#define KYMO_SITE_GLOBAL 0x40u   /* instant: concerns the whole machine */
#define KYMO_SITE_LOCAL_ID 0x80u /* the id means something in this process alone */

#define KYMO_I_ITEMS_MAX (KYMO_ARGS_MAX + 4)

struct kymo_site_info {
	uint16_t abi;  /* KYMO_I_ABI */
	uint8_t kind;  /* enum kymo_kind */
	uint8_t flags; /* KYMO_SITE_ */
	uint8_t items; /* leading items and arguments */
	uint8_t args;  /* arguments alone */
	uint16_t pad;
	uint32_t line;
	uint32_t pad2;
	uint64_t types; /* four bits an item, the first lowest */
	const char *category;
	const char *name;
	const char *file;
	const char *function;
	const char *const *keys;
};

struct kymo_i_site {
	const unsigned char *enabled;
	uint64_t word;
	const struct kymo_site_info *info;
};

struct kymo_i_writer {
	uintptr_t pos; /* next free word; at least KYMO_I_BUSY while an event is written */
	uintptr_t end; /* end of the block */
	uint32_t high; /* the counter's high half; ~0 sends every event to the slow path */
	uint32_t pad;
	uint64_t events; /* events ever written to this ring */
};

#define KYMO_I_END_BIT ((uint64_t)1 << 32)
#define KYMO_I_LENGTH(words) ((uint64_t)(words) << 33)
#define KYMO_I_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define KYMO_I_INLINE static inline __attribute__((always_inline, unused))

#define KYMO_I_STRING_CUT ((uint64_t)1 << 32)  /* the string was longer than KYMO_STRING_MAX */
#define KYMO_I_STRING_NULL ((uint64_t)1 << 33) /* there was no string, but a null pointer */
/* The word before a string's bytes. */
#define KYMO_I_STRING_WORD(bytes, cut, null)                                                       \
	((uint64_t)(bytes) | ((cut) ? KYMO_I_STRING_CUT : 0) | ((null) ? KYMO_I_STRING_NULL : 0))

/* What a host lends for one event, between reserve and commit. */
struct kymo_reservation {
	uint64_t *items;      /* room for the items, in words; the writer fills it */
	uint64_t private_[4]; /* the host's own */
};

/*
 * The host interface: what a library that ships kymo.h alone (compiled with -DKYMO_EMBEDDED) calls.
 * libkymo is a host; embed.h says how to be one.
 */
#define KYMO_HOST_VERSION 1
struct kymo_host {
	uint32_t size;    /* of this struct; it only grows at the end */
	uint32_t version; /* KYMO_HOST_VERSION */
	void *context;    /* the host's own */
	/* The byte that is non-zero while the category is on; lives as long as the process. */
	const unsigned char *(*category)(const struct kymo_host *host, const char *category);
	/* Registers a trace point; info lives as long as the library. Returns a non-zero handle. */
	uint64_t (*site)(const struct kymo_host *host, const struct kymo_site_info *info);
	/* Room for an event of that many words; 0 when there is none (the host counts the loss). */
	int (*reserve)(const struct kymo_host *host, uint64_t site, uint32_t words,
		       struct kymo_reservation *reservation);
	/* Publishes it. end: the event ends the span that the trace point began. */
	void (*commit)(const struct kymo_host *host, struct kymo_reservation *reservation, int end);
	/* A number for a string, the same for equal strings; 0 when there is no room. */
	uint32_t (*intern)(const struct kymo_host *host, const char *string);
	/* Time in nanoseconds. */
	uint64_t (*time)(const struct kymo_host *host);
	/* As kymo_snapshot(). */
	void (*snapshot)(const struct kymo_host *host, const char *reason, uint64_t arg);
};

#ifndef KYMO_DISABLE

/* Non-zero, so that the first pass over a trace point reaches the library. */
__attribute__((unused)) static const unsigned char kymo_i_unset = 1;

/* Whether the byte is set. A compiler does not fold an atomic load into the comparison: one more. */
#if defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__)
KYMO_I_INLINE int kymo_i_test(const unsigned char *byte)
{
	int set;
	__asm__ volatile("cmpb $0, %1" : "=@ccne"(set) : "m"(*byte));
	return set;
}
#else
KYMO_I_INLINE int kymo_i_test(const unsigned char *byte)
{
	return __atomic_load_n(byte, __ATOMIC_RELAXED) != 0;
}
#endif

#ifndef KYMO_EMBEDDED

extern KYMO_API __thread struct kymo_i_writer *kymo_i_tls
	__attribute__((tls_model("initial-exec")));

/*
 * Registers if need be, takes a ring if need be, begins a block if need be, records. The caller has
 * parked the writer; this unparks it. Returns 1 when the event was recorded, else 0.
 */
KYMO_API __attribute__((cold, noinline)) int kymo_i_event_slow(struct kymo_i_site *site,
							       uint64_t end_bit, uint32_t items,
							       const uint64_t *values);
/* The same for events with one string, item number at; here the caller has not parked the writer. */
KYMO_API int kymo_i_event_string(struct kymo_i_site *site, uint32_t items, uint32_t at,
				 const uint64_t *values);
/* The same with several: strings has a bit in the nibble of each. */
KYMO_API int kymo_i_event_strings(struct kymo_i_site *site, uint32_t items, uint64_t strings,
				  const uint64_t *values);
/* Registers the trace point of a KYMO_ENABLED; returns whether its category is on. */
KYMO_API int kymo_i_enabled_slow(struct kymo_i_site *site);
/* The CPU's counter, or what stands in for it. */
KYMO_API uint64_t kymo_i_ticks(void);
/* Asks for a snapshot when more than min_ns passed since begin_ticks. */
KYMO_API void kymo_i_over(const char *name, uint64_t begin_ticks, uint64_t min_ns);

#if defined(__x86_64__)
#define KYMO_I_READ_COUNTER(low, high) __asm__ volatile("rdtsc" : "=a"(low), "=d"(high))
/*
 * Completes the header with the counter's low half; differs tells that its high half is not the
 * writer's. In one piece, because compilers do not compare with memory that is loaded atomically, and
 * because with nothing between the comparison and the branch it is one instruction.
 */
#define KYMO_I_STAMP(header, differs, w)                                                           \
	__asm__ volatile("rdtsc\n\torq %%rax, %0\n\tcmpl %%edx, %2"                                \
			 : "+&r"(header), "=@ccne"(differs)                                        \
			 : "m"((w)->high)                                                          \
			 : "rax", "rdx")
KYMO_I_INLINE uintptr_t kymo_i_park(struct kymo_i_writer *w)
{
	uintptr_t pos = KYMO_I_BUSY;
	__asm__ volatile("xaddq %0, %1" : "+r"(pos), "+m"(w->pos) : : "memory", "cc");
	return pos;
}
#else
KYMO_I_INLINE uintptr_t kymo_i_park(struct kymo_i_writer *w)
{
	return __atomic_fetch_add(&w->pos, KYMO_I_BUSY, __ATOMIC_RELAXED);
}
#if defined(__aarch64__)
#define KYMO_I_READ_COUNTER(low, high)                                                             \
	do {                                                                                       \
		uint64_t kymo_i_t;                                                                 \
		__asm__ volatile("mrs %0, cntvct_el0" : "=r"(kymo_i_t));                           \
		(low) = kymo_i_t & 0xffffffffu;                                                    \
		(high) = kymo_i_t >> 32;                                                           \
	} while (0)
#else /* no counter to read inline: every event takes the slow path, which asks the system */
#define KYMO_I_READ_COUNTER(low, high) ((low) = 0, (high) = 0xfffffffeu)
#endif
#endif

#define KYMO_I_LOAD(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define KYMO_I_STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#ifndef KYMO_I_STAMP
#define KYMO_I_STAMP(header, differs, w)                                                           \
	do {                                                                                       \
		uint64_t kymo_i_low, kymo_i_high;                                                  \
		KYMO_I_READ_COUNTER(kymo_i_low, kymo_i_high);                                      \
		(header) |= kymo_i_low;                                                            \
		(differs) = (uint32_t)kymo_i_high != KYMO_I_LOAD(&(w)->high);                      \
	} while (0)
#endif

/* Written out, because a loop is not always unrolled; items is a constant. */
KYMO_I_INLINE void kymo_i_store_items(uint64_t *slot, uint32_t items, const uint64_t *values)
{
#define KYMO_I_STORE_ITEM(i)                                                                       \
	if (items > (i))                                                                           \
	KYMO_I_STORE(&slot[i], values[i])
	KYMO_I_STORE_ITEM(0);
	KYMO_I_STORE_ITEM(1);
	KYMO_I_STORE_ITEM(2);
	KYMO_I_STORE_ITEM(3);
	KYMO_I_STORE_ITEM(4);
	KYMO_I_STORE_ITEM(5);
	KYMO_I_STORE_ITEM(6);
	KYMO_I_STORE_ITEM(7);
	KYMO_I_STORE_ITEM(8);
	KYMO_I_STORE_ITEM(9);
	KYMO_I_STORE_ITEM(10);
	KYMO_I_STORE_ITEM(11);
#undef KYMO_I_STORE_ITEM
}

/*
 * The fast path: about 20 instructions, most of its time is the counter's. The trace point has been
 * registered. items, types and end_bit are constants at every call, so that everything but one
 * straight line folds away.
 */
KYMO_I_INLINE int kymo_i_event(struct kymo_i_site *site, uint64_t end_bit, uint32_t items,
			       uint64_t types, const uint64_t *values)
{
	const uint64_t strings = types & (types << 1) & 0x4444444444444444u; /* a bit for each */
	if (strings && (strings & (strings - 1)) == 0)
		return kymo_i_event_string(site, items, (uint32_t)__builtin_ctzll(strings) / 4,
					   values);
	if (strings)
		return kymo_i_event_strings(site, items, strings, values);
	struct kymo_i_writer *const w = kymo_i_tls;
	const uint64_t word = KYMO_I_LOAD(&site->word);
	const uintptr_t pos = kymo_i_park(w);
	uint64_t header = word | KYMO_I_LENGTH(items) | end_bit;
	int differs;
	if (KYMO_I_UNLIKELY(pos + 8u * items >= w->end))
		goto slow;
	KYMO_I_STAMP(header, differs, w);
	if (KYMO_I_UNLIKELY(differs))
		goto slow;
	kymo_i_store_items((uint64_t *)pos + 1, items, values);
	/* Release: pairs with the reader's acquire load of the header, before it reads the items. */
	__atomic_store_n((uint64_t *)pos, header, __ATOMIC_RELEASE);
	w->events++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST); /* the event is whole before the writer is free */
	KYMO_I_STORE(&w->pos, pos + 8 + 8u * items);
	return 1;
slow:;
	/* A copy, so that the values' own array has no address and stays in registers. */
	uint64_t copy[KYMO_I_ITEMS_MAX];
	kymo_i_store_items(copy, items, values);
	return kymo_i_event_slow(site, end_bit, items, items ? copy : 0);
}

/*
 * Acquire: pairs with the release of the word by the thread that registered the trace point. What it
 * wrote of it in the heap thus comes before this thread's event, whose own release a reader sees.
 */
KYMO_I_INLINE int kymo_i_is_enabled(struct kymo_i_site *site)
{
	return __atomic_load_n(&site->word, __ATOMIC_ACQUIRE) != 0 || kymo_i_enabled_slow(site);
}

#else /* KYMO_EMBEDDED: nothing to link; everything goes through a host, when there is one */

#define KYMO_I_LOAD(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define KYMO_I_STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

/* The host, if the program or a library in its global scope has one. */
extern const struct kymo_host *kymo_host_get(uint32_t version) __attribute__((weak));

__attribute__((unused)) static const unsigned char kymo_i_off = 0;
__attribute__((unused)) static const struct kymo_host *kymo_i_host_given;

/* Hands this translation unit a host that is not in the program's global scope. */
__attribute__((unused)) static void kymo_embed_host(const struct kymo_host *host)
{
	__atomic_store_n(&kymo_i_host_given, host, __ATOMIC_RELEASE);
}

__attribute__((unused)) static const struct kymo_host *kymo_i_host(void)
{
	const struct kymo_host *host = __atomic_load_n(&kymo_i_host_given, __ATOMIC_ACQUIRE);
	if (!host && kymo_host_get)
		host = kymo_host_get(KYMO_HOST_VERSION);
	return host;
}

/* Asks the host for the category's flag, once a trace point; returns whether it is on. */
__attribute__((unused, cold, noinline)) static int kymo_i_enabled_slow(struct kymo_i_site *site)
{
	const struct kymo_host *host = kymo_i_host();
	const unsigned char *flag = host ? host->category(host, site->info->category) : &kymo_i_off;
	/* The flag first: a site with a word is one whose flag is the category's. */
	__atomic_store_n(&site->enabled, flag ? flag : &kymo_i_off, __ATOMIC_RELEASE);
	if (host && flag)
		__atomic_store_n(&site->word, host->site(host, site->info), __ATOMIC_RELEASE);
	return flag && *flag;
}

KYMO_I_INLINE int kymo_i_is_enabled(struct kymo_i_site *site)
{
	return __atomic_load_n(&site->word, __ATOMIC_ACQUIRE) != 0 || kymo_i_enabled_slow(site);
}

KYMO_I_INLINE uint32_t kymo_i_string_bytes(const char *string)
{
	uint32_t bytes = 0;
	while (string && bytes < KYMO_STRING_MAX && string[bytes])
		bytes++;
	return bytes;
}

__attribute__((unused, noinline)) static int kymo_i_event(struct kymo_i_site *site,
							  uint64_t end_bit, uint32_t items,
							  uint64_t types, const uint64_t *values)
{
	if (!kymo_i_is_enabled(site))
		return 0;
	const struct kymo_host *host = kymo_i_host();
	uint32_t words = items;
	for (uint32_t i = 0; i < items; i++)
		if ((types >> (4 * i) & 15) == KYMO_TYPE_STRING)
			words += (kymo_i_string_bytes((const char *)(uintptr_t)values[i]) + 7) / 8;
	struct kymo_reservation r;
	if (!host || !host->reserve(host, KYMO_I_LOAD(&site->word), words, &r))
		return 0;
	uint64_t *slot = r.items;
	for (uint32_t i = 0; i < items; i++) {
		if ((types >> (4 * i) & 15) != KYMO_TYPE_STRING) {
			*slot++ = values[i];
			continue;
		}
		const char *string = (const char *)(uintptr_t)values[i];
		const uint32_t bytes = kymo_i_string_bytes(string);
		const uint32_t more = string && string[bytes] != '\0';
		*slot++ = KYMO_I_STRING_WORD(bytes, more, string == NULL);
		if (bytes)
			slot[(bytes - 1) / 8] = 0;
		__builtin_memcpy(slot, string ? string : "", bytes);
		slot += (bytes + 7) / 8;
	}
	host->commit(host, &r, end_bit != 0);
	return 1;
}

KYMO_I_INLINE uint64_t kymo_i_ticks(void)
{
	const struct kymo_host *host = kymo_i_host();
	return host ? host->time(host) : 0;
}

KYMO_I_INLINE void kymo_i_over(const char *name, uint64_t begin_ticks, uint64_t min_ns)
{
	const struct kymo_host *host = kymo_i_host();
	const uint64_t lasted_ns = host ? host->time(host) - begin_ticks : 0;
	if (lasted_ns > min_ns)
		host->snapshot(host, name, lasted_ns);
}

/* The host names its process and its threads. */
KYMO_I_INLINE void kymo_thread_name(const char *name)
{
	(void)name;
}
KYMO_I_INLINE void kymo_process_name(const char *name)
{
	(void)name;
}
KYMO_I_INLINE void kymo_mark_start(void)
{
}
KYMO_I_INLINE void kymo_snapshot(const char *reason, uint64_t arg)
{
	const struct kymo_host *host = kymo_i_host();
	if (host)
		host->snapshot(host, reason, arg);
}

#endif /* KYMO_EMBEDDED */

#endif /* KYMO_DISABLE */

#ifdef __cplusplus
} /* extern "C" */
#endif

/*
 * A value's type and its word. C chooses by _Generic, C++ by overloading; neither evaluates the
 * value for its type.
 */
KYMO_I_INLINE uint64_t kymo_i_word_int(int64_t v)
{
	return (uint64_t)v;
}
KYMO_I_INLINE uint64_t kymo_i_word_uint(uint64_t v)
{
	return v;
}
KYMO_I_INLINE uint64_t kymo_i_word_double(double v)
{
	uint64_t word;
	__builtin_memcpy(&word, &v, sizeof(word));
	return word;
}
KYMO_I_INLINE uint64_t kymo_i_word_pointer(const volatile void *v)
{
	return (uint64_t)(uintptr_t)v;
}

#ifndef __cplusplus

#define KYMO_I_TYPE(v)                                                                             \
	((uint64_t)_Generic((v),                                                                   \
		_Bool: KYMO_TYPE_BOOL,                                                             \
		char: KYMO_TYPE_INT,                                                               \
		signed char: KYMO_TYPE_INT,                                                        \
		short: KYMO_TYPE_INT,                                                              \
		int: KYMO_TYPE_INT,                                                                \
		long: KYMO_TYPE_INT,                                                               \
		long long: KYMO_TYPE_INT,                                                          \
		unsigned char: KYMO_TYPE_UINT,                                                     \
		unsigned short: KYMO_TYPE_UINT,                                                    \
		unsigned int: KYMO_TYPE_UINT,                                                      \
		unsigned long: KYMO_TYPE_UINT,                                                     \
		unsigned long long: KYMO_TYPE_UINT,                                                \
		float: KYMO_TYPE_DOUBLE,                                                           \
		double: KYMO_TYPE_DOUBLE,                                                          \
		long double: KYMO_TYPE_DOUBLE,                                                     \
		char *: KYMO_TYPE_STRING,                                                          \
		const char *: KYMO_TYPE_STRING,                                                    \
		default: KYMO_TYPE_POINTER))
#define KYMO_I_WORD(v)                                                                             \
	_Generic((v), _Bool                                                                        \
		 : kymo_i_word_uint, char                                                          \
		 : kymo_i_word_int, signed char                                                    \
		 : kymo_i_word_int, short                                                          \
		 : kymo_i_word_int, int                                                            \
		 : kymo_i_word_int, long                                                           \
		 : kymo_i_word_int, long long                                                      \
		 : kymo_i_word_int, unsigned char                                                  \
		 : kymo_i_word_uint, unsigned short                                                \
		 : kymo_i_word_uint, unsigned int                                                  \
		 : kymo_i_word_uint, unsigned long                                                 \
		 : kymo_i_word_uint, unsigned long long                                            \
		 : kymo_i_word_uint, float                                                         \
		 : kymo_i_word_double, double                                                      \
		 : kymo_i_word_double, long double                                                 \
		 : kymo_i_word_double, default                                                     \
		 : kymo_i_word_pointer)(v)

#else

/* The overload's result is an array whose size tells the type: never defined, only measured. */
template <unsigned Type> struct kymo_i_sized {
	char bytes[Type + 1];
};
template <typename R, typename... A> kymo_i_sized<KYMO_TYPE_POINTER> kymo_i_type_of(R (*)(A...));
template <typename T> kymo_i_sized<KYMO_TYPE_POINTER> kymo_i_type_of(const T *);
template <typename T> kymo_i_sized<KYMO_TYPE_POINTER> kymo_i_type_of(const volatile T *);
kymo_i_sized<KYMO_TYPE_POINTER> kymo_i_type_of(decltype(nullptr));
kymo_i_sized<KYMO_TYPE_STRING> kymo_i_type_of(const char *);
kymo_i_sized<KYMO_TYPE_STRING> kymo_i_type_of(char *);
kymo_i_sized<KYMO_TYPE_BOOL> kymo_i_type_of(bool);
kymo_i_sized<KYMO_TYPE_INT> kymo_i_type_of(char);
kymo_i_sized<KYMO_TYPE_INT> kymo_i_type_of(signed char);
kymo_i_sized<KYMO_TYPE_INT> kymo_i_type_of(short);
kymo_i_sized<KYMO_TYPE_INT> kymo_i_type_of(int);
kymo_i_sized<KYMO_TYPE_INT> kymo_i_type_of(long);
kymo_i_sized<KYMO_TYPE_INT> kymo_i_type_of(long long);
kymo_i_sized<KYMO_TYPE_UINT> kymo_i_type_of(unsigned char);
kymo_i_sized<KYMO_TYPE_UINT> kymo_i_type_of(unsigned short);
kymo_i_sized<KYMO_TYPE_UINT> kymo_i_type_of(unsigned int);
kymo_i_sized<KYMO_TYPE_UINT> kymo_i_type_of(unsigned long);
kymo_i_sized<KYMO_TYPE_UINT> kymo_i_type_of(unsigned long long);
kymo_i_sized<KYMO_TYPE_DOUBLE> kymo_i_type_of(float);
kymo_i_sized<KYMO_TYPE_DOUBLE> kymo_i_type_of(double);
kymo_i_sized<KYMO_TYPE_DOUBLE> kymo_i_type_of(long double);
#define KYMO_I_TYPE(v) ((uint64_t)(sizeof(kymo_i_type_of(v)) - 1))

#define KYMO_I_WORD_OF(type, how)                                                                  \
	KYMO_I_INLINE uint64_t kymo_i_word_of(type v)                                              \
	{                                                                                          \
		return kymo_i_word_##how(v);                                                       \
	}
KYMO_I_WORD_OF(bool, uint)
KYMO_I_WORD_OF(char, int)
KYMO_I_WORD_OF(signed char, int)
KYMO_I_WORD_OF(short, int)
KYMO_I_WORD_OF(int, int)
KYMO_I_WORD_OF(long, int)
KYMO_I_WORD_OF(long long, int)
KYMO_I_WORD_OF(unsigned char, uint)
KYMO_I_WORD_OF(unsigned short, uint)
KYMO_I_WORD_OF(unsigned int, uint)
KYMO_I_WORD_OF(unsigned long, uint)
KYMO_I_WORD_OF(unsigned long long, uint)
KYMO_I_WORD_OF(float, double)
KYMO_I_WORD_OF(double, double)
KYMO_I_WORD_OF(const volatile void *, pointer)
#undef KYMO_I_WORD_OF
KYMO_I_INLINE uint64_t kymo_i_word_of(long double v)
{
	return kymo_i_word_double((double)v);
}
template <typename R, typename... A> KYMO_I_INLINE uint64_t kymo_i_word_of(R (*v)(A...))
{
	return (uint64_t) reinterpret_cast<uintptr_t>(v);
}
KYMO_I_INLINE uint64_t kymo_i_word_of(decltype(nullptr))
{
	return 0;
}
#define KYMO_I_WORD(v) kymo_i_word_of(v)

#endif

/* How many arguments a macro was given: 1 to 26. */
#define KYMO_I_COUNT(...)                                                                          \
	KYMO_I_COUNT_(__VA_ARGS__, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, \
		      10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define KYMO_I_COUNT_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17,  \
		      a18, a19, a20, a21, a22, a23, a24, a25, a26, n, ...)                         \
	n
#define KYMO_I_JOIN(a, b) KYMO_I_JOIN_(a, b)
#define KYMO_I_JOIN_(a, b) a##b

/*
 * KYMO_I_EACH(M, x, k1, v1, k2, v2, ...) is M(0, k1, v1) M(1, k2, v2) ...; x stands for what came
 * before the pairs, so that the list is never empty.
 */
#define KYMO_I_EACH(M, ...) KYMO_I_JOIN(KYMO_I_EACH_, KYMO_I_COUNT(__VA_ARGS__))(M, __VA_ARGS__)
#define KYMO_I_EACH_1(M, x)
#define KYMO_I_EACH_3(M, x, k0, v0) M(0, k0, v0)
#define KYMO_I_EACH_5(M, x, k0, v0, k1, v1) M(0, k0, v0) M(1, k1, v1)
#define KYMO_I_EACH_7(M, x, k0, v0, k1, v1, k2, v2) M(0, k0, v0) M(1, k1, v1) M(2, k2, v2)
#define KYMO_I_EACH_9(M, x, k0, v0, k1, v1, k2, v2, k3, v3)                                        \
	M(0, k0, v0) M(1, k1, v1) M(2, k2, v2) M(3, k3, v3)
#define KYMO_I_EACH_11(M, x, k0, v0, k1, v1, k2, v2, k3, v3, k4, v4)                               \
	M(0, k0, v0) M(1, k1, v1) M(2, k2, v2) M(3, k3, v3) M(4, k4, v4)
#define KYMO_I_EACH_13(M, x, k0, v0, k1, v1, k2, v2, k3, v3, k4, v4, k5, v5)                       \
	M(0, k0, v0) M(1, k1, v1) M(2, k2, v2) M(3, k3, v3) M(4, k4, v4) M(5, k5, v5)
#define KYMO_I_EACH_15(M, x, k0, v0, k1, v1, k2, v2, k3, v3, k4, v4, k5, v5, k6, v6)               \
	M(0, k0, v0) M(1, k1, v1) M(2, k2, v2) M(3, k3, v3) M(4, k4, v4) M(5, k5, v5) M(6, k6, v6)
#define KYMO_I_EACH_17(M, x, k0, v0, k1, v1, k2, v2, k3, v3, k4, v4, k5, v5, k6, v6, k7, v7)       \
	M(0, k0, v0)                                                                               \
	M(1, k1, v1) M(2, k2, v2) M(3, k3, v3) M(4, k4, v4) M(5, k5, v5) M(6, k6, v6) M(7, k7, v7)
#define KYMO_I_EACH_19(M, x, k0, v0, k1, v1, k2, v2, k3, v3, k4, v4, k5, v5, k6, v6, k7, v7, k8,   \
		       v8)                                                                         \
	M(0, k0, v0)                                                                               \
	M(1, k1, v1)                                                                               \
	M(2, k2, v2) M(3, k3, v3) M(4, k4, v4) M(5, k5, v5) M(6, k6, v6) M(7, k7, v7) M(8, k8, v8)
#define KYMO_I_EACH_21(M, x, k0, v0, k1, v1, k2, v2, k3, v3, k4, v4, k5, v5, k6, v6, k7, v7, k8,   \
		       v8, k9, v9)                                                                 \
	M(0, k0, v0)                                                                               \
	M(1, k1, v1)                                                                               \
	M(2, k2, v2)                                                                               \
	M(3, k3, v3) M(4, k4, v4) M(5, k5, v5) M(6, k6, v6) M(7, k7, v7) M(8, k8, v8) M(9, k9, v9)
#define KYMO_I_EACH_23(M, x, k0, v0, k1, v1, k2, v2, k3, v3, k4, v4, k5, v5, k6, v6, k7, v7, k8,   \
		       v8, k9, v9, k10, v10)                                                       \
	M(0, k0, v0)                                                                               \
	M(1, k1, v1)                                                                               \
	M(2, k2, v2)                                                                               \
	M(3, k3, v3)                                                                               \
	M(4, k4, v4)                                                                               \
	M(5, k5, v5) M(6, k6, v6) M(7, k7, v7) M(8, k8, v8) M(9, k9, v9) M(10, k10, v10)
#define KYMO_I_EACH_25(M, x, k0, v0, k1, v1, k2, v2, k3, v3, k4, v4, k5, v5, k6, v6, k7, v7, k8,   \
		       v8, k9, v9, k10, v10, k11, v11)                                             \
	M(0, k0, v0)                                                                               \
	M(1, k1, v1)                                                                               \
	M(2, k2, v2)                                                                               \
	M(3, k3, v3)                                                                               \
	M(4, k4, v4)                                                                               \
	M(5, k5, v5)                                                                               \
	M(6, k6, v6) M(7, k7, v7) M(8, k8, v8) M(9, k9, v9) M(10, k10, v10) M(11, k11, v11)

/* The same for single values, for the arguments of KYMO_PRINT. */
#define KYMO_I_LIST(M, ...) KYMO_I_JOIN(KYMO_I_LIST_, KYMO_I_COUNT(__VA_ARGS__))(M, __VA_ARGS__)
#define KYMO_I_LIST_1(M, x)
#define KYMO_I_LIST_2(M, x, a) M(0, "", a)
#define KYMO_I_LIST_3(M, x, a, b) M(0, "", a) M(1, "", b)
#define KYMO_I_LIST_4(M, x, a, b, c) M(0, "", a) M(1, "", b) M(2, "", c)
#define KYMO_I_LIST_5(M, x, a, b, c, d) M(0, "", a) M(1, "", b) M(2, "", c) M(3, "", d)
#define KYMO_I_LIST_6(M, x, a, b, c, d, e)                                                         \
	M(0, "", a) M(1, "", b) M(2, "", c) M(3, "", d) M(4, "", e)
#define KYMO_I_LIST_7(M, x, a, b, c, d, e, f)                                                      \
	M(0, "", a) M(1, "", b) M(2, "", c) M(3, "", d) M(4, "", e) M(5, "", f)
#define KYMO_I_LIST_8(M, x, a, b, c, d, e, f, g)                                                   \
	M(0, "", a) M(1, "", b) M(2, "", c) M(3, "", d) M(4, "", e) M(5, "", f) M(6, "", g)
#define KYMO_I_LIST_9(M, x, a, b, c, d, e, f, g, h)                                                \
	M(0, "", a)                                                                                \
	M(1, "", b) M(2, "", c) M(3, "", d) M(4, "", e) M(5, "", f) M(6, "", g) M(7, "", h)

#define KYMO_I_PAIR_KEY(i, key, value) "" key "",
#define KYMO_I_PAIR_RAW_KEY(i, key, value) key,
#define KYMO_I_PAIR_WORD(i, key, value) KYMO_I_WORD(value),
#define KYMO_I_PAIR_TYPE(i, key, value) | KYMO_I_TYPE(value) << (4 * (i))
#define KYMO_I_PAIR_ONE(i, key, value) +1

#ifndef KYMO_DISABLE

/* 1 if trace points of the category stay in the program. Folds to a constant. */
#ifdef KYMO_STATIC_CATEGORIES
#define KYMO_I_STATIC(cat) KYMO_I_IN(cat, KYMO_STATIC_CATEGORIES)
#define KYMO_I_IN(...) (KYMO_I_JOIN(KYMO_I_IN_, KYMO_I_COUNT(__VA_ARGS__))(__VA_ARGS__))
/* c is a, or a list with a as its first member, in its middle, or as its last. */
#define KYMO_I_IN_2(c, a)                                                                          \
	(__builtin_strcmp(c, a) == 0 || __builtin_strncmp(c, a ",", sizeof(a)) == 0 ||             \
	 __builtin_strstr(c, "," a ",") != 0 ||                                                    \
	 (__builtin_strlen(c) > sizeof(a) &&                                                       \
	  __builtin_strcmp(&(c)[__builtin_strlen(c) - sizeof(a)], "," a) == 0))
#define KYMO_I_IN_3(c, a, ...) KYMO_I_IN_2(c, a) || KYMO_I_IN_2(c, __VA_ARGS__)
#define KYMO_I_IN_4(c, a, ...) KYMO_I_IN_2(c, a) || KYMO_I_IN_3(c, __VA_ARGS__)
#define KYMO_I_IN_5(c, a, ...) KYMO_I_IN_2(c, a) || KYMO_I_IN_4(c, __VA_ARGS__)
#define KYMO_I_IN_6(c, a, ...) KYMO_I_IN_2(c, a) || KYMO_I_IN_5(c, __VA_ARGS__)
#define KYMO_I_IN_7(c, a, ...) KYMO_I_IN_2(c, a) || KYMO_I_IN_6(c, __VA_ARGS__)
#define KYMO_I_IN_8(c, a, ...) KYMO_I_IN_2(c, a) || KYMO_I_IN_7(c, __VA_ARGS__)
#define KYMO_I_IN_9(c, a, ...) KYMO_I_IN_2(c, a) || KYMO_I_IN_8(c, __VA_ARGS__)
#define KYMO_I_IN_10(c, a, ...) KYMO_I_IN_2(c, a) || KYMO_I_IN_9(c, __VA_ARGS__)
#define KYMO_I_IN_11(c, a, ...) KYMO_I_IN_2(c, a) || KYMO_I_IN_10(c, __VA_ARGS__)
#define KYMO_I_IN_12(c, a, ...) KYMO_I_IN_2(c, a) || KYMO_I_IN_11(c, __VA_ARGS__)
#define KYMO_I_IN_13(c, a, ...) KYMO_I_IN_2(c, a) || KYMO_I_IN_12(c, __VA_ARGS__)
#define KYMO_I_IN_14(c, a, ...) KYMO_I_IN_2(c, a) || KYMO_I_IN_13(c, __VA_ARGS__)
#define KYMO_I_IN_15(c, a, ...) KYMO_I_IN_2(c, a) || KYMO_I_IN_14(c, __VA_ARGS__)
#define KYMO_I_IN_16(c, a, ...) KYMO_I_IN_2(c, a) || KYMO_I_IN_15(c, __VA_ARGS__)
#define KYMO_I_IN_17(c, a, ...) KYMO_I_IN_2(c, a) || KYMO_I_IN_16(c, __VA_ARGS__)
#else
#define KYMO_I_STATIC(cat) 1
#endif

/*
 * Defines site for a trace point. EACH walks the items after x: KYMO_I_EACH or KYMO_I_LIST. KEY is
 * how keys are spelled. The first lead items are not arguments but what the flags say.
 */
#define KYMO_I_SITE(site, EACH, KEY, kind, flags, cat, name, lead, ...)                            \
	static const char *const KYMO_I_JOIN(site, _keys)[] = {EACH(KEY, __VA_ARGS__) 0};          \
	static const struct kymo_site_info KYMO_I_JOIN(site, _info) = {                            \
		KYMO_I_ABI,                                                                        \
		(kind),                                                                            \
		(uint8_t)(flags),                                                                  \
		0 EACH(KYMO_I_PAIR_ONE, __VA_ARGS__),                                              \
		0 EACH(KYMO_I_PAIR_ONE, __VA_ARGS__) - (lead),                                     \
		0,                                                                                 \
		__LINE__,                                                                          \
		0,                                                                                 \
		0 EACH(KYMO_I_PAIR_TYPE, __VA_ARGS__),                                             \
		cat,                                                                               \
		name,                                                                              \
		__FILE__,                                                                          \
		__func__,                                                                          \
		KYMO_I_JOIN(site, _keys)};                                                         \
	static struct kymo_i_site site = {&kymo_i_unset, 0, &KYMO_I_JOIN(site, _info)}

/* The byte may be set, and it is the category's: the first pass over a trace point registers it. */
#define KYMO_I_MAYBE_ON(site) KYMO_I_UNLIKELY(kymo_i_test(KYMO_I_LOAD(&(site).enabled)))
#define KYMO_I_ON(site) (KYMO_I_MAYBE_ON(site) && kymo_i_is_enabled(&(site)))

/* Records the event and is 1, or is 0; only where the category is on. */
#define KYMO_I_RECORD(recorded, site, EACH, ...)                                                   \
	const uint64_t kymo_i_v[] = {EACH(KYMO_I_PAIR_WORD, __VA_ARGS__) 0};                       \
	const int recorded = kymo_i_event(&(site), 0, 0 EACH(KYMO_I_PAIR_ONE, __VA_ARGS__),        \
					  0 EACH(KYMO_I_PAIR_TYPE, __VA_ARGS__), kymo_i_v)

/* A whole trace point, for everything that is one event. */
#define KYMO_I_POINT(EACH, KEY, kind, flags, cat, name, lead, ...)                                 \
	do {                                                                                       \
		if (KYMO_I_STATIC(cat)) {                                                          \
			KYMO_I_SITE(kymo_i_site, EACH, KEY, kind, flags, cat, name, lead,          \
				    __VA_ARGS__);                                                  \
			if (KYMO_I_ON(kymo_i_site)) {                                              \
				KYMO_I_RECORD(kymo_i_done, kymo_i_site, EACH, __VA_ARGS__);        \
				(void)kymo_i_done;                                                 \
			}                                                                          \
		}                                                                                  \
	} while (0)
#define KYMO_I_KEYED(...) KYMO_I_POINT(KYMO_I_EACH, KYMO_I_PAIR_KEY, __VA_ARGS__)

#ifdef __cplusplus

struct kymo_i_scope {
	struct kymo_i_site *site;
	kymo_i_scope() : site(0)
	{
	}
	~kymo_i_scope()
	{
		if (site)
			kymo_i_event(site, KYMO_I_END_BIT, 0, 0, 0);
	}
	kymo_i_scope(const kymo_i_scope &) = delete;
	kymo_i_scope &operator=(const kymo_i_scope &) = delete;
};
struct kymo_i_scope_over {
	struct kymo_i_site *site;
	uint64_t begin_ticks;
	uint64_t min_ns;
	const char *name;
	kymo_i_scope_over(uint64_t min, const char *of)
	    : site(0), begin_ticks(0), min_ns(min), name(of)
	{
	}
	~kymo_i_scope_over()
	{
		if (!site)
			return;
		kymo_i_event(site, KYMO_I_END_BIT, 0, 0, 0);
		kymo_i_over(name, begin_ticks, min_ns);
	}
	kymo_i_scope_over(const kymo_i_scope_over &) = delete;
	kymo_i_scope_over &operator=(const kymo_i_scope_over &) = delete;
};
#define KYMO_I_SCOPE_VAR(var) kymo_i_scope var
#define KYMO_I_SCOPE_OVER_VAR(var, min, of) kymo_i_scope_over var((uint64_t)(min), of)

#else

struct kymo_i_scope {
	struct kymo_i_site *site;
};
KYMO_I_INLINE void kymo_i_scope_end(struct kymo_i_scope *scope)
{
	if (scope->site)
		(void)kymo_i_event(scope->site, KYMO_I_END_BIT, 0, 0, NULL);
}
struct kymo_i_scope_over {
	struct kymo_i_site *site;
	uint64_t begin_ticks;
	uint64_t min_ns;
	const char *name;
};
KYMO_I_INLINE void kymo_i_scope_over_end(struct kymo_i_scope_over *scope)
{
	if (!scope->site)
		return;
	(void)kymo_i_event(scope->site, KYMO_I_END_BIT, 0, 0, NULL);
	kymo_i_over(scope->name, scope->begin_ticks, scope->min_ns);
}
#define KYMO_I_SCOPE_VAR(var)                                                                      \
	__attribute__((cleanup(kymo_i_scope_end))) struct kymo_i_scope var = {NULL}
#define KYMO_I_SCOPE_OVER_VAR(var, min, of)                                                        \
	__attribute__((cleanup(kymo_i_scope_over_end))) struct kymo_i_scope_over var = {           \
		NULL, 0, (uint64_t)(min), of}

#endif

/*
 * A declaration and a statement; the end comes with the end of the enclosing block. The trace point is in
 * a block of its own and has the same name everywhere: in C++ a static object of an inline function is
 * one for all translation units, found by its name, and a number in it would differ between them.
 */
#define KYMO_I_SCOPE(KEY, flags, cat, name, lead, ...)                                             \
	KYMO_I_SCOPE_AT(KYMO_I_JOIN(kymo_i_scope_, __COUNTER__), KEY, flags, cat, name, lead,      \
			__VA_ARGS__)
#define KYMO_I_SCOPE_AT(at, KEY, flags, cat, name, lead, ...)                                      \
	KYMO_I_SCOPE_VAR(at);                                                                      \
	KYMO_I_SCOPE_BEGIN(at, (void)0, KEY, flags, cat, name, lead, __VA_ARGS__)
#define KYMO_I_SCOPE_OVER(flags, cat, name, min, of, lead, ...)                                    \
	KYMO_I_SCOPE_OVER_AT(KYMO_I_JOIN(kymo_i_scope_, __COUNTER__), flags, cat, name, min, of,   \
			     lead, __VA_ARGS__)
#define KYMO_I_SCOPE_OVER_AT(at, flags, cat, name, min, of, lead, ...)                             \
	KYMO_I_SCOPE_OVER_VAR(at, min, KYMO_I_STATIC(cat) ? (of) : 0);                             \
	KYMO_I_SCOPE_BEGIN(at, (at).begin_ticks = kymo_i_ticks(), KYMO_I_PAIR_KEY, flags, cat,     \
			   name, lead, __VA_ARGS__)
#define KYMO_I_SCOPE_BEGIN(at, first, KEY, flags, cat, name, lead, ...)                            \
	do {                                                                                       \
		KYMO_I_SITE(kymo_i_site, KYMO_I_EACH, KEY, KYMO_KIND_BEGIN,                        \
			    KYMO_SITE_SCOPE | (flags), cat, name, lead, __VA_ARGS__);              \
		if (KYMO_I_STATIC(cat) && KYMO_I_ON(kymo_i_site)) {                                \
			first;                                                                     \
			KYMO_I_RECORD(kymo_i_done, kymo_i_site, KYMO_I_EACH, __VA_ARGS__);         \
			if (kymo_i_done)                                                           \
				(at).site = &kymo_i_site;                                          \
		}                                                                                  \
	} while (0)

#define KYMO_I_ENABLED(cat)                                                                        \
	(KYMO_I_STATIC(cat) && __extension__({                                                     \
		 KYMO_I_SITE(kymo_i_site, KYMO_I_EACH, KYMO_I_PAIR_KEY, KYMO_KIND_NONE, 0, cat,    \
			     "", 0, 0);                                                            \
		 KYMO_I_ON(kymo_i_site);                                                           \
	 }))

__attribute__((format(printf, 1, 2), unused)) static inline void kymo_i_check_format(
	const char *fmt, ...)
{
	(void)fmt;
}

#endif /* KYMO_DISABLE */

/* The first of a list, as a literal or as it is. */
#define KYMO_I_FIRST(...) "" KYMO_I_FIRST_(__VA_ARGS__, 0) ""
#define KYMO_I_FIRST_RAW(...) KYMO_I_FIRST_(__VA_ARGS__, 0)
#define KYMO_I_FIRST_(first, ...) first

#ifdef KYMO_DISABLE
/* Nothing is evaluated and nothing is left, yet the compiler counts the values as used. */
#ifdef __cplusplus
#define KYMO_I_PAIR_UNUSED(i, key, value) , (void)sizeof(kymo_i_type_of(value))
#else
#define KYMO_I_PAIR_UNUSED(i, key, value) , (void)sizeof(((void)(value), 0))
#endif
/* An expression, because clang without optimization makes code for a loop that runs once. */
#define KYMO_I_NOTHING(EACH, ...) ((void)0 EACH(KYMO_I_PAIR_UNUSED, __VA_ARGS__))
#define KYMO_I_POINT(EACH, KEY, kind, flags, cat, name, lead, ...) KYMO_I_NOTHING(EACH, __VA_ARGS__)
#define KYMO_I_KEYED(kind, flags, cat, name, lead, ...) KYMO_I_NOTHING(KYMO_I_EACH, __VA_ARGS__)
#define KYMO_I_SCOPE(KEY, flags, cat, name, lead, ...) KYMO_I_NOTHING(KYMO_I_EACH, __VA_ARGS__)
#define KYMO_I_SCOPE_OVER(flags, cat, name, min, of, lead, ...)                                    \
	KYMO_I_NOTHING(KYMO_I_EACH, __VA_ARGS__, "", min)
#define KYMO_I_ENABLED(cat) 0
#define KYMO_I_PRINT(cat, ...) KYMO_I_NOTHING(KYMO_I_LIST, __VA_ARGS__)
#else
#define KYMO_I_PRINT(cat, ...)                                                                     \
	do {                                                                                       \
		if (0)                                                                             \
			kymo_i_check_format(__VA_ARGS__);                                          \
		KYMO_I_POINT(KYMO_I_LIST, KYMO_I_PAIR_KEY, KYMO_KIND_PRINT, 0, cat,                \
			     KYMO_I_FIRST(__VA_ARGS__), 0, __VA_ARGS__);                           \
	} while (0)
#endif

/*
 * ------------------------------------------------------------------------------------------------
 * The macros. cat, name and keys are literals; "..." ends in up to KYMO_ARGS_MAX pairs of key and
 * value. Those with _DYN take the name from a variable and copy it, at most KYMO_STRING_MAX bytes.
 * ------------------------------------------------------------------------------------------------
 */

/*
 * KYMO_SCOPE(cat, name, ...): a span until the end of the enclosing block, however it is left. In C, as
 * with every variable that has a cleanup, no goto or case label may jump over it into its block: clang
 * refuses that, gcc does not see it.
 */
#define KYMO_SCOPE(cat, ...)                                                                       \
	KYMO_I_SCOPE(KYMO_I_PAIR_KEY, 0, "" cat "", KYMO_I_FIRST(__VA_ARGS__), 0, __VA_ARGS__)
#define KYMO_SCOPE_DYN(cat, ...)                                                                   \
	KYMO_I_SCOPE(KYMO_I_PAIR_KEY, KYMO_SITE_NAME, "" cat "", "", 1, 0, "", __VA_ARGS__)

/*
 * KYMO_SCOPE_OVER(cat, name, min_ns, ...): the same, and when the span lasted longer than min_ns, it
 * asks for a snapshot. The name given to the _DYN variant must last until the end of the block.
 */
#define KYMO_SCOPE_OVER(cat, name, ...)                                                            \
	KYMO_I_SCOPE_OVER(0, "" cat "", "" name "", KYMO_I_FIRST_RAW(__VA_ARGS__), "" name "", 0,  \
			  __VA_ARGS__)
#define KYMO_SCOPE_OVER_DYN(cat, name, ...)                                                        \
	KYMO_I_OVER_DYN("" cat "", name, KYMO_I_FIRST_RAW(__VA_ARGS__), __VA_ARGS__)
#define KYMO_I_OVER_DYN(cat, name, min, ...)                                                       \
	KYMO_I_SCOPE_OVER(                                                                         \
		KYMO_SITE_NAME, cat, "", min, name, 1,                                             \
		KYMO_I_JOIN(KYMO_I_OVER_ITEMS_, KYMO_I_COUNT(__VA_ARGS__))(name, __VA_ARGS__))
#define KYMO_I_OVER_ITEMS_1(name, min) 0, "", (const char *)(name)
#define KYMO_I_OVER_ITEMS_3(name, min, ...) 0, "", (const char *)(name), __VA_ARGS__
#define KYMO_I_OVER_ITEMS_5(name, min, ...) 0, "", (const char *)(name), __VA_ARGS__
#define KYMO_I_OVER_ITEMS_7(name, min, ...) 0, "", (const char *)(name), __VA_ARGS__
#define KYMO_I_OVER_ITEMS_9(name, min, ...) 0, "", (const char *)(name), __VA_ARGS__
#define KYMO_I_OVER_ITEMS_11(name, min, ...) 0, "", (const char *)(name), __VA_ARGS__
#define KYMO_I_OVER_ITEMS_13(name, min, ...) 0, "", (const char *)(name), __VA_ARGS__
#define KYMO_I_OVER_ITEMS_15(name, min, ...) 0, "", (const char *)(name), __VA_ARGS__
#define KYMO_I_OVER_ITEMS_17(name, min, ...) 0, "", (const char *)(name), __VA_ARGS__

/* KYMO_BEGIN(cat, name, ...): a span by hand; KYMO_END(cat, ...) ends the thread's innermost one. */
#define KYMO_BEGIN(cat, ...)                                                                       \
	KYMO_I_KEYED(KYMO_KIND_BEGIN, 0, "" cat "", KYMO_I_FIRST(__VA_ARGS__), 0, __VA_ARGS__)
#define KYMO_BEGIN_DYN(cat, ...)                                                                   \
	KYMO_I_KEYED(KYMO_KIND_BEGIN, KYMO_SITE_NAME, "" cat "", "", 1, 0, "", __VA_ARGS__)
#define KYMO_END(...) KYMO_I_KEYED(KYMO_KIND_END, 0, KYMO_I_FIRST(__VA_ARGS__), "", 0, __VA_ARGS__)

/* KYMO_INSTANT(cat, name, ...): a point in time. */
#define KYMO_INSTANT(cat, ...)                                                                     \
	KYMO_I_KEYED(KYMO_KIND_INSTANT, 0, "" cat "", KYMO_I_FIRST(__VA_ARGS__), 0, __VA_ARGS__)
#define KYMO_INSTANT_DYN(cat, ...)                                                                 \
	KYMO_I_KEYED(KYMO_KIND_INSTANT, KYMO_SITE_NAME, "" cat "", "", 1, 0, "", __VA_ARGS__)

/* KYMO_COUNTER(cat, name, value): a value over time, of the process; integer or floating point. */
#define KYMO_COUNTER(cat, name, value)                                                             \
	KYMO_I_KEYED(KYMO_KIND_COUNTER, 0, "" cat "", "" name "", 0, 0, "value", value)
#define KYMO_COUNTER_DYN(cat, name, value)                                                         \
	KYMO_I_KEYED(KYMO_KIND_COUNTER, KYMO_SITE_NAME, "" cat "", "", 1, 0, "",                   \
		     (const char *)(name), "value", value)

/*
 * KYMO_ASYNC_BEGIN(cat, name, id, ...), KYMO_ASYNC_INSTANT, KYMO_ASYNC_END: a span that may cross
 * threads and overlap others. Events of one category and id belong together and nest. The id is an
 * integer or a pointer.
 */
#define KYMO_ASYNC_BEGIN(cat, name, ...)                                                           \
	KYMO_I_KEYED(KYMO_KIND_ASYNC_BEGIN, KYMO_SITE_ID, "" cat "", "" name "", 1, 0, "",         \
		     __VA_ARGS__)
#define KYMO_ASYNC_INSTANT(cat, name, ...)                                                         \
	KYMO_I_KEYED(KYMO_KIND_ASYNC_INSTANT, KYMO_SITE_ID, "" cat "", "" name "", 1, 0, "",       \
		     __VA_ARGS__)
#define KYMO_ASYNC_END(cat, name, ...)                                                             \
	KYMO_I_KEYED(KYMO_KIND_ASYNC_END, KYMO_SITE_ID, "" cat "", "" name "", 1, 0, "",           \
		     __VA_ARGS__)
#define KYMO_I_ASYNC_DYN(kind, cat, name, ...)                                                     \
	KYMO_I_KEYED(kind, KYMO_SITE_NAME | KYMO_SITE_ID, "" cat "", "", 2, 0, "",                 \
		     (const char *)(name), "", __VA_ARGS__)
#define KYMO_ASYNC_BEGIN_DYN(cat, name, ...)                                                       \
	KYMO_I_ASYNC_DYN(KYMO_KIND_ASYNC_BEGIN, cat, name, __VA_ARGS__)
#define KYMO_ASYNC_INSTANT_DYN(cat, name, ...)                                                     \
	KYMO_I_ASYNC_DYN(KYMO_KIND_ASYNC_INSTANT, cat, name, __VA_ARGS__)
#define KYMO_ASYNC_END_DYN(cat, name, ...)                                                         \
	KYMO_I_ASYNC_DYN(KYMO_KIND_ASYNC_END, cat, name, __VA_ARGS__)

/*
 * KYMO_FLOW_BEGIN(cat, name, id), KYMO_FLOW_STEP, KYMO_FLOW_END: an arrow from the span that is open
 * at the begin to those open at the steps and at the end. Same category, name and id: one flow.
 */
#define KYMO_FLOW_BEGIN(cat, name, id)                                                             \
	KYMO_I_KEYED(KYMO_KIND_FLOW_BEGIN, KYMO_SITE_ID, "" cat "", "" name "", 1, 0, "", id)
#define KYMO_FLOW_STEP(cat, name, id)                                                              \
	KYMO_I_KEYED(KYMO_KIND_FLOW_STEP, KYMO_SITE_ID, "" cat "", "" name "", 1, 0, "", id)
#define KYMO_FLOW_END(cat, name, id)                                                               \
	KYMO_I_KEYED(KYMO_KIND_FLOW_END, KYMO_SITE_ID, "" cat "", "" name "", 1, 0, "", id)
#define KYMO_FLOW_BEGIN_DYN(cat, name, id) KYMO_I_ASYNC_DYN(KYMO_KIND_FLOW_BEGIN, cat, name, id)
#define KYMO_FLOW_STEP_DYN(cat, name, id) KYMO_I_ASYNC_DYN(KYMO_KIND_FLOW_STEP, cat, name, id)
#define KYMO_FLOW_END_DYN(cat, name, id) KYMO_I_ASYNC_DYN(KYMO_KIND_FLOW_END, cat, name, id)

/*
 * KYMO_PRINT(cat, fmt, ...): a message as of printf, with up to KYMO_ARGS_MAX values. Only the values
 * are recorded; whoever reads the trace does the formatting.
 */
#define KYMO_PRINT(cat, ...) KYMO_I_PRINT("" cat "", __VA_ARGS__)

/* KYMO_ENABLED(cat): whether the category is on, for work that is done only to trace. */
#define KYMO_ENABLED(cat) KYMO_I_ENABLED("" cat "")

#endif /* KYMO_KYMO_H */
