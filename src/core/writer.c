/* SPDX-License-Identifier: MIT */
/*
 * writer.c: the slow path: the first event of a trace point, of a thread or of a block; events with strings; events in a
 * signal handler that interrupted an event. Never locks or allocates; leaves errno unchanged.
 */
#include "core/writer.h"

#include "core/glob.h"
#include "core/heap.h"
#include "core/parked.h"
#include "core/stall.h"

#include <errno.h>
#include <string.h>

static const unsigned char off = 0;
ky_writer_hook_fn *ky_writer_hook;
ky_writer_wake_fn *ky_writer_wake;

/* The acquire load pairs with the release store of the word in register_site(). */
static uint64_t word_of(const struct kymo_i_site *site)
{
	return __atomic_load_n(&site->ky_word, __ATOMIC_ACQUIRE);
}

/* Not in a child that goes on with an event of its parent, in whose memory the counter is: the parent counts it. */
static void lose(uint64_t *counter)
{
	if (ky_drum_peek())
		__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/*
 * Count an event without a drum. When there will never be one, switch the trace point off: the store
 * needs no order, as off is constant.
 */
static void lose_without_drum(struct kymo_i_site *site)
{
	if (ky_drum_failed())
		__atomic_store_n(&site->ky_enabled, &off, __ATOMIC_RELAXED);
	else if (ky_limits.categories && site->ky_info->kind != KYMO_KIND_NONE &&
		 ky_glob_list_match(ky_limits.categories, site->ky_info->category))
		ky_drum_lose();
}

/*
 * Hold the thread's first writer that is not in the middle of an event. When one was left in the middle, so were the
 * events that had interrupted it.
 */
static struct ky_ring_writer *hold_writer(struct ky_drum *drum, struct ky_slot *slot,
					  uintptr_t frame)
{
	for (uint32_t i = slot->lowest; i < KY_LEVELS; i++) {
		struct ky_ring_writer *w = &slot->level[i];
		const enum ky_parked_hold held = ky_parked_hold(drum, w, frame);
		if (held == KY_PARKED_BUSY)
			continue;
		if (ky_slots_tid(slot) == 0) /* wiped: a handler forked since the slot was chosen */
			return NULL;
		KY_ASSERT(w->level == i && w->at <= w->pub.ky_end);
		for (uint32_t above = i + 1; held == KY_PARKED_TAKEN && above < KY_LEVELS; above++)
			ky_parked_clean(drum, &slot->level[above], frame);
		return w;
	}
	return NULL;
}

/* Fill in the site's word and flag. Return false, with the site off, without room for its category. */
static bool register_site(struct ky_drum *drum, struct kymo_i_site *site)
{
	const struct kymo_site_info *info = site->ky_info;
	struct ky_drum_category *category =
		info->abi == KYMO_I_ABI ? ky_heap_category(drum, info->category) : NULL;
	if (!category) {
		__atomic_store_n(&site->ky_enabled, &off, __ATOMIC_RELAXED);
		return false;
	}
	uint64_t word = 1;
	if (info->kind != KYMO_KIND_NONE) {
		const uint32_t index = (uint32_t)(category - drum->categories);
		word = (uint64_t)ky_heap_site(drum, info, index) << KY_WORD_SITE_SHIFT;
	}
	KY_ASSERT(word != 0);
	/*
	 * Both pair with the acquire load of the word in kymo_i_is_enabled() and word_of(). The flag comes first: a site
	 * with a word has its category's flag.
	 */
	__atomic_store_n(&site->ky_enabled, (const unsigned char *)&category->state,
			 __ATOMIC_RELEASE);
	__atomic_store_n(&site->ky_word, word, __ATOMIC_RELEASE);
	return true;
}

static bool is_on(const struct kymo_i_site *site)
{
	return __atomic_load_n(__atomic_load_n(&site->ky_enabled, __ATOMIC_RELAXED),
			       __ATOMIC_RELAXED);
}

/* The items of an event with the strings' lengths, measured once. */
struct event_items {
	uint32_t items;
	uint32_t words; /* of all items */
	uint64_t types;
	const uint64_t *values;
	uint8_t bytes[KYMO_I_ITEMS_MAX];
	bool cut[KYMO_I_ITEMS_MAX];
};

static void measure(struct event_items *p)
{
	p->words = p->items;
	for (uint32_t i = 0; i < p->items; i++) {
		const char *string = (const char *)(uintptr_t)p->values[i];
		if ((p->types >> (4 * i) & 15) != KYMO_TYPE_STRING)
			continue;
		const size_t bytes = string ? strnlen(string, KYMO_STRING_MAX + 1) : 0;
		p->cut[i] = bytes > KYMO_STRING_MAX;
		p->bytes[i] = (uint8_t)(p->cut[i] ? KYMO_STRING_MAX : bytes);
		p->words += (p->bytes[i] + 7u) / 8;
	}
}

/* Return the last bytes of a string, at most 7, as a word. Read nothing past its end. */
static inline __attribute__((always_inline)) uint64_t tail_word(const char *string, size_t bytes)
{
	const size_t rest = bytes & 7;
	uint64_t word = 0;
	if (bytes >= 8) { /* reads bytes again that came before */
		memcpy(&word, string + bytes - 8, 8);
		return word >> (8 * (8 - rest));
	}
	const char *at = string;
	if (rest & 4) {
		uint32_t part;
		memcpy(&part, at, 4);
		word = part;
		at += 4;
	}
	if (rest & 2) {
		uint16_t part;
		memcpy(&part, at, 2);
		word |= (uint64_t)part << (8 * (at - string));
		at += 2;
	}
	if (rest & 1)
		word |= (uint64_t)(uint8_t)*at << (8 * (at - string));
	return word;
}

static inline __attribute__((always_inline)) uint64_t *put_bytes(uint64_t *slot, const char *string,
								 size_t bytes)
{
	for (size_t at = 0; at + 8 <= bytes; at += 8) {
		uint64_t word;
		memcpy(&word, string + at, 8);
		KYMO_I_STORE(slot++, word);
	}
	if (bytes & 7)
		KYMO_I_STORE(slot++, tail_word(string, bytes));
	return slot;
}

static void put_items(uint64_t *slot, const struct event_items *p)
{
	for (uint32_t i = 0; i < p->items; i++) {
		if ((p->types >> (4 * i) & 15) != KYMO_TYPE_STRING) {
			KYMO_I_STORE(slot++, p->values[i]);
			continue;
		}
		const char *string = (const char *)(uintptr_t)p->values[i];
		KYMO_I_STORE(slot++, KYMO_I_STRING_WORD(p->bytes[i], p->cut[i], string == NULL));
		slot = put_bytes(slot, string, p->bytes[i]);
	}
}

/* Reserve room in a writer that is held. */
static uint64_t *reserve(struct ky_drum *drum, struct ky_slot *slot, struct ky_ring_writer *w,
			 uint32_t words, uint64_t *ticks)
{
	if (KYMO_I_UNLIKELY(slot->lowest)) {
		*ticks = ky_coarse_ticks(&slot->coarse);
		return ky_ring_reserve_at(drum, w, ky_slots_tid(slot), slot->name, words, *ticks);
	}
	return ky_ring_reserve(drum, w, ky_slots_tid(slot), slot->name, words, ticks);
}

/* Record an event. w is held; this lets go of it. */
static int record(struct ky_drum *drum, struct ky_slot *slot, struct ky_ring_writer *w,
		  uint64_t word, uint64_t end_bit, const struct event_items *p)
{
	KY_ASSERT(p->words >= p->items && p->words <= KY_EVENT_WORDS_MAX && word != 0);
	uint64_t ticks;
	if (w->level == 0 && ky_stall_has_readers(drum))
		ky_stall_make_room(drum, slot, p->words);
	uint64_t *at = reserve(drum, slot, w, p->words, &ticks);
	if (!at) {
		lose(&drum->header->lost_ringless);
		ky_parked_unhold(w);
		return 0;
	}
	put_items(at + 1, p);
	ky_parked_commit(w, at, word | KYMO_I_LENGTH(p->words) | end_bit | (uint32_t)ticks,
			 at + 1 + p->words);
	return 1;
}

/* The whole slow path. frame is the stack pointer of the event. */
static int record_slow(struct kymo_i_site *site, uint64_t end_bit, struct event_items *p,
		       uintptr_t frame, bool force)
{
	const int saved_errno = errno;
	int recorded = 0;
	struct ky_drum *drum = ky_drum_get();
	struct ky_slot *slot = drum ? ky_slots_own(drum) : NULL;
	struct ky_ring_writer *w = slot ? hold_writer(drum, slot, frame) : NULL;
	if (!drum)
		lose_without_drum(site);
	else if (!w)
		lose(slot ? &drum->header->lost_nested : &drum->header->lost_ringless);
	if (w) {
		const bool registered = word_of(site) != 0 || register_site(drum, site);
		if (registered && site->ky_info->kind != KYMO_KIND_NONE &&
		    (force || end_bit || is_on(site)))
			recorded = record(drum, slot, w, word_of(site), end_bit, p);
		else
			ky_parked_unhold(w);
	}
	/* Pairs with the release store of the hook in ky_marker_start(). */
	ky_writer_hook_fn *hook = __atomic_load_n(&ky_writer_hook, __ATOMIC_ACQUIRE);
	if (recorded && hook)
		hook(site->ky_info, end_bit != 0, p->values, (uint32_t)(slot - ky_slots_first()));
	ky_writer_wake_fn *wake = __atomic_load_n(&ky_writer_wake, __ATOMIC_RELAXED);
	if (recorded && wake && !slot->prepared)
		wake();
	errno = saved_errno;
	return recorded;
}

/* Both are called in asm alone, which optimizers of whole programs (-flto) do not see. */
__attribute__((used)) int kymo_i_slow_at(struct kymo_i_site *site, uint32_t what,
					 const uint64_t *values, uintptr_t frame,
					 const uint64_t *pair)
{
	const bool end = what & KYMO_I_END;
	struct event_items p = {.items = what & 0xff,
				.words = what & 0xff,
				.values = what & KYMO_I_PAIR ? pair : values};
	KY_ASSERT(p.items <= KYMO_I_ITEMS_MAX);
	if ((what & KYMO_I_REGISTER || word_of(site) == 0) && !kymo_i_enabled_slow(site))
		return 0;
	/* kymo_i_end() was called: above its return address is the span's function. */
	return what & KYMO_I_REGISTER || record_slow(site, end ? KYMO_I_END_BIT : 0, &p,
						     frame + (end ? sizeof(void *) : 0), false);
}

#if defined(__x86_64__)
__attribute__((used)) bool ky_writer_is_wide;

/* With -fno-asynchronous-unwind-tables the compiler begins none. */
#ifdef __GCC_HAVE_DWARF2_CFI_ASM
#define UNWIND(what)
#else
#define UNWIND(what) ".cfi_" what "\n"
#endif
/*
 * Call kymo_i_slow_at() below the red zone of a function that jumps here, on an aligned stack, and go on where rax says. All
 * is kept but rax and r11, and the vector registers that the jump says it changes. It cannot say so of those of AVX-512 in a
 * function that alone is compiled for it: these are saved here (xsavec; 0xa0: zmm16 to zmm31 and masks), as libc uses them. To unwinders it is a call whose frame begins at that function's stack pointer.
 */
__attribute__((naked, used)) void kymo_i_slow_jump(void)
{
	__asm__(UNWIND("startproc") ".cfi_def_cfa rsp, 0\n"
				    ".cfi_register rip, rax\n"
				    "leaq -128(%rsp), %rsp\n"
				    ".cfi_def_cfa_offset 128\n"
				    "pushq %rax\n"
				    ".cfi_def_cfa_offset 136\n"
				    ".cfi_offset rip, -136\n"
				    "pushq %rbp\n"
				    ".cfi_def_cfa_offset 144\n"
				    ".cfi_offset rbp, -144\n"
				    "movq %rsp, %rbp\n"
				    ".cfi_def_cfa_register rbp\n"
				    "pushq %rcx\npushq %rdx\npushq %rsi\npushq %rdi\n"
				    "pushq %r9\npushq %r8\npushq %r10\n"
				    "andq $-64, %rsp\n"
				    "testb $1, ky_writer_is_wide(%rip)\n"
				    "je 1f\n"
				    "leaq -1664(%rsp), %rsp\n"
				    "pxor %xmm0, %xmm0\n"
				    "movaps %xmm0, 528(%rsp)\n"
				    "movaps %xmm0, 544(%rsp)\n"
				    "movaps %xmm0, 560(%rsp)\n"
				    "movl $0xa0, %eax\nxorl %edx, %edx\nxsavec (%rsp)\n"
				    "movq -16(%rbp), %rdx\n"
				    "1: movq %r11, %rdi\n"
				    "movl %r10d, %esi\n"
				    "leaq 144(%rbp), %rcx\n"
				    "leaq -16(%rbp), %r8\n" /* the pair: rdx and rcx */
				    "cld\n"
				    "call kymo_i_slow_at\n"
				    "testb $1, ky_writer_is_wide(%rip)\n"
				    "je 2f\n"
				    "movl %eax, %r11d\n"
				    "movl $0xa0, %eax\nxorl %edx, %edx\nxrstor (%rsp)\n"
				    "movl %r11d, %eax\n2:\n"
				    "leaq -56(%rbp), %rsp\n"
				    "popq %r10\npopq %r8\npopq %r9\n"
				    "popq %rdi\npopq %rsi\npopq %rdx\npopq %rcx\n"
				    "popq %rbp\n"
				    ".cfi_def_cfa rsp, 136\n"
				    ".cfi_restore rbp\n"
				    "popq %r11\n"
				    ".cfi_def_cfa_offset 128\n"
				    ".cfi_register rip, r11\n"
				    "leaq 128(%rsp), %rsp\n"
				    ".cfi_def_cfa_offset 0\n"
				    "jmp *%r11\n" UNWIND("endproc"));
}
#endif

/*
 * Measure an event's strings. Return the words of all its items, or 0 when a string is too long or null: those take the
 * slow path. strings has a bit in the nibble of each.
 */
static inline __attribute__((always_inline)) uint32_t measure_strings(uint64_t strings,
								      uint32_t items,
								      const uint64_t *values,
								      uint32_t *bytes)
{
	uint32_t words = items;
	for (; strings; strings &= strings - 1) {
		const uint32_t i = (uint32_t)__builtin_ctzll(strings) / 4;
		const char *string = (const char *)(uintptr_t)values[i];
		const size_t length = string ? strnlen(string, KYMO_STRING_MAX + 1) : SIZE_MAX;
		if (KYMO_I_UNLIKELY(length > KYMO_STRING_MAX))
			return 0;
		bytes[i] = (uint32_t)length;
		words += (uint32_t)(length + 7) / 8;
	}
	return words;
}

/* Copy an event's items. Return where they end. */
static inline uint64_t *copy_items(uint64_t *slot, uint64_t strings, uint32_t items,
				   const uint64_t *values, const uint32_t *bytes)
{
	for (uint32_t i = 0; i < items; i++, strings >>= 4) {
		if (!(strings & 15)) {
			KYMO_I_STORE(slot++, values[i]);
			continue;
		}
		KYMO_I_STORE(slot++, bytes[i]);
		slot = put_bytes(slot, (const char *)(uintptr_t)values[i], bytes[i]);
	}
	return slot;
}

static __attribute__((noinline)) int strings_slow(struct kymo_i_site *site, uint64_t end_bit,
						  uint32_t items, uint64_t types,
						  const uint64_t *values, uintptr_t frame,
						  bool force)
{
	struct event_items p;
	p.items = items;
	p.types = types;
	p.values = values;
	measure(&p);
	return record_slow(site, end_bit, &p, frame, force);
}

int kymo_i_event_string(struct kymo_i_site *site, uint32_t items, uint32_t at,
			const uint64_t *values)
{
	KY_ASSERT(at < items && items <= KYMO_I_ITEMS_MAX);
	const char *const string = (const char *)(uintptr_t)values[at];
	const size_t bytes = string ? strnlen(string, KYMO_STRING_MAX + 1) : SIZE_MAX;
	const size_t words = items + (bytes + 7) / 8;
	struct kymo_i_writer *const w = kymo_i_tls;
	const uint64_t word = KYMO_I_LOAD(&site->ky_word);
	const uintptr_t frame = KY_PARKED_FRAME();
	const uintptr_t pos = ky_parked_park(w, frame);
	uint64_t header = word | KYMO_I_LENGTH(words);
	int differs;
	if (KYMO_I_UNLIKELY(word == 0 || bytes > KYMO_STRING_MAX || pos + 8 * words >= w->ky_end))
		goto slow;
	KYMO_I_STAMP(header, differs, w);
	if (KYMO_I_UNLIKELY(differs))
		goto slow;
	uint64_t *slot = (uint64_t *)pos + 1;
	for (uint32_t i = 0; i < at; i++)
		KYMO_I_STORE(slot++, values[i]);
	KYMO_I_STORE(slot++, bytes);
	slot = put_bytes(slot, string, bytes);
	for (uint32_t i = at + 1; i < items; i++)
		KYMO_I_STORE(slot++, values[i]);
	ky_ring_commit(w, (uint64_t *)pos, header, slot);
	return 1;
slow:
	KYMO_I_STORE(&w->ky_pos, pos); /* unparked, or as the interrupted event left it */
	return strings_slow(site, 0, items, site->ky_info->types, values, frame, false);
}

int kymo_i_event_strings(struct kymo_i_site *site, uint32_t items, uint64_t strings,
			 const uint64_t *values)
{
	uint32_t bytes[KYMO_I_ITEMS_MAX];
	const uint32_t words = measure_strings(strings, items, values, bytes);
	struct kymo_i_writer *const w = kymo_i_tls;
	const uint64_t word = KYMO_I_LOAD(&site->ky_word);
	const uintptr_t frame = KY_PARKED_FRAME();
	const uintptr_t pos = ky_parked_park(w, frame);
	uint64_t header = word | KYMO_I_LENGTH(words);
	int differs;
	if (KYMO_I_UNLIKELY(word == 0 || words == 0 || pos + 8u * words >= w->ky_end))
		goto slow;
	KYMO_I_STAMP(header, differs, w);
	if (KYMO_I_UNLIKELY(differs))
		goto slow;
	const uint64_t *next = copy_items((uint64_t *)pos + 1, strings, items, values, bytes);
	ky_ring_commit(w, (uint64_t *)pos, header, next);
	return 1;
slow:
	KYMO_I_STORE(&w->ky_pos, pos); /* unparked, or as the interrupted event left it */
	return strings_slow(site, 0, items, site->ky_info->types, values, frame, false);
}

int ky_writer_record(struct kymo_i_site *site, uint64_t end_bit, uint32_t items, uint64_t types,
		     const uint64_t *values)
{
	return strings_slow(site, end_bit, items, types, values, KY_PARKED_FRAME(), true);
}

int ky_writer_reserve(uint64_t site, uint32_t words, uintptr_t frame,
		      struct kymo_reservation *reservation)
{
	const int saved_errno = errno;
	KY_ASSERT(site >> KY_WORD_SITE_SHIFT >= KY_CONTROL_MAX);
	struct ky_drum *drum = ky_drum_get();
	struct ky_slot *slot = drum && words <= KY_EVENT_WORDS_MAX ? ky_slots_own(drum) : NULL;
	struct ky_ring_writer *w = slot ? hold_writer(drum, slot, frame) : NULL;
	uint64_t ticks = 0;
	if (w && w->level == 0 && ky_stall_has_readers(drum))
		ky_stall_make_room(drum, slot, words);
	uint64_t *at = w ? reserve(drum, slot, w, words, &ticks) : NULL;
	if (drum && !at)
		lose(slot && !w ? &drum->header->lost_nested : &drum->header->lost_ringless);
	if (w && !at)
		ky_parked_unhold(w);
	if (at) {
		reservation->items = at + 1;
		reservation->private_[0] = (uintptr_t)w;
		reservation->private_[1] = site | KYMO_I_LENGTH(words) | (uint32_t)ticks;
		reservation->private_[2] = words;
	}
	errno = saved_errno;
	return at != NULL;
}

void ky_writer_commit(struct kymo_reservation *reservation, bool end)
{
	KY_ASSERT(reservation->private_[2] <= KY_EVENT_WORDS_MAX);
	ky_parked_commit((struct ky_ring_writer *)(uintptr_t)reservation->private_[0],
			 reservation->items - 1,
			 reservation->private_[1] | (end ? KYMO_I_END_BIT : 0),
			 reservation->items + reservation->private_[2]);
}

int kymo_i_enabled_slow(struct kymo_i_site *site)
{
	const int saved_errno = errno;
	struct ky_drum *drum = ky_drum_get();
	const int on = drum && register_site(drum, site) && is_on(site);
	if (!drum)
		lose_without_drum(site);
	errno = saved_errno;
	return on;
}
