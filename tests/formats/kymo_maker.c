/* SPDX-License-Identifier: MIT */
#include "kymo_maker.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define TICKS_PER_US 2450u
#define HEAP_BYTES (1u << 20)

uint64_t maker_random(struct maker *m, uint64_t limit)
{
	m->random += 0x9e3779b97f4a7c15u; /* splitmix64 */
	uint64_t z = m->random;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (z ^ (z >> 31)) % limit;
}

static struct ky_text text(const char *data)
{
	return (struct ky_text){data, (uint32_t)strlen(data)};
}

/* kind, flags, types (the leading items first), arguments */
static const struct {
	uint8_t kind;
	uint8_t flags;
	uint64_t types;
	uint8_t items;
	uint8_t args;
	const char *category, *name;
} kinds[MAKER_SITES] = {
	{KYMO_KIND_BEGIN, KYMO_SITE_SCOPE, 0, 0, 0, "net", "poll"},
	{KYMO_KIND_BEGIN, KYMO_SITE_SCOPE, 0x621, 3, 3, "net", "recv"},
	{KYMO_KIND_INSTANT, 0, 0x654321, 6, 6, "all", "types"},
	{KYMO_KIND_COUNTER, 0, 0x3, 1, 1, "load", "ms"},
	{KYMO_KIND_COUNTER, 0, 0x1, 1, 1, "load", "queue"},
	{KYMO_KIND_ASYNC_BEGIN, KYMO_SITE_ID, 0x62, 2, 1, "task", "job"},
	{KYMO_KIND_ASYNC_END, KYMO_SITE_ID | KYMO_SITE_NAME, 0x26, 2, 0, "task", ""},
	{KYMO_KIND_FLOW_BEGIN, KYMO_SITE_ID, 0x2, 1, 0, "task", "hand over"},
	{KYMO_KIND_BEGIN, KYMO_SITE_NAME, 0x66666666u << 4 | 6, 9, 8, "text", ""},
	{KYMO_KIND_END, 0, 0x1, 1, 1, "text", ""},
	{KYMO_KIND_PRINT, 0, 0x361, 3, 3, "log", "%d of %s is %.2f"},
	{KYMO_KIND_INSTANT, KYMO_SITE_TIME | KYMO_SITE_TID, 0x112, 3, 1, "far", "away"},
};

static void make_sites(struct maker *m)
{
	static const char *const keys[] = {"a", "bytes", "who", "k3", "k4", "k5", "k6", "last"};
	m->view.header.heap_at = MAKER_FIRST_SITE * KY_HEAP_UNIT;
	m->view.header.heap_bytes = HEAP_BYTES;
	m->view.bytes = m->view.header.heap_at + HEAP_BYTES;
	m->view.base = calloc(1, m->view.bytes); /* no other trace point is there */
	m->sites.view = &m->view;
	m->sites.by_place = calloc(HEAP_BYTES / KY_HEAP_UNIT, sizeof(struct ky_site *));
	for (uint32_t i = 0; i < MAKER_SITES; i++) {
		struct ky_site *site = &m->site[i];
		*site = (struct ky_site){
			.index = i,
			.kind = kinds[i].kind,
			.flags = kinds[i].flags,
			.types = kinds[i].types,
			.items = kinds[i].items,
			.args = kinds[i].args,
			.line = 100 + i,
			.category = text(kinds[i].category),
			.name = text(kinds[i].name),
			.file = text("src/net/\xc3\xa4.c"),
			.function = text("run"),
		};
		for (uint32_t k = 0; k < KYMO_ARGS_MAX; k++)
			site->keys[k] = text(k < site->args ? keys[k] : "");
		m->sites.by_place[(size_t)7 * i] = site;
	}
}

static void make_threads(struct maker *m)
{
	static const char *const names[MAKER_RINGS] = {"main", "worker 1", "worker \"2\"", "",
						       "main"};
	for (uint32_t i = 0; i < MAKER_RINGS; i++) {
		const uint32_t index =
			i < MAKER_RINGS - 1 ? i : 0; /* the last ring is a handler's */
		m->thread[i] = (struct ky_thread){
			.index = index,
			.pid = MAKER_PID,
			.tid = MAKER_PID + (int32_t)index,
			.name = text(names[i]),
		};
	}
}

