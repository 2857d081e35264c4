/* SPDX-License-Identifier: MIT */
/*
 * kymo_merge.c: the events of a .kymo file in the order of their times.
 *
 *   entries by first_ticks:  [ batch ][ batch ][ batch ] …  loaded when their time has come
 *                               │ pieces
 *                               ▼
 *                      heap of cursors, one a piece ─ the earliest next ─▶ decode ─▶ event()
 *
 * A batch holds pieces of several rings, and a ring's pieces are in many batches; the times of
 * batches overlap by as much as was read from the rings in one go. A batch is loaded as soon as an
 * event that is about to be handed out is not before its first, and freed with its last piece. So
 * only batches that overlap are in memory.
 *
 * Within a piece events keep their order whatever their times say.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/queue.h"
#include "core/decode.h"
#include "formats/kymo/kymo_reader.h"

struct piece_batch;

/* A piece that is being read. */
struct piece_cursor {
	uint64_t ticks; /* of the next event */
	uint64_t order; /* of the piece in the file: decides between equal times */
	struct piece_batch *batch;
	const struct ky_thread *thread;
	const uint64_t *words;
	uint32_t at, count;
	uint32_t high;
	uint64_t lost; /* before the next event, not reported yet */
};

struct piece_batch {
	uint8_t *raw;
	uint32_t cursors_left;
	struct piece_cursor cursors[];
};

/* Trace points by the low bits of their numbers: those that events have right now are few. */
#define SITES_KEPT 1024u

struct kept_site {
	uint32_t number; /* 0 is not a site: control words have it */
	const struct ky_site *site;
};

struct piece_merge {
	struct ky_kymo *file;
	const struct ky_stream_sink *sink;
	uint64_t from_ns, to_ns;
	struct ky_kymo_totals totals;
	uint32_t *order; /* entries by their first ticks */
	uint32_t order_count, order_next;
	struct piece_cursor **heap;
	uint32_t heap_count, heap_room;
	struct ky_decoder decoder;
	int error;
	struct kept_site kept[SITES_KEPT];
};

static bool is_before(const struct piece_cursor *a, const struct piece_cursor *b)
{
	return a->ticks < b->ticks || (a->ticks == b->ticks && a->order < b->order);
}

KY_QUEUE(queue, struct piece_cursor *, is_before(*a, *b))

static void drop(struct piece_cursor *cursor)
{
	struct piece_batch *batch = cursor->batch;
	if (--batch->cursors_left)
		return;
	free(batch->raw);
	free(batch);
}

/* To the next word that is an event; its time is never before the last one's. */
static bool advance(struct piece_cursor *c)
{
	while (c->at < c->count) {
		const uint64_t word = c->words[c->at];
		if (KY_WORD_SITE(word) >= KY_CONTROL_MAX) {
			const uint64_t ticks = (uint64_t)c->high << 32 | KY_WORD_LOW(word);
			if (ticks > c->ticks)
				c->ticks = ticks;
			return true;
		}
		if (KY_WORD_SITE(word) == KY_CONTROL_HIGH)
			c->high = KY_WORD_LOW(word);
		c->at += 1 + KY_WORD_LENGTH(word);
	}
	return false;
}

static const struct ky_thread *thread_of(struct piece_merge *m, int32_t tid)
{
	bool made;
	const struct ky_thread *thread = ky_kymo_defs_thread(&m->file->defs, tid, &made);
	if (!thread)
		m->error = -ENOMEM;
	else if (made && m->sink->thread)
		m->sink->thread(m->sink->context, thread);
	return thread;
}

static void add_piece(struct piece_merge *m, struct piece_batch *batch, struct piece_cursor *cursor,
		      const struct ky_kymo_piece *piece, const uint64_t *words, uint64_t order)
{
	*cursor = (struct piece_cursor){
		.order = order,
		.batch = batch,
		.thread = thread_of(m, (int32_t)piece->tid),
		.words = words,
		.count = piece->words,
		.high = (uint32_t)(piece->ticks >> 32),
		.lost = piece->lost,
	};
	const bool more = advance(cursor);
	if (!more)
		cursor->ticks = piece->ticks;
	batch->cursors_left++;
	if (cursor->thread && (more || cursor->lost))
		queue_up(m->heap, m->heap_count++, cursor);
	else
		drop(cursor);
}

