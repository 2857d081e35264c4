/* SPDX-License-Identifier: MIT */
/*
 * test_kymo.c: the writer and the reader of .kymo files against each other and against the words
 * that went in: whole, cut off, damaged, with and without libzstd.
 *
 * A machine without libzstd is played by this program's own dlopen(); a library once loaded stays
 * so, and those tests come first.
 *
 *	test_kymo --corpus FOLDER	writes the files that the fuzzer begins with
 */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/decode.h"
#include "formats/kymo/kymo_file.h"
#include "formats/kymo/kymo_pack.h"
#include "formats/xxh64.h"
#include "kymo_maker.h"

static bool libraries_absent;

void *dlopen(const char *file, int mode)
{
	void *(*real)(const char *, int);
	void *const symbol = dlsym(RTLD_NEXT, "dlopen");
	if (libraries_absent)
		return NULL;
	memcpy(&real, &symbol, sizeof(real));
	return real(file, mode);
}

/* An event that must come, by its words. */
struct expected {
	uint64_t ticks;
	uint64_t lost;         /* told right before it */
	const uint64_t *words; /* NULL: the loss alone */
	int32_t tid;
	uint32_t order;
};

/* What a reader hands out is compared with these, one after the other. */
struct check {
	struct maker *maker;
	struct expected *expected;
	uint32_t expected_count;
	uint32_t at;
	bool loss_told;
	struct ky_decoder decoder;
	uint64_t events, lost, threads;
	uint64_t pieces, piece_at;
};

static int by_time(const void *a, const void *b)
{
	const struct expected *left = a, *right = b;
	if (left->ticks != right->ticks)
		return left->ticks < right->ticks ? -1 : 1;
	return (left->order > right->order) - (left->order < right->order);
}

static void expect_piece(struct check *c, const struct ky_block *b, uint64_t *last_ticks)
{
	uint64_t lost = b->lost, high = (uint64_t)b->high << 32;
	for (uint32_t at = 0; at < b->count; at += 1 + KY_WORD_LENGTH(b->words[at])) {
		const uint64_t word = b->words[at];
		if (KY_WORD_SITE(word) == KY_CONTROL_HIGH)
			high = (uint64_t)KY_WORD_LOW(word) << 32;
		if (KY_WORD_SITE(word) < KY_CONTROL_MAX)
			continue;
		*last_ticks = high | KY_WORD_LOW(word);
		c->expected[c->expected_count] = (struct expected){
			*last_ticks, lost, b->words + at, (int32_t)b->tid, c->expected_count};
		c->expected_count++;
		lost = 0;
	}
	if (lost) {
		c->expected[c->expected_count] = (struct expected){
			*last_ticks, lost, NULL, (int32_t)b->tid, c->expected_count};
		c->expected_count++;
	}
}

static void check_open(struct check *c, struct maker *maker)
{
	size_t room = 0;
	uint64_t last_ticks = 0;
	memset(c, 0, sizeof(*c));
	c->maker = maker;
	for (uint32_t i = 0; i < maker->pieces_count; i++)
		room += maker->pieces[i].block.count + 1u;
	c->expected = calloc(room, sizeof(*c->expected));
	for (uint32_t i = 0; i < maker->pieces_count; i++)
		expect_piece(c, &maker->pieces[i].block, &last_ticks);
	qsort(c->expected, c->expected_count, sizeof(*c->expected), by_time);
}

static void check_close(struct check *c)
{
	free(c->expected);
}

static void compare_text(struct ky_text a, struct ky_text b)
{
	assert_int_equal(a.bytes, b.bytes);
	assert_memory_equal(a.data, b.data, a.bytes);
	assert_int_equal(a.data[a.bytes], 0);
}

static void compare_args(const struct ky_event *a, const struct ky_event *b)
{
	assert_int_equal(a->args_count, b->args_count);
	for (uint32_t i = 0; i < a->args_count; i++) {
		assert_string_equal(a->args[i].key, b->args[i].key);
		assert_int_equal(a->args[i].type, b->args[i].type);
		assert_int_equal(a->args[i].value.u, b->args[i].value.u);
		assert_int_equal(a->args[i].cut, b->args[i].cut);
		assert_int_equal(a->args[i].string_bytes, b->args[i].string_bytes);
		if (a->args[i].type == KYMO_TYPE_STRING)
			assert_memory_equal(a->args[i].string, b->args[i].string,
					    a->args[i].string_bytes);
	}
}

