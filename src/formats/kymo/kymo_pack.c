/* SPDX-License-Identifier: MIT */
/*
 * kymo_pack.c: from words to columns; kymo_pack.h says to which.
 *
 * One pass over the words numbers their shapes, takes the differences of the times and puts every
 * item with its column's number into a list; a counting sort brings the items of a column together.
 * The encoding of a column is chosen by counting bytes. Everything works in memory that was
 * allocated once, with room for the worst batch; most of it is never touched.
 *
 *   words ──▶ shape_of[]     ─▶ SHAPES
 *         ──▶ difference[]   ─▶ frequent? ─▶ TIMES, TIMES_REST
 *         ──▶ items[] with column_of[] ─▶ sorted[] ─▶ ITEMS
 *         ──▶ strings[]      ─▶ STRINGS
 */
#include "formats/kymo/kymo_pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/layout.h"
#include "formats/proto.h"

enum {
	WORDS_MAX = KY_KYMO_BATCH_BYTES / 8,
	PIECES_MAX = KY_KYMO_BATCH_BYTES / sizeof(struct ky_kymo_piece),
	SHAPES_MAX = KY_KYMO_SHAPES_MAX,
	SLOTS_BITS = 13, /* of the tables of shapes and sites: half full at most */
	SLOTS = 1 << SLOTS_BITS,
	COLUMNS_MAX = SHAPES_MAX * KY_KYMO_SITE_COLUMNS,
	ITEMS_MAX = 2 * WORDS_MAX, /* a word that is no string after all makes two values */
	STRING_SLOTS_BITS = 14,
	STRING_SLOTS = 1 << STRING_SLOTS_BITS,
	STRING_PROBES = 16,
	FREQUENT_BELOW = 4096, /* only smaller differences get a symbol */
	COUNTS_MAX = 1024,
	COLUMN_HEAD_MAX = 16,
};

/* Room for the worst of each section. */
enum {
	TABLES_BYTES = 10 * SHAPES_MAX + 10 * SHAPES_MAX + 64 * PIECES_MAX + 32,
	SHAPES_BYTES = 2 * WORDS_MAX,
	TIMES_BYTES = WORDS_MAX,
	REST_BYTES = 3 * 256 + 5 * WORDS_MAX,
	ITEMS_BYTES = 16 + (COLUMN_HEAD_MAX + 10) * ITEMS_MAX,
	STRINGS_BYTES = 16 + 10 * WORDS_MAX,
	ALL_BYTES = TABLES_BYTES + SHAPES_BYTES + TIMES_BYTES + REST_BYTES + ITEMS_BYTES +
		    STRINGS_BYTES,
};

static const uint32_t section_room[KY_KYMO_SECTIONS] = {
	[KY_KYMO_TABLES] = TABLES_BYTES, [KY_KYMO_SHAPES] = SHAPES_BYTES,
	[KY_KYMO_TIMES] = TIMES_BYTES,   [KY_KYMO_TIMES_REST] = REST_BYTES,
	[KY_KYMO_ITEMS] = ITEMS_BYTES,   [KY_KYMO_STRINGS] = STRINGS_BYTES,
};

struct ky_kymo_pack {
	const struct ky_kymo_masks *masks;
	uint32_t spread; /* odd, of the hashes */
	uint8_t *begin[KY_KYMO_SECTIONS];
	uint8_t *end[KY_KYMO_SECTIONS];
	uint32_t shapes_count, sites_count, events_count, items_count, strings_count;

	uint16_t shape_slots[SLOTS]; /* index + 1 */
	uint16_t site_slots[SLOTS];
	uint16_t string_slots[STRING_SLOTS];
	uint32_t shapes[SHAPES_MAX]; /* the upper halves of header words */
	uint16_t shape_site[SHAPES_MAX];
	uint32_t sites[SHAPES_MAX];
	uint16_t site_mask[SHAPES_MAX];
	uint32_t column_count[COLUMNS_MAX];
	uint32_t column_at[COLUMNS_MAX];
	uint32_t counts[FREQUENT_BELOW];
	uint8_t symbols[FREQUENT_BELOW];