/* A writer that knows of nothing yet, and the threads. */
static void begin_file(struct maker *m)
{
	const struct ky_trace_info info = {
		.pid = MAKER_PID,
		.process = text("a process"),
		.command = text("/usr/bin/process"),
		.clock = m->clock.readings[m->clock.count - 1],
		.ticks_per_s = TICKS_PER_US * UINT64_C(1000000),
	};
	const int error = m->format->open(&m->writer, &m->out, &info);
	assert(error == 0);
	(void)error;
	for (uint32_t i = 0; i < MAKER_RINGS - 1; i++)
		m->format->thread(m->writer, &m->thread[i]);
}

void maker_open(struct maker *m, uint64_t seed)
{
	memset(m, 0, sizeof(*m));
	m->format = &ky_format_kymo;
	m->random = seed;
	m->ticks = MAKER_START_TICKS;
	make_sites(m);
	make_threads(m);
	ky_out_init(&m->out, 1u << 20);
	const struct ky_tick_reading first = {m->ticks, MAKER_START_NS, MAKER_START_NS - 1000,
					      MAKER_START_NS + 77};
	ky_clock_map_add(&m->clock, &first);
	m->ticks++;
	begin_file(m);
}

static void end_file(struct maker *m)
{
	m->format->close(m->writer);
	for (uint32_t i = 0; i < m->pieces_count; i++)
		free((void *)(uintptr_t)m->pieces[i].block.words);
	m->pieces_count = 0;
	m->lost = 0;
	free(m->file);
	m->file = NULL;
}

void maker_reopen(struct maker *m)
{
	end_file(m);
	m->file_at = m->out.used;
	begin_file(m);
}

void maker_close(struct maker *m)
{
	end_file(m);
	free(m->pieces);
	free(m->sites.by_place);
	free((void *)(uintptr_t)m->view.base);
	ky_clock_map_free(&m->clock);
	ky_out_free(&m->out);
}

/* A string's words; returns how many. */
static uint32_t put_string(struct maker *m, uint64_t *to)
{
	static const char *const usual[] = {"", "a", "accept", "hello world", "12345678"};
	char buffer[KYMO_STRING_MAX + 1];
	const uint64_t choice = maker_random(m, 20);
	uint32_t bytes = (uint32_t)maker_random(m, KYMO_STRING_MAX + 1);
	const char *from = buffer;
	if (choice == 0) {
		to[0] = KYMO_I_STRING_WORD(0, 0, 1);
		return 1;
	}
	for (uint32_t i = 0; i < bytes; i++)
		buffer[i] = (char)(1 + maker_random(m, 255));
	if (choice > 2) {
		from = usual[maker_random(m, 5)];
		bytes = (uint32_t)strlen(from);
	}
	to[0] = KYMO_I_STRING_WORD(bytes, choice == 2, 0);
	if (bytes)
		to[(bytes + 7) / 8] = 0;
	memcpy(to + 1, from, bytes);
	return 1 + (bytes + 7) / 8;
}

static uint64_t value_of(struct maker *m, uint32_t type)
{
	const double number = (double)maker_random(m, 100000) / 8;
	uint64_t bits;
	switch (type) {
	case KYMO_TYPE_DOUBLE:
		memcpy(&bits, &number, sizeof(bits));
		return bits;
	case KYMO_TYPE_BOOL:
		return maker_random(m, 2);
	case KYMO_TYPE_POINTER:
		return UINT64_C(0x7f1200000000) + 16 * maker_random(m, 4096);
	case KYMO_TYPE_INT:
		return (uint64_t)((int64_t)maker_random(m, 1000) - 500);
	default:
		return maker_random(m, 4) ? maker_random(m, 1000) : maker_random(m, UINT64_MAX);
	}
}

uint64_t maker_word(struct maker *m, uint32_t site_number, uint32_t length, bool end)
{
	m->ticks += 1 + maker_random(m, 3000);
	return (uint64_t)site_number << KY_WORD_SITE_SHIFT | KYMO_I_LENGTH(length) |
	       (end ? KYMO_I_END_BIT : 0) | (uint32_t)m->ticks;
}

uint32_t maker_event(struct maker *m, uint32_t site, uint64_t *to)
{
	uint32_t length = 0;
	uint64_t types = kinds[site].types;
	const bool end = (kinds[site].flags & KYMO_SITE_SCOPE) && maker_random(m, 2);
	for (uint32_t i = 0; !end && i < kinds[site].items; i++, types >>= 4) {
		if ((types & 15) == KYMO_TYPE_STRING)
			length += put_string(m, to + 1 + length);
		else
			to[1 + length++] = value_of(m, types & 15);
	}
	if (kinds[site].flags & KYMO_SITE_TID)
		to[2] = MAKER_PID + maker_random(m, 3);
	to[0] = maker_word(m, MAKER_FIRST_SITE + 7 * site, length, end);
	return 1 + length;
}