static void compare_site(const struct ky_site *a, const struct ky_site *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->items, b->items);
	assert_int_equal(a->args, b->args);
	assert_int_equal(a->line, b->line);
	assert_int_equal(a->types, b->types);
	compare_text(a->category, b->category);
	compare_text(a->name, b->name);
	compare_text(a->file, b->file);
	compare_text(a->function, b->function);
	for (uint32_t i = 0; i < KYMO_ARGS_MAX; i++)
		compare_text(a->keys[i], b->keys[i]);
}

static void compare_event(struct check *c, const struct expected *expected,
			  const struct ky_event *event)
{
	struct ky_event own;
	const struct ky_site *site = ky_sites_get(&c->maker->sites, expected->words[0]);
	ky_decode(&c->decoder, site, expected->words,
		  ky_clock_map_ns(&c->maker->clock, expected->ticks), &c->maker->clock, &own);
	assert_int_equal(event->kind, own.kind);
	assert_int_equal(event->time_ns, own.time_ns);
	assert_int_equal(event->id, own.id);
	assert_int_equal(event->thread->tid, c->decoder.tid ? c->decoder.tid : expected->tid);
	compare_text(event->name, own.name);
	compare_args(event, &own);
	compare_site(event->site, site);
}

static void on_event(void *context, const struct ky_event *event)
{
	struct check *c = context;
	assert_true(c->at < c->expected_count);
	const struct expected *expected = &c->expected[c->at];
	if (event->kind == KYMO_KIND_LOST) {
		assert_false(c->loss_told);
		assert_int_equal(event->id, expected->lost);
		assert_int_equal(event->thread->tid, expected->tid);
		assert_int_equal(event->time_ns,
				 ky_clock_map_ns(&c->maker->clock, expected->ticks));
		c->lost += event->id;
		c->loss_told = expected->words != NULL;
		c->at += expected->words == NULL;
		return;
	}
	assert_true(expected->lost == 0 || c->loss_told);
	assert_non_null(expected->words);
	compare_event(c, expected, event);
	c->loss_told = false;
	c->events++;
	c->at++;
}

static void on_thread(void *context, const struct ky_thread *thread)
{
	struct check *c = context;
	c->threads++;
	assert_int_equal(thread->pid, MAKER_PID);
	compare_text(thread->name, c->maker->thread[thread->tid - MAKER_PID].name);
}

static void on_block(void *context, const struct ky_block *block, const struct ky_thread *thread)
{
	struct check *c = context;
	assert_true(c->piece_at < c->maker->pieces_count);
	const struct ky_block *own = &c->maker->pieces[c->piece_at++].block;
	assert_int_equal(block->ring, own->ring);
	assert_int_equal(block->tid, own->tid);
	assert_int_equal(thread->tid, own->tid);
	assert_int_equal(block->level, own->level);
	assert_int_equal(block->number, own->number);
	assert_int_equal(block->from, own->from);
	assert_int_equal(block->lost, own->lost);
	assert_int_equal(block->count, own->count);
	if (own->count)
		assert_int_equal(block->high, own->high);
	assert_memory_equal(block->words, own->words, own->count * sizeof(uint64_t));
	c->pieces++;
}

static struct ky_kymo *open_file(const uint8_t *data, size_t bytes)
{
	struct ky_kymo *file;
	struct ky_kymo_error error = {0};
	const int result = ky_kymo_open_memory(&file, data, bytes, &error);
	if (result)
		print_error("at %llu: %s\n", (unsigned long long)error.at, error.text);
	assert_int_equal(result, 0);
	return file;
}

