/* SPDX-License-Identifier: MIT */
/*
 * stream.c: merge the rings. A heap orders the sources by the time of their next event; the earliest is read for as long
 * as it stays the earliest, so that one busy thread costs no comparisons.
 */
#include "core/stream.h"

#include "core/assert.h"
#include "core/block_select.h"
#include "core/glob.h"
#include "os/os.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* 16 MiB: more than a thread at full speed writes during a session's nap. */
#define POPULATE_BLOCKS_MAX 4096u
/* Populate after every so many pieces. */
#define POPULATE_PIECES 16u

bool ky_stream_wants(struct ky_stream *s, const struct ky_site *site)
{
	if (!s->wanted)
		return true;
	uint8_t *wanted = &s->wanted[site->category_index];
	if (*wanted == 0)
		*wanted = ky_glob_list_match(s->globs, site->category.data) ? 1 : 2;
	return *wanted == 1 || site->kind == KYMO_KIND_SNAPSHOT || site->kind == KYMO_KIND_MARK;
}

/* Report whether an event of a piece is wanted: known, not too early, of a selected category. */
static bool is_wanted(void *context, uint64_t word, uint64_t ticks, uint32_t at)
{
	struct ky_stream *s = context;
	(void)at;
	const struct ky_site *site = ticks >= s->start_ticks ? ky_sites_get(&s->sites, word) : NULL;
	return site && ky_stream_wants(s, site);
}

static void damage(struct ky_stream *s, uint64_t at)
{
	if (s->damaged++ == 0)
		s->damaged_at = at;
}

/* Add the damage that the ring's cursor has found. */
static void collect_damage(struct ky_stream *s, struct ky_stream_source *source)
{
	if (source->cursor.damaged)
		damage(s, source->cursor.damaged_at);
	source->cursor.damaged = 0;
}

static void populate_ring(const struct ky_stream *s, struct ky_stream_source *source)
{
	const struct ky_ring_cursor *c = &source->cursor;
	const uint64_t head = __atomic_load_n(&s->view.rings[c->ring].head, __ATOMIC_RELAXED);
	if (head >= c->blocks)
		return; /* in a later lap, or not found yet */
	const uint64_t ahead = head < POPULATE_BLOCKS_MAX ? head : POPULATE_BLOCKS_MAX;
	const uint64_t from = source->populated > head ? source->populated : head;
	const uint64_t until = head + ahead < c->blocks ? head + ahead : c->blocks;
	if (from >= head + ahead / 2 || from >= until) /* rarely much, not often little */
		return;
	(void)ky_os_populate((uint8_t *)(uintptr_t)s->view.base + c->at + from * KY_BLOCK_BYTES,
			     (until - from) * KY_BLOCK_BYTES);
	source->populated = until;
}

static void populate_rings(struct ky_stream *s)
{
	for (uint32_t i = 0; s->populating && i < s->sources_count; i++)
		populate_ring(s, s->sources[i]);
}

static bool read_piece(struct ky_stream *s, struct ky_stream_source *source)
{
	if (!source->words || s->pieces_left == 0)
		return false;
	if (s->pieces_left-- % POPULATE_PIECES == 0)
		populate_rings(s);
	const bool more = ky_ring_read(&s->view, &source->cursor, source->words, &source->block);
	collect_damage(s, source);
	return more;
}

static void new_piece(struct ky_stream *s, struct ky_stream_source *source)
{
	struct ky_block *b = &source->block;
	bool renamed = false;
	source->at = 0;
	KY_ASSERT(b->count <= KY_BLOCK_WORDS && b->events <= b->count);
	if (s->wanted || s->start_ticks)
		ky_block_select(b, source->words, is_wanted, s);
	source->high = b->high;
	struct ky_thread *thread = ky_sites_thread(&s->sites, b->pid, b->tid, b->name, &renamed);
	if (thread)
		source->thread = thread;
	if (thread && renamed && s->sink.thread)
		s->sink.thread(s->sink.context, thread);
	s->lost += b->lost;
}

