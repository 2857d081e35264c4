/* SPDX-License-Identifier: MIT */
/*
 * drum_window.c: for each ring, search for the block where the window begins, by the times in the
 * blocks' heads; read from there; drop from each piece what is outside the window or was handed
 * out; remember the rest as handed out.
 *
 * What is handed out is remembered by its place, not by its time: an event may get into its ring
 * after its window was read, and belongs to the next window then. A ring's places only grow, and
 * its times with them. Parts that the ring has overwritten are forgotten, so there are few.
 *
 * What the ring overwrote before the window was requested does not count as lost: a ring is meant
 * to do so. What it overwrites while the window is read does.
 */
#include "capture/drum_window.h"

#include "base/array.h"
#include "core/block_select.h"
#include "core/span_stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* No ring has more blocks; places stay within 64 bits. */
#define HEAD_MAX (UINT64_C(1) << 50)
/* More parts are joined: a program that takes thousands of snapshots per lap. */
#define HELD_MAX 1024u

struct window_reading {
	struct ky_drum_window *window;
	struct ky_stream *stream;
	uint64_t from_ns, to_ns;
	uint64_t space_left; /* limits the sum of rings that overlap, which are not rings */
	struct ky_drum_window_ring *ring;
	uint64_t piece_place;
	bool passed;             /* an event was after the window */
	struct ky_drum_held got; /* to is 0: nothing yet */
};

void ky_drum_window_free(struct ky_drum_window *window)
{
	for (uint32_t i = 0; i < window->rings_count; i++)
		KY_ARRAY_FREE(window->rings[i].held, window->rings[i].room);
	KY_ARRAY_FREE(window->rings, window->rings_room);
	free(window->words);
	memset(window, 0, sizeof(*window));
}

static int make_rings(struct ky_drum_window *window, uint32_t count)
{
	if (!window->words)
		window->words = malloc(KY_BLOCK_WORDS * sizeof(uint64_t));
	if (!window->words)
		return -ENOMEM;
	if (!KY_ARRAY_GROW_ZERO(window->rings, window->rings_room, count))
		return -ENOMEM;
	window->rings_count = count > window->rings_count ? count : window->rings_count;
	return 0;
}

/* ---- what was handed out ---- */

static bool is_held(const struct ky_drum_window_ring *ring, uint64_t place)
{
	for (uint32_t i = ring->count; i-- > 0;)
		if (place >= ring->held[i].from)
			return place < ring->held[i].to;
	return false;
}

static void forget_overwritten(struct ky_drum_window_ring *ring, uint64_t oldest)
{
	uint32_t gone = 0;
	while (gone < ring->count && ring->held[gone].to <= oldest)
		gone++;
	ring->count -= gone;
	if (gone)
		memmove(ring->held, ring->held + gone, ring->count * sizeof(*ring->held));
}

static int make_held(struct ky_drum_window_ring *ring)
{
	if (ring->count >= HELD_MAX) { /* join the two oldest */
		ring->held[1].from = ring->held[0].from;
		memmove(ring->held, ring->held + 1, --ring->count * sizeof(*ring->held));
	}
	return KY_ARRAY_GROW(ring->held, ring->room, ring->count + 1) ? 0 : -ENOMEM;
}

/* Remember a part, in order, and join the parts that it touches. */
static int hold(struct ky_drum_window_ring *ring, struct ky_drum_held part)
{
	if (make_held(ring) != 0)
		return -ENOMEM;
	uint32_t at = 0, to = 0;
	struct ky_drum_held *held = ring->held;
	while (at < ring->count && held[at].to < part.from)
		at++;
	for (to = at; to < ring->count && held[to].from <= part.to; to++) {
		part.from = held[to].from < part.from ? held[to].from : part.from;
		part.to = held[to].to > part.to ? held[to].to : part.to;
	}
	memmove(held + at + 1, held + to, (ring->count - to) * sizeof(*held));
	held[at] = part;
	ring->count = ring->count - (to - at) + 1;
	return 0;
}

/* ---- reading ---- */

/* Report whether that block began before the window; a block that was overwritten did. */
static bool begins_before(const struct window_reading *r, const struct ky_ring_cursor *c,
			  uint64_t number)
{
	const struct ky_drum_block *block =
		(const void *)(r->stream->view.base + c->at +
			       (number & (c->blocks - 1)) * KY_BLOCK_BYTES);
	/* Acquire: the head is complete when its number is there. */
	if (__atomic_load_n(&block->seq, __ATOMIC_ACQUIRE) != number + 1)
		return true;
	return ky_clock_map_ns(&r->stream->clock, KYMO_I_LOAD(&block->ticks)) <= r->from_ns;
}

