/* SPDX-License-Identifier: MIT */
/*
 * kymo_impl.h: what the macros of kymo.h expand to. Private; kymo.h includes it last.
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
 * adds its stack pointer and 1 to pos and reads pos in one instruction, which no signal can split (no
 * lock prefix: other threads never write there). A parked pos is beyond the block's end, and no multiple
 * of 8. A handler that finds the writer parked takes the slow path and writes to a second ring of the same
 * thread. A handler that jumps out of the event (siglongjmp) leaves the writer parked; the stack pointer
 * shows that later.
 *
 * Parameters, locals and members begin with ky_, template parameters with KY_, so that no macro of the
 * program can change them. Macro parameters need no prefix.
 */
#ifndef KYMO_IMPL_H
#define KYMO_IMPL_H

#pragma GCC system_header

#include "kymo.h"
#include "kymo_args.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KYMO_I_ABI 2

/* At most so many items: the arguments and what the first four KYMO_SITE_ flags name. */
#define KYMO_I_ITEMS_MAX (KYMO_ARGS_MAX + 4)

/* Hosts use the members below by their plain names. The program's macros of these names wait. */
#pragma push_macro("abi")
#undef abi
#pragma push_macro("args")
#undef args
#pragma push_macro("category")
#undef category
#pragma push_macro("commit")
#undef commit
#pragma push_macro("context")
#undef context
#pragma push_macro("file")
#undef file
#pragma push_macro("flags")
#undef flags
#pragma push_macro("function")
#undef function
#pragma push_macro("intern")
#undef intern
#pragma push_macro("items")
#undef items
#pragma push_macro("keys")
#undef keys
#pragma push_macro("kind")
#undef kind
#pragma push_macro("line")
#undef line
#pragma push_macro("name")
#undef name
#pragma push_macro("private_")
#undef private_
#pragma push_macro("reserve")
#undef reserve
#pragma push_macro("site")
#undef site
#pragma push_macro("size")
#undef size
#pragma push_macro("snapshot")
#undef snapshot
#pragma push_macro("time")
#undef time
#pragma push_macro("types")
#undef types
#pragma push_macro("version")
#undef version

/* A trace point, as the compiler knows it. */
struct kymo_site_info {
	uint16_t abi;  /* KYMO_I_ABI */
	uint8_t kind;  /* enum kymo_kind */
	uint8_t flags; /* KYMO_SITE_ */
	uint8_t items; /* leading items and arguments */
	uint8_t args;  /* arguments alone */
	uint16_t ky_pad;
	uint32_t line;
	uint32_t ky_pad2;
	uint64_t types; /* enum kymo_type of each item, four bits an item, the first lowest */
	const char *category;
	const char *name; /* "" with KYMO_SITE_NAME */
	const char *file;
	const char *function;
	const char *const *keys; /* one per item; "" for those that are no arguments */
};

/*
 * The part of a trace point that changes. Once ky_word is not 0 the trace point is registered: ky_word
 * never changes again until the process forks, and ky_enabled points to its category's byte.
 */
struct kymo_i_site {
	const unsigned char *ky_enabled;
	uint64_t ky_word;
	const struct kymo_site_info *ky_info;
};

/*
 * Where a thread writes. Only its thread (and its signal handlers) writes here, but for ky_high, which
 * any thread may set to ~0. ky_pos is at most ky_end unless the writer is parked; the words from ky_pos
 * to ky_end are zero.
 */
struct kymo_i_writer {
	uintptr_t ky_pos; /* next free word; beyond ky_end while an event is written */
	uintptr_t ky_end; /* end of the block */
	uint32_t ky_high; /* the counter's high half; ~0 sends every event to the slow path */
	uint32_t ky_pad;
	uint64_t ky_events; /* events ever written to this ring */
};

#define KYMO_I_END_BIT ((uint64_t)1 << 32)
#define KYMO_I_LENGTH(words) ((uint64_t)(words) << 33)
#define KYMO_I_LOAD(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define KYMO_I_STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define KYMO_I_UNLIKELY(x) __builtin_expect(!!(x), 0)

#define KYMO_I_STRING_CUT ((uint64_t)1 << 32)  /* the string was longer than KYMO_STRING_MAX */
#define KYMO_I_STRING_NULL ((uint64_t)1 << 33) /* there was no string, but a null pointer */
/* The word before a string's bytes. */
#define KYMO_I_STRING_WORD(bytes, cut, null)                                                       \
	((uint64_t)(bytes) | ((cut) ? KYMO_I_STRING_CUT : 0) | ((null) ? KYMO_I_STRING_NULL : 0))

/* The room that a host lends for one event, between reserve() and commit(). */
struct kymo_reservation {
	uint64_t *items;      /* room for the items, in words; the trace point fills it */
	uint64_t private_[4]; /* the host's own */
};

/*
 * The host interface: the functions that a trace point calls when it is compiled with
 * -DKYMO_EMBEDDED. libkymo is a host; embed.h says how to be one.
 */
#define KYMO_HOST_VERSION 1
struct kymo_host {
	uint32_t size;    /* of this struct; it only grows at the end */
	uint32_t version; /* KYMO_HOST_VERSION */
	void *context;    /* the host's own */
	/* Return a byte that is non-zero while the category is on and lives as long as the process. */
	const unsigned char *(*category)(const struct kymo_host *, const char *category);
	/* Register a trace point, which lives as long as its library. Return a handle, not 0. */
	uint64_t (*site)(const struct kymo_host *, const struct kymo_site_info *);
	/* Lend room for an event of that many words. Return 0 without room, and count the loss. */
	int (*reserve)(const struct kymo_host *, uint64_t site, uint32_t ky_words,
		       struct kymo_reservation *);
	/* Publish the event. ky_end is 1 when it ends the span that the trace point began. */
	void (*commit)(const struct kymo_host *, struct kymo_reservation *, int ky_end);
	/* Return a number for a string, the same for equal strings, or 0 without room. */
	uint32_t (*intern)(const struct kymo_host *, const char *ky_string);
	/* Return the time in nanoseconds. */
	uint64_t (*time)(const struct kymo_host *);
	/* Take a snapshot, as kymo_snapshot(). */
	void (*snapshot)(const struct kymo_host *, const char *ky_reason, uint64_t ky_arg);
};