static void report_loss(struct ky_stream *s, struct ky_stream_source *source)
{
	if (source->block.lost == 0 || !source->thread)
		return;
	const struct ky_event event = {
		.kind = KYMO_KIND_LOST,
		.time_ns = ky_clock_map_ns(&s->clock, source->next_ticks),
		.id = source->block.lost,
		.thread = source->thread,
		.name = {"events lost", 11},
	};
	source->block.lost = 0;
	s->sink.event(s->sink.context, &event);
}

/* Set next_ticks to that of the next event; read on as needed. Return false when there is none now. */
static bool advance(struct ky_stream *s, struct ky_stream_source *source)
{
	for (;;) {
		while (source->at < source->block.count) {
			const uint64_t word = source->words[source->at];
			if (KY_WORD_SITE(word) >= KY_CONTROL_MAX) {
				source->next_ticks =
					(uint64_t)source->high << 32 | KY_WORD_LOW(word);
				return true;
			}
			if (KY_WORD_SITE(word) == KY_CONTROL_HIGH)
				source->high = KY_WORD_LOW(word);
			source->at += 1 + KY_WORD_LENGTH(word);
		}
		const uint64_t lost = source->block.lost;
		if (!read_piece(s, source)) {
			source->at = source->block.count = 0;
			source->block.lost = lost; /* reported with the next event */
			return false;
		}
		new_piece(s, source);
		source->block.lost += lost;
	}
}

/* Return where in the drum a word of the piece came from; right unless events were filtered out. */
static uint64_t place_of(const struct ky_stream_source *source, const uint64_t *word)
{
	KY_ASSERT(word >= source->words && word < source->words + KY_BLOCK_WORDS);
	const uint64_t block = source->block.number & (source->cursor.blocks - 1);
	const uint64_t words = source->block.from + (uint64_t)(word - source->words);
	return source->cursor.at + block * KY_BLOCK_BYTES + (KY_BLOCK_HEAD_WORDS + words) * 8;
}

static void emit(struct ky_stream *s, struct ky_stream_source *source)
{
	KY_ASSERT(source->at < source->block.count);
	const uint64_t *words = &source->words[source->at];
	source->at += 1 + KY_WORD_LENGTH(words[0]);
	KY_ASSERT(source->at <= source->block.count);
	const struct ky_site *site = ky_sites_get(&s->sites, words[0]);
	if (!site || !source->thread) {
		damage(s, place_of(source, words));
		return;
	}
	struct ky_event event;
	ky_decode(&s->decoder, site, words, ky_clock_map_ns(&s->clock, source->next_ticks),
		  &s->clock, &event);
	event.thread = source->thread;
	if (s->decoder.tid != 0 && s->decoder.tid != source->thread->tid) {
		bool renamed = false;
		const struct ky_thread *other =
			ky_sites_thread(&s->sites, source->block.pid, (uint32_t)s->decoder.tid,
					KY_SITES_SAME_NAME, &renamed);
		if (other && renamed && s->sink.thread)
			s->sink.thread(s->sink.context, other);
		if (other)
			event.thread = other;
	}
	s->events++;
	s->sink.event(s->sink.context, &event);
}

/* The heap: the earliest next event is on top. */
static void sift_down(struct ky_stream *s, uint32_t at)
{
	struct ky_stream_source *moving = s->heap[at];
	for (;;) {
		uint32_t child = 2 * at + 1;
		if (child >= s->heap_count)
			break;
		if (child + 1 < s->heap_count &&
		    s->heap[child + 1]->next_ticks < s->heap[child]->next_ticks)
			child++;
		if (moving->next_ticks <= s->heap[child]->next_ticks)
			break;
		s->heap[at] = s->heap[child];
		at = child;
	}
	s->heap[at] = moving;
}

static uint64_t second_ticks(const struct ky_stream *s)
{
	uint64_t ticks = UINT64_MAX;
	for (uint32_t i = 1; i < 3 && i < s->heap_count; i++)
		if (s->heap[i]->next_ticks < ticks)
			ticks = s->heap[i]->next_ticks;
	return ticks;
}

