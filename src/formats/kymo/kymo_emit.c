/* SPDX-License-Identifier: MIT */
/*
 * kymo_emit.c: writes kymo's own format: pieces of rings as they are, packed in batches, with an index
 * at the end. kymo_layout.h has the file byte by byte, kymo_pack.h what a batch becomes.
 *
 *   block() ─▶ batch: piece│words│piece│words│…   full, or flush ─▶ pack ─▶ zstd ─▶ DATA ─▶ out
 *        │                                                                           │
 *        └─▶ new trace points, threads, clock samples ─▶ fresh ─▶ DEFINE ────────────┘ before it
 *                                                          └─▶ all ─▶ DEFINE, at the end once more
 *
 * Events are never decoded: a word is looked at for its length, its trace point (the first time)
 * and its time (the index has the earliest and the latest of a batch). Words that are no whole
 * event at the end of a piece are left out and counted.
 *
 * Invariants: what a DATA chunk names is defined before it in the file. entries has one entry for
 * each DATA chunk written. A chunk is appended whole in one call of the writer, so a file that is
 * cut at a push is whole up to there. Without libzstd sections are stored as they are.
 *
 * As one source of several (info->source is not 0) it appends to a buffer that others append to as
 * well: the heads of its chunks name it, and its places are those of the whole file.
 */
#include "formats/format.h"

#include <errno.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/ring_read.h"
#include "core/sites.h"
#include "formats/kymo/kymo_chunk.h"
#include "formats/kymo/kymo_pack.h"
#include "formats/out.h"

#define BUFFER_BYTES (16u << 10)
#define FLUSH_NS UINT64_C(1000000000)

/* A thread, by its index. */
struct thread_state {
	uint32_t seen_in; /* number of batches begun when a piece of it was in one; 0 is never */
};

struct kymo_writer {
	struct ky_out *out;
	uint64_t begun_at; /* bytes of out before this file; 0 as one source of several */
	struct ky_kymo_chunks chunks;
	struct ky_kymo_pack *pack;
	bool pack_is_lent;
	struct ky_kymo_masks masks; /* of the trace points that are defined */
	struct ky_text command;
	int32_t pid;
	uint32_t layer; /* of the drum: enum ky_drum_layer */
			/* whose command it is */
	uint64_t ticks_per_s;
	struct ky_out fresh; /* records not yet in the file */
	struct ky_out all;   /* records that are */
	struct ky_table threads;

	uint8_t *batch; /* KY_KYMO_BATCH_BYTES */
	uint32_t batches;
	struct ky_kymo_data data; /* the batch's; raw_bytes are used */
	uint64_t last_ticks;      /* of the last event seen */
	uint32_t threads_at;      /* in tids: the batch's first */
	uint32_t losses;          /* records of them so far */

	struct ky_out samples; /* struct ky_tick_reading, in any order */
	uint64_t flushed_ns;   /* when a sample last flushed */
	struct ky_out entries; /* struct ky_kymo_entry */
	struct ky_out tids;    /* u32 */
	struct ky_kymo_index totals;
};

static void out_of_memory(struct kymo_writer *w)
{
	if (!w->out->error)
		w->out->error = -ENOMEM;
}

static uint64_t file_bytes(const struct kymo_writer *w)
{
	return w->out->pushed_bytes + w->out->used - w->begun_at;
}

static void write_fresh(struct kymo_writer *w)
{
	if (w->fresh.used == 0)
		return;
	ky_kymo_chunks_define(&w->chunks, &w->fresh, 0);
	ky_out_append(&w->all, w->fresh.data, w->fresh.used);
	w->fresh.used = 0;
}

/* Write a section and its sizes; return where the next one goes. */
static uint8_t *put_section(struct kymo_writer *w, uint8_t *to, const uint8_t *from, size_t bytes,
			    struct ky_kymo_section *section)
{
	const size_t stored = ky_kymo_chunks_store(&w->chunks, to, from, bytes, KY_KYMO_RAW_MAX);
	*section = (struct ky_kymo_section){(uint32_t)bytes, (uint32_t)stored};
	return to + stored;
}