static int add_batch(struct piece_merge *m, uint8_t *raw, const struct ky_kymo_data *data,
		     uint32_t entry)
{
	struct piece_batch *batch =
		malloc(sizeof(*batch) + data->pieces * sizeof(batch->cursors[0]));
	if (!batch ||
	    !KY_ARRAY_GROW(m->heap, m->heap_room, (uint64_t)m->heap_count + data->pieces)) {
		free(batch);
		free(raw);
		return -ENOMEM;
	}
	batch->raw = raw;
	batch->cursors_left = 1; /* ours, so that it stays while it is filled */
	uint32_t at = 0;
	for (uint32_t i = 0; i < data->pieces; i++) {
		struct ky_kymo_piece piece;
		memcpy(&piece, raw + at, sizeof(piece));
		at += (uint32_t)sizeof(piece);
		add_piece(m, batch, &batch->cursors[i], &piece, (const void *)(raw + at),
			  (uint64_t)entry << 32 | i);
		at += 8u * piece.words;
	}
	drop(&(struct piece_cursor){.batch = batch});
	return m->error;
}

/* A damaged chunk is left out, and noted where it was found to be. */
static int load(struct piece_merge *m, uint32_t index, struct ky_kymo_data *data, uint8_t **raw)
{
	const struct ky_kymo_entry *entry = &m->file->entries[index];
	const int error = ky_kymo_load(m->file, entry, data, raw);
	if (error == -EBADMSG)
		m->totals.damaged += entry->events;
	return error == -EBADMSG ? 0 : error;
}

static int load_next(struct piece_merge *m)
{
	const uint32_t index = m->order[m->order_next++];
	const struct ky_kymo *file = m->file;
	struct ky_kymo_data data;
	uint8_t *raw;
	int error = file->progress ? file->progress(file->progress_context, m->order_next - 1u,
						    m->order_count)
				   : 0;
	if (!error)
		error = load(m, index, &data, &raw);
	return error || !raw ? error : add_batch(m, raw, &data, index);
}

static bool is_wanted(const struct piece_merge *m, uint64_t ns)
{
	return ns >= m->from_ns && ns <= m->to_ns;
}

static void report_loss(struct piece_merge *m, struct piece_cursor *c, uint64_t ns)
{
	const struct ky_event event = {
		.kind = KYMO_KIND_LOST,
		.time_ns = ns,
		.id = c->lost,
		.thread = c->thread,
		.name = {"events lost", 11},
	};
	c->lost = 0;
	if (!is_wanted(m, ns))
		return;
	m->totals.lost += event.id;
	m->sink->event(m->sink->context, &event);
}

static const struct ky_site *site_of(struct piece_merge *m, uint64_t word)
{
	const uint32_t number = KY_WORD_SITE(word);
	struct kept_site *kept = &m->kept[number % SITES_KEPT];
	if (__builtin_expect(kept->number != number, 0))
		*kept = (struct kept_site){number, ky_kymo_defs_site(&m->file->defs, word)};
	return kept->site;
}

static void emit_decoded(struct piece_merge *m, const struct piece_cursor *c,
			 const struct ky_site *site, const uint64_t *words, uint64_t ns)
{
	struct ky_event event;
	ky_decode(&m->decoder, site, words, ns, &m->file->defs.clock, &event);
	event.thread = c->thread;
	if (m->decoder.tid != 0 && m->decoder.tid != c->thread->tid) {
		const struct ky_thread *other = thread_of(m, m->decoder.tid);
		event.thread = other ? other : c->thread;
	}
	m->sink->event(m->sink->context, &event);
}

static void emit(struct piece_merge *m, struct piece_cursor *c)
{
	const uint64_t ns = ky_clock_map_ns(&m->file->defs.clock, c->ticks);
	if (c->lost)
		report_loss(m, c, ns);
	if (c->at == c->count)
		return;
	const uint64_t *words = &c->words[c->at];
	c->at += 1 + KY_WORD_LENGTH(words[0]);
	if (!is_wanted(m, ns))
		return;
	const struct ky_site *site = site_of(m, words[0]);
	if (!site) {
		m->totals.unknown++;
		return;
	}
	m->totals.events++;
	const struct ky_stream_sink *sink = m->sink;
	if (!sink->words || !sink->words(sink->context, c->thread, site, words, ns))
		emit_decoded(m, c, site, words, ns);
}

/* Return the earliest of the others. */
static const struct piece_cursor *second(const struct piece_merge *m)
{
	static const struct piece_cursor never = {.ticks = UINT64_MAX, .order = UINT64_MAX};
	if (m->heap_count < 2)
		return &never;
	return m->heap_count > 2 && is_before(m->heap[2], m->heap[1]) ? m->heap[2] : m->heap[1];
}