/* Reads all of it and compares all of it. */
static void read_whole(struct maker *maker, bool indexed)
{
	struct check c;
	struct ky_kymo_totals totals;
	struct ky_kymo *file = open_file(maker->file, maker->file_bytes);
	const struct ky_stream_sink events = {
		.thread = on_thread, .event = on_event, .context = &c};
	const struct ky_stream_sink blocks = {.block = on_block, .context = &c};
	check_open(&c, maker);
	assert_int_equal(ky_kymo_info(file)->indexed, indexed);
	assert_int_equal(ky_kymo_read(file, 0, UINT64_MAX, &events, &totals), 0);
	assert_int_equal(c.at, c.expected_count);
	assert_int_equal(totals.events, c.events);
	assert_int_equal(totals.lost, maker->lost);
	assert_int_equal(c.lost, maker->lost);
	assert_int_equal(c.threads, MAKER_RINGS - 1);
	assert_int_equal(totals.unknown, 0);
	assert_int_equal(totals.damaged, 0);
	assert_int_equal(ky_kymo_read(file, 0, UINT64_MAX, &blocks, &totals), 0);
	assert_int_equal(c.pieces, maker->pieces_count);
	assert_int_equal(totals.events, c.events);
	assert_int_equal(ky_kymo_info(file)->events, c.events);
	if (indexed)
		assert_int_equal(ky_kymo_info(file)->damages, 0);
	ky_kymo_close(&file);
	check_close(&c);
}

static void without_libzstd_the_file_is_stored(void **state)
{
	(void)state;
	struct maker maker;
	libraries_absent = true;
	maker_open(&maker, 1);
	maker_rounds(&maker, 6, 200);
	maker_finish(&maker);
	read_whole(&maker, true);
	maker_close(&maker);
	libraries_absent = false;
}

static void a_compressed_file_without_libzstd_is_refused(void **state)
{
	(void)state;
	struct ky_kymo *file;
	struct ky_kymo_error error = {0};
	/* From the corpus: once a file was compressed here, the library is loaded. */
	char path[4096];
	const char *root = getenv("KYMO_SOURCE_ROOT");
	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/kymo/small", root ? root : ".");
	libraries_absent = true;
	const int result = ky_kymo_open(&file, path, &error);
	libraries_absent = false;
	if (result == -ENOENT && strstr(error.text, "libzstd") == NULL)
		skip(); /* no corpus here */
	assert_int_equal(result, -ENOENT);
	assert_null(file);
	assert_non_null(strstr(error.text, "libzstd"));
}

static void every_event_comes_back(void **state)
{
	(void)state;
	for (uint64_t seed = 2; seed < 10; seed++) {
		struct maker maker;
		maker_open(&maker, seed);
		maker_rounds(&maker, 10, 40u * (uint32_t)seed);
		maker_finish(&maker);
		read_whole(&maker, true);
		maker_close(&maker);
	}
}

static void a_batch_is_full_at_its_limit(void **state)
{
	(void)state;
	struct maker maker;
	maker_open(&maker, 11);
	maker_rounds(&maker, 2, 20000);
	maker_finish(&maker);
	assert_true(maker.pieces_count >= 5000);
	read_whole(&maker, true);
	struct ky_kymo *file = open_file(maker.file, maker.file_bytes);
	const struct ky_kymo_info *info = ky_kymo_info(file);
	assert_true(info->entries_count > 4);
	for (uint32_t i = 0; i < info->entries_count; i++)
		assert_true(info->entries[i].raw_bytes <= KY_KYMO_BATCH_BYTES);
	ky_kymo_close(&file);
	maker_close(&maker);
}

static void the_file_says_who_wrote_it(void **state)
{
	(void)state;
	struct maker maker;
	maker_open(&maker, 12);
	maker_rounds(&maker, 3, 50);
	maker.format->process(maker.writer, MAKER_PID, (struct ky_text){"renamed", 7});
	maker.thread[1].name = (struct ky_text){"renamed too", 11};
	maker.format->thread(maker.writer, &maker.thread[1]);
	maker_rounds(&maker, 1, 50);
	maker_finish(&maker);
	read_whole(&maker, true);
	struct ky_kymo *file = open_file(maker.file, maker.file_bytes);
	const struct ky_kymo_info *info = ky_kymo_info(file);
	assert_int_equal(info->version, KY_KYMO_VERSION);
	assert_int_equal(info->pid, MAKER_PID);
	assert_string_equal(info->process.data, "renamed");
	assert_string_equal(info->command.data, "/usr/bin/process");
	assert_int_equal(info->ticks_per_s, 2450000000u);
	assert_int_equal(info->samples_count, maker.clock.count);
	assert_memory_equal(info->samples, maker.clock.readings,
			    maker.clock.count * sizeof(*info->samples));
	assert_int_equal(info->threads_count, MAKER_RINGS - 1);
	assert_int_equal(info->lost, maker.lost + 3);
	ky_kymo_close(&file);
	maker_close(&maker);
}

