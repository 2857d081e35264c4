/* SPDX-License-Identifier: MIT */
/*
 * kymo_unpack.c: from columns to words; the reverse of kymo_pack.c.
 *
 *   sections ─ zstd ─▶ TABLES ─ a piece ─▶ SHAPES, TIMES ─ a word ─▶ ITEMS, STRINGS ─ its items
 *
 * Every column is read from its beginning to its end as the words need it. A column that ends too
 * early reads as zeros and is marked as bad, which is looked at when all is done: the inner loops
 * are bounded by the words there is room for, and have few ways out.
 *
 * Invariant: words are written only where the piece's word count, checked against raw_bytes, says
 * there is room.
 */
#include "base/array.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/layout.h"
#include "formats/kymo/kymo_pack.h"

#define COLUMNS_MAX (KY_KYMO_SHAPES_MAX * KY_KYMO_SITE_COLUMNS)

struct section_bytes {
	const uint8_t *at;
	const uint8_t *end;
	bool bad; /* ended too early, or held what it cannot hold */
};

struct unpack_column {
	struct section_bytes bytes;
	enum ky_kymo_mode mode;
	uint32_t count, index; /* of values: all, read */
	uint64_t last;
};

struct string {
	uint64_t head; /* the word before it */
	const uint8_t *data;
};

struct ky_kymo_unpack {
	struct ky_zstd *zstd;
	struct section_bytes sections[KY_KYMO_SECTIONS];
	uint8_t *scratch; /* the sections that were compressed */
	size_t scratch_room;
	uint32_t sites_count, shapes_count, columns_count, strings_count, times_count;
	uint32_t sites[KY_KYMO_SHAPES_MAX];
	uint16_t site_mask[KY_KYMO_SHAPES_MAX];
	uint16_t shape_site[KY_KYMO_SHAPES_MAX];
	uint32_t shapes[KY_KYMO_SHAPES_MAX]; /* the upper halves of header words */
	uint32_t times[KY_KYMO_TIME_ESCAPE];
	uint32_t column_of[COLUMNS_MAX]; /* index in columns + 1, or 0 */
	struct unpack_column *columns;
	uint32_t columns_room;
	struct string *strings;
	uint32_t strings_room;
	struct section_bytes nothing; /* what a missing column reads from */
};

int ky_kymo_unpack_open(struct ky_kymo_unpack **unpack, struct ky_zstd *zstd)
{
	*unpack = calloc(1, sizeof(**unpack));
	if (!*unpack)
		return -ENOMEM;
	(*unpack)->zstd = zstd;
	return 0;
}

void ky_kymo_unpack_close(struct ky_kymo_unpack **unpack)
{
	if (*unpack) {
		KY_ARRAY_FREE((*unpack)->scratch, (*unpack)->scratch_room);
		KY_ARRAY_FREE((*unpack)->columns, (*unpack)->columns_room);
		KY_ARRAY_FREE((*unpack)->strings, (*unpack)->strings_room);
		free(*unpack);
	}
	*unpack = NULL;
}

static uint64_t take_long(struct section_bytes *b)
{
	uint64_t value = 0;
	for (uint32_t shift = 0; shift < 70 && b->at < b->end; shift += 7) {
		const uint8_t byte = *b->at++;
		value |= (uint64_t)(byte & 0x7f) << (shift < 64 ? shift : 63);
		if (byte < 0x80)
			return value;
	}
	b->bad = true;
	return 0;
}

static inline uint64_t take(struct section_bytes *b)
{
	if (b->at < b->end && *b->at < 0x80)
		return *b->at++;
	return take_long(b);
}

static inline uint64_t unzigzag(uint64_t value)
{
	return value >> 1 ^ (0 - (value & 1));
}

/* Take a number of at most max; else set bad and return 0. */
static uint32_t take_count(struct section_bytes *b, uint64_t max)
{
	const uint64_t value = take(b);
	if (value <= max)
		return (uint32_t)value;
	b->bad = true;
	return 0;
}