/* Return the last block that began before the window, or the oldest. */
static uint64_t first_block(const struct window_reading *r, const struct ky_ring_cursor *c,
			    uint64_t head)
{
	return KY_ARRAY_SEARCH((head > c->blocks ? head - c->blocks : 0) + 1, head, at,
			       begins_before(r, c, at)) -
	       1;
}

static bool is_in_window(void *context, uint64_t word, uint64_t ticks, uint32_t at)
{
	struct window_reading *r = context;
	const uint64_t time_ns = ky_clock_map_ns(&r->stream->clock, ticks);
	r->passed |= time_ns > r->to_ns;
	if (time_ns < r->from_ns || time_ns > r->to_ns)
		return false;
	const uint64_t place = r->piece_place + at;
	if (r->got.to == 0)
		r->got.from = place;
	r->got.to = place + 1 + KY_WORD_LENGTH(word);
	if (is_held(r->ring, place))
		return false;
	const struct ky_site *site = ky_sites_get(&r->stream->sites, word);
	r->window->damaged += !site;
	return site && ky_stream_wants(r->stream, site);
}

static void hand_out(struct window_reading *r, const struct ky_block *block)
{
	const struct ky_stream_sink *sink = &r->stream->sink;
	bool renamed = false;
	const struct ky_thread *thread = ky_sites_thread(&r->stream->sites, block->pid, block->tid,
							 block->name, block->ticks, &renamed);
	if (!thread)
		return;
	if (renamed)
		sink->thread(sink->context, thread);
	r->stream->events += block->events;
	r->window->lost += block->lost;
	sink->block(sink->context, block, thread);
}

static void read_ring(struct window_reading *r, struct ky_ring_cursor *c, uint64_t head)
{
	struct ky_block block;
	c->number = first_block(r, c, head);
	c->counted = false;
	/* What begins while it is read is after the window, unless the owner lies. */
	for (uint64_t pieces = 0; pieces <= 2 * c->blocks && !r->passed; pieces++) {
		if (!ky_ring_read(&r->stream->view, c, r->window->words, &block))
			break;
		r->piece_place = block.number * KY_BLOCK_WORDS + block.from;
		block.from += ky_block_select(&block, r->window->words, is_in_window, r);
		if (block.count || block.lost)
			hand_out(r, &block);
	}
	r->window->damaged += c->damaged;
}

static int read_and_hold(struct window_reading *r, uint32_t ring)
{
	struct ky_ring_cursor cursor;
	ky_ring_cursor_init(&cursor, ring, false);
	const uint64_t head = __atomic_load_n(&r->stream->view.rings[ring].head, __ATOMIC_ACQUIRE);
	if (head == 0 || !ky_ring_find(&r->stream->view, &cursor))
		return 0;
	const uint64_t bytes = cursor.blocks * KY_BLOCK_BYTES;
	if (head > HEAD_MAX || bytes > r->space_left) {
		r->window->damaged++;
		return 0;
	}
	r->space_left -= bytes;
	r->ring = &r->window->rings[ring];
	r->passed = false;
	r->got = (struct ky_drum_held){0};
	const uint64_t oldest = head > cursor.blocks ? head - cursor.blocks : 0;
	forget_overwritten(r->ring, oldest * KY_BLOCK_WORDS);
	read_ring(r, &cursor, head);
	return r->got.to ? hold(r->ring, r->got) : 0;
}

int ky_drum_window_read(struct ky_drum_window *window, struct ky_stream *stream, uint64_t from_ns,
			uint64_t to_ns)
{
	const uint32_t rings = ky_drum_view_rings(&stream->view);
	struct window_reading reading = {.window = window,
					 .stream = stream,
					 .from_ns = from_ns,
					 .to_ns = to_ns,
					 .space_left = stream->view.header.space_bytes};
	int error = make_rings(window, rings);
	for (uint32_t i = 0; error == 0 && i < rings; i++)
		error = read_and_hold(&reading, i);
	return error;
}

/* ---- the spans that were open when it began ---- */

/* Deeper spans are left out. */
#define DEPTH_MAX 1024u

struct open_span {
	const struct ky_site *site; /* first: an item of a span stack */
	uint32_t at;                /* where its beginning is in kept */
	bool wanted;                /* it is there */
	uint64_t ticks;             /* of its beginning */
};

/* Beginnings of one thread are so far apart: more than a nanosecond, however times are rounded. */
#define STEP_TICKS 8u

struct before {
	struct ky_stream *stream;
	uint64_t from_ticks;
	uint64_t words[KY_BLOCK_WORDS];
	struct ky_block last;       /* the last piece before the window: whose ring it is */
	struct ky_span_stack stack; /* of struct open_span */
	uint64_t *kept;             /* the words of their beginnings, one after the other */
	uint32_t kept_count, kept_room;
	uint32_t pid;                      /* of the drum */
	struct ky_open_order *notes;       /* NULL: they are handed out, in */
	const struct ky_open_order *order; /* this order */
	bool full;                         /* no memory for notes */
};