	uint16_t shape_of[WORDS_MAX];
	uint32_t difference[WORDS_MAX];
	uint64_t items[ITEMS_MAX];
	uint16_t column_of[ITEMS_MAX];
	uint64_t sorted[ITEMS_MAX];
	const uint64_t *strings[WORDS_MAX];
	uint8_t bytes[ALL_BYTES];
};
_Static_assert(COLUMNS_MAX - 1 <= UINT16_MAX, "a column's number fits");

int ky_kymo_pack_open(struct ky_kymo_pack **pack)
{
	*pack = malloc(sizeof(**pack));
	if (!*pack)
		return -ENOMEM;
	/* Words may be a foreign process's choice, who does not know where this is in memory. */
	(*pack)->spread = (uint32_t)((uintptr_t)*pack >> 12) * 2654435761u | 1;
	uint8_t *at = (*pack)->bytes;
	for (uint32_t i = 0; i < KY_KYMO_SECTIONS; i++) {
		(*pack)->begin[i] = at;
		(*pack)->end[i] = at;
		at += section_room[i];
	}
	return 0;
}

void ky_kymo_pack_close(struct ky_kymo_pack **pack)
{
	free(*pack);
	*pack = NULL;
}

const uint8_t *ky_kymo_packed(const struct ky_kymo_pack *pack, enum ky_kymo_sections section,
			      size_t *bytes)
{
	*bytes = (size_t)(pack->end[section] - pack->begin[section]);
	return pack->begin[section];
}

static inline uint64_t zigzag(uint64_t value)
{
	return value << 1 ^ (0 - (value >> 63));
}

static inline uint32_t slot_of(const struct ky_kymo_pack *p, uint32_t value)
{
	return value * p->spread >> (32 - SLOTS_BITS);
}

static uint16_t find_site(struct ky_kymo_pack *p, uint32_t site)
{
	uint32_t slot = slot_of(p, site);
	for (; p->site_slots[slot]; slot = (slot + 1) % SLOTS)
		if (p->sites[p->site_slots[slot] - 1] == site)
			return (uint16_t)(p->site_slots[slot] - 1);
	const uint16_t index = (uint16_t)p->sites_count++;
	p->site_slots[slot] = (uint16_t)(index + 1);
	p->sites[index] = site;
	p->site_mask[index] = ky_kymo_mask(p->masks, site) & (uint16_t)~KY_KYMO_MASK_KNOWN;
	memset(&p->column_count[index * KY_KYMO_SITE_COLUMNS], 0,
	       KY_KYMO_SITE_COLUMNS * sizeof(p->column_count[0]));
	return index;
}

/* Return the shape's index; SHAPES_MAX when there are too many. */
static inline uint32_t find_shape(struct ky_kymo_pack *p, uint32_t shape)
{
	uint32_t slot = slot_of(p, shape);
	for (; p->shape_slots[slot]; slot = (slot + 1) % SLOTS)
		if (p->shapes[p->shape_slots[slot] - 1] == shape)
			return p->shape_slots[slot] - 1u;
	const uint32_t index = p->shapes_count;
	if (index == SHAPES_MAX)
		return SHAPES_MAX;
	p->shapes_count++;
	p->shape_slots[slot] = (uint16_t)(index + 1);
	p->shapes[index] = shape;
	p->shape_site[index] = find_site(p, shape >> (KY_WORD_SITE_SHIFT - 32));
	return index;
}

static inline void add_item(struct ky_kymo_pack *p, uint32_t column, uint64_t value)
{
	p->items[p->items_count] = value;
	p->column_of[p->items_count++] = (uint16_t)column;
	p->column_count[column]++;
}

/* Report whether a string's bytes and nothing else follow its first word. */
static bool is_string(const uint64_t *word, uint32_t words_left)
{
	const uint32_t bytes = (uint32_t)*word;
	const uint32_t words = (bytes + 7) / 8;
	return bytes <= KYMO_STRING_MAX && words <= words_left &&
	       (bytes % 8 == 0 || word[words] >> 8 * (bytes % 8) == 0);
}