int ky_kymo_data_head(const uint8_t *body, size_t bytes, struct ky_kymo_data *data,
		      const char **what)
{
	*what = "a DATA chunk's head does not fit its body";
	if (bytes < sizeof(*data))
		return -EBADMSG;
	memcpy(data, body, sizeof(*data));
	if (data->size < sizeof(*data) || data->size > bytes)
		return -EBADMSG;
	*what = "a DATA chunk claims more than its size allows";
	if (data->raw_bytes > KY_KYMO_RAW_MAX || data->raw_bytes / KY_KYMO_RATIO_MAX > bytes ||
	    data->pieces > data->raw_bytes / sizeof(struct ky_kymo_piece))
		return -EBADMSG;
	*what = "a DATA chunk is of a form that is not known";
	if (data->form == KY_KYMO_RAW
		    ? data->sections != 1
		    : data->form != KY_KYMO_PACKED || data->sections != KY_KYMO_SECTIONS)
		return -EBADMSG;
	return 0;
}

/* Decompress one section to scratch, or lets it be where it is. */
static int open_section(struct ky_kymo_unpack *u, const uint8_t *from,
			const struct ky_kymo_section *section, uint8_t *scratch,
			struct section_bytes *opened)
{
	*opened = (struct section_bytes){from, from + section->stored_bytes, false};
	if (section->stored_bytes == section->bytes)
		return 0;
	if (!u->zstd)
		return -ENOENT;
	const int64_t bytes =
		ky_zstd_decompress(u->zstd, scratch, section->bytes, from, section->stored_bytes);
	if (bytes != section->bytes)
		return bytes == -ENOMEM ? -ENOMEM : -EBADMSG;
	*opened = (struct section_bytes){scratch, scratch + section->bytes, false};
	return 0;
}

static int open_sections(struct ky_kymo_unpack *u, const uint8_t *body, size_t bytes,
			 const struct ky_kymo_data *data, uint64_t *at)
{
	struct ky_kymo_section sections[KY_KYMO_SECTIONS];
	const size_t table_bytes = data->sections * sizeof(sections[0]);
	uint64_t sum = 0, stored_sum = 0;
	*at = data->size;
	if (bytes - data->size < table_bytes)
		return -EBADMSG;
	memcpy(sections, body + data->size, table_bytes);
	for (uint32_t i = 0; i < data->sections; i++) {
		sum += sections[i].bytes;
		stored_sum += sections[i].stored_bytes;
		if (sections[i].stored_bytes > sections[i].bytes)
			return -EBADMSG;
	}
	/* The writer packs only what becomes smaller by it. */
	if (sum > data->raw_bytes || stored_sum > bytes - data->size - table_bytes)
		return -EBADMSG;
	if (!KY_ARRAY_GROW(u->scratch, u->scratch_room, sum + 1))
		return -ENOMEM;
	uint8_t *scratch = u->scratch;
	*at += table_bytes;
	for (uint32_t i = 0; i < data->sections; i++) {
		const int error =
			open_section(u, body + *at, &sections[i], scratch, &u->sections[i]);
		if (error)
			return error;
		scratch += sections[i].bytes;
		*at += sections[i].stored_bytes;
	}
	return 0;
}

static bool read_tables(struct ky_kymo_unpack *u)
{
	struct section_bytes *b = &u->sections[KY_KYMO_TABLES];
	uint64_t site = 0;
	u->sites_count = take_count(b, KY_KYMO_SHAPES_MAX);
	for (uint32_t i = 0; i < u->sites_count && !b->bad; i++) {
		site += unzigzag(take(b));
		b->bad |= site >= KY_KYMO_SITES;
		u->sites[i] = (uint32_t)site;
		u->site_mask[i] = (uint16_t)take_count(b, (1u << KYMO_I_ITEMS_MAX) - 1);
	}
	u->shapes_count = take_count(b, KY_KYMO_SHAPES_MAX);
	for (uint32_t i = 0; i < u->shapes_count && !b->bad; i++) {
		const uint32_t index = take_count(b, KY_KYMO_SHAPES_MAX);
		b->bad |= index >= u->sites_count;
		if (b->bad)
			break;
		u->shape_site[i] = (uint16_t)index;
		u->shapes[i] = u->sites[index] << (KY_WORD_SITE_SHIFT - 32) | take_count(b, 0x3ff);
	}
	return !b->bad;
}

