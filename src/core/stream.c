/* SPDX-License-Identifier: MIT */
/*
 * stream.c: merge the rings. A queue orders the inputs by the time of their next event; the earliest is read for as long
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
static void collect_damage(struct ky_stream *s, struct ky_stream_input *input)
{
	if (input->cursor.damaged)
		damage(s, input->cursor.damaged_at);
	input->cursor.damaged = 0;
}

static void populate_ring(const struct ky_stream *s, struct ky_stream_input *input)
{
	const struct ky_ring_cursor *c = &input->cursor;
	const uint64_t head = __atomic_load_n(&s->view.rings[c->ring].head, __ATOMIC_RELAXED);
	if (head >= c->blocks)
		return; /* in a later lap, or not found yet */
	const uint64_t ahead = head < POPULATE_BLOCKS_MAX ? head : POPULATE_BLOCKS_MAX;
	const uint64_t from = input->populated > head ? input->populated : head;
	const uint64_t until = head + ahead < c->blocks ? head + ahead : c->blocks;
	if (from >= head + ahead / 2 || from >= until) /* rarely much, not often little */
		return;
	(void)ky_os_populate((uint8_t *)(uintptr_t)s->view.base + c->at + from * KY_BLOCK_BYTES,
			     (until - from) * KY_BLOCK_BYTES);
	input->populated = until;
}

static void populate_rings(struct ky_stream *s)
{
	for (uint32_t i = 0; s->populating && i < s->inputs_count; i++)
		populate_ring(s, s->inputs[i]);
}

static bool read_piece(struct ky_stream *s, struct ky_stream_input *input)
{
	if (!input->words || s->pieces_left == 0)
		return false;
	if (s->pieces_left-- % POPULATE_PIECES == 0)
		populate_rings(s);
	const bool more = ky_ring_read(&s->view, &input->cursor, input->words, &input->block);
	collect_damage(s, input);
	/* Pairs with the acquire load in find_behind(), stall.c: the block is copied. */
	if (s->reads && input->cursor.number < UINT64_MAX / 2)
		__atomic_store_n(&s->reads[input->cursor.ring], input->cursor.number,
				 __ATOMIC_RELEASE);
	return more;
}

/* The thread left the ring then: report its end, unless it goes on elsewhere. */
static void end_owner(struct ky_stream *s, struct ky_stream_input *input, uint64_t ticks)
{
	if (s->sink.end && !(ticks & KY_RING_MOVED))
		s->sink.end(s->sink.context, input->thread, ky_clock_map_ns(&s->clock, ticks));
	input->owned = 0;
}

static void new_piece(struct ky_stream *s, struct ky_stream_input *input)
{
	struct ky_block *b = &input->block;
	bool renamed = false;
	if (input->owned && b->left_ticks > input->owned)
		end_owner(s, input, b->left_ticks);
	input->at = 0;
	KY_ASSERT(b->count <= KY_BLOCK_WORDS && b->events <= b->count);
	if (s->wanted || s->start_ticks)
		ky_block_select(b, input->words, is_wanted, s);
	input->high = b->high;
	struct ky_thread *thread =
		ky_sites_thread(&s->sites, b->pid, b->tid, b->name, b->ticks, &renamed);
	if (thread) {
		input->thread = thread;
		input->owned = b->level ? 0 : b->ticks;
	}
	if (thread && renamed && s->sink.thread)
		s->sink.thread(s->sink.context, thread);
	s->lost += b->lost;
}

static void report_loss(struct ky_stream *s, struct ky_stream_input *input)
{
	if (input->block.lost == 0 || !input->thread)
		return;
	const struct ky_event event = {
		.kind = KYMO_KIND_LOST,
		.time_ns = ky_clock_map_ns(&s->clock, input->next_ticks),
		.id = input->block.lost,
		.thread = input->thread,
		.name = {"events lost", 11},
	};
	input->block.lost = 0;
	s->sink.event(s->sink.context, &event);
}

/* Set next_ticks to that of the next event; read on as needed. Return false when there is none now. */
static bool advance(struct ky_stream *s, struct ky_stream_input *input)
{
	for (;;) {
		while (input->at < input->block.count) {
			const uint64_t word = input->words[input->at];
			if (KY_WORD_SITE(word) >= KY_CONTROL_MAX) {
				input->next_ticks = (uint64_t)input->high << 32 | KY_WORD_LOW(word);
				return true;
			}
			if (KY_WORD_SITE(word) == KY_CONTROL_HIGH)
				input->high = KY_WORD_LOW(word);
			input->at += 1 + KY_WORD_LENGTH(word);
		}
		const uint64_t lost = input->block.lost;
		if (!read_piece(s, input)) {
			input->at = input->block.count = 0;
			input->block.lost = lost; /* reported with the next event */
			return false;
		}
		new_piece(s, input);
		input->block.lost += lost;
	}
}