/* Deliver events of the earliest source as long as it stays the earliest. */
static void run_top(struct ky_stream *s, uint64_t horizon)
{
	KY_ASSERT(s->heap_count && s->heap_count <= s->sources_count);
	struct ky_stream_source *top = s->heap[0];
	uint64_t until = second_ticks(s);
	until = until < horizon ? until : horizon;
	bool more = true;
	do {
		report_loss(s, top);
		emit(s, top);
		more = advance(s, top);
		KY_ASSERT(!more || top->at < top->block.count);
	} while (more && top->next_ticks <= until);
	if (!more) {
		s->heap[0] = s->heap[--s->heap_count];
		if (s->heap_count == 0)
			return;
	}
	sift_down(s, 0);
}

static void read_merged(struct ky_stream *s, uint64_t horizon)
{
	s->heap_count = 0;
	for (uint32_t i = 0; i < s->sources_count; i++)
		if (advance(s, s->sources[i]))
			s->heap[s->heap_count++] = s->sources[i];
	KY_ASSERT(s->heap_count <= s->sources_count);
	for (uint32_t i = s->heap_count / 2; i-- > 0;)
		sift_down(s, i);
	/* With a limit per call the rest waits: it would come out of order. */
	while (s->heap_count && s->heap[0]->next_ticks <= horizon &&
	       (s->pieces_left || s->pieces_max == 0))
		run_top(s, horizon);
}

static void read_blocks(struct ky_stream *s)
{
	const uint32_t count = s->sources_count, first = s->turn;
	for (uint32_t i = 0; i < count; i++) {
		struct ky_stream_source *source = s->sources[(first + i) % count];
		while (read_piece(s, source)) {
			new_piece(s, source);
			s->events += source->block.events;
			if (source->thread && (source->block.count || source->block.lost))
				s->sink.block(s->sink.context, &source->block, source->thread);
		}
		if (s->pieces_left ==
		    0) { /* the next call begins with the sources that had no turn */
			s->turn = (first + i + 1) % count;
			return;
		}
	}
}

static int add_sources(struct ky_stream *s, bool newest)
{
	const uint32_t rings = ky_drum_view_rings(&s->view);
	if (rings <= s->sources_count)
		return 0;
	struct ky_stream_source **sources =
		realloc(s->sources, rings * sizeof(struct ky_stream_source *));
	if (sources)
		s->sources = sources;
	struct ky_stream_source **heap =
		realloc(s->heap, rings * sizeof(struct ky_stream_source *));
	if (heap)
		s->heap = heap;
	if (!sources || !heap)
		return -ENOMEM;
	for (; s->sources_count < rings; s->sources_count++) {
		struct ky_stream_source *source = calloc(1, sizeof(*source));
		if (!source)
			return -ENOMEM;
		ky_ring_cursor_init(&source->cursor, s->sources_count, newest);
		s->sources[s->sources_count] = source;
	}
	return 0;
}

static int take_ring(struct ky_stream *s, struct ky_stream_source *source)
{
	s->rings_bytes += source->cursor.blocks * KY_BLOCK_BYTES;
	if (s->rings_bytes > s->view.header.space_bytes) {
		damage(s,
		       s->view.header.rings_at + source->cursor.ring * sizeof(struct ky_drum_ring));
		return 0;
	}
	KY_ASSERT(!source->words && source->cursor.blocks);
	source->words = malloc(KY_BLOCK_WORDS * sizeof(uint64_t));
	return source->words ? 0 : -ENOMEM;
}

/* Find the rings that are complete by now. */
static int find_rings(struct ky_stream *s)
{
	int error = 0;
	s->pieces_left = 0;
	for (uint32_t i = 0; error == 0 && i < s->sources_count; i++) {
		struct ky_stream_source *source = s->sources[i];
		if (source->cursor.blocks == 0 && ky_ring_find(&s->view, &source->cursor))
			error = take_ring(s, source);
		if (source->words)
			s->pieces_left += 4 * source->cursor.blocks;
	}
	/* Each source has its turn. */
	const uint64_t most = s->pieces_max + 2 * (uint64_t)s->sources_count;
	if (s->pieces_max && s->pieces_left > most)
		s->pieces_left = most;
	return error;
}