static void every_file_stands_on_its_own(void **state)
{
	(void)state;
	struct maker maker;
	maker_open(&maker, 23);
	for (uint32_t i = 0; i < 3; i++) {
		maker_rounds(&maker, 4, 100);
		maker_finish(&maker);
		read_whole(&maker, true);
		maker_reopen(&maker);
	}
	maker_close(&maker);
}

static void after_an_error_nothing_is_written(void **state)
{
	(void)state;
	struct maker maker;
	maker_open(&maker, 24);
	maker_rounds(&maker, 4, 100);
	const size_t used = maker.out.used;
	maker.out.error = -ENOSPC;
	maker_rounds(&maker, 2, 2000);
	maker.format->finish(maker.writer, 0);
	assert_int_equal(maker.out.error, -ENOSPC);
	assert_int_equal(maker.out.used, used);
	maker_close(&maker);
}

static void clock_samples_may_come_late(void **state)
{
	(void)state;
	struct maker maker;
	maker_open(&maker, 13);
	maker_rounds(&maker, 4, 50);
	const struct ky_tick_reading early = {MAKER_START_TICKS - 1000, MAKER_START_NS - 500,
					      MAKER_START_NS - 1500, MAKER_START_NS};
	maker.format->clock(maker.writer, &early);
	maker_finish(&maker);
	struct ky_kymo *file = open_file(maker.file, maker.file_bytes);
	assert_int_equal(ky_kymo_info(file)->samples[0].ticks, early.ticks);
	assert_int_equal(ky_kymo_info(file)->samples_count, maker.clock.count + 1);
	ky_kymo_close(&file);
	maker_close(&maker);
}

/* The index against the pieces, which come in its order. */
static void compare_entry(const struct maker *maker, const struct ky_kymo_entry *entry,
			  uint32_t *piece)
{
	uint64_t first = UINT64_MAX, last = 0, lost = 0, events = 0, bytes = 0;
	for (uint32_t i = 0; i < entry->pieces; i++, (*piece)++) {
		const struct ky_block *b = &maker->pieces[*piece].block;
		uint64_t high = (uint64_t)b->high << 32;
		for (uint32_t at = 0; at < b->count; at += 1 + KY_WORD_LENGTH(b->words[at])) {
			const uint64_t word = b->words[at];
			if (KY_WORD_SITE(word) < KY_CONTROL_MAX) {
				high = (uint64_t)KY_WORD_LOW(word) << 32;
				continue;
			}
			events++;
			first = (high | KY_WORD_LOW(word)) < first ? high | KY_WORD_LOW(word)
								   : first;
			last = (high | KY_WORD_LOW(word)) > last ? high | KY_WORD_LOW(word) : last;
		}
		bytes += sizeof(struct ky_kymo_piece) + 8u * b->count;
		lost += b->lost;
	}
	assert_int_equal(entry->events, events);
	assert_int_equal(entry->lost, lost);
	assert_int_equal(entry->raw_bytes, bytes);
	assert_int_equal(entry->first_ticks, first);
	assert_int_equal(entry->last_ticks, last);
	struct ky_clock_map clock = maker->clock;
	assert_int_equal(entry->first_ns, ky_clock_map_ns(&clock, first));
	assert_int_equal(entry->last_ns, ky_clock_map_ns(&clock, last));
	assert_int_equal(entry->threads, MAKER_RINGS - 1);
}