void maker_piece(struct maker *m, uint32_t ring, const uint64_t *words, uint32_t count,
		 uint64_t lost)
{
	uint64_t *copy = malloc((count + (size_t)1) * sizeof(*copy));
	memcpy(copy, words, count * sizeof(*copy));
	m->pieces = realloc(m->pieces, (m->pieces_count + (size_t)1) * sizeof(*m->pieces));
	struct maker_piece *piece = &m->pieces[m->pieces_count++];
	*piece = (struct maker_piece){.block = {
					      .ring = ring,
					      .tid = (uint32_t)m->thread[ring].tid,
					      .level = ring == MAKER_RINGS - 1,
					      .number = m->numbers[ring]++,
					      .from = (uint32_t)maker_random(m, 3),
					      .count = count,
					      .high = (uint32_t)(m->ticks >> 32),
					      .lost = lost,
					      .words = copy,
				      }};
	m->lost += lost;
	m->format->block(m->writer, &piece->block, &m->thread[ring], &m->sites);
}

/* A piece of so many events; the counter's high half is written out when it changes. */
static void random_piece(struct maker *m, uint32_t ring, uint32_t events)
{
	uint64_t words[KY_BLOCK_WORDS];
	uint32_t count = 0;
	const uint32_t high = (uint32_t)(m->ticks >> 32);
	uint32_t last_high = high;
	for (uint32_t i = 0; i < events && count + 300 < KY_BLOCK_WORDS; i++) {
		const uint32_t site = (uint32_t)maker_random(m, MAKER_SITES);
		const uint32_t length = maker_event(m, site, words + count + 1);
		const uint32_t now = (uint32_t)(m->ticks >> 32);
		if (now == last_high)
			memmove(words + count, words + count + 1, length * sizeof(words[0]));
		else
			words[count++] = (uint64_t)KY_CONTROL_HIGH << KY_WORD_SITE_SHIFT | now;
		last_high = now;
		count += length;
	}
	const uint64_t after = m->ticks;
	m->ticks = (uint64_t)high << 32; /* for the piece's own high half */
	maker_piece(m, ring, words, count, maker_random(m, 10) ? 0 : 1 + maker_random(m, 1000));
	m->ticks = after;
}

void maker_clock(struct maker *m)
{
	const struct ky_tick_reading *last = &m->clock.readings[m->clock.count - 1];
	m->ticks += 1 + maker_random(m, 100);
	const uint64_t ns = (m->ticks - MAKER_START_TICKS) * 1000 / TICKS_PER_US +
			    maker_random(m, 50) + MAKER_START_NS;
	const struct ky_tick_reading sample = {
		.ticks = m->ticks,
		.boottime_ns = ns > last->boottime_ns ? ns : last->boottime_ns + 1,
		.monotonic_ns = ns - 1000,
		.realtime_ns = ns + 77,
	};
	ky_clock_map_add(&m->clock, &sample);
	m->format->clock(m->writer, &sample);
}

/* Rings are read one after the other: each round's times begin again for every ring. */
void maker_rounds(struct maker *m, uint32_t rounds, uint32_t events)
{
	for (uint32_t round = 0; round < rounds; round++) {
		const uint64_t begin = m->ticks;
		uint64_t end = begin;
		for (uint32_t ring = 0; ring < MAKER_RINGS; ring++) {
			m->ticks = begin;
			for (uint32_t left = events; left; left -= left < 40 ? left : 40)
				random_piece(m, ring, left < 40 ? left : 40);
			end = m->ticks > end ? m->ticks : end;
		}
		m->ticks = end;
		maker_clock(m);
		if (maker_random(m, 3) == 0)
			m->format->flush(m->writer);
	}
}

void maker_finish(struct maker *m)
{
	m->format->finish(m->writer, m->lost + 3);
	assert(m->out.error == 0);
	m->file_bytes = m->out.used - m->file_at;
	m->file = malloc(m->file_bytes);
	memcpy(m->file, m->out.data + m->file_at, m->file_bytes);
}