/* Skip to where each ring is now, so that only later events are read and the count of events is right. */
static void skip_all(struct ky_stream *s)
{
	for (uint32_t i = 0; i < s->sources_count; i++) {
		struct ky_stream_source *source = s->sources[i];
		while (read_piece(s, source))
			;
		source->block.count = 0;
		source->block.lost = 0;
		/* The ring was not complete yet: all events in it will be new. */
		if (source->cursor.number == UINT64_MAX)
			ky_ring_cursor_init(&source->cursor, i, false);
	}
}

int ky_stream_open(struct ky_stream *s, const void *base, uint64_t bytes, const char *globs,
		   bool newest, uint64_t start_ticks, const char **what)
{
	memset(s, 0, sizeof(*s));
	int error = ky_drum_view_open(&s->view, base, bytes, what);
	if (error)
		return error;
	*what = "not enough memory";
	s->start_ticks = start_ticks;
	error = ky_sites_open(&s->sites, &s->view);
	if (error == 0 && globs && *globs) {
		s->globs = strdup(globs);
		s->wanted = calloc(1, s->view.header.categories_max + 1u);
		error = s->globs && s->wanted ? 0 : -ENOMEM;
	}
	if (error == 0)
		error = ky_clock_map_update(&s->clock, &s->view);
	if (error == 0)
		error = add_sources(s, newest);
	if (error == 0)
		error = find_rings(s);
	if (error)
		ky_stream_close(s);
	else if (newest)
		skip_all(s);
	return error;
}

void ky_stream_close(struct ky_stream *s)
{
	for (uint32_t i = 0; i < s->sources_count; i++) {
		free(s->sources[i]->words);
		free(s->sources[i]);
	}
	free(s->sources);
	free(s->heap);
	free(s->wanted);
	free(s->globs);
	ky_sites_close(&s->sites);
	ky_clock_map_free(&s->clock);
	memset(s, 0, sizeof(*s));
}

static int update_rings(struct ky_stream *s)
{
	const int error = add_sources(s, false);
	return error ? error : find_rings(s);
}

static int update(struct ky_stream *s)
{
	const int error = ky_clock_map_update(&s->clock, &s->view);
	return error ? error : update_rings(s);
}

static void read_until(struct ky_stream *s, uint64_t horizon)
{
	if (s->sink.block)
		read_blocks(s);
	else
		read_merged(s, horizon);
}

int ky_stream_read(struct ky_stream *s, uint64_t lag_ticks)
{
	const int error = update(s);
	const uint64_t horizon = ky_clock_horizon(&s->clock);
	read_until(s, horizon > lag_ticks ? horizon - lag_ticks : 0);
	return error;
}

int ky_stream_read_all(struct ky_stream *s)
{
	const int error = update(s);
	read_until(s, UINT64_MAX);
	return error;
}

int ky_stream_read_to(struct ky_stream *s, uint64_t horizon_ticks)
{
	const int error = update_rings(s);
	read_until(s, horizon_ticks);
	return error;
}

void ky_stream_populate(struct ky_stream *s)
{
	s->populating = true;
	populate_rings(s);
}

bool ky_stream_pending(const struct ky_stream *s)
{
	if (ky_drum_view_rings(&s->view) > s->sources_count)
		return true;
	for (uint32_t i = 0; i < s->sources_count; i++) {
		const struct ky_stream_source *source = s->sources[i];
		const struct ky_ring_cursor *c = &source->cursor;
		if (source->at < source->block.count)
			return true;
		const uint64_t head = __atomic_load_n(&s->view.rings[i].head, __ATOMIC_RELAXED);
		if (head > c->number + 1 || (head > c->number && ky_ring_news(&s->view, c)))
			return true;
	}
	return false;
}

uint32_t ky_stream_pressure(const struct ky_stream *s)
{
	uint32_t worst = 0;
	for (uint32_t i = 0; i < s->sources_count; i++) {
		const struct ky_ring_cursor *c = &s->sources[i]->cursor;
		const uint64_t head = __atomic_load_n(&s->view.rings[i].head, __ATOMIC_RELAXED);
		if (c->blocks == 0 || head <= c->number)
			continue;
		const uint64_t percent = (head - c->number) * 100 / c->blocks;
		if (percent > worst)
			worst = percent < 100 ? (uint32_t)percent : 100;
	}
	return worst;
}