/* Return where in the drum a word of the piece came from; right unless events were filtered out. */
static uint64_t place_of(const struct ky_stream_input *input, const uint64_t *word)
{
	KY_ASSERT(word >= input->words && word < input->words + KY_BLOCK_WORDS);
	const uint64_t block = input->block.number & (input->cursor.blocks - 1);
	const uint64_t words = input->block.from + (uint64_t)(word - input->words);
	return input->cursor.at + block * KY_BLOCK_BYTES + (KY_BLOCK_HEAD_WORDS + words) * 8;
}

static void emit(struct ky_stream *s, struct ky_stream_input *input)
{
	KY_ASSERT(input->at < input->block.count);
	const uint64_t *words = &input->words[input->at];
	input->at += 1 + KY_WORD_LENGTH(words[0]);
	KY_ASSERT(input->at <= input->block.count);
	const struct ky_site *site = ky_sites_get(&s->sites, words[0]);
	if (!site || !input->thread) {
		damage(s, place_of(input, words));
		return;
	}
	struct ky_event event;
	ky_decode(&s->decoder, site, words, ky_clock_map_ns(&s->clock, input->next_ticks),
		  &s->clock, &event);
	event.thread = input->thread;
	if (s->decoder.tid != 0 && s->decoder.tid != input->thread->tid) {
		bool renamed = false;
		const struct ky_thread *other =
			ky_sites_thread(&s->sites, input->block.pid, (uint32_t)s->decoder.tid,
					KY_NAME_SAME, 0, &renamed);
		if (other && renamed && s->sink.thread)
			s->sink.thread(s->sink.context, other);
		if (other)
			event.thread = other;
	}
	s->events++;
	s->sink.event(s->sink.context, &event);
}

/* The queue: the earliest next event is on top. */
static void sift_down(struct ky_stream *s, uint32_t at)
{
	struct ky_stream_input *moving = s->queue[at];
	for (;;) {
		uint32_t child = 2 * at + 1;
		if (child >= s->queue_count)
			break;
		if (child + 1 < s->queue_count &&
		    s->queue[child + 1]->next_ticks < s->queue[child]->next_ticks)
			child++;
		if (moving->next_ticks <= s->queue[child]->next_ticks)
			break;
		s->queue[at] = s->queue[child];
		at = child;
	}
	s->queue[at] = moving;
}

static uint64_t second_ticks(const struct ky_stream *s)
{
	uint64_t ticks = UINT64_MAX;
	for (uint32_t i = 1; i < 3 && i < s->queue_count; i++)
		if (s->queue[i]->next_ticks < ticks)
			ticks = s->queue[i]->next_ticks;
	return ticks;
}

/* Deliver events of the earliest input as long as it stays the earliest. */
static void run_top(struct ky_stream *s, uint64_t horizon)
{
	KY_ASSERT(s->queue_count && s->queue_count <= s->inputs_count);
	struct ky_stream_input *top = s->queue[0];
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
		s->queue[0] = s->queue[--s->queue_count];
		if (s->queue_count == 0)
			return;
	}
	sift_down(s, 0);
}

static void read_merged(struct ky_stream *s, uint64_t horizon)
{
	s->queue_count = 0;
	for (uint32_t i = 0; i < s->inputs_count; i++)
		if (advance(s, s->inputs[i]))
			s->queue[s->queue_count++] = s->inputs[i];
	KY_ASSERT(s->queue_count <= s->inputs_count);
	for (uint32_t i = s->queue_count / 2; i-- > 0;)
		sift_down(s, i);
	/* With a limit per call the rest waits: it would come out of order. */
	while (s->queue_count && s->queue[0]->next_ticks <= horizon &&
	       (s->pieces_left || s->pieces_max == 0))
		run_top(s, horizon);
}

static void read_blocks(struct ky_stream *s)
{
	const uint32_t count = s->inputs_count, first = s->turn;
	for (uint32_t i = 0; i < count; i++) {
		struct ky_stream_input *input = s->inputs[(first + i) % count];
		while (read_piece(s, input)) {
			new_piece(s, input);
			s->events += input->block.events;
			if (input->thread && (input->block.count || input->block.lost))
				s->sink.block(s->sink.context, &input->block, input->thread);
		}
		if (s->pieces_left ==
		    0) { /* the next call begins with the inputs that had no turn */
			s->turn = (first + i + 1) % count;
			return;
		}
	}
}