/* Write the body of the batch's chunk; return its bytes, 0 without memory. */
static size_t put_data(struct kymo_writer *w)
{
	struct ky_kymo_section sections[KY_KYMO_SECTIONS];
	struct ky_kymo_data *data = &w->data;
	const bool packed = ky_kymo_pack(w->pack, w->batch, data->raw_bytes, &w->masks);
	data->form = packed ? KY_KYMO_PACKED : KY_KYMO_RAW;
	data->sections = packed ? KY_KYMO_SECTIONS : 1;
	const size_t head = sizeof(*data) + data->sections * sizeof(sections[0]);
	/* Sections are less than raw together, but the bound of each has a constant part. */
	uint8_t *body = ky_kymo_chunks_body(
		&w->chunks, head + data->sections * ky_kymo_chunks_bound(&w->chunks, 0) +
				    2 * ky_kymo_chunks_bound(&w->chunks, data->raw_bytes));
	if (!body)
		return 0;
	uint8_t *to = body + head;
	for (uint32_t i = 0; i < data->sections; i++) {
		size_t bytes = data->raw_bytes;
		const uint8_t *from = w->batch;
		if (packed)
			from = ky_kymo_packed(w->pack, (enum ky_kymo_sections)i, &bytes);
		to = put_section(w, to, from, bytes, &sections[i]);
	}
	memcpy(body, data, sizeof(*data));
	memcpy(body + sizeof(*data), sections, data->sections * sizeof(sections[0]));
	return (size_t)(to - body);
}

static void add_entry(struct kymo_writer *w, uint64_t at)
{
	const uint32_t tids = (uint32_t)(w->tids.used / sizeof(uint32_t));
	const struct ky_kymo_entry entry = {
		.at = at,
		.first_ticks = w->data.first_ticks,
		.last_ticks = w->data.last_ticks,
		.lost = w->data.lost,
		.events = w->data.events,
		.pieces = w->data.pieces,
		.raw_bytes = w->data.raw_bytes,
		.chunk_bytes = (uint32_t)(file_bytes(w) - at),
		.threads_at = w->threads_at,
		.threads = tids - w->threads_at,
	};
	ky_out_append(&w->entries, &entry, sizeof(entry));
	w->totals.entries++;
	w->totals.events += w->data.events;
	w->totals.lost_rings += w->data.lost;
	w->threads_at = tids;
}

static void begin_batch(struct kymo_writer *w)
{
	w->data = (struct ky_kymo_data){.size = sizeof(w->data), .first_ticks = UINT64_MAX};
	w->batches++;
}

/* Report whether no memory was short: the file needs everything. */
static bool is_whole(struct kymo_writer *w)
{
	if (w->fresh.error || w->all.error || w->samples.error || w->entries.error || w->tids.error)
		out_of_memory(w);
	return !w->out->error;
}

/* Write the batch, after new definitions. */
static void kymo_flush(void *writer)
{
	struct kymo_writer *w = writer;
	if (!is_whole(w))
		return;
	write_fresh(w);
	if (w->data.raw_bytes == 0)
		return;
	size_t bytes = put_data(w);
	if (bytes == 0)
		return;
	const size_t least = w->data.raw_bytes / KY_KYMO_RATIO_MAX;
	if (bytes < least) {
		uint8_t *body =
			ky_kymo_chunks_body(&w->chunks, least); /* there is room: raw fits */
		if (!body)
			return;
		memset(body + bytes, 0, least - bytes);
		bytes = least;
	}
	const uint64_t at = file_bytes(w);
	ky_kymo_chunks_write(&w->chunks, KY_KYMO_DATA, bytes);
	add_entry(w, at);
	begin_batch(w);
}

static void kymo_process(void *writer, int32_t pid, struct ky_text name)
{
	struct kymo_writer *w = writer;
	const struct ky_text none = {"", 0};
	ky_kymo_define_process(&w->fresh, pid, w->layer, name, pid == w->pid ? w->command : none);
}

static void kymo_thread(void *writer, const struct ky_thread *thread)
{
	struct kymo_writer *w = writer;
	ky_kymo_define_thread(&w->fresh, thread);
}