/* Return the first tick that is not before the time. */
static uint64_t ticks_at(struct ky_clock_map *clock, uint64_t ns)
{
	uint64_t low = clock->readings[0].ticks;
	uint64_t high = clock->readings[clock->count - 1].ticks;
	if (ky_clock_map_ns(clock, high) < ns)
		return high;
	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;
		if (ky_clock_map_ns(clock, middle) < ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct open_span *span_at(const struct before *b, uint32_t level)
{
	return ky_span_stack_at(&b->stack, sizeof(struct open_span), level);
}

static void forget_from(struct before *b, uint32_t depth)
{
	if (depth < b->stack.depth)
		b->kept_count = span_at(b, depth)->at;
	b->stack.depth = depth;
}

static void forget_all(struct before *b)
{
	forget_from(b, 0);
	b->stack.beyond = 0;
}

static void take_begin(struct before *b, const struct ky_site *site, const uint64_t *words,
		       uint64_t ticks)
{
	const uint32_t count = 1 + KY_WORD_LENGTH(words[0]);
	struct open_span *span = ky_span_stack_push(&b->stack, sizeof(*span), DEPTH_MAX, site);
	if (!span)
		return;
	span->at = b->kept_count;
	span->ticks = ticks;
	span->wanted = ky_stream_wants(b->stream, site) &&
		       KY_ARRAY_GROW(b->kept, b->kept_room, b->kept_count + count);
	if (!span->wanted)
		return;
	memcpy(&b->kept[b->kept_count], words, count * sizeof(*words));
	b->kept_count += count;
}

static void take_event(struct before *b, const uint64_t *words, uint64_t ticks)
{
	const struct ky_site *const site = ky_sites_get(&b->stream->sites, words[0]);
	if (!site)
		return;
	if (site->kind == KYMO_KIND_END || KY_WORD_IS_END(words[0])) {
		if (ky_span_stack_end_beyond(&b->stack))
			return;
		const struct ky_span_end ends =
			ky_span_stack_end(&b->stack, sizeof(struct open_span), site);
		forget_from(b, b->stack.depth - ends.inner - ends.found);
	} else if (site->kind == KYMO_KIND_BEGIN) {
		take_begin(b, site, words, ticks);
	}
}

/* Return false when the piece reaches into the window. */
static bool take_piece(struct before *b, const struct ky_block *block)
{
	uint32_t high = block->high;
	if (block->lost || block->tid != b->last.tid || block->pid != b->last.pid)
		forget_all(b);
	b->last = *block;
	for (uint32_t at = 0; at < block->count; at += 1 + KY_WORD_LENGTH(block->words[at])) {
		const uint64_t word = block->words[at];
		if (KY_WORD_SITE(word) == KY_CONTROL_HIGH)
			high = KY_WORD_LOW(word);
		if (KY_WORD_SITE(word) < KY_CONTROL_MAX)
			continue;
		const uint64_t ticks = (uint64_t)high << 32 | KY_WORD_LOW(word);
		if (ticks >= b->from_ticks)
			return false;
		if (KY_WORD_LENGTH(word) < block->count - at)
			take_event(b, &block->words[at], ticks);
	}
	return true;
}

static void hand_out_begins(struct before *b, const struct ky_thread *thread, uint32_t count,
			    uint32_t events)
{
	struct ky_block block = b->last;
	block.high = (uint32_t)(b->from_ticks >> 32);
	block.count = count;
	block.events = events;
	block.lost = 0;
	block.words = b->words;
	if (events)
		b->stream->sink.block(b->stream->sink.context, &block, thread);
}

KY_ORDER(by_thread_and_time, struct ky_open_begin,
	 KY_COMPARE_THEN(a->pid, b->pid, KY_COMPARE_THEN(a->tid, b->tid, KY_COMPARE(a->ns, b->ns))))

static struct ky_open_begin begin_of(struct before *b, uint64_t ticks)
{
	return (struct ky_open_begin){b->last.pid ? b->last.pid : b->pid, b->last.tid,
				      ky_clock_map_ns(&b->stream->clock, ticks)};
}

/* Return the low half of the moment when a span begins once more: the thread's others that began before it do so too. */
static uint32_t begins_at(struct before *b, uint64_t ticks)
{
	const struct ky_open_begin *const all = b->order->begins;
	const struct ky_open_begin own = begin_of(b, ticks);
	const struct ky_open_begin first = {own.pid, own.tid, 0};
	const uint32_t from =
		KY_ARRAY_SEARCH(0, b->order->count, at, by_thread_and_time(&all[at], &first) < 0);
	const uint32_t to =
		KY_ARRAY_SEARCH(from, b->order->count, at, by_thread_and_time(&all[at], &own) < 0);
	const uint64_t low = (b->from_ticks & UINT32_MAX) + (uint64_t)(to - from) * STEP_TICKS;
	return low < UINT32_MAX ? (uint32_t)low : UINT32_MAX;
}

static void hand_out_open(struct before *b)
{
	const struct ky_stream_sink *const sink = &b->stream->sink;
	uint32_t count = 0, events = 0;
	bool renamed = false;
	const struct ky_thread *const thread = ky_sites_thread(
		&b->stream->sites, b->last.pid, b->last.tid, b->last.name, b->last.ticks, &renamed);
	if (!thread || !b->kept_count)
		return;
	if (renamed)
		sink->thread(sink->context, thread);
	for (uint32_t i = 0; i < b->stack.depth; i++) {
		const struct open_span *const span = span_at(b, i);
		if (!span->wanted)
			continue;
		const uint64_t *const begin = &b->kept[span->at];
		const uint32_t words = 1 + KY_WORD_LENGTH(begin[0]);
		if (count + words > KY_BLOCK_WORDS - KY_BLOCK_HEAD_WORDS) {
			hand_out_begins(b, thread, count, events);
			count = events = 0;
		}
		memcpy(&b->words[count], begin, words * sizeof(*begin));
		b->words[count] = (begin[0] & ~(uint64_t)UINT32_MAX) | begins_at(b, span->ticks);
		count += words;
		events++;
	}
	hand_out_begins(b, thread, count, events);
}

static void note_open(struct before *b)
{
	for (uint32_t i = 0; i < b->stack.depth; i++)
		if (span_at(b, i)->wanted)
			b->full |= !KY_ARRAY_ADD(b->notes->begins, b->notes->count, b->notes->room,
						 begin_of(b, span_at(b, i)->ticks));
}

/*
 * Report whether the thread has left its ring, for a larger one or for good: it may have ended since what is open there.
 * The rings of drums that kymo made are left when it closes them.
 */
static bool has_left(const struct before *b, uint32_t ring)
{
	const struct ky_drum_ring *const entry = &b->stream->view.rings[ring];
	return b->stream->view.header.layer == KY_DRUM_OWN &&
	       __atomic_load_n(&entry->owner, __ATOMIC_ACQUIRE) != b->last.tid &&
	       __atomic_load_n(&entry->released_ticks, __ATOMIC_RELAXED) != 0;
}

static void find_open(struct before *b, uint32_t ring)
{
	struct ky_ring_cursor cursor;
	struct ky_block block;
	ky_ring_cursor_init(&cursor, ring, false);
	forget_all(b);
	b->last = (struct ky_block){0};
	if (!ky_ring_find(&b->stream->view, &cursor))
		return;
	/* An owner that lies could go on for ever. */
	for (uint64_t pieces = 0; pieces <= 2 * cursor.blocks; pieces++) {
		if (!ky_ring_read(&b->stream->view, &cursor, b->words, &block) ||
		    !take_piece(b, &block))
			break;
	}
	if (has_left(b, ring))
		return;
	if (b->notes)
		note_open(b);
	else
		hand_out_open(b);
}

static int find_all(struct ky_stream *stream, uint64_t from_ns, const struct before *how)
{
	if (!stream->clock.count)
		return 0;
	struct before *const b = malloc(sizeof(*b));
	if (!b)
		return -ENOMEM;
	*b = *how;
	b->stream = stream;
	b->from_ticks = ticks_at(&stream->clock, from_ns);
	for (uint32_t i = 0; i < ky_drum_view_rings(&stream->view); i++)
		find_open(b, i);
	const int error = b->full ? -ENOMEM : 0;
	ky_span_stack_free(&b->stack);
	KY_ARRAY_FREE(b->kept, b->kept_room);
	free(b);
	return error;
}

int ky_drum_window_note_open(struct ky_stream *stream, uint32_t pid, uint64_t from_ns,
			     struct ky_open_order *order)
{
	return find_all(stream, from_ns, &(struct before){.pid = pid, .notes = order});
}

int ky_drum_window_open_spans(struct ky_stream *stream, uint32_t pid, uint64_t from_ns,
			      const struct ky_open_order *order)
{
	return find_all(stream, from_ns, &(struct before){.pid = pid, .order = order});
}

void ky_open_order_sort(struct ky_open_order *order)
{
	if (order->count)
		qsort(order->begins, order->count, sizeof(*order->begins), by_thread_and_time);
}

void ky_open_order_free(struct ky_open_order *order)
{
	KY_ARRAY_FREE(order->begins, order->room);
	order->count = 0;
}