#ifndef KYMO_DISABLE

/* Non-zero, so that the first pass over a trace point reaches the library. */
__attribute__((__unused__)) static const unsigned char kymo_i_unset = 1;

/* True when the byte is set. Compilers do not fold an atomic load into the comparison. */
#if defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__)
#define KYMO_I_TEST(byte)                                                                          \
	(__extension__({                                                                           \
		int kymo_i_set;                                                                    \
		__asm__ volatile("cmpb $0, %1" : "=@ccne"(kymo_i_set) : "m"(*(byte)));             \
		kymo_i_set;                                                                        \
	}))
#else
#define KYMO_I_TEST(byte) (__atomic_load_n(byte, __ATOMIC_RELAXED) != 0)
#endif

#ifndef KYMO_EMBEDDED

extern KYMO_API __thread struct kymo_i_writer *kymo_i_tls
	__attribute__((__tls_model__("initial-exec")));

/*
 * Record an event; first register the trace point, take a ring and begin a block as needed. The caller
 * has not parked the writer. ky_what is the number of items and KYMO_I_END, or KYMO_I_REGISTER: no event.
 * ky_frame is the event's stack pointer. Return 1 when the event was recorded (or the category is on), else 0.
 */
#define KYMO_I_END 0x100u
#define KYMO_I_REGISTER 0x200u
#define KYMO_I_PAIR 0x400u /* one or two items, in ky_pair in place of ky_values */
#ifdef __x86_64__          /* called by the next function alone */
#define KYMO_I_SLOW_API __attribute__((__visibility__("hidden")))
#else
#define KYMO_I_SLOW_API KYMO_API
#endif
KYMO_I_SLOW_API int kymo_i_slow_at(struct kymo_i_site *ky_site, uint32_t ky_what,
				   const uint64_t *ky_values, uintptr_t ky_frame,
				   const uint64_t *ky_pair);
/* The same, in asm, for the code below: keeps all general registers but rax and r11. */
KYMO_API void kymo_i_slow_jump(void);
/* Record an event with one string, item ky_at. The caller has not parked the writer. */
KYMO_API int kymo_i_event_string(struct kymo_i_site *ky_site, uint32_t ky_items, uint32_t ky_at,
				 const uint64_t *ky_values);
/* Record an event with several strings: ky_strings has a bit in the nibble of each. */
KYMO_API int kymo_i_event_strings(struct kymo_i_site *ky_site, uint32_t ky_items,
				  uint64_t ky_strings, const uint64_t *ky_values);
/* Register the trace point of a KYMO_ENABLED. Return whether its category is on. */
KYMO_API int kymo_i_enabled_slow(struct kymo_i_site *ky_site);
/* Return the CPU's counter, or CLOCK_MONOTONIC in nanoseconds where there is none. */
KYMO_API uint64_t kymo_i_ticks(void);
/* Ask for a snapshot when more than ky_min_ns passed since ky_begin_ticks. */
KYMO_API void kymo_i_over(const char *ky_name, uint64_t ky_begin_ticks, uint64_t ky_min_ns);

#if defined(__x86_64__)
#define KYMO_I_READ_COUNTER(low, high) __asm__ volatile("rdtsc" : "=a"(low), "=d"(high))
/*
 * Complete the header with the counter's low half, and set differs when its high half is not the
 * writer's. All in one statement, because compilers do not compare with memory that is loaded
 * atomically, and because comparison and branch fuse into one instruction when adjacent.
 */
#define KYMO_I_STAMP(header, differs, w)                                                           \
	__asm__ volatile("rdtsc\n\torq %%rax, %0\n\tcmpl %%edx, %2"                                \
			 : "+&r"(header), "=@ccne"(differs)                                        \
			 : "m"((w)->ky_high)                                                       \
			 : "rax", "rdx")
KYMO_I_INLINE uintptr_t kymo_i_park(struct kymo_i_writer *ky_w)
{
	uintptr_t ky_pos;
	__asm__ volatile("leaq 1(%%rsp), %0\n\txaddq %0, %1"
			 : "=&r"(ky_pos), "+m"(ky_w->ky_pos)
			 :
			 : "memory", "cc");
	return ky_pos;
}
#elif defined(__aarch64__)
/*
 * A signal between the two exclusive instructions makes the second fail: that is all that is wanted, and
 * cheaper than the atomic instructions, which order accesses of several CPUs.
 */
KYMO_I_INLINE uintptr_t kymo_i_park(struct kymo_i_writer *ky_w)
{
	uintptr_t ky_pos, ky_parked;
	uint32_t ky_failed;
	__asm__ volatile(
		"1:\tldxr %0, %3\n\tadd %1, sp, %0\n\tadd %1, %1, #1\n\tstxr %w2, %1, %3\n\t"
		"cbnz %w2, 1b"
		: "=&r"(ky_pos), "=&r"(ky_parked), "=&r"(ky_failed), "+Q"(ky_w->ky_pos)
		:
		: "memory");
	return ky_pos;
}
#define KYMO_I_READ_COUNTER(low, high)                                                             \
	do {                                                                                       \
		uint64_t kymo_i_t;                                                                 \
		__asm__ volatile("mrs %0, cntvct_el0" : "=r"(kymo_i_t));                           \
		(low) = kymo_i_t & 0xffffffffu;                                                    \
		(high) = kymo_i_t >> 32;                                                           \
	} while (0)