static bool read_times(struct ky_kymo_unpack *u)
{
	struct section_bytes *b = &u->sections[KY_KYMO_TIMES_REST];
	uint64_t value = 0;
	u->times_count = take_count(b, KY_KYMO_TIME_ESCAPE);
	for (uint32_t i = 0; i < u->times_count; i++) {
		value += take(b);
		u->times[i] = (uint32_t)value;
	}
	return !b->bad;
}

static bool read_column(struct section_bytes *b, struct unpack_column *column)
{
	const uint64_t count = take(b);
	const uint64_t mode = b->at < b->end ? *b->at++ : UINT64_MAX;
	const uint64_t size = take(b);
	if (b->bad || mode > KY_KYMO_PLANES || size > (uint64_t)(b->end - b->at) || count > size ||
	    (mode == KY_KYMO_PLANES && size != 8 * count))
		return false;
	*column = (struct unpack_column){
		.bytes = {b->at, b->at + size, false},
		.mode = (enum ky_kymo_mode)mode,
		.count = (uint32_t)count,
	};
	b->at += size;
	return true;
}

static int read_columns(struct ky_kymo_unpack *u)
{
	struct section_bytes *b = &u->sections[KY_KYMO_ITEMS];
	const uint32_t numbers = u->sites_count * KY_KYMO_SITE_COLUMNS;
	const uint32_t count = take_count(b, numbers);
	/* Each takes four bytes at least, so the claim is checked against what there is. */
	if (b->bad || count > (uint64_t)(b->end - b->at) / 4)
		return -EBADMSG;
	if (!KY_ARRAY_GROW(u->columns, u->columns_room, count))
		return -ENOMEM;
	u->columns_count = count;
	memset(u->column_of, 0, numbers * sizeof(u->column_of[0]));
	uint64_t number = 0;
	for (uint32_t i = 0; i < count; i++) {
		number += take_count(b, numbers);
		if (number >= numbers || !read_column(b, &u->columns[i]))
			return -EBADMSG;
		u->column_of[number] = i + 1;
	}
	return 0;
}

static int read_strings(struct ky_kymo_unpack *u, uint32_t raw_bytes)
{
	struct section_bytes *b = &u->sections[KY_KYMO_STRINGS];
	const uint32_t count = take_count(b, raw_bytes / 8); /* each is in a word at least */
	if (!KY_ARRAY_GROW(u->strings, u->strings_room, count))
		return -ENOMEM;
	u->strings_count = count;
	for (uint32_t i = 0; i < count && !b->bad; i++) {
		u->strings[i].head = take(b);
		const uint32_t bytes = (uint32_t)u->strings[i].head;
		if (bytes > KYMO_STRING_MAX || bytes > (uint64_t)(b->end - b->at))
			return -EBADMSG;
		u->strings[i].data = b->at;
		b->at += bytes;
	}
	return b->bad ? -EBADMSG : 0;
}

static uint64_t take_plane(struct unpack_column *c)
{
	uint64_t value = 0;
	if (c->index >= c->count) {
		c->bytes.bad = true;
		return 0;
	}
	for (uint32_t plane = 0; plane < 8; plane++)
		value |= (uint64_t)c->bytes.at[(size_t)plane * c->count + c->index] << 8 * plane;
	c->index++;
	return value;
}