static int add_inputs(struct ky_stream *s, bool newest)
{
	const uint32_t rings = ky_drum_view_rings(&s->view);
	if (rings <= s->inputs_count)
		return 0;
	struct ky_stream_input **inputs =
		realloc(s->inputs, rings * sizeof(struct ky_stream_input *));
	if (inputs)
		s->inputs = inputs;
	struct ky_stream_input **queue =
		realloc(s->queue, rings * sizeof(struct ky_stream_input *));
	if (queue)
		s->queue = queue;
	if (!inputs || !queue)
		return -ENOMEM;
	for (; s->inputs_count < rings; s->inputs_count++) {
		struct ky_stream_input *input = calloc(1, sizeof(*input));
		if (!input)
			return -ENOMEM;
		ky_ring_cursor_init(&input->cursor, s->inputs_count, newest);
		s->inputs[s->inputs_count] = input;
	}
	return 0;
}

/* Report whether there is room for one more ring: rings that are in the same place are read only once. */
static bool has_room(const struct ky_stream *s)
{
	return s->rings_bytes <= s->view.header.space_bytes &&
	       (!s->view.pages ||
		s->rings_data_bytes <= s->view.pages->has_data * KY_DRUM_PAGE_BYTES);
}

/* empty_bytes: of the rings without data. */
static int take_ring(struct ky_stream *s, struct ky_stream_input *input, uint64_t *empty_bytes)
{
	const uint64_t bytes = input->cursor.blocks * KY_BLOCK_BYTES;
	uint64_t data = bytes;
	if (s->view.pages && *empty_bytes + s->rings_bytes + bytes <= s->view.header.space_bytes)
		data = ky_drum_view_data_bytes(&s->view, input->cursor.at, bytes);
	if (data == 0) { /* nothing to read yet: look again next time */
		*empty_bytes += bytes;
		input->cursor.blocks = 0;
		return 0;
	}
	s->rings_bytes += bytes;
	s->rings_data_bytes += data;
	if (!has_room(s)) {
		damage(s,
		       s->view.header.rings_at + input->cursor.ring * sizeof(struct ky_drum_ring));
		return 0;
	}
	KY_ASSERT(!input->words && input->cursor.blocks);
	input->words = malloc(KY_BLOCK_WORDS * sizeof(uint64_t));
	if (input->words)
		return 0;
	s->rings_bytes -= bytes; /* look again next time */
	s->rings_data_bytes -= data;
	input->cursor.blocks = 0;
	return -ENOMEM;
}

/* Find the rings that are complete by now. */
static int find_rings(struct ky_stream *s)
{
	int error = 0;
	uint64_t empty_bytes = 0;
	s->pieces_left = 0;
	for (uint32_t i = 0; error == 0 && i < s->inputs_count; i++) {
		struct ky_stream_input *input = s->inputs[i];
		if (input->cursor.blocks == 0 && ky_ring_find(&s->view, &input->cursor))
			error = take_ring(s, input, &empty_bytes);
		if (input->words)
			s->pieces_left += 4 * input->cursor.blocks;
	}
	/* Each input has its turn. */
	const uint64_t most = s->pieces_max + 2 * (uint64_t)s->inputs_count;
	if (s->pieces_max && s->pieces_left > most)
		s->pieces_left = most;
	return error;
}

/* Skip to where each ring is now, so that only later events are read and the count of events is right. */
static void skip_all(struct ky_stream *s)
{
	for (uint32_t i = 0; i < s->inputs_count; i++) {
		struct ky_stream_input *input = s->inputs[i];
		while (read_piece(s, input))
			;
		input->block.count = 0;
		input->block.lost = 0;
		/* The ring was not complete yet: all events in it will be new. */
		if (input->cursor.number == UINT64_MAX)
			ky_ring_cursor_init(&input->cursor, i, false);
	}
}

int ky_stream_open(struct ky_stream *s, const void *base, uint64_t bytes, const char *globs,
		   bool newest, uint64_t start_ticks, const char **what)
{
	return ky_stream_open_sparse(s, base, bytes, NULL, globs, newest, start_ticks, what);
}

int ky_stream_open_sparse(struct ky_stream *s, const void *base, uint64_t bytes,
			  const struct ky_drum_pages *pages, const char *globs, bool newest,
			  uint64_t start_ticks, const char **what)
{
	memset(s, 0, sizeof(*s));
	int error = ky_drum_view_open(&s->view, base, bytes, what);
	if (error)
		return error;
	s->view.pages = pages;
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
		error = add_inputs(s, newest);
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
	for (uint32_t i = 0; i < s->inputs_count; i++) {
		free(s->inputs[i]->words);
		free(s->inputs[i]);
	}
	free(s->inputs);
	free(s->queue);
	free(s->wanted);
	free(s->globs);
	ky_sites_close(&s->sites);
	ky_clock_map_free(&s->clock);
	memset(s, 0, sizeof(*s));
}

static int update_rings(struct ky_stream *s)
{
	const int error = add_inputs(s, false);
	return error ? error : find_rings(s);
}