static void the_index_is_right(void **state)
{
	(void)state;
	struct maker maker;
	uint32_t piece = 0;
	maker_open(&maker, 14);
	maker_rounds(&maker, 12, 300);
	maker_finish(&maker);
	struct ky_kymo *file = open_file(maker.file, maker.file_bytes);
	const struct ky_kymo_info *info = ky_kymo_info(file);
	assert_true(info->indexed && info->entries_count > 2);
	for (uint32_t i = 0; i < info->entries_count; i++)
		compare_entry(&maker, &info->entries[i], &piece);
	assert_int_equal(piece, maker.pieces_count);
	ky_kymo_close(&file);
	maker_close(&maker);
}

struct range {
	uint64_t from_ns, to_ns, events;
};

static void count_in_range(void *context, const struct ky_event *event)
{
	struct range *range = context;
	if (event->kind != KYMO_KIND_LOST && !(event->site->flags & KYMO_SITE_TIME))
		assert_true(event->time_ns >= range->from_ns && event->time_ns <= range->to_ns);
	range->events += event->kind != KYMO_KIND_LOST;
}

static void a_part_is_read_by_its_time(void **state)
{
	(void)state;
	struct maker maker;
	struct check c;
	maker_open(&maker, 15);
	maker_rounds(&maker, 12, 300);
	maker_finish(&maker);
	check_open(&c, &maker);
	struct ky_kymo *file = open_file(maker.file, maker.file_bytes);
	for (uint32_t i = 0; i < 20; i++) {
		const uint64_t a = c.expected[maker_random(&maker, c.expected_count)].ticks;
		const uint64_t b = c.expected[maker_random(&maker, c.expected_count)].ticks;
		struct range range = {ky_clock_map_ns(&maker.clock, a < b ? a : b),
				      ky_clock_map_ns(&maker.clock, a < b ? b : a), 0};
		const struct ky_stream_sink sink = {.event = count_in_range, .context = &range};
		uint64_t events = 0;
		for (uint32_t j = 0; j < c.expected_count; j++) {
			const uint64_t ns = ky_clock_map_ns(&maker.clock, c.expected[j].ticks);
			events += c.expected[j].words && ns >= range.from_ns && ns <= range.to_ns;
		}
		assert_int_equal(ky_kymo_read(file, range.from_ns, range.to_ns, &sink, NULL), 0);
		assert_int_equal(range.events, events);
	}
	ky_kymo_close(&file);
	check_close(&c);
	maker_close(&maker);
}

static void count_event(void *context, const struct ky_event *event)
{
	uint64_t *counts = context; /* events, lost */
	counts[event->kind == KYMO_KIND_LOST] += event->kind == KYMO_KIND_LOST ? event->id : 1;
}

/* Events and losses of what can be read, and how much damage was found. */
static void read_counts(const uint8_t *data, size_t bytes, uint64_t counts[2], uint64_t *damages)
{
	const struct ky_stream_sink sink = {.event = count_event, .context = counts};
	struct ky_kymo *file = open_file(data, bytes);
	counts[0] = counts[1] = 0;
	assert_int_equal(ky_kymo_read(file, 0, UINT64_MAX, &sink, NULL), 0);
	*damages = ky_kymo_info(file)->damages;
	ky_kymo_close(&file);
}

/* Where each chunk with events ends, from a whole file's index. */
static uint32_t copy_entries(const struct maker *maker, struct ky_kymo_entry *entries, uint32_t max)
{
	struct ky_kymo *file = open_file(maker->file, maker->file_bytes);
	const struct ky_kymo_info *info = ky_kymo_info(file);
	const uint32_t count = info->entries_count;
	assert_true(count <= max);
	memcpy(entries, info->entries, count * sizeof(*entries));
	ky_kymo_close(&file);
	return count;
}