#else
KYMO_I_INLINE uintptr_t kymo_i_park(struct kymo_i_writer *ky_w)
{
	const uintptr_t ky_frame = (uintptr_t)__builtin_frame_address(0);
	const uintptr_t ky_pos = __atomic_fetch_add(&ky_w->ky_pos, ky_frame + 1, __ATOMIC_RELAXED);
	/* What the event does with the writer comes after. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return ky_pos;
}
/* No counter to read inline: the slow path asks the system for the time of each event. */
#define KYMO_I_READ_COUNTER(low, high) ((low) = 0, (high) = 0xfffffffeu)
#endif

#ifndef KYMO_I_STAMP
#define KYMO_I_STAMP(header, differs, w)                                                           \
	do {                                                                                       \
		uint64_t kymo_i_low, kymo_i_high;                                                  \
		KYMO_I_READ_COUNTER(kymo_i_low, kymo_i_high);                                      \
		(header) |= kymo_i_low;                                                            \
		(differs) = (uint32_t)kymo_i_high != KYMO_I_LOAD(&(w)->ky_high);                   \
	} while (0)
#endif

/* After a label: what follows is seldom reached. clang moves nothing out of the function anyway. */
#ifdef __clang__
#define KYMO_I_COLD
#else
#define KYMO_I_COLD __attribute__((__cold__))
#endif

/*
 * kymo_i_slow() is kymo_i_slow_at(), called so that it changes no register but one and does not need an
 * aligned stack: then a function saves nothing before it tests a trace point that is off.
 */
#if defined(__x86_64__)
#if defined(__AVX512F__)
#define KYMO_I_WIDE                                                                                \
	, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24",         \
		"xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2",   \
		"k3", "k4", "k5", "k6", "k7"
#else
#define KYMO_I_WIDE
#endif
/* A jump, because a call would write to the red zone, which the compiler may use. */
#define KYMO_I_SLOW(result, site, what, ...)                                                       \
	__asm__ volatile("leaq %1, %%r11\n\tmovl %2, %%r10d\n\tleaq 1f(%%rip), %%rax\n\t"          \
			 "jmp *kymo_i_slow_jump@GOTPCREL(%%rip)\n1:"                               \
			 : "=&a"(result)                                                           \
			 : "m"(*(site)), "ri"(what), __VA_ARGS__                                   \
			 : "r10", "r11", "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",   \
			   "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",      \
			   "xmm13", "xmm14", "xmm15", "st" KYMO_I_WIDE)
KYMO_I_INLINE int kymo_i_slow(struct kymo_i_site *ky_site, uint32_t ky_what,
			      const uint64_t *ky_values)
{
	int ky_result;
	KYMO_I_SLOW(ky_result, ky_site, ky_what, "d"(ky_values));
	return ky_result;
}
KYMO_I_INLINE int kymo_i_slow_pair(struct kymo_i_site *ky_site, uint32_t ky_what, uint64_t ky_first,
				   uint64_t ky_second)
{
	int ky_result;
	if (ky_what == (1 | KYMO_I_PAIR))
		KYMO_I_SLOW(ky_result, ky_site, ky_what, "d"(ky_first));
	else
		KYMO_I_SLOW(ky_result, ky_site, ky_what, "d"(ky_first), "c"(ky_second));
	return ky_result;
}
#else
__attribute__((__unused__, __cold__, __noinline__)) static int kymo_i_slow(
	struct kymo_i_site *ky_site, uint32_t ky_what, const uint64_t *ky_values)
{
	return kymo_i_slow_at(ky_site, ky_what, ky_values, (uintptr_t)__builtin_dwarf_cfa(),
			      KYMO_I_NULL);
}
#endif

/*
 * Write an event without items to a parked writer, or go to slow when the trace point is not registered, the
 * block is full, or the counter's high half is not the writer's. One statement: compilers compare with no
 * memory that is loaded atomically, and it takes them less time. The thread sanitizer sees none of it.
 */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KYMO_I_SANITIZED 1
#endif
#endif
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(KYMO_I_SANITIZED)
#define KYMO_I_WRITE_(first, header, site, w, pos, slow)                                           \
	__asm__ goto(first "cmpq %2, %0\n\tjae %l[" #slow "]\n\t"                                  \
			   "rdtsc\n\torq %1, %%rax\n\tcmpl %%edx, %3\n\tjne %l[" #slow "]\n\t"     \
			   "movq %%rax, (%0)\n\tincq %4\n\tleaq 8(%0), %%rax\n\tmovq %%rax, %5"    \
		     :                                                                             \
		     : "r"(pos), header, "m"((w)->ky_end), "m"((w)->ky_high), "m"((w)->ky_events), \
		       "m"((w)->ky_pos)                                                            \
		     : "rax", "rdx", "cc", "memory"                                                \
		     : slow)
/* The header is complete but for the time: nothing is left to do between the counter and the store. */
#define KYMO_I_WRITE_PAIR(items, more, header, w, pos, first, second, slow)                        \
	__asm__ goto("leaq 8*" #items "(%0), %%rax\n\tcmpq %2, %%rax\n\tjae %l[" #slow "]\n\t"     \
		     "rdtsc\n\torq %1, %%rax\n\tcmpl %%edx, %3\n\tjne %l[" #slow "]\n\t"           \
		     "movq %7, 8(%0)\n\t" more "movq %%rax, (%0)\n\tincq %4\n\t"                   \
		     "leaq 8+8*" #items "(%0), %%rax\n\tmovq %%rax, %5"                            \
		     :                                                                             \
		     : "r"(pos), "r"(header), "m"((w)->ky_end), "m"((w)->ky_high),                 \
		       "m"((w)->ky_events), "m"((w)->ky_pos), "r"(w), "r"(first), "r"(second)      \
		     : "rax", "rdx", "cc", "memory"                                                \
		     : slow)
#define KYMO_I_WRITE_BEGIN(site, w, pos, slow)                                                     \
	KYMO_I_WRITE_("cmpq $0, %1\n\tje %l[" #slow "]\n\t", "m"((site)->ky_word), site, w, pos,   \
		      slow)
#define KYMO_I_WRITE_END(site, w, pos, slow)                                                       \
	KYMO_I_WRITE_("", "r"(KYMO_I_LOAD(&(site)->ky_word) | KYMO_I_END_BIT), site, w, pos, slow)
#else
#define KYMO_I_WRITE_(end_bit, site, w, pos, slow)                                                 \
	do {                                                                                       \
		/* The acquire load is that of kymo_i_is_enabled(). */                             \
		uint64_t kymo_i_header = __atomic_load_n(&(site)->ky_word, __ATOMIC_ACQUIRE);      \
		int kymo_i_differs;                                                                \
		if (KYMO_I_UNLIKELY(kymo_i_header == 0 || (pos) >= (w)->ky_end))                   \
			goto slow;                                                                 \
		kymo_i_header |= (end_bit);                                                        \
		KYMO_I_STAMP(kymo_i_header, kymo_i_differs, w);                                    \
		if (KYMO_I_UNLIKELY(kymo_i_differs))                                               \
			goto slow;                                                                 \
		kymo_i_publish(w, pos, kymo_i_header, 0);                                          \
	} while (0)
#define KYMO_I_WRITE_BEGIN(site, w, pos, slow) KYMO_I_WRITE_(0, site, w, pos, slow)
#define KYMO_I_WRITE_END(site, w, pos, slow) KYMO_I_WRITE_(KYMO_I_END_BIT, site, w, pos, slow)
#endif

/* Make a whole event visible, and unpark the writer. */
KYMO_I_INLINE void kymo_i_publish(struct kymo_i_writer *ky_w, uintptr_t ky_pos, uint64_t ky_header,
				  uint32_t ky_items)
{
	/* Pairs with the acquire load of the header in copy_events() (ring_read.c), before the items. */
	__atomic_store_n((uint64_t *)ky_pos, ky_header, __ATOMIC_RELEASE);
	ky_w->ky_events++;
	/* A signal handler that finds the writer free finds the event whole. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	KYMO_I_STORE(&ky_w->ky_pos, ky_pos + 8 + 8u * ky_items);
}

/*
 * An event without items, also of a trace point that is not registered: about 16 instructions; reading the
 * counter takes most of the time. Return the trace point, or 0 when the event was lost or the category is off.
 */
KYMO_I_INLINE struct kymo_i_site *kymo_i_begin(struct kymo_i_site *ky_site)
{
	struct kymo_i_writer *const ky_w = kymo_i_tls;
	const uintptr_t ky_pos = kymo_i_park(ky_w);
	KYMO_I_WRITE_BEGIN(ky_site, ky_w, ky_pos, ky_slow);
	return ky_site;
ky_slow:
	KYMO_I_COLD;
	KYMO_I_STORE(&ky_w->ky_pos, ky_pos); /* unparked, or as the interrupted event left it */
	return kymo_i_slow(ky_site, 0, KYMO_I_NULL) ? ky_site : KYMO_I_NULL;
}

/*
 * The end of the trace point's span. Out of line, once in each file: each scope has one. A call, because
 * processors predict where it returns to.
 */
__attribute__((__unused__, __noinline__)) static void kymo_i_end(struct kymo_i_site *ky_site)
{
	struct kymo_i_writer *const ky_w = kymo_i_tls;
	const uintptr_t ky_pos = kymo_i_park(ky_w);
	KYMO_I_WRITE_END(ky_site, ky_w, ky_pos, ky_slow);
	return;
ky_slow:
	KYMO_I_COLD;
	KYMO_I_STORE(&ky_w->ky_pos, ky_pos);
	(void)kymo_i_slow(ky_site, KYMO_I_END, KYMO_I_NULL);
}

#ifdef KYMO_I_WRITE_PAIR
/* The same with one or two items, of a trace point that is registered. ky_items is a constant. */
KYMO_I_INLINE int kymo_i_put_pair(struct kymo_i_site *ky_site, uint32_t ky_items, uint64_t ky_first,
				  uint64_t ky_second)
{
	struct kymo_i_writer *const ky_w = kymo_i_tls;
	const uint64_t ky_header = KYMO_I_LOAD(&ky_site->ky_word) | KYMO_I_LENGTH(ky_items);
	const uintptr_t ky_pos = kymo_i_park(ky_w);
	if (ky_items == 1)
		KYMO_I_WRITE_PAIR(1, "", ky_header, ky_w, ky_pos, ky_first, ky_first, ky_slow);
	else
		KYMO_I_WRITE_PAIR(2, "movq %8, 16(%0)\n\t", ky_header, ky_w, ky_pos, ky_first,
				  ky_second, ky_slow);
	return 1;
ky_slow:
	KYMO_I_COLD;
	KYMO_I_STORE(&ky_w->ky_pos, ky_pos);
	return kymo_i_slow_pair(ky_site, ky_items | KYMO_I_PAIR, ky_first, ky_second);
}
#endif

/* Written out, because compilers do not always unroll a loop; ky_items is a constant. */
KYMO_I_INLINE void kymo_i_store_items(uint64_t *ky_slot, uint32_t ky_items,
				      const uint64_t *ky_values)
{
#define KYMO_I_STORE_ITEM(i)                                                                       \
	if (ky_items > (i))                                                                        \
	KYMO_I_STORE(&ky_slot[i], ky_values[i])
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

/* An event with items and no string. The number of items is a constant. The trace point is registered. */
KYMO_I_INLINE int kymo_i_put(struct kymo_i_site *ky_site, uint32_t ky_items,
			     const uint64_t *ky_values)
{
	struct kymo_i_writer *const ky_w = kymo_i_tls;
	uint64_t ky_header = KYMO_I_LOAD(&ky_site->ky_word) | KYMO_I_LENGTH(ky_items);
	const uintptr_t ky_pos = kymo_i_park(ky_w);
	int ky_differs;
	if (KYMO_I_UNLIKELY(ky_pos + 8u * ky_items >= ky_w->ky_end))
		goto ky_slow;
	KYMO_I_STAMP(ky_header, ky_differs, ky_w);
	if (KYMO_I_UNLIKELY(ky_differs))
		goto ky_slow;
	kymo_i_store_items((uint64_t *)ky_pos + 1, ky_items, ky_values);
	kymo_i_publish(ky_w, ky_pos, ky_header, ky_items);
	return 1;
ky_slow:
	KYMO_I_COLD;
	KYMO_I_STORE(&ky_w->ky_pos, ky_pos);
	/* A copy, so that the values' own array has no address and stays in registers. */
	uint64_t ky_copy[KYMO_I_ITEMS_MAX];
	kymo_i_store_items(ky_copy, ky_items, ky_values);
	return kymo_i_slow(ky_site, ky_items, ky_copy);
}

/* An event, whose number and types of items are constants at every call: all but one call folds away. */
KYMO_I_INLINE int kymo_i_event(struct kymo_i_site *ky_site, uint32_t ky_items, uint64_t ky_types,
			       const uint64_t *ky_values)
{
	const uint64_t ky_strings =
		ky_types & (ky_types << 1) & 0x4444444444444444u; /* a bit for each */
	if (ky_strings && (ky_strings & (ky_strings - 1)) == 0)
		return kymo_i_event_string(ky_site, ky_items,
					   (uint32_t)__builtin_ctzll(ky_strings) / 4, ky_values);
	if (ky_strings)
		return kymo_i_event_strings(ky_site, ky_items, ky_strings, ky_values);
	if (ky_items == 0)
		return kymo_i_begin(ky_site) != 0;
#ifdef KYMO_I_WRITE_PAIR
	if (ky_items <= 2)
		return kymo_i_put_pair(ky_site, ky_items, ky_values[0],
				       ky_values[ky_items == 2 ? 1 : 0]);
#endif
	return kymo_i_put(ky_site, ky_items, ky_values);
}

/*
 * Report whether the category is on; the first call registers the trace point. The acquire load pairs with
 * the release store of the word by the thread that registered the trace point (register_site() in
 * libkymo): its description in the heap comes before this thread's event, whose release a reader sees.
 */
#define kymo_i_register(site) kymo_i_slow(site, KYMO_I_REGISTER, KYMO_I_NULL)
#define KYMO_I_IS_ENABLED(site)                                                                    \
	(__atomic_load_n(&(site).ky_word, __ATOMIC_ACQUIRE) != 0 || kymo_i_register(&(site)))

#else /* KYMO_EMBEDDED: nothing to link; all events go through the host, if there is one */

/* Return the host, if the program or a library in its global scope has one. */
extern const struct kymo_host *kymo_host_get(uint32_t ky_version) __attribute__((__weak__));

__attribute__((__unused__)) static const unsigned char kymo_i_off = 0;
__attribute__((__unused__)) static const struct kymo_host *kymo_i_host_given;

/* Give this translation unit a host that is not in the program's global scope. */
__attribute__((__unused__)) static void kymo_embed_host(const struct kymo_host *ky_host)
{
	/* Pairs with the acquire load in kymo_i_host(): what the caller wrote of the host is there. */
	__atomic_store_n(&kymo_i_host_given, ky_host, __ATOMIC_RELEASE);
}

__attribute__((__unused__)) static const struct kymo_host *kymo_i_host(void)
{
	/* Pairs with the release store in kymo_embed_host(). */
	const struct kymo_host *ky_host = __atomic_load_n(&kymo_i_host_given, __ATOMIC_ACQUIRE);
	if (!ky_host && kymo_host_get)
		ky_host = kymo_host_get(KYMO_HOST_VERSION);
	return ky_host;
}

/* Ask the host for the category's flag, once per trace point. Return whether it is on. */
__attribute__((__unused__, __cold__, __noinline__)) static int kymo_i_enabled_slow(
	struct kymo_i_site *ky_site)
{
	const struct kymo_host *ky_host = kymo_i_host();
	const unsigned char *ky_flag =
		ky_host ? ky_host->category(ky_host, ky_site->ky_info->category) : &kymo_i_off;
	/*
	 * The flag before the word, by release: both pair with the acquire load of the word in
	 * kymo_i_is_enabled(), so that a thread that sees the word sees the category's flag.
	 */
	__atomic_store_n(&ky_site->ky_enabled, ky_flag ? ky_flag : &kymo_i_off, __ATOMIC_RELEASE);
	if (ky_host && ky_flag)
		__atomic_store_n(&ky_site->ky_word, ky_host->site(ky_host, ky_site->ky_info),
				 __ATOMIC_RELEASE);
	return ky_flag && *ky_flag;
}

KYMO_I_INLINE uint32_t kymo_i_string_bytes(const char *ky_string)
{
	uint32_t ky_bytes = 0;
	while (ky_string && ky_bytes < KYMO_STRING_MAX && ky_string[ky_bytes])
		ky_bytes++;
	return ky_bytes;
}

/*
 * Report whether the category is on; the first call registers the trace point. The acquire load pairs with
 * the release store of the word by the thread that registered the trace point (register_site() in
 * libkymo): its description in the heap comes before this thread's event, whose release a reader sees.
 */
KYMO_I_INLINE int kymo_i_is_enabled(struct kymo_i_site *ky_site)
{
	return __atomic_load_n(&ky_site->ky_word, __ATOMIC_ACQUIRE) != 0 ||
	       kymo_i_enabled_slow(ky_site);
}

#define KYMO_I_IS_ENABLED(site) kymo_i_is_enabled(&(site))
#define kymo_i_register(site) kymo_i_enabled_slow(site)

__attribute__((__unused__, __noinline__)) static int kymo_i_event_host(struct kymo_i_site *ky_site,
								       int ky_end,
								       uint32_t ky_items,
								       uint64_t ky_types,
								       const uint64_t *ky_values)
{
	if (!kymo_i_is_enabled(ky_site))
		return 0;
	const struct kymo_host *ky_host = kymo_i_host();
	uint32_t ky_words = ky_items;
	for (uint32_t ky_i = 0; ky_i < ky_items; ky_i++)
		if ((ky_types >> (4 * ky_i) & 15) == KYMO_TYPE_STRING)
			ky_words += (kymo_i_string_bytes((const char *)(uintptr_t)ky_values[ky_i]) +
				     7) /
				    8;
	struct kymo_reservation ky_r;
	if (!ky_host || !ky_host->reserve(ky_host, KYMO_I_LOAD(&ky_site->ky_word), ky_words, &ky_r))
		return 0;
	uint64_t *ky_slot = ky_r.items;
	for (uint32_t ky_i = 0; ky_i < ky_items; ky_i++) {
		if ((ky_types >> (4 * ky_i) & 15) != KYMO_TYPE_STRING) {
			*ky_slot++ = ky_values[ky_i];
			continue;
		}
		const char *ky_string = (const char *)(uintptr_t)ky_values[ky_i];
		const uint32_t ky_bytes = kymo_i_string_bytes(ky_string);
		const uint32_t ky_more = ky_string && ky_string[ky_bytes] != '\0';
		*ky_slot++ = KYMO_I_STRING_WORD(ky_bytes, ky_more, ky_string == NULL);
		if (ky_bytes)
			ky_slot[(ky_bytes - 1) / 8] = 0;
		__builtin_memcpy(ky_slot, ky_string ? ky_string : "", ky_bytes);
		ky_slot += (ky_bytes + 7) / 8;
	}
	ky_host->commit(ky_host, &ky_r, ky_end);
	return 1;
}
KYMO_I_INLINE int kymo_i_event(struct kymo_i_site *ky_site, uint32_t ky_items, uint64_t ky_types,
			       const uint64_t *ky_values)
{
	return kymo_i_event_host(ky_site, 0, ky_items, ky_types, ky_values);
}
KYMO_I_INLINE struct kymo_i_site *kymo_i_begin(struct kymo_i_site *ky_site)
{
	return kymo_i_event_host(ky_site, 0, 0, 0, NULL) ? ky_site : NULL;
}
KYMO_I_INLINE void kymo_i_end(struct kymo_i_site *ky_site)
{
	(void)kymo_i_event_host(ky_site, 1, 0, 0, NULL);
}

KYMO_I_INLINE uint64_t kymo_i_ticks(void)
{
	const struct kymo_host *ky_host = kymo_i_host();
	return ky_host ? ky_host->time(ky_host) : 0;
}

KYMO_I_INLINE void kymo_i_over(const char *ky_name, uint64_t ky_begin_ticks, uint64_t ky_min_ns)
{
	const struct kymo_host *ky_host = kymo_i_host();
	const uint64_t ky_lasted_ns = ky_host ? ky_host->time(ky_host) - ky_begin_ticks : 0;
	if (ky_lasted_ns > ky_min_ns)
		ky_host->snapshot(ky_host, ky_name, ky_lasted_ns);
}

KYMO_I_API void kymo_snapshot(const char *ky_reason, uint64_t ky_arg)
{
	const struct kymo_host *ky_host = kymo_i_host();
	if (ky_host)
		ky_host->snapshot(ky_host, ky_reason, ky_arg);
}

#endif /* KYMO_EMBEDDED */

#else /* KYMO_DISABLE */

KYMO_I_API void kymo_snapshot(const char *ky_reason, uint64_t ky_arg)
{
	(void)ky_reason;
	(void)ky_arg;
}

#endif /* KYMO_DISABLE */

#if defined(KYMO_DISABLE) || defined(KYMO_EMBEDDED) /* the host names its process and threads */
KYMO_I_API void kymo_thread_name(const char *ky_name)
{
	(void)ky_name;
}
KYMO_I_API void kymo_process_name(const char *ky_name)
{
	(void)ky_name;
}
KYMO_I_API void kymo_mark_start(void)
{
}
#endif

#ifndef KYMO_DISABLE
/* Fill in what a static initialiser could not, before the trace point is registered. */
KYMO_I_INLINE void kymo_i_learn(const char **ky_slot, const char *ky_text)
{
	if (!KYMO_I_LOAD(ky_slot))
		KYMO_I_STORE(ky_slot, ky_text);
}
/* For macros: the program may have macros with the names of members. Folds to a constant. */
KYMO_I_INLINE uint64_t kymo_i_types_of(const struct kymo_site_info *ky_info)
{
	return ky_info->types;
}
KYMO_I_INLINE void kymo_i_learn_category(struct kymo_site_info *ky_info, const char *ky_text)
{
	kymo_i_learn(&ky_info->category, ky_text);
}
#endif

#pragma pop_macro("abi")
#pragma pop_macro("args")
#pragma pop_macro("category")
#pragma pop_macro("commit")
#pragma pop_macro("context")
#pragma pop_macro("file")
#pragma pop_macro("flags")
#pragma pop_macro("function")
#pragma pop_macro("intern")
#pragma pop_macro("items")
#pragma pop_macro("keys")
#pragma pop_macro("kind")
#pragma pop_macro("line")
#pragma pop_macro("name")
#pragma pop_macro("private_")
#pragma pop_macro("reserve")
#pragma pop_macro("site")
#pragma pop_macro("size")
#pragma pop_macro("snapshot")
#pragma pop_macro("time")
#pragma pop_macro("types")
#pragma pop_macro("version")

#ifdef __cplusplus
} /* extern "C" */
#endif

#ifndef KYMO_DISABLE

/* 1 if trace points of the category stay in the program. Folds to a constant. */
#ifdef KYMO_STATIC_CATEGORIES
#define KYMO_I_STATIC(cat) KYMO_I_IN(cat, KYMO_STATIC_CATEGORIES)
#define KYMO_I_IN(...) (KYMO_I_JOIN(KYMO_I_IN_, KYMO_I_COUNT(__VA_ARGS__))(__VA_ARGS__))
/* c is a, or a comma-separated list that has a first, in the middle, or last. */
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
 * Define a trace point. EACH walks the items: what KYMO_I_EACH() or KYMO_I_LIST() names. The first lead
 * items are no arguments, but what the flags name.
 */
#define KYMO_I_SITE(site, EACH, kind, flags, cat, name, lead, ...)                                 \
	static const char *const site##_keys[] = {EACH(KYMO_I_PAIR_KEY, __VA_ARGS__) NULL};        \
	static const struct kymo_site_info site##_info = {KYMO_I_ABI,                              \
							  (kind),                                  \
							  (uint8_t)(flags),                        \
							  0 EACH(KYMO_I_PAIR_ONE, __VA_ARGS__),    \
							  0 EACH(KYMO_I_PAIR_ONE, __VA_ARGS__) -   \
								  (lead),                          \
							  0,                                       \
							  __LINE__,                                \
							  0,                                       \
							  0 EACH(KYMO_I_PAIR_TYPE, __VA_ARGS__),   \
							  KYMO_I_LITERAL(cat),                     \
							  KYMO_I_LITERAL(name),                    \
							  __FILE__,                                \
							  __func__,                                \
							  site##_keys};                            \
	static struct kymo_i_site site = {&kymo_i_unset, 0, &site##_info}

/* MAYBE_ON: the byte is set, but the trace point may not be registered. ON registers it. */
#define KYMO_I_MAYBE_ON(site) KYMO_I_UNLIKELY(KYMO_I_TEST(KYMO_I_LOAD(&(site).ky_enabled)))
#define KYMO_I_ON(site) (KYMO_I_MAYBE_ON(site) && KYMO_I_IS_ENABLED(site))
/*
 * Record the event and set recorded to the trace point, or to 0 or not at all when the event was lost or the
 * category is off. The byte is set. Only an event with items must know before whether the category is on:
 * they are not evaluated otherwise.
 */
#define KYMO_I_RECORD(recorded, site, EACH, ...)                                                   \
	KYMO_I_JOIN(KYMO_I_RECORD_, KYMO_I_MORE(__VA_ARGS__))(recorded, site, EACH, __VA_ARGS__)
#define KYMO_I_RECORD_1(recorded, site, EACH, x) (recorded) = kymo_i_begin(&(site))
#define KYMO_I_RECORD_2(recorded, site, EACH, ...)                                                 \
	if (KYMO_I_IS_ENABLED(site)) {                                                             \
		KYMO_I_VALUES(EACH, __VA_ARGS__)                                                   \
		if (KYMO_I_RECORD_VALUES(site, EACH, __VA_ARGS__))                                 \
			(recorded) = &(site);                                                      \
	}
#ifdef __cplusplus
/* One full expression: its temporaries, to which words point, live until the event is recorded. */
extern "C++" {
template <typename... KY_Held>
KYMO_I_INLINE int kymo_i_record(struct kymo_i_site *ky_site, const KY_Held &...ky_held)
{
	const uint64_t ky_values[] = {ky_held.ky_word()..., 0};
	return kymo_i_event(ky_site, sizeof...(KY_Held), kymo_i_types<KY_Held...>::ky_all(),
			    ky_values);
}
}
#define KYMO_I_VALUES(EACH, ...)
#define KYMO_I_RECORD_VALUES(site, EACH, ...)                                                      \
	kymo_i_record(&(site)EACH(KYMO_I_PAIR_HOLD, __VA_ARGS__))
#else
#define KYMO_I_VALUES(EACH, ...)                                                                   \
	const uint64_t kymo_i_v[] = {EACH(KYMO_I_PAIR_WORD, __VA_ARGS__) 0};
#define KYMO_I_RECORD_VALUES(site, EACH, ...)                                                      \
	kymo_i_event(&(site), 0 EACH(KYMO_I_PAIR_ONE, __VA_ARGS__), kymo_i_types_of(&site##_info), \
		     kymo_i_v)
#endif

/* A whole trace point that is one event. */
#define KYMO_I_POINT(EACH, kind, flags, cat, name, lead, ...)                                      \
	do {                                                                                       \
		if (KYMO_I_STATIC(cat)) {                                                          \
			KYMO_I_SITE(kymo_i_site, EACH, kind, flags, cat, name, lead, __VA_ARGS__); \
			if (KYMO_I_MAYBE_ON(kymo_i_site)) {                                        \
				struct kymo_i_site *kymo_i_done;                                   \
				KYMO_I_RECORD(kymo_i_done, kymo_i_site, EACH, __VA_ARGS__);        \
				(void)kymo_i_done;                                                 \
			}                                                                          \
		}                                                                                  \
	} while (0)
#define KYMO_I_KEYED(kind, flags, cat, name, lead, ...)                                            \
	KYMO_I_POINT(KYMO_I_EACH(__VA_ARGS__), kind, flags, cat, name, lead, __VA_ARGS__)

#ifdef __cplusplus

struct kymo_i_scope {
	struct kymo_i_site *ky_site;
	kymo_i_scope() : ky_site(0)
	{
	}
	__attribute__((__always_inline__)) ~kymo_i_scope()
	{
		if (ky_site)
			kymo_i_end(ky_site);
	}
	kymo_i_scope(const kymo_i_scope &) = delete;
	kymo_i_scope &operator=(const kymo_i_scope &) = delete;
};
struct kymo_i_scope_over {
	struct kymo_i_site *ky_site;
	uint64_t ky_begin_ticks;
	uint64_t ky_min_ns;
	const char *ky_name;
	kymo_i_scope_over(uint64_t ky_min, const char *ky_of)
	    : ky_site(0), ky_begin_ticks(0), ky_min_ns(ky_min), ky_name(ky_of)
	{
	}
	__attribute__((__always_inline__)) ~kymo_i_scope_over()
	{
		if (!ky_site)
			return;
		kymo_i_end(ky_site);
		kymo_i_over(ky_name, ky_begin_ticks, ky_min_ns);
	}
	kymo_i_scope_over(const kymo_i_scope_over &) = delete;
	kymo_i_scope_over &operator=(const kymo_i_scope_over &) = delete;
};
#define KYMO_I_SCOPE_VAR(var) kymo_i_scope var
#define KYMO_I_SCOPE_OVER_VAR(var, min, of) kymo_i_scope_over var((uint64_t)(min), of)

#else

struct kymo_i_scope {
	struct kymo_i_site *ky_site;
};
KYMO_I_INLINE void kymo_i_scope_end(struct kymo_i_scope *ky_scope)
{
	if (ky_scope->ky_site)
		kymo_i_end(ky_scope->ky_site);
}
struct kymo_i_scope_over {
	struct kymo_i_site *ky_site;
	uint64_t ky_begin_ticks;
	uint64_t ky_min_ns;
	const char *ky_name;
};
KYMO_I_INLINE void kymo_i_scope_over_end(struct kymo_i_scope_over *ky_scope)
{
	if (!ky_scope->ky_site)
		return;
	kymo_i_end(ky_scope->ky_site);
	kymo_i_over(ky_scope->ky_name, ky_scope->ky_begin_ticks, ky_scope->ky_min_ns);
}
#define KYMO_I_SCOPE_VAR(var)                                                                      \
	__attribute__((__cleanup__(kymo_i_scope_end))) struct kymo_i_scope var = {NULL}
#define KYMO_I_SCOPE_OVER_VAR(var, min, of)                                                        \
	__attribute__((__cleanup__(kymo_i_scope_over_end))) struct kymo_i_scope_over var = {       \
		NULL, 0, (uint64_t)(min), of}

#endif

/*
 * A declaration and a statement; the span ends with the enclosing block. The trace point is in a block of
 * its own and has the same name everywhere: in C++ the linker merges the static objects of an inline
 * function by name, and a number in the name would differ between translation units.
 */
#define KYMO_I_SCOPE(flags, cat, name, lead, ...)                                                  \
	KYMO_I_SCOPE_AT(KYMO_I_JOIN(kymo_i_scope_, __COUNTER__), flags, cat, name, lead,           \
			__VA_ARGS__)
#define KYMO_I_SCOPE_AT(at, flags, cat, name, lead, ...)                                           \
	KYMO_I_SCOPE_VAR(at);                                                                      \
	KYMO_I_SCOPE_BEGIN(at, (void)0, KYMO_I_EACH(__VA_ARGS__), flags, cat, name, lead,          \
			   __VA_ARGS__)
#define KYMO_I_SCOPE_OVER(flags, cat, name, min, of, lead, ...)                                    \
	KYMO_I_SCOPE_OVER_AT(KYMO_I_JOIN(kymo_i_scope_, __COUNTER__), flags, cat, name, min, of,   \
			     lead, __VA_ARGS__)
#define KYMO_I_SCOPE_OVER_AT(at, flags, cat, name, min, of, lead, ...)                             \
	KYMO_I_SCOPE_OVER_VAR(at, min, KYMO_I_STATIC(cat) ? (of) : KYMO_I_NULL);                   \
	KYMO_I_SCOPE_BEGIN(at, (at).ky_begin_ticks = kymo_i_ticks(), KYMO_I_EACH(__VA_ARGS__),     \
			   flags, cat, name, lead, __VA_ARGS__)
#define KYMO_I_SCOPE_BEGIN(at, first, EACH, flags, cat, name, lead, ...)                           \
	do {                                                                                       \
		KYMO_I_SITE(kymo_i_site, EACH, KYMO_KIND_BEGIN, KYMO_SITE_SCOPE | (flags), cat,    \
			    name, lead, __VA_ARGS__);                                              \
		if (KYMO_I_STATIC(cat) && KYMO_I_MAYBE_ON(kymo_i_site)) {                          \
			first;                                                                     \
			KYMO_I_RECORD((at).ky_site, kymo_i_site, EACH, __VA_ARGS__);               \
		}                                                                                  \
	} while (0)

#define KYMO_I_ENABLED(cat)                                                                        \
	(KYMO_I_STATIC(cat) && __extension__({                                                     \
		 KYMO_I_CHECK_CATEGORY(cat)                                                        \
		 KYMO_I_SITE(kymo_i_site, KYMO_I_EACH_0, KYMO_KIND_NONE, 0, cat, "", 0, 0);        \
		 KYMO_I_ON(kymo_i_site);                                                           \
	 }))

__attribute__((__format__(__printf__, 1, 2), __unused__)) static inline void kymo_i_check_format(
	const char *ky_fmt, ...)
{
	(void)ky_fmt;
}

#endif /* KYMO_DISABLE */

/* The first argument. */
#define KYMO_I_FIRST(...) KYMO_I_FIRST_(__VA_ARGS__, 0)
#define KYMO_I_FIRST_(first, ...) first

#ifdef KYMO_DISABLE
/* Evaluate nothing and leave nothing, yet use the values, so that the compiler does not warn. */
#ifdef __cplusplus
#define KYMO_I_PAIR_UNUSED(i, key, value) , (void)(false && kymo_i_ignore(value))
#else
#define KYMO_I_PAIR_UNUSED(i, key, value) , (void)sizeof(((void)(value), 0))
#endif
/* An expression: for a loop that runs once clang without optimization emits code. */
#define KYMO_I_NOTHING(EACH, ...) ((void)0 EACH(KYMO_I_PAIR_UNUSED, __VA_ARGS__))
#define KYMO_I_POINT(EACH, kind, flags, cat, name, lead, ...) KYMO_I_NOTHING(EACH, __VA_ARGS__)
#define KYMO_I_KEYED(kind, flags, cat, name, lead, ...)                                            \
	KYMO_I_NOTHING(KYMO_I_EACH(__VA_ARGS__), __VA_ARGS__)
#define KYMO_I_SCOPE(flags, cat, name, lead, ...)                                                  \
	KYMO_I_NOTHING(KYMO_I_EACH(__VA_ARGS__), __VA_ARGS__)
#define KYMO_I_SCOPE_OVER(flags, cat, name, min, of, lead, ...)                                    \
	KYMO_I_NOTHING(KYMO_I_EACH(__VA_ARGS__, "", min), __VA_ARGS__, "", min)
#define KYMO_I_ENABLED(cat) 0
#define KYMO_I_PRINT(cat, ...) KYMO_I_NOTHING(KYMO_I_LIST(__VA_ARGS__), __VA_ARGS__)
#else
#define KYMO_I_PRINT(cat, ...)                                                                     \
	do {                                                                                       \
		if (0)                                                                             \
			kymo_i_check_format(__VA_ARGS__);                                          \
		KYMO_I_POINT(KYMO_I_LIST(__VA_ARGS__), KYMO_KIND_PRINT, 0, cat,                    \
			     KYMO_I_FIRST(__VA_ARGS__), 0, __VA_ARGS__);                           \
	} while (0)
#endif

/* KYMO_SCOPE_OVER_DYN: min leads the arguments, the items are the name and the pairs after min. */
#define KYMO_I_SCOPE_OVER_DYN(cat, name, min, ...)                                                 \
	KYMO_I_SCOPE_OVER(KYMO_SITE_NAME, cat, "", min, KYMO_I_NAME(name), 1, 0, "",               \
			  KYMO_I_NAME(name) KYMO_I_AFTER(__VA_ARGS__))
/* The items of an event whose name comes first, from a variable. */
#define KYMO_I_NAME_FIRST(...)                                                                     \
	0, "", KYMO_I_NAME(KYMO_I_FIRST(__VA_ARGS__)) KYMO_I_AFTER(__VA_ARGS__)
/* All but the first argument, after a comma. */
#define KYMO_I_AFTER(...) KYMO_I_JOIN(KYMO_I_AFTER_, KYMO_I_MORE(__VA_ARGS__))(__VA_ARGS__)
#define KYMO_I_AFTER_1(first)
#define KYMO_I_AFTER_2(first, ...) , __VA_ARGS__

/* Events with a name from a variable and an id. */
#define KYMO_I_ID_DYN(kind, cat, name, ...)                                                        \
	KYMO_I_KEYED(kind, KYMO_SITE_NAME | KYMO_SITE_ID, cat, "", 2, 0, "", KYMO_I_NAME(name),    \
		     "", __VA_ARGS__)

#endif /* KYMO_IMPL_H */