static inline uint64_t take_value(struct ky_kymo_unpack *u, uint32_t number)
{
	const uint32_t index = u->column_of[number];
	if (!index) {
		u->nothing.bad = true;
		return 0;
	}
	struct unpack_column *c = &u->columns[index - 1];
	if (c->mode == KY_KYMO_PLAIN)
		return take(&c->bytes);
	if (c->mode == KY_KYMO_PLANES)
		return take_plane(c);
	c->last += unzigzag(take(&c->bytes));
	return c->last;
}

/* Write the string's words; return how many, 0 when they do not fit. */
static uint32_t put_string(struct ky_kymo_unpack *u, uint64_t value, uint64_t *to, uint32_t room)
{
	if (value > u->strings_count)
		return 0;
	const struct string *string = &u->strings[value - 1];
	const uint32_t bytes = (uint32_t)string->head;
	const uint32_t words = 1 + (bytes + 7) / 8;
	if (words > room)
		return 0;
	to[words - 1] = 0;
	to[0] = string->head;
	memcpy(to + 1, string->data, bytes);
	return words;
}

static bool put_items(struct ky_kymo_unpack *u, uint32_t site, uint64_t *to, uint32_t length)
{
	const uint32_t mask = u->site_mask[site];
	uint32_t number = site * KY_KYMO_SITE_COLUMNS;
	for (uint32_t at = 0, position = 0; at < length;) {
		uint64_t value = take_value(u, number);
		uint32_t words = 1;
		if (!(mask >> position & 1))
			to[at] = value;
		else if (value == 0)
			to[at] = take_value(u, number);
		else
			words = put_string(u, value, to + at, length - at);
		if (words == 0)
			return false;
		at += words;
		number += position < KY_KYMO_SITE_COLUMNS - 1;
		position += position < KY_KYMO_SITE_COLUMNS - 1;
	}
	return true;
}

static inline uint32_t take_time(struct ky_kymo_unpack *u)
{
	struct section_bytes *b = &u->sections[KY_KYMO_TIMES];
	if (b->at == b->end) {
		b->bad = true;
		return 0;
	}
	const uint8_t symbol = *b->at++;
	if (symbol < u->times_count)
		return u->times[symbol];
	b->bad |= symbol != KY_KYMO_TIME_ESCAPE;
	return (uint32_t)take(&u->sections[KY_KYMO_TIMES_REST]);
}

static bool put_words(struct ky_kymo_unpack *u, const struct ky_kymo_piece *piece, uint64_t *to)
{
	uint32_t low = (uint32_t)piece->ticks;
	for (uint32_t at = 0; at < piece->words;) {
		const uint64_t shape = take(&u->sections[KY_KYMO_SHAPES]);
		if (shape >= u->shapes_count)
			return false;
		const uint64_t upper = (uint64_t)u->shapes[shape] << 32;
		const uint32_t length = KY_WORD_LENGTH(upper);
		if (length >= piece->words - at)
			return false;
		low += take_time(u);
		to[at] = upper | low;
		if (length && !put_items(u, u->shape_site[shape], to + at + 1, length))
			return false;
		at += 1 + length;
	}
	return true;
}

static void read_piece(struct section_bytes *b, struct ky_kymo_piece *piece)
{
	piece->head_bytes = sizeof(*piece);
	piece->ring = take_count(b, UINT32_MAX);
	piece->tid += (uint32_t)unzigzag(take(b));
	piece->level = take_count(b, UINT32_MAX);
	piece->number += unzigzag(take(b));
	piece->from = take_count(b, UINT32_MAX);
	piece->words = take_count(b, KY_KYMO_RAW_MAX / 8);
	piece->ticks += unzigzag(take(b));
	piece->lost = take(b);
}