static void a_cut_file_reads_up_to_the_cut(void **state)
{
	(void)state;
	struct maker maker;
	struct ky_kymo_entry entries[64];
	maker_open(&maker, 16);
	maker_rounds(&maker, 12, 300);
	maker_finish(&maker);
	const uint32_t count = copy_entries(&maker, entries, 64);
	const size_t head = sizeof(struct ky_kymo_chunk) + sizeof(struct ky_kymo_head);
	for (uint32_t i = 0; i < 200; i++) {
		const size_t cut = head + maker_random(&maker, maker.file_bytes - head);
		uint64_t events = 0, lost = 0, counts[2], damages;
		for (uint32_t j = 0; j < count; j++) {
			if (entries[j].at + entries[j].chunk_bytes > cut)
				break;
			events += entries[j].events;
			lost += entries[j].lost;
		}
		uint8_t *copy = malloc(cut); /* exactly as long, for the address sanitizer */
		memcpy(copy, maker.file, cut);
		read_counts(copy, cut, counts, &damages);
		free(copy);
		assert_int_equal(counts[0], events);
		assert_int_equal(counts[1], lost);
		assert_true(damages > 0);
	}
	maker_close(&maker);
}

/* Nothing but what is in the chunk with the damage is missing, and damage to events is noted. */
static void check_damage(const struct maker *maker, const struct ky_kymo_entry *entries,
			 uint32_t count, size_t at, const uint8_t *data, size_t bytes)
{
	uint64_t events = 0, missing = 0, counts[2], damages;
	for (uint32_t i = 0; i < count; i++) {
		const struct ky_kymo_entry *entry = &entries[i];
		events += entry->events;
		if (at >= entry->at && at < entry->at + entry->chunk_bytes)
			missing = entry->events;
	}
	(void)maker;
	read_counts(data, bytes, counts, &damages);
	assert_int_equal(counts[0], events - missing);
	if (missing)
		assert_true(damages > 0);
}

static void a_flipped_bit_costs_its_chunk_alone(void **state)
{
	(void)state;
	struct maker maker;
	struct ky_kymo_entry entries[64];
	maker_open(&maker, 17);
	maker_rounds(&maker, 12, 300);
	maker_finish(&maker);
	const uint32_t count = copy_entries(&maker, entries, 64);
	for (uint32_t i = 0; i < 400; i++) {
		const size_t at = maker_random(&maker, maker.file_bytes);
		const uint8_t bit = (uint8_t)(1u << maker_random(&maker, 8));
		/* Half of the time without the index, so that chunks are found one by one. */
		const size_t bytes = maker.file_bytes - (i % 2 ? KY_KYMO_END_BYTES : 0);
		maker.file[at] ^= bit;
		check_damage(&maker, entries, count, at, maker.file, bytes);
		maker.file[at] ^= bit;
	}
	maker_close(&maker);
}

static void missing_bytes_cost_their_chunk_alone(void **state)
{
	(void)state;
	struct maker maker;
	struct ky_kymo_entry entries[64];
	maker_open(&maker, 18);
	maker_rounds(&maker, 12, 300);
	maker_finish(&maker);
	const uint32_t count = copy_entries(&maker, entries, 64);
	uint8_t *copy = malloc(maker.file_bytes);
	for (uint32_t i = 0; i < 200; i++) {
		const struct ky_kymo_entry *entry = &entries[maker_random(&maker, count)];
		const size_t hole = 1 + maker_random(&maker, entry->chunk_bytes - 1);
		const size_t at = entry->at + maker_random(&maker, entry->chunk_bytes - hole + 1);
		memcpy(copy, maker.file, at);
		memcpy(copy + at, maker.file + at + hole, maker.file_bytes - at - hole);
		check_damage(&maker, entries, count, at, copy, maker.file_bytes - hole);
	}
	free(copy);
	maker_close(&maker);
}

static void too_much_variety_is_stored_as_it_is(void **state)
{
	(void)state;
	struct maker maker;
	uint64_t words[KY_BLOCK_WORDS];
	maker_open(&maker, 19);
	for (uint32_t i = 0; i < 40; i++) {
		const uint64_t ticks = maker.ticks;
		for (uint32_t j = 0; j < 400; j++)
			words[j] = maker_word(&maker, 5000 + 400 * i + j, 0, false);
		const uint64_t after = maker.ticks;
		maker.ticks = ticks;
		maker_piece(&maker, 0, words, 400, 0);
		maker.ticks = after;
	}
	maker_finish(&maker);
	struct check c = {.maker = &maker};
	struct ky_kymo_totals totals;
	const struct ky_stream_sink blocks = {.block = on_block, .context = &c};
	const struct ky_stream_sink events = {.event = on_event, .context = &c};
	struct ky_kymo *file = open_file(maker.file, maker.file_bytes);
	assert_int_equal(ky_kymo_read(file, 0, UINT64_MAX, &blocks, &totals), 0);
	assert_int_equal(c.pieces, 40);
	/* None of them is a trace point that is defined. */
	assert_int_equal(ky_kymo_read(file, 0, UINT64_MAX, &events, &totals), 0);
	assert_int_equal(totals.unknown, 40 * 400);
	assert_int_equal(totals.events, 0);
	ky_kymo_close(&file);
	maker_close(&maker);
}