/*
 * Samples come in any order: a file that begins with a snapshot is given the older ones later. What
 * is gathered goes out with one now and then, so that it never is old.
 */
static void kymo_clock(void *writer, const struct ky_tick_reading *sample)
{
	struct kymo_writer *w = writer;
	ky_kymo_define_clock(&w->fresh, sample);
	ky_out_append(&w->samples, sample, sizeof(*sample));
	if (sample->boottime_ns < w->flushed_ns + FLUSH_NS)
		return;
	w->flushed_ns = sample->boottime_ns;
	kymo_flush(w);
}

/* The page of masks that a trace point's is in; NULL without memory. */
static uint16_t *make_masks(struct kymo_writer *w, uint32_t site)
{
	uint16_t **page = &w->masks.pages[site >> 10];
	if (!*page)
		*page = calloc(1024, sizeof(**page));
	if (!*page)
		out_of_memory(w);
	return *page;
}

static void define_site(struct kymo_writer *w, uint64_t word, struct ky_sites *sites)
{
	const uint32_t number = KY_WORD_SITE(word);
	const struct ky_site *site = ky_sites_get(sites, word);
	uint16_t *masks = site ? make_masks(w, number) : NULL;
	if (!masks)
		return; /* somebody scribbled in the drum: the word stays as it is */
	uint32_t mask = KY_KYMO_MASK_KNOWN;
	for (uint32_t i = 0; i < site->items && i < KYMO_I_ITEMS_MAX; i++)
		mask |= (uint32_t)((site->types >> 4 * i & 15) == KYMO_TYPE_STRING) << i;
	masks[number & 1023] = (uint16_t)mask;
	ky_kymo_define_site(&w->fresh, number, site);
}

/* Look at each event once; return how many of the words are whole events. */
static uint32_t check_words(struct kymo_writer *w, const struct ky_block *block,
			    struct ky_sites *sites)
{
	struct ky_kymo_data *data = &w->data;
	uint64_t high = (uint64_t)block->high << 32;
	uint64_t first = data->first_ticks, last = data->last_ticks, ticks = w->last_ticks;
	uint32_t at = 0, events = 0;
	while (at < block->count) {
		const uint64_t word = block->words[at];
		if (KY_WORD_LENGTH(word) >= block->count - at)
			break;
		at += 1 + KY_WORD_LENGTH(word);
		if (KY_WORD_SITE(word) >= KY_CONTROL_MAX) {
			ticks = high | KY_WORD_LOW(word);
			first = ticks < first ? ticks : first;
			last = ticks > last ? ticks : last;
			events++;
			if (!ky_kymo_mask(&w->masks, KY_WORD_SITE(word)))
				define_site(w, word, sites);
		} else if (KY_WORD_SITE(word) == KY_CONTROL_HIGH) {
			high = (uint64_t)KY_WORD_LOW(word) << 32;
		}
	}
	w->totals.damaged += block->count - at;
	w->last_ticks = ticks;
	data->events += events;
	data->first_ticks = first;
	data->last_ticks = last;
	return at;
}

/* A loss without events after it is noted at the time of what was seen last. */
static void note_loss(struct kymo_writer *w, uint64_t lost)
{
	w->data.lost += lost;
	if (w->last_ticks < w->data.first_ticks)
		w->data.first_ticks = w->last_ticks;
	if (w->last_ticks > w->data.last_ticks)
		w->data.last_ticks = w->last_ticks;
}

/* Return the number by which pieces name a thread. */
static uint32_t number_of(const struct ky_thread *thread)
{
	return (uint32_t)(thread->alias ? thread->alias : thread->tid);
}

/* The thread is in the list of those that the batch has pieces of. */
static void note_thread(struct kymo_writer *w, const struct ky_thread *thread)
{
	struct thread_state *state = ky_table_make(&w->threads, thread->index, w->out);
	if (!state || state->seen_in == w->batches)
		return;
	const uint32_t tid = number_of(thread);
	state->seen_in = w->batches;
	ky_out_append(&w->tids, &tid, sizeof(tid));
}