/* Events of the earliest cursor, as long as it stays the earliest and no other batch is due. */
static void run_top(struct piece_merge *m)
{
	struct piece_cursor *top = m->heap[0];
	const struct piece_cursor *other = second(m);
	const uint64_t due = m->order_next < m->order_count
				     ? m->file->entries[m->order[m->order_next]].first_ticks
				     : UINT64_MAX;
	bool more;
	do {
		emit(m, top);
		more = advance(top);
	} while (more && top->ticks < due && is_before(top, other));
	if (!more) {
		m->heap[0] = m->heap[--m->heap_count];
		drop(top);
	}
	if (m->heap_count)
		queue_down(m->heap, m->heap_count, 0, m->heap[0]);
}

static bool is_due(const struct piece_merge *m)
{
	if (m->order_next == m->order_count)
		return false;
	const struct ky_kymo_entry *next = &m->file->entries[m->order[m->order_next]];
	return m->heap_count == 0 || next->first_ticks <= m->heap[0]->ticks;
}

static void run(struct piece_merge *m)
{
	while (m->error == 0 && (m->heap_count || m->order_next < m->order_count)) {
		if (is_due(m))
			m->error = load_next(m);
		else
			run_top(m);
	}
	while (m->heap_count)
		drop(m->heap[--m->heap_count]);
}

/* Report whether a chunk may have events in the requested time. */
static bool is_in_time(struct piece_merge *m, const struct ky_kymo_entry *entry)
{
	struct ky_clock_map *clock = &m->file->defs.clock;
	return ky_clock_map_ns(clock, entry->first_ticks) <= m->to_ns &&
	       ky_clock_map_ns(clock, entry->last_ticks) >= m->from_ns;
}

static int by_first_ticks(const void *a, const void *b, void *context)
{
	const struct ky_kymo_entry *entries = context;
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	const uint64_t left_ticks = entries[left].first_ticks;
	const uint64_t right_ticks = entries[right].first_ticks;
	if (left_ticks != right_ticks)
		return left_ticks < right_ticks ? -1 : 1;
	return (left > right) - (left < right);
}

static int make_order(struct piece_merge *m)
{
	struct ky_kymo *file = m->file;
	m->order = malloc((file->entries_count + (size_t)1) * sizeof(*m->order));
	if (!m->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < file->entries_count; i++)
		if (is_in_time(m, &file->entries[i]))
			m->order[m->order_count++] = i;
	return 0;
}

static void hand_out_piece(struct piece_merge *m, const struct ky_kymo_piece *piece,
			   const uint64_t *words)
{
	const struct ky_thread *thread = thread_of(m, (int32_t)piece->tid);
	struct ky_block block = {
		.ring = piece->ring,
		.tid = piece->tid,
		.level = piece->level,
		.number = piece->number,
		.from = piece->from,
		.count = piece->words,
		.high = (uint32_t)(piece->ticks >> 32),
		.lost = piece->lost,
		.words = words,
	};
	for (uint32_t at = 0; at < block.count; at += 1 + KY_WORD_LENGTH(words[at]))
		block.events += KY_WORD_SITE(words[at]) >= KY_CONTROL_MAX;
	m->totals.events += block.events;
	m->totals.lost += block.lost;
	if (thread)
		m->sink->block(m->sink->context, &block, thread);
}

static int read_blocks(struct piece_merge *m)
{
	for (uint32_t i = 0; i < m->order_count && m->error == 0; i++) {
		struct ky_kymo_data data;
		uint8_t *raw;
		const int error = load(m, m->order[i], &data, &raw);
		if (error)
			return error;
		uint32_t at = 0;
		for (uint32_t piece_index = 0; raw && piece_index < data.pieces; piece_index++) {
			struct ky_kymo_piece piece;
			memcpy(&piece, raw + at, sizeof(piece));
			at += (uint32_t)sizeof(piece);
			hand_out_piece(m, &piece, (const void *)(raw + at));
			at += 8u * piece.words;
		}
		free(raw);
	}
	return m->error;
}

int ky_kymo_read(struct ky_kymo *file, uint64_t from_ns, uint64_t to_ns,
		 const struct ky_stream_sink *sink, struct ky_kymo_totals *totals)
{
	struct piece_merge *m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->file = file;
	m->sink = sink;
	m->from_ns = from_ns;
	m->to_ns = to_ns;
	int error = make_order(m);
	for (uint32_t i = 0; error == 0 && sink->thread && i < file->defs.threads_count; i++)
		sink->thread(sink->context, file->defs.threads[i]);
	if (error == 0 && sink->block) {
		error = read_blocks(m);
	} else if (error == 0) {
		qsort_r(m->order, m->order_count, sizeof(*m->order), by_first_ticks, file->entries);
		run(m);
		error = m->error;
	}
	if (totals)
		*totals = m->totals;
	free(m->order);
	KY_ARRAY_FREE(m->heap, m->heap_room);
	free(m);
	return error;
}