static void what_is_alike_stays_in_proportion(void **state)
{
	(void)state;
	struct maker maker;
	uint64_t words[KY_BLOCK_WORDS] = {0};
	maker_open(&maker, 20);
	words[0] = maker_word(&maker, MAKER_FIRST_SITE + 7, 3, false);
	for (uint32_t i = 4; i + 4 < KY_BLOCK_WORDS; i += 4)
		words[i] = words[0];
	for (uint32_t i = 0; i < 1000; i++)
		maker_piece(&maker, 0, words, KY_BLOCK_WORDS - 4, 0);
	maker_finish(&maker);
	struct ky_kymo *file = open_file(maker.file, maker.file_bytes);
	const struct ky_kymo_info *info = ky_kymo_info(file);
	for (uint32_t i = 0; i < info->entries_count; i++)
		assert_true((uint64_t)info->entries[i].chunk_bytes * KY_KYMO_RATIO_MAX >=
			    info->entries[i].raw_bytes);
	ky_kymo_close(&file);
	struct check c = {.maker = &maker};
	const struct ky_stream_sink blocks = {.block = on_block, .context = &c};
	file = open_file(maker.file, maker.file_bytes);
	assert_int_equal(ky_kymo_read(file, 0, UINT64_MAX, &blocks, NULL), 0);
	assert_int_equal(c.pieces, 1000);
	ky_kymo_close(&file);
	maker_close(&maker);
}

static void words_that_are_no_events_are_kept_apart(void **state)
{
	(void)state;
	struct maker maker;
	uint64_t words[64] = {0}, counts[2], damages;
	maker_open(&maker, 21);
	words[0] = maker_word(&maker, MAKER_FIRST_SITE, 0, false);
	words[1] = maker_word(&maker, MAKER_FIRST_SITE + 7, 9, false); /* it should have 9 items */
	maker_piece(&maker, 1, words, 5, 0);
	/* A string's length that is not one, more items than there can be, bytes in the padding. */
	words[0] = maker_word(&maker, MAKER_FIRST_SITE + 7, 40, false);
	words[3] = 4000;
	maker_piece(&maker, 1, words, 41, 0);
	words[0] = maker_word(&maker, MAKER_FIRST_SITE + 7, 4, false);
	words[3] = 3;
	words[4] = UINT64_MAX;
	maker_piece(&maker, 1, words, 5, 0);
	maker_piece(&maker, 2, words, 0, 17); /* only a loss */
	maker_finish(&maker);
	read_counts(maker.file, maker.file_bytes, counts, &damages);
	assert_int_equal(counts[0], 3);
	assert_int_equal(counts[1], 17);
	maker.pieces[0].block.count = 1; /* what is expected back */
	struct check c = {.maker = &maker};
	const struct ky_stream_sink blocks = {.block = on_block, .context = &c};
	struct ky_kymo *file = open_file(maker.file, maker.file_bytes);
	assert_int_equal(ky_kymo_read(file, 0, UINT64_MAX, &blocks, NULL), 0);
	assert_int_equal(c.pieces, 4);
	ky_kymo_close(&file);
	maker_close(&maker);
}