static void kymo_block(void *writer, const struct ky_block *block, const struct ky_thread *thread,
		       struct ky_sites *sites)
{
	struct kymo_writer *w = writer;
	struct ky_kymo_piece piece = {
		.head_bytes = sizeof(piece),
		.ring = block->ring,
		.tid = number_of(thread),
		.level = block->level,
		.from = block->from,
		.number = block->number,
		.lost = block->lost,
	};
	if (w->out->error || block->count > KY_BLOCK_WORDS)
		return;
	if (sizeof(piece) + 8u * block->count > KY_KYMO_BATCH_BYTES - w->data.raw_bytes)
		kymo_flush(w);
	piece.words = check_words(w, block, sites);
	if (piece.words)
		piece.ticks = (uint64_t)block->high << 32 | KY_WORD_LOW(block->words[0]);
	else
		piece.ticks = w->last_ticks;
	if (block->lost)
		note_loss(w, block->lost);
	note_thread(w, thread);
	if (w->out->error)
		return; /* the flush failed, and there may be no room */
	uint8_t *to = w->batch + w->data.raw_bytes;
	memcpy(to, &piece, sizeof(piece));
	if (piece.words)
		memcpy(to + sizeof(piece), block->words, 8u * piece.words);
	w->data.raw_bytes += (uint32_t)sizeof(piece) + 8u * piece.words;
	w->data.pieces++;
}

static void kymo_end(void *writer, const struct ky_thread *thread, uint64_t time_ns)
{
	struct kymo_writer *w = writer;
	ky_kymo_define_program_end(&w->fresh, 0, (uint32_t)thread->tid, time_ns);
}

static int by_ticks(const void *a, const void *b)
{
	const struct ky_tick_reading *left = a, *right = b;
	return (left->ticks > right->ticks) - (left->ticks < right->ticks);
}

static void map_clock(struct kymo_writer *w, struct ky_clock_map *clock)
{
	struct ky_tick_reading *samples = (void *)w->samples.data;
	if (w->ticks_per_s)
		clock->nominal = UINT64_C(1000000000) * KY_CLOCK_RATE_ONE / w->ticks_per_s;
	const size_t count = w->samples.used / sizeof(*samples);
	qsort(samples, count, sizeof(*samples), by_ticks);
	for (size_t i = 0; i < count; i++)
		if (ky_clock_map_add(clock, &samples[i]) != 0)
			out_of_memory(w);
}

static void put_entries(struct kymo_writer *w, uint8_t *to)
{
	struct ky_clock_map clock = {0};
	map_clock(w, &clock);
	for (size_t at = 0; at < w->entries.used; at += sizeof(struct ky_kymo_entry)) {
		struct ky_kymo_entry entry;
		memcpy(&entry, w->entries.data + at, sizeof(entry));
		entry.first_ns = ky_clock_map_ns(&clock, entry.first_ticks);
		entry.last_ns = ky_clock_map_ns(&clock, entry.last_ticks);
		memcpy(to + at, &entry, sizeof(entry));
	}
	ky_clock_map_free(&clock);
}

static void write_index(struct kymo_writer *w)
{
	struct ky_kymo_index *index = &w->totals;
	const size_t entries_bytes = w->entries.used;
	index->size = sizeof(*index);
	index->entry_bytes = sizeof(struct ky_kymo_entry);
	index->threads = w->tids.used / sizeof(uint32_t);
	const size_t bytes = sizeof(*index) + entries_bytes + w->tids.used;
	uint8_t *body = ky_kymo_chunks_body(&w->chunks, bytes);
	if (!body)
		return;
	uint8_t *to = body + sizeof(*index);
	memcpy(body, index, sizeof(*index));
	memcpy(to + entries_bytes, w->tids.data, w->tids.used);
	put_entries(w, to);
	ky_kymo_chunks_write(&w->chunks, KY_KYMO_INDEX, bytes);
}

static void kymo_loss(void *writer, const char *what, uint64_t count)
{
	struct kymo_writer *w = writer;
	ky_kymo_define_loss(&w->fresh, (struct ky_text){what, (uint32_t)strlen(what)}, count,
			    w->losses++);
}