/* Report whether any column was too short. */
static bool is_bad(const struct ky_kymo_unpack *u)
{
	bool bad = u->nothing.bad;
	for (uint32_t i = 0; i < KY_KYMO_SECTIONS; i++)
		bad |= u->sections[i].bad;
	for (uint32_t i = 0; i < u->columns_count; i++)
		bad |= u->columns[i].bytes.bad;
	return bad;
}

static int unpack_pieces(struct ky_kymo_unpack *u, const struct ky_kymo_data *data, uint8_t *raw)
{
	struct ky_kymo_piece piece = {0};
	uint32_t at = 0;
	for (uint32_t i = 0; i < data->pieces; i++) {
		if (data->raw_bytes - at < sizeof(piece))
			return -EBADMSG;
		read_piece(&u->sections[KY_KYMO_TABLES], &piece);
		memcpy(raw + at, &piece, sizeof(piece));
		at += (uint32_t)sizeof(piece);
		if (u->sections[KY_KYMO_TABLES].bad ||
		    piece.words > (data->raw_bytes - at) / sizeof(uint64_t) ||
		    !put_words(u, &piece, (uint64_t *)(void *)(raw + at)))
			return -EBADMSG;
		at += 8u * piece.words;
	}
	return at == data->raw_bytes && !is_bad(u) ? 0 : -EBADMSG;
}

static int unpack_columns(struct ky_kymo_unpack *u, const struct ky_kymo_data *data, uint8_t *raw,
			  const char **what)
{
	u->nothing.bad = false;
	*what = "the tables of a packed DATA chunk are malformed";
	if (!read_tables(u) || !read_times(u))
		return -EBADMSG;
	int error = read_columns(u);
	if (error == 0)
		error = read_strings(u, data->raw_bytes);
	if (error)
		return error;
	*what = "the columns of a packed DATA chunk do not add up to its pieces";
	return unpack_pieces(u, data, raw);
}

/* Pieces as they are: each must have its words, and each event its own. */
static int copy_pieces(const struct section_bytes *from, const struct ky_kymo_data *data,
		       uint8_t *raw, const char **what)
{
	struct ky_kymo_piece piece;
	*what = "the pieces of a DATA chunk do not add up";
	if ((size_t)(from->end - from->at) != data->raw_bytes)
		return -EBADMSG;
	memcpy(raw, from->at, data->raw_bytes);
	uint32_t at = 0;
	for (uint32_t i = 0; i < data->pieces; i++) {
		if (data->raw_bytes - at < sizeof(piece))
			return -EBADMSG;
		memcpy(&piece, raw + at, sizeof(piece));
		at += (uint32_t)sizeof(piece);
		if (piece.head_bytes != sizeof(piece) || piece.words > (data->raw_bytes - at) / 8)
			return -EBADMSG;
		const uint64_t *words = (const uint64_t *)(const void *)(raw + at);
		for (uint32_t word = 0; word < piece.words; word += 1 + KY_WORD_LENGTH(words[word]))
			if (KY_WORD_LENGTH(words[word]) >= piece.words - word)
				return -EBADMSG;
		at += 8u * piece.words;
	}
	return at == data->raw_bytes ? 0 : -EBADMSG;
}

int ky_kymo_unpack(struct ky_kymo_unpack *u, const uint8_t *body, size_t bytes,
		   const struct ky_kymo_data *data, uint8_t **raw, const char **what, uint64_t *at)
{
	*raw = NULL;
	*what = "a section of a DATA chunk is malformed";
	int error = open_sections(u, body, bytes, data, at);
	if (error == -ENOENT)
		*what = "it is compressed with zstd, and libzstd.so.1 was not found";
	if (error)
		return error;
	*at = data->size;
	uint8_t *made = malloc(data->raw_bytes + 8u);
	if (!made)
		return -ENOMEM;
	error = data->form == KY_KYMO_RAW ? copy_pieces(&u->sections[0], data, made, what)
					  : unpack_columns(u, data, made, what);
	if (error) {
		free(made);
		return error;
	}
	*raw = made;
	return 0;
}