static void other_files_are_refused(void **state)
{
	(void)state;
	static const char *const others[] = {"", "x", "{\"traceEvents\": []}", "\x89kymo\r\n\x1a"};
	struct ky_kymo *file;
	struct ky_kymo_error error;
	for (uint32_t i = 0; i < 4; i++) {
		memset(&error, 0, sizeof(error));
		assert_int_equal(ky_kymo_open_memory(&file, others[i], strlen(others[i]), &error),
				 -EBADMSG);
		assert_null(file);
		assert_non_null(strstr(error.text, "expected"));
	}
	assert_int_equal(ky_kymo_open(&file, "/nonexistent.kymo", &error), -ENOENT);
	assert_null(file);
}

static void a_later_version_is_refused(void **state)
{
	(void)state;
	struct maker maker;
	struct ky_kymo *file;
	struct ky_kymo_error error;
	struct ky_kymo_chunk chunk;
	maker_open(&maker, 22);
	maker_finish(&maker);
	maker.file[sizeof(chunk) + offsetof(struct ky_kymo_head, version_min)]++;
	memcpy(&chunk, maker.file, sizeof(chunk));
	chunk.body_hash = ky_xxh64(maker.file + sizeof(chunk), chunk.body_bytes);
	chunk.head_hash = ky_xxh64(&chunk, offsetof(struct ky_kymo_chunk, head_hash));
	memcpy(maker.file, &chunk, sizeof(chunk));
	assert_int_equal(ky_kymo_open_memory(&file, maker.file, maker.file_bytes, &error),
			 -ENOTSUP);
	assert_non_null(strstr(error.text, "version 2"));
	maker_close(&maker);
}

static void the_hash_is_xxh64(void **state)
{
	(void)state;
	assert_int_equal(ky_xxh64("", 0), UINT64_C(0xef46db3751d8e999));
	assert_int_equal(ky_xxh64("a", 1), UINT64_C(0xd24ec4f1a98c6e5b));
	assert_int_equal(ky_xxh64("abc", 3), UINT64_C(0x44bc2cf5ad770999));
	assert_int_equal(ky_xxh64("Nobody inspects the spammish repetition", 39),
			 UINT64_C(0xfbcea83c8a378bf1));
}

static void write_file(const char *folder, const char *name, const uint8_t *data, size_t bytes)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "wb");
	if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0)
		exit(1);
}

static int write_corpus(const char *folder)
{
	struct maker maker;
	libraries_absent = true;
	maker_open(&maker, 30);
	maker_rounds(&maker, 2, 6);
	maker_finish(&maker);
	write_file(folder, "stored", maker.file, maker.file_bytes);
	maker_close(&maker);
	libraries_absent = false;
	maker_open(&maker, 31);
	maker_rounds(&maker, 3, 6);
	maker_finish(&maker);
	write_file(folder, "small", maker.file, maker.file_bytes);
	write_file(folder, "cut", maker.file, maker.file_bytes - KY_KYMO_END_BYTES - 5);
	maker_close(&maker);
	maker_open(&maker, 32);
	maker_finish(&maker);
	write_file(folder, "empty", maker.file, maker.file_bytes);
	maker_close(&maker);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--corpus") == 0)
		return write_corpus(argv[2]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_libzstd_the_file_is_stored),
		cmocka_unit_test(a_compressed_file_without_libzstd_is_refused),
		cmocka_unit_test(every_event_comes_back),
		cmocka_unit_test(a_batch_is_full_at_its_limit),
		cmocka_unit_test(the_file_says_who_wrote_it),
		cmocka_unit_test(every_file_stands_on_its_own),
		cmocka_unit_test(after_an_error_nothing_is_written),
		cmocka_unit_test(clock_samples_may_come_late),
		cmocka_unit_test(the_index_is_right),
		cmocka_unit_test(a_part_is_read_by_its_time),
		cmocka_unit_test(a_cut_file_reads_up_to_the_cut),
		cmocka_unit_test(a_flipped_bit_costs_its_chunk_alone),
		cmocka_unit_test(missing_bytes_cost_their_chunk_alone),
		cmocka_unit_test(too_much_variety_is_stored_as_it_is),
		cmocka_unit_test(what_is_alike_stays_in_proportion),
		cmocka_unit_test(words_that_are_no_events_are_kept_apart),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(a_later_version_is_refused),
		cmocka_unit_test(the_hash_is_xxh64),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