static void kymo_finish(void *writer, uint64_t lost)
{
	struct kymo_writer *w = writer;
	kymo_flush(w);
	if (!is_whole(w))
		return;
	w->totals.lost = lost;
	const uint64_t define_at = file_bytes(w);
	ky_kymo_chunks_define(&w->chunks, &w->all, KY_KYMO_DEFINE_ALL);
	const uint64_t index_at = file_bytes(w);
	write_index(w);
	if (!w->out->error)
		ky_kymo_chunks_end(&w->chunks, define_at, index_at);
}

static void kymo_close(void *writer)
{
	struct kymo_writer *w = writer;
	if (!w)
		return;
	if (!w->pack_is_lent)
		ky_kymo_pack_close(&w->pack);
	ky_kymo_chunks_close(&w->chunks);
	ky_out_free(&w->samples);
	ky_table_free(&w->threads);
	ky_out_free(&w->fresh);
	ky_out_free(&w->all);
	ky_out_free(&w->entries);
	ky_out_free(&w->tids);
	for (size_t i = 0; i < sizeof(w->masks.pages) / sizeof(w->masks.pages[0]); i++)
		free(w->masks.pages[i]);
	free((void *)(uintptr_t)w->command.data);
	free(w->batch);
	free(w);
}

static void write_first(struct kymo_writer *w, const struct ky_trace_info *info)
{
	ky_kymo_chunks_file(&w->chunks, info->source ? KY_KYMO_VERSION_SOURCES : KY_KYMO_VERSION,
			    info->ticks_per_s);
	kymo_process(w, info->pid, info->process);
	if (info->clock.ticks)
		kymo_clock(w, &info->clock);
	write_fresh(w);
}

static bool make_buffers(struct kymo_writer *w, struct ky_text command)
{
	char *copy = malloc((size_t)command.bytes + 1);
	w->command = (struct ky_text){copy, command.bytes};
	w->batch = malloc(KY_KYMO_BATCH_BYTES);
	if (!copy || !w->batch)
		return false;
	memcpy(copy, command.data ? command.data : "", command.bytes);
	return (w->pack || ky_kymo_pack_open(&w->pack) == 0) &&
	       ky_out_init(&w->fresh, BUFFER_BYTES) == 0 &&
	       ky_out_init(&w->all, BUFFER_BYTES) == 0 &&
	       ky_out_init(&w->samples, BUFFER_BYTES) == 0 &&
	       ky_out_init(&w->entries, BUFFER_BYTES) == 0 &&
	       ky_out_init(&w->tids, BUFFER_BYTES) == 0;
}

static int kymo_open(void **writer, struct ky_out *out, const struct ky_trace_info *info)
{
	*writer = NULL;
	struct kymo_writer *w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->out = out;
	w->begun_at = info->source ? 0 : out->pushed_bytes + out->used;
	w->threads.item_bytes = sizeof(struct thread_state);
	w->ticks_per_s = info->ticks_per_s;
	w->pid = info->pid;
	w->layer = info->layer;
	w->pack = info->pack;
	w->pack_is_lent = info->pack != NULL;
	int error = 0;
	if (info->chunks)
		ky_kymo_chunks_borrow(&w->chunks, out, info->source, info->chunks);
	else
		error = ky_kymo_chunks_open(&w->chunks, out, info->source);
	if (error || !make_buffers(w, info->command)) {
		kymo_close(w);
		return -ENOMEM;
	}
	begin_batch(w);
	write_first(w, info);
	*writer = w;
	return 0;
}

/* Pieces are all there is: events that come from elsewhere have no words, and are not written. */
static void kymo_event(void *writer, const struct ky_event *event)
{
	(void)writer;
	(void)event;
}

const struct ky_format ky_format_kymo = {
	.name = "kymo",
	.id = KYMO_FORMAT_KYMO,
	.suffix = ".kymo",
	.open = kymo_open,
	.process = kymo_process,
	.thread = kymo_thread,
	.event = kymo_event,
	.clock = kymo_clock,
	.block = kymo_block,
	.end = kymo_end,
	.flush = kymo_flush,
	.loss = kymo_loss,
	.finish = kymo_finish,
	.close = kymo_close,
};