static int update(struct ky_stream *s)
{
	const int error = ky_clock_map_update(&s->clock, &s->view);
	return error ? error : update_rings(s);
}

/* Report whether the ring has more than was read. */
static bool has_news(const struct ky_stream *s, const struct ky_ring_cursor *c)
{
	const uint64_t head = __atomic_load_n(&s->view.rings[c->ring].head, __ATOMIC_RELAXED);
	return head > c->number + 1 || (head > c->number && ky_ring_news(&s->view, c));
}

/* Report the threads that have given their ring back, when all that is in it is read. */
static void find_ends(struct ky_stream *s)
{
	for (uint32_t i = 0; i < s->inputs_count; i++) {
		struct ky_stream_input *input = s->inputs[i];
		/* Pairs with the release in give_back(): the last events are there, and the time. */
		if (input->owned && (s->sink.block || input->at == input->block.count) &&
		    __atomic_load_n(&s->view.rings[i].owner, __ATOMIC_ACQUIRE) == 0 &&
		    !has_news(s, &input->cursor))
			end_owner(s, input, KYMO_I_LOAD(&s->view.rings[i].released_ticks));
	}
}

/* error: of finding the rings. Return it, or -ENOMEM when events were left out. */
static int read_until(struct ky_stream *s, uint64_t horizon, int error)
{
	if (s->sink.block)
		read_blocks(s);
	else
		read_merged(s, horizon);
	find_ends(s);
	return s->sites.no_memory ? -ENOMEM : error;
}

int ky_stream_read(struct ky_stream *s, uint64_t lag_ticks)
{
	const int error = update(s);
	const uint64_t horizon = ky_clock_horizon(&s->clock);
	return read_until(s, horizon > lag_ticks ? horizon - lag_ticks : 0, error);
}

int ky_stream_read_all(struct ky_stream *s)
{
	const int error = update(s);
	return read_until(s, UINT64_MAX, error);
}

int ky_stream_read_to(struct ky_stream *s, uint64_t horizon_ticks)
{
	const int error = update_rings(s);
	return read_until(s, horizon_ticks, error);
}

/* Follow the name that the input's thread has now, if it still has the ring, or had it last. */
static void follow_name(struct ky_stream *s, const struct ky_stream_input *input)
{
	const struct ky_drum_block *block = ky_ring_newest(&s->view, &input->cursor);
	bool renamed = false;
	if (!block || !input->thread)
		return;
	const uint64_t seq = KYMO_I_LOAD(&block->seq);
	const uint32_t tid = KYMO_I_LOAD(&block->tid), pid = KYMO_I_LOAD(&block->pid);
	const uint64_t ticks = KYMO_I_LOAD(&block->ticks);
	/* The acquire pairs with the release store in rename_blocks(): the string is there. */
	const uint32_t name = __atomic_load_n(&block->name, __ATOMIC_ACQUIRE);
	/* Pairs with the store fence in begin_block(). */
	KY_LOAD_FENCE();
	if ((int32_t)tid != input->thread->tid || KYMO_I_LOAD(&block->seq) != seq)
		return;
	const struct ky_thread *thread =
		ky_sites_thread(&s->sites, pid, tid, name, ticks, &renamed);
	if (thread && renamed && s->sink.thread)
		s->sink.thread(s->sink.context, thread);
}

void ky_stream_read_rest(struct ky_stream *s)
{
	for (uint32_t i = 0; i < s->inputs_count; i++) {
		struct ky_stream_input *input = s->inputs[i];
		follow_name(s, input);
		if (input->next_ticks < input->block.ticks)
			input->next_ticks = input->block.ticks;
		/* Blocks have their losses with them. */
		if (!s->sink.block && input->at == input->block.count)
			report_loss(s, input);
	}
}

void ky_stream_populate(struct ky_stream *s)
{
	s->populating = true;
	populate_rings(s);
}

bool ky_stream_pending(const struct ky_stream *s)
{
	if (ky_drum_view_rings(&s->view) > s->inputs_count)
		return true;
	for (uint32_t i = 0; i < s->inputs_count; i++) {
		const struct ky_stream_input *input = s->inputs[i];
		if (input->at < input->block.count || has_news(s, &input->cursor))
			return true;
	}
	return false;
}

uint32_t ky_stream_pressure(const struct ky_stream *s)
{
	uint32_t worst = 0;
	for (uint32_t i = 0; i < s->inputs_count; i++) {
		const struct ky_ring_cursor *c = &s->inputs[i]->cursor;
		const uint64_t head = __atomic_load_n(&s->view.rings[i].head, __ATOMIC_RELAXED);
		if (c->blocks == 0 || head <= c->number)
			continue;
		const uint64_t percent = (head - c->number) * 100 / c->blocks;
		if (percent > worst)
			worst = percent < 100 ? (uint32_t)percent : 100;
	}
	return worst;
}
