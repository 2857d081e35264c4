/* SPDX-License-Identifier: MIT */
/* parked.c: whose event a parked writer has, and whether that event is over. */
#include "core/parked.h"

#include "os/os.h"

/*
 * An event this much above another's frame may be on another stack: that of a coroutine which a signal handler switched
 * to. Then it does not show that the other event is over.
 */
#define SAME_STACK_BYTES (UINT64_C(64) << 10)

bool ky_parked_is_over(uintptr_t held, uintptr_t frame, bool quiet)
{
	/* Two live frames are never at the same place. A signal stack may be above the frame that was interrupted. */
	return frame == held || (frame > held && frame - held <= SAME_STACK_BYTES && !quiet &&
				 !ky_os_on_signal_stack());
}

/* Where the events of a writer's block end, and where the last one begins. */
struct tail {
	uintptr_t end;
	uintptr_t last;
	uint64_t events; /* ever, by what the block holds */
	uint32_t high;   /* the counter's high half there */
};

static struct tail find_tail(const struct ky_ring_writer *w)
{
	if (w->pub.ky_end == 0)
		return (struct tail){.events = w->pub.ky_events};
	const struct ky_drum_block *block = (const void *)(w->pub.ky_end - KY_BLOCK_BYTES);
	uint32_t at = 0, last = 0;
	uint64_t events = KYMO_I_LOAD(&block->events_before);
	uint32_t high = (uint32_t)(KYMO_I_LOAD(&block->ticks) >> 32);
	while (at < KY_BLOCK_WORDS - KY_BLOCK_HEAD_WORDS) {
		const uint64_t word = KYMO_I_LOAD(&block->words[at]);
		if (word == 0)
			break;
		events += KY_WORD_SITE(word) >= KY_CONTROL_MAX;
		if (KY_WORD_SITE(word) == KY_CONTROL_HIGH)
			high = KY_WORD_LOW(word);
		last = at;
		at += 1 + KY_WORD_LENGTH(word);
	}
	return (struct tail){(uintptr_t)&block->words[at], (uintptr_t)&block->words[last], events,
			     high};
}

/*
 * Report whether the event that parked the writer is over. The fast path leaves only the sum of position and stack
 * pointer: the position is the end of the block's events, or where the last one begins if it was left just before the
 * end. With several stack pointers in the sum (% 8 > 1) there is nothing to tell.
 */
static bool is_over(const struct ky_ring_writer *w, uintptr_t pos, uintptr_t frame)
{
	if (w->frame)
		return ky_parked_is_over(w->frame, frame, w->quiet);
	if (pos % 8 != 1)
		return false;
	const struct tail tail = find_tail(w);
	return frame == pos - 1 - tail.end ||
	       ky_parked_is_over(pos - 1 - tail.last, frame, w->quiet);
}

/* Report whether an event that was left is not in its block. */
static bool is_missing(const struct ky_ring_writer *w)
{
	if (w->frame)
		return w->pub.ky_end == 0 || w->at == 0 ||
		       KYMO_I_LOAD((const uint64_t *)w->at) == 0;
	return find_tail(w).events == w->pub.ky_events;
}

/* Go on in the block behind its last whole event. */
static void mend_block(struct ky_ring_writer *w, const struct tail *tail)
{
	ky_cpu_clear((uint64_t *)tail->end, (w->pub.ky_end - tail->end) / 8);
	w->pub.ky_events = tail->events;
	w->high = tail->high;
	w->at = tail->end;
}

/* Hold a writer whose event was left. */
static void take_over(struct ky_drum *drum, struct ky_ring_writer *w, uintptr_t frame)
{
	const bool missing = is_missing(w);
	const struct tail tail = find_tail(w);
	/* From here on handlers find it held by this event. */
	KYMO_I_STORE(&w->frame, frame);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (missing)
		__atomic_fetch_add(&drum->header->lost_unfinished, 1, __ATOMIC_RELAXED);
	if (w->pub.ky_end)
		mend_block(w, &tail);
	else
		ky_ring_restart(drum, w);
	KYMO_I_STORE(&w->pub.ky_pos, w->at + frame + 1);
}

enum ky_parked_hold ky_parked_take(struct ky_drum *drum, struct ky_ring_writer *w, uintptr_t pos,
				   uintptr_t frame)
{
	KYMO_I_STORE(&w->pub.ky_pos, pos);
	if (!is_over(w, pos, frame))
		return KY_PARKED_BUSY;
	take_over(drum, w, frame);
	return KY_PARKED_TAKEN;
}

void ky_parked_clean(struct ky_drum *drum, struct ky_ring_writer *w, uintptr_t frame)
{
	const uintptr_t pos = w->pub.ky_pos;
	if (!ky_parked_is_parked(pos, w->pub.ky_end) || !is_over(w, pos, frame))
		return;
	take_over(drum, w, frame);
	ky_parked_unhold(w);
}