/* Its number. Equal strings have the same one, but for a few when there are very many. */
static uint32_t find_string(struct ky_kymo_pack *p, const uint64_t *words)
{
	const uint32_t count = ((uint32_t)words[0] + 7) / 8;
	uint64_t hash = 0;
	for (uint32_t i = 0; i <= count; i++) {
		hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	uint32_t slot = (uint32_t)(hash >> (64 - STRING_SLOTS_BITS));
	uint32_t probes = 0;
	for (; p->string_slots[slot] && probes < STRING_PROBES; probes++) {
		const uint64_t *other = p->strings[p->string_slots[slot] - 1];
		if (other[0] == words[0] && memcmp(other + 1, words + 1, 8u * count) == 0)
			return p->string_slots[slot] - 1u;
		slot = (slot + 1) % STRING_SLOTS;
	}
	const uint32_t index = p->strings_count++;
	if (!p->string_slots[slot] && index < UINT16_MAX)
		p->string_slots[slot] = (uint16_t)(index + 1);
	p->strings[index] = words;
	return index;
}

static inline void add_items(struct ky_kymo_pack *p, uint32_t site, const uint64_t *at,
			     uint32_t count)
{
	const uint32_t mask = p->site_mask[site];
	const uint64_t *end = at + count;
	uint32_t column = site * KY_KYMO_SITE_COLUMNS;
	for (uint32_t position = 0; at < end; at++) {
		uint64_t value = *at;
		if (mask >> position & 1) {
			if (is_string(at, (uint32_t)(end - at - 1))) {
				const uint32_t words = ((uint32_t)value + 7) / 8;
				value = find_string(p, at) + 1u;
				at += words;
			} else {
				add_item(p, column, 0);
			}
		}
		add_item(p, column, value);
		if (position < KY_KYMO_SITE_COLUMNS - 1) {
			position++;
			column++;
		}
	}
}

static bool add_words(struct ky_kymo_pack *p, const struct ky_kymo_piece *piece,
		      const uint64_t *words)
{
	uint32_t low = (uint32_t)piece->ticks;
	uint32_t event = p->events_count;
	for (uint32_t at = 0; at < piece->words; event++) {
		const uint64_t word = words[at];
		const uint32_t length = KY_WORD_LENGTH(word);
		const uint32_t shape = find_shape(p, (uint32_t)(word >> 32));
		if (shape == SHAPES_MAX)
			return false;
		p->shape_of[event] = (uint16_t)shape;
		p->difference[event] = KY_WORD_LOW(word) - low;
		low = KY_WORD_LOW(word);
		if (length)
			add_items(p, p->shape_site[shape], words + at + 1, length);
		at += 1 + length;
	}
	p->events_count = event;
	return true;
}

static uint8_t *put_piece(uint8_t *to, const struct ky_kymo_piece *piece,
			  const struct ky_kymo_piece *before)
{
	to = ky_proto_varint_at(to, piece->ring);
	to = ky_proto_varint_at(to, zigzag((uint64_t)piece->tid - before->tid));
	to = ky_proto_varint_at(to, piece->level);
	to = ky_proto_varint_at(to, zigzag(piece->number - before->number));
	to = ky_proto_varint_at(to, piece->from);
	to = ky_proto_varint_at(to, piece->words);
	to = ky_proto_varint_at(to, zigzag(piece->ticks - before->ticks));
	return ky_proto_varint_at(to, piece->lost);
}

static void put_tables(struct ky_kymo_pack *p, const uint8_t *raw, size_t bytes)
{
	uint8_t *to = ky_proto_varint_at(p->begin[KY_KYMO_TABLES], p->sites_count);
	uint64_t last = 0;
	for (uint32_t i = 0; i < p->sites_count; i++) {
		to = ky_proto_varint_at(to, zigzag(p->sites[i] - last));
		to = ky_proto_varint_at(to, p->site_mask[i]);
		last = p->sites[i];
	}
	to = ky_proto_varint_at(to, p->shapes_count);
	for (uint32_t i = 0; i < p->shapes_count; i++) {
		to = ky_proto_varint_at(to, p->shape_site[i]);
		to = ky_proto_varint_at(to, p->shapes[i] & 0x3ff);
	}
	struct ky_kymo_piece piece, before = {0};
	for (size_t at = 0; at < bytes; at += sizeof(piece) + 8u * piece.words) {
		memcpy(&piece, raw + at, sizeof(piece));
		to = put_piece(to, &piece, &before);
		before = piece;
	}
	p->end[KY_KYMO_TABLES] = to;
}

static void put_shapes(struct ky_kymo_pack *p)
{
	uint8_t *to = p->begin[KY_KYMO_SHAPES];
	for (uint32_t i = 0; i < p->events_count; i++)
		to = ky_proto_varint_at(to, p->shape_of[i]);
	p->end[KY_KYMO_SHAPES] = to;
}

/* How often a difference must occur so that at most KY_KYMO_TIME_ESCAPE occur as often. */
static uint32_t frequent_from(const struct ky_kymo_pack *p)
{
	uint32_t how_many[COUNTS_MAX] = {0}; /* differences that occur so often */
	for (uint32_t i = 0; i < FREQUENT_BELOW; i++)
		how_many[p->counts[i] < COUNTS_MAX - 1 ? p->counts[i] : COUNTS_MAX - 1]++;
	uint32_t from = COUNTS_MAX - 1, sum = how_many[from];
	while (from > 2 && sum + how_many[from - 1] <= KY_KYMO_TIME_ESCAPE)
		sum += how_many[--from];
	return from;
}

/* Give the frequent differences their symbols and writes the table of them. */
static uint8_t *put_symbols(struct ky_kymo_pack *p, uint8_t *to)
{
	memset(p->counts, 0, sizeof(p->counts));
	for (uint32_t i = 0; i < p->events_count; i++)
		if (p->difference[i] < FREQUENT_BELOW)
			p->counts[p->difference[i]]++;
	const uint32_t from = frequent_from(p);
	uint32_t values[KY_KYMO_TIME_ESCAPE], count = 0, last = 0;
	for (uint32_t i = 0; i < FREQUENT_BELOW; i++) {
		p->symbols[i] = KY_KYMO_TIME_ESCAPE;
		if (p->counts[i] >= from && count < KY_KYMO_TIME_ESCAPE) {
			p->symbols[i] = (uint8_t)count;
			values[count++] = i;
		}
	}
	to = ky_proto_varint_at(to, count);
	for (uint32_t i = 0; i < count; i++) {
		to = ky_proto_varint_at(to, values[i] - last);
		last = values[i];
	}
	return to;
}

static void put_times(struct ky_kymo_pack *p)
{
	uint8_t *to = p->begin[KY_KYMO_TIMES];
	uint8_t *rest = put_symbols(p, p->begin[KY_KYMO_TIMES_REST]);
	for (uint32_t i = 0; i < p->events_count; i++) {
		const uint32_t difference = p->difference[i];
		const uint8_t symbol =
			difference < FREQUENT_BELOW ? p->symbols[difference] : KY_KYMO_TIME_ESCAPE;
		*to++ = symbol;
		if (symbol == KY_KYMO_TIME_ESCAPE)
			rest = ky_proto_varint_at(rest, difference);
	}
	p->end[KY_KYMO_TIMES] = to;
	p->end[KY_KYMO_TIMES_REST] = rest;
}

static void sort_items(struct ky_kymo_pack *p)
{
	uint32_t at = 0;
	for (uint32_t i = 0; i < p->sites_count * KY_KYMO_SITE_COLUMNS; i++) {
		p->column_at[i] = at;
		at += p->column_count[i];
	}
	for (uint32_t i = 0; i < p->items_count; i++)
		p->sorted[p->column_at[p->column_of[i]]++] = p->items[i];
}

static enum ky_kymo_mode choose_mode(const uint64_t *values, uint32_t count, bool strings,
				     size_t *bytes)
{
	size_t plain = 0, difference = 0;
	uint64_t last = 0;
	for (uint32_t i = 0; i < count; i++) {
		plain += ky_proto_varint_bytes(values[i]);
		difference += ky_proto_varint_bytes(zigzag(values[i] - last));
		last = values[i];
	}
	*bytes = strings || plain <= difference ? plain : difference;
	if (!strings && *bytes > 8u * (size_t)count) {
		*bytes = 8u * (size_t)count;
		return KY_KYMO_PLANES;
	}
	return *bytes == plain ? KY_KYMO_PLAIN : KY_KYMO_DIFFERENCE;
}

static uint8_t *put_values(uint8_t *to, const uint64_t *values, uint32_t count,
			   enum ky_kymo_mode mode)
{
	uint64_t last = 0;
	switch (mode) {
	case KY_KYMO_PLAIN:
		for (uint32_t i = 0; i < count; i++)
			to = ky_proto_varint_at(to, values[i]);
		break;
	case KY_KYMO_DIFFERENCE:
		for (uint32_t i = 0; i < count; i++) {
			to = ky_proto_varint_at(to, zigzag(values[i] - last));
			last = values[i];
		}
		break;
	case KY_KYMO_PLANES:
		for (uint32_t plane = 0; plane < 8; plane++)
			for (uint32_t i = 0; i < count; i++)
				*to++ = (uint8_t)(values[i] >> 8 * plane);
		break;
	}
	return to;
}

static void put_items(struct ky_kymo_pack *p)
{
	const uint32_t columns = p->sites_count * KY_KYMO_SITE_COLUMNS;
	uint32_t used = 0, last = 0;
	sort_items(p);
	for (uint32_t i = 0; i < columns; i++)
		used += p->column_count[i] != 0;
	uint8_t *to = ky_proto_varint_at(p->begin[KY_KYMO_ITEMS], used);
	for (uint32_t i = 0; i < columns; i++) {
		const uint32_t count = p->column_count[i];
		if (count == 0)
			continue;
		const uint64_t *values = &p->sorted[p->column_at[i] - count];
		const uint32_t mask = p->site_mask[i / KY_KYMO_SITE_COLUMNS];
		const bool strings = mask >> i % KY_KYMO_SITE_COLUMNS & 1;
		size_t bytes;
		const enum ky_kymo_mode mode = choose_mode(values, count, strings, &bytes);
		to = ky_proto_varint_at(to, i - last);
		to = ky_proto_varint_at(to, count);
		*to++ = (uint8_t)mode;
		to = ky_proto_varint_at(to, bytes);
		to = put_values(to, values, count, mode);
		last = i;
	}
	p->end[KY_KYMO_ITEMS] = to;
}

static void put_strings(struct ky_kymo_pack *p)
{
	uint8_t *to = ky_proto_varint_at(p->begin[KY_KYMO_STRINGS], p->strings_count);
	for (uint32_t i = 0; i < p->strings_count; i++) {
		const uint32_t bytes = (uint32_t)p->strings[i][0];
		to = ky_proto_varint_at(to, p->strings[i][0]);
		memcpy(to, p->strings[i] + 1, bytes);
		to += bytes;
	}
	p->end[KY_KYMO_STRINGS] = to;
}

static void clear(struct ky_kymo_pack *p)
{
	p->shapes_count = 0;
	p->sites_count = 0;
	p->events_count = 0;
	p->items_count = 0;
	p->strings_count = 0;
	memset(p->shape_slots, 0, sizeof(p->shape_slots));
	memset(p->site_slots, 0, sizeof(p->site_slots));
	memset(p->string_slots, 0, sizeof(p->string_slots));
}

bool ky_kymo_pack(struct ky_kymo_pack *p, const uint8_t *raw, size_t bytes,
		  const struct ky_kymo_masks *masks)
{
	struct ky_kymo_piece piece;
	size_t packed = 0;
	clear(p);
	p->masks = masks;
	for (size_t at = 0; at < bytes; at += sizeof(piece) + 8u * piece.words) {
		memcpy(&piece, raw + at, sizeof(piece));
		if (!add_words(p, &piece, (const void *)(raw + at + sizeof(piece))))
			return false;
	}
	put_tables(p, raw, bytes);
	put_shapes(p);
	put_times(p);
	put_items(p);
	put_strings(p);
	for (uint32_t i = 0; i < KY_KYMO_SECTIONS; i++)
		packed += (size_t)(p->end[i] - p->begin[i]);
	return packed < bytes;
}
