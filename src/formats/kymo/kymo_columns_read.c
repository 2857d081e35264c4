/* SPDX-License-Identifier: MIT */
/*
 * kymo_columns_read.c: reads .kymo files of columns (kymo_columns.h) straight into the columns of the model.
 *
 *   END ─▶ SCHEMA, PLACES ─┐
 *   or, when one of them is damaged, ├─▶ sections, one behind the other ─▶ columns ─▶ ky_trace_check()
 *   all chunks ────────────┘
 *
 * A table has the rows that all its columns have from the first on: those behind a damaged section are lost, and counted.
 * Nothing is allocated for what the file says that it has, only for what is there.
 */
#include "base/array.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "formats/kymo/kymo_columns.h"
#include "formats/kymo/kymo_reader.h"
#include "formats/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define READINGS_MAX 64u
/* What a table lacks takes so many times the bytes of its sections, at most: as in KY_KYMO_RATIO_MAX, for a file with few of the columns. */
#define LACKING_RATIO_MAX (4 * KY_KYMO_RATIO_MAX)

/* ---- tables in the order of SCHEMA ---- */

static const struct ky_column size_column[] = {
	{.offset = offsetof(struct ky_kymo_sizes, size), .item_bytes = 4, .name = "size"}};
static const struct ky_column text_column[] = {
	{.offset = offsetof(struct ky_kymo_texts, text), .item_bytes = 1, .name = "text"}};

static const struct ky_table_spec string_tables[KY_KYMO_STRING_TABLES] = {
	{"strings", offsetof(struct ky_kymo_strings, sizes), 1, size_column, false},
	{"texts", offsetof(struct ky_kymo_strings, texts), 1, text_column, false},
};

uint32_t ky_kymo_tables_count(void)
{
	return KY_KYMO_STRING_TABLES + ky_tables_count;
}

const struct ky_table_spec *ky_kymo_table(uint32_t number)
{
	return number < KY_KYMO_STRING_TABLES ? &string_tables[number]
					      : &ky_tables[number - KY_KYMO_STRING_TABLES];
}

struct ky_rows *ky_kymo_table_of(const struct ky_trace *trace,
				 const struct ky_kymo_strings *strings, uint32_t number)
{
	const struct ky_table_spec *spec = ky_kymo_table(number);
	const void *in = number < KY_KYMO_STRING_TABLES ? (const void *)strings : trace;
	return (struct ky_rows *)((char *)in + spec->offset);
}

/* ---- the file ---- */

#define NOT_KNOWN UINT16_MAX
#define COLUMNS_MAX 16u

/* A table of the file: which of ours it is. */
struct file_table {
	uint32_t rows;
	uint32_t columns_at, columns_count; /* in columns */
	uint16_t known;                     /* number of ky_kymo_table(), or NOT_KNOWN */
};

/* One of our tables: what the file has of it. */
struct own_table {
	bool described;
	uint32_t rows;  /* as SCHEMA says */
	uint64_t bytes; /* of its sections */
	bool has[COLUMNS_MAX];
	uint32_t filled[COLUMNS_MAX]; /* rows */
};

struct columns_load {
	struct ky_load *load;
	struct ky_kymo_medium *medium;
	struct ky_kymo_packer packer;
	struct ky_kymo_strings strings;
	struct file_table *tables;
	uint32_t tables_count, tables_room;
	uint16_t *columns; /* ours, or NOT_KNOWN */
	uint32_t columns_count, columns_room;
	struct own_table *own;
	uint64_t tables_at;
	uint64_t *places; /* of sections */
	uint32_t places_count, places_room;
	uint64_t lost; /* events behind damaged sections */
};

bool ky_kymo_is_columns(const struct ky_kymo_bytes *bytes)
{
	struct ky_kymo_chunk chunk;
	struct ky_kymo_head head;
	uint64_t at = 0;
	if (ky_kymo_chunk_at(bytes, 0, &chunk) != 0)
		at = ky_kymo_chunk_find(bytes, 0, &chunk);
	if (at == bytes->bytes)
		return false;
	if (chunk.type != KY_KYMO_FILE)
		return chunk.type == KY_KYMO_SCHEMA || chunk.type == KY_KYMO_COLUMN;
	return chunk.body_bytes >= sizeof(head) &&
	       ky_kymo_bytes_read(bytes, at + chunk.head_bytes, &head, sizeof(head)) &&
	       head.version_min == KY_KYMO_VERSION_COLUMNS;
}

/* Read the chunk of that type at a place into the medium's body. Return 0, -EBADMSG, noted, or -ENOMEM. */
static int read_chunk(struct columns_load *l, uint64_t at, enum ky_kymo_chunk_type type,
		      size_t least)
{
	struct ky_kymo_chunk chunk;
	if (ky_kymo_chunk_at(&l->medium->bytes, at, &chunk) != 0 || chunk.type != type) {
		ky_kymo_note(l->medium, at, "expected another chunk here");
		return -EBADMSG;
	}
	const int error = ky_kymo_read_body(l->medium, at, &chunk);
	if (error || l->medium->body.bytes >= least)
		return error;
	ky_kymo_note(l->medium, at, "a chunk's body is too short for its head");
	return -EBADMSG;
}

/* ---- SCHEMA ---- */

static uint16_t table_named(const char *name, size_t bytes)
{
	for (uint32_t i = 0; i < ky_kymo_tables_count(); i++)
		if (strlen(ky_kymo_table(i)->name) == bytes &&
		    memcmp(ky_kymo_table(i)->name, name, bytes) == 0)
			return (uint16_t)i;
	return NOT_KNOWN;
}

static uint16_t column_named(const struct ky_table_spec *spec, const char *name, size_t bytes,
			     uint8_t item_bytes)
{
	for (uint32_t i = 0; i < spec->columns_count; i++)
		if (strlen(spec->columns[i].name) == bytes &&
		    memcmp(spec->columns[i].name, name, bytes) == 0 &&
		    spec->columns[i].item_bytes == item_bytes)
			return (uint16_t)i;
	return NOT_KNOWN;
}

/* Take one table's description. False: it does not fit. */
static bool take_table(struct columns_load *l, struct ky_bytes *bytes)
{
	struct file_table table = {.rows = ky_bytes_u32(bytes), .columns_at = l->columns_count};
	table.columns_count = ky_bytes_u16(bytes);
	const uint16_t name_bytes = ky_bytes_u16(bytes);
	struct ky_bytes cells = ky_bytes_part(bytes, (uint64_t)table.columns_count * 4);
	const char *name = ky_bytes_take(bytes, name_bytes);
	if (bytes->bad)
		return false;
	table.known = table_named(name, name_bytes);
	/* The first of that name is it: sections of another one would be among its own. */
	if (table.known != NOT_KNOWN && l->own[table.known].described)
		table.known = NOT_KNOWN;
	struct own_table *own = table.known == NOT_KNOWN ? NULL : &l->own[table.known];
	for (uint32_t i = 0; i < table.columns_count; i++) {
		const uint8_t item_bytes = ky_bytes_u8(&cells);
		ky_bytes_skip(&cells, 1);
		const uint16_t column_bytes = ky_bytes_u16(&cells);
		const char *column_name = ky_bytes_take(bytes, column_bytes);
		uint16_t known = NOT_KNOWN;
		if (bytes->bad)
			return false;
		if (own)
			known = column_named(ky_kymo_table(table.known), column_name, column_bytes,
					     item_bytes);
		if (known != NOT_KNOWN && own->has[known])
			known = NOT_KNOWN;
		if (known != NOT_KNOWN)
			own->has[known] = true;
		if (!KY_ARRAY_ADD(l->columns, l->columns_count, l->columns_room, known))
			l->load->trace->error = -ENOMEM;
	}
	if (own) {
		own->described = true;
		own->rows = table.rows;
	}
	if (!KY_ARRAY_ADD(l->tables, l->tables_count, l->tables_room, table))
		l->load->trace->error = -ENOMEM;
	return !l->load->trace->error;
}

/* Get the descriptions of the SCHEMA chunk in the body; *text is to be freed. Return what is wrong, or NULL. */
static const char *unpack_tables(const struct columns_load *l, const struct ky_kymo_schema *head,
				 uint8_t **text)
{
	const struct ky_kymo_body *body = &l->medium->body;
	if (head->size < sizeof(*head) || head->size > body->bytes ||
	    head->stored_bytes > body->bytes - head->size ||
	    head->bytes / KY_KYMO_DEFINE_RATIO_MAX > head->stored_bytes)
		return "a SCHEMA chunk's head does not fit its body";
	*text = malloc((size_t)head->bytes + 1);
	if (!*text) {
		ky_memory_missing();
		return "not enough memory";
	}
	if (head->stored_bytes == head->bytes) {
		memcpy(*text, body->data + head->size, head->bytes);
		return NULL;
	}
	if (!l->medium->zstd)
		return "tables are compressed with zstd, and libzstd.so.1 was not found";
	const int64_t bytes = ky_zstd_decompress(l->medium->zstd, *text, head->bytes,
						 body->data + head->size, head->stored_bytes);
	if (bytes == -ENOMEM)
		ky_memory_missing();
	return bytes == head->bytes ? NULL
				    : "tables are no zstd frame of the size that their chunk says";
}

static void forget_tables(struct columns_load *l)
{
	l->tables_count = l->columns_count = 0;
	memset(l->own, 0, ky_kymo_tables_count() * sizeof(*l->own));
}

static int read_tables(struct columns_load *l, uint64_t at)
{
	struct ky_kymo_schema head;
	uint8_t *text = NULL;
	int error = read_chunk(l, at, KY_KYMO_SCHEMA, sizeof(head));
	if (error)
		return error;
	memcpy(&head, l->medium->body.data, sizeof(head));
	const char *wrong = unpack_tables(l, &head, &text);
	struct ky_bytes bytes =
		ky_bytes_of(wrong ? (const uint8_t *)"" : text, wrong ? 0 : head.bytes);
	forget_tables(l);
	for (uint32_t i = 0; !wrong && i < head.tables; i++)
		if (!take_table(l, &bytes))
			wrong = "a description of a table does not fit its chunk";
	free(text);
	if (wrong) {
		ky_kymo_note(l->medium, at, wrong);
		return l->load->trace->error ? l->load->trace->error : -EBADMSG;
	}
	l->load->trace->clock = head.clock;
	l->load->trace->events = head.events;
	return 0;
}

/* ---- where the sections are ---- */

static bool add_place(struct columns_load *l, uint64_t at)
{
	return KY_ARRAY_ADD(l->places, l->places_count, l->places_room, at);
}

/* Sections must be one behind the other. */
static int read_places(struct columns_load *l, uint64_t at)
{
	struct ky_kymo_places head;
	uint64_t behind = 0;
	const struct ky_kymo_body *body = &l->medium->body;
	const int error = read_chunk(l, at, KY_KYMO_PLACES, sizeof(head));
	if (error)
		return error;
	memcpy(&head, body->data, sizeof(head));
	bool fits = head.size >= sizeof(head) && head.size <= body->bytes &&
		    head.entry_bytes >= sizeof(struct ky_kymo_place) &&
		    head.entries <= (body->bytes - head.size) / head.entry_bytes;
	for (uint64_t i = 0; fits && i < head.entries; i++) {
		struct ky_kymo_place place;
		memcpy(&place, body->data + head.size + i * head.entry_bytes, sizeof(place));
		fits = place.at >= behind && place.at < l->medium->bytes.bytes &&
		       place.chunk_bytes > sizeof(struct ky_kymo_chunk);
		behind = place.at + place.chunk_bytes;
		if (fits && !add_place(l, place.at))
			return -ENOMEM;
	}
	if (!fits)
		ky_kymo_note(l->medium, at, "the list of sections does not fit the file");
	return fits ? 0 : -EBADMSG;
}

/* By the file's end. -EBADMSG: a search is needed. */
static int find_by_end(struct columns_load *l)
{
	struct ky_kymo_end end;
	const uint64_t bytes = l->medium->bytes.bytes;
	if (bytes < KY_KYMO_END_BYTES)
		return -EBADMSG;
	int error = read_chunk(l, bytes - KY_KYMO_END_BYTES, KY_KYMO_END, sizeof(end));
	if (error)
		return error;
	memcpy(&end, l->medium->body.data, sizeof(end));
	error = read_tables(l, end.define_at);
	return error ? error : read_places(l, end.index_at);
}

struct columns_walk {
	struct ky_kymo_walk walk;
	struct columns_load *load;
	bool begun;
	int error;
};

static int take(void *context, uint64_t at, const struct ky_kymo_chunk *chunk)
{
	struct columns_walk *walk = context;
	struct columns_load *l = walk->load;
	if (chunk->type == KY_KYMO_FILE && walk->begun) {
		walk->walk.stop = true;
		ky_kymo_note(l->medium, at, "another file begins here; it is left out");
		return 0;
	}
	walk->begun = true;
	if (chunk->type == KY_KYMO_COLUMN)
		return add_place(l, at) ? 0 : -ENOMEM;
	if (chunk->type != KY_KYMO_SCHEMA || l->tables_count)
		return 0;
	const int error = read_tables(l, at);
	if (error == -EBADMSG)
		forget_tables(l);
	return error == -EBADMSG ? 0 : error;
}

static void untake(void *context, uint64_t at, const struct ky_kymo_chunk *chunk)
{
	struct columns_load *l = ((struct columns_walk *)context)->load;
	(void)chunk;
	if (l->places_count && l->places[l->places_count - 1] == at)
		l->places_count--;
}

/* By a search through the whole file. */
static int find_by_walk(struct columns_load *l)
{
	struct ky_kymo_error why = {0};
	struct columns_walk walk = {
		.load = l,
		.walk = {.medium = l->medium, .take = take, .untake = untake, .context = &walk}};
	l->places_count = 0;
	forget_tables(l);
	int error = ky_kymo_walk(&walk.walk, &why);
	if (!error && !l->tables_count)
		error = -EBADMSG;
	return error;
}

/* ---- sections ---- */

/* Unpack a section into its column; false, with what is wrong. One that is not for us is fine. */
static bool put_section(struct columns_load *l, const struct ky_kymo_column *head,
			const uint8_t *stored, const char **what)
{
	*what = "a section is of a table or column that is not described";
	if (head->table >= l->tables_count)
		return false;
	const struct file_table *file = &l->tables[head->table];
	if (head->column >= file->columns_count)
		return false;
	const uint16_t number = l->columns[file->columns_at + head->column];
	if (file->known == NOT_KNOWN || number == NOT_KNOWN || !head->rows ||
	    head->version != KY_KYMO_COLUMN_VERSION)
		return true;
	const struct ky_table_spec *spec = ky_kymo_table(file->known);
	const struct ky_column *column = &spec->columns[number];
	struct ky_rows *table = ky_kymo_table_of(l->load->trace, &l->strings, file->known);
	uint32_t *filled = &l->own[file->known].filled[number];
	*what = "a section does not follow the one before it";
	if (head->first != *filled)
		return false;
	*what = "a section has other cells, or more, than its table";
	if (head->item_bytes != column->item_bytes || head->rows > file->rows - *filled ||
	    head->rows > KY_KYMO_COLUMN_ROWS)
		return false;
	if (!ky_rows_reserve(table, spec->columns, spec->columns_count, *filled + head->rows)) {
		l->load->trace->error = -ENOMEM;
		return false;
	}
	char *items = *ky_column_of(table, column);
	if (!ky_kymo_unpack_column(&l->packer, head, stored,
				   items + (size_t)*filled * column->item_bytes, what))
		return false;
	*filled += head->rows;
	l->own[file->known].bytes += l->medium->body.bytes;
	return true;
}

static int read_section(struct columns_load *l, uint64_t at)
{
	struct ky_kymo_column head;
	const struct ky_kymo_body *body = &l->medium->body;
	const char *what = "a COLUMN chunk's head does not fit its body";
	const int error = read_chunk(l, at, KY_KYMO_COLUMN, sizeof(head));
	if (error)
		return error == -EBADMSG ? 0 : error;
	memcpy(&head, body->data, sizeof(head));
	const bool fits = head.size >= sizeof(head) && head.size <= body->bytes &&
			  head.stored_bytes <= body->bytes - head.size &&
			  (uint64_t)head.rows * head.item_bytes / KY_KYMO_RATIO_MAX <= body->bytes;
	if (fits && !l->packer.zstd && head.stored_bytes < head.raw_bytes)
		return ky_load_fail(
			l->load, at,
			"columns are compressed with zstd, and libzstd.so.1 was not found");
	if (!fits || !put_section(l, &head, body->data + head.size, &what))
		ky_kymo_note(l->medium, at, what);
	return l->load->trace->error;
}

static int read_sections(struct columns_load *l)
{
	struct ky_load *load = l->load;
	int error = 0;
	for (uint32_t i = 0; !error && i < l->places_count; i++) {
		error = read_section(l, l->places[i]);
		if (!error && load->progress)
			error = load->progress(load, i + 1, l->places_count);
	}
	return error;
}

/* ---- tables ---- */

/* Return the cell of a row that says nothing, as 64 bits. */
static uint64_t nothing_of(const struct ky_column *column)
{
	switch ((enum ky_holds)column->holds) {
	case KY_HOLDS_TIME:
		return (uint64_t)KY_TIME_NONE;
	case KY_HOLDS_MINUS:
	case KY_HOLDS_CPU:
	case KY_HOLDS_CPU_OR:
	case KY_HOLDS_DURATION:
	case KY_HOLDS_OWNER:
	case KY_HOLDS_BEFORE:
	case KY_HOLDS_ABOVE:
	case KY_HOLDS_ROW:
	case KY_HOLDS_ROW_OR:
		return UINT64_MAX;
	default:
		return 0;
	}
}

/* Fill a column that the file lacks. */
static void fill(struct ky_rows *table, const struct ky_column *column)
{
	const uint64_t nothing = nothing_of(column);
	char *items = *ky_column_of(table, column);
	for (uint32_t i = 0; i < table->count; i++)
		memcpy(items + (size_t)i * column->item_bytes, &nothing, column->item_bytes);
}

/* Return how many rows all columns of a table have; those that the file lacks are filled, in proportion to what it has. */
static uint32_t rows_of(const struct own_table *own, const struct ky_table_spec *spec)
{
	uint32_t rows = own->rows, lacking = 0;
	for (uint32_t i = 0; i < spec->columns_count; i++) {
		if (own->has[i] && own->filled[i] < rows)
			rows = own->filled[i];
		if (!own->has[i])
			lacking += spec->columns[i].item_bytes;
	}
	const uint64_t most = lacking ? own->bytes * LACKING_RATIO_MAX / lacking : rows;
	return rows < most ? rows : (uint32_t)most;
}

static void end_table(struct columns_load *l, uint32_t number)
{
	const struct ky_table_spec *spec = ky_kymo_table(number);
	const struct own_table *own = &l->own[number];
	struct ky_rows *table = ky_kymo_table_of(l->load->trace, &l->strings, number);
	table->count = rows_of(own, spec);
	for (uint32_t i = 0; i < spec->columns_count; i++)
		if (!own->has[i])
			fill(table, &spec->columns[i]);
	if (spec->events)
		l->lost += own->rows - table->count;
}

/* Return how many texts could not be taken: their numbers would be others'. */
static uint32_t take_strings(struct columns_load *l)
{
	struct ky_strings *strings = &l->load->trace->strings;
	const struct ky_kymo_strings *from = &l->strings;
	const uint32_t count = from->sizes.rows.count, bytes = from->texts.rows.count;
	uint32_t at = 0, taken = 0;
	ky_strings_free(strings);
	if (ky_strings_init(strings) != 0) {
		l->load->trace->error = -ENOMEM;
		return 0;
	}
	for (; taken < count; taken++) {
		const uint32_t size = from->sizes.size[taken];
		if (at >= bytes || size >= bytes - at || from->texts.text[at + size] ||
		    ky_strings_add_utf8(strings, (const char *)from->texts.text + at, size) !=
			    taken + 1)
			break;
		at += size + 1;
	}
	return count - taken;
}

/* Tie the clocks together as the snapshots did. */
static void take_clocks(struct ky_trace *trace)
{
	const struct ky_clock_rows *rows = &trace->clock_rows;
	struct ky_clock_reading readings[READINGS_MAX];
	uint32_t count = 0;
	for (uint32_t i = 0; i < rows->rows.count; i++) {
		if (count < READINGS_MAX)
			readings[count++] =
				(struct ky_clock_reading){rows->clock[i], rows->value[i]};
		const bool last =
			i + 1 == rows->rows.count || rows->snapshot[i + 1] != rows->snapshot[i];
		if (last && ky_clocks_add(trace->clocks, readings, count) != 0)
			trace->error = -ENOMEM;
		if (last)
			count = 0;
	}
}

static void put_problems(struct columns_load *l, uint64_t wrong)
{
	struct ky_trace *trace = l->load->trace;
	const struct ky_kymo_medium *medium = l->medium;
	for (uint32_t i = 0; i < medium->notes_count; i++)
		ky_problem(trace, "kymo_damaged", KY_ERROR, medium->notes[i].at, "%s",
			   medium->notes[i].text);
	if (medium->damages > medium->notes_count)
		ky_problems(trace, "kymo_damaged", KY_ERROR, KY_NO_PLACE,
			    medium->damages - medium->notes_count);
	if (wrong)
		ky_problems(trace, "kymo_cell_wrong", KY_ERROR, KY_NO_PLACE, wrong);
	if (l->lost)
		ky_put_lost(trace, KY_TIME_NONE, KY_NONE, KY_NONE, l->lost, KY_LOSS_FILE_DAMAGED);
}

static int end_tables(struct columns_load *l)
{
	struct ky_trace *trace = l->load->trace;
	for (uint32_t i = 0; i < ky_kymo_tables_count(); i++)
		end_table(l, i);
	const uint32_t texts = take_strings(l);
	if (trace->error)
		return trace->error;
	const int64_t wrong = ky_trace_check(trace);
	if (wrong < 0)
		return (int)wrong;
	take_clocks(trace);
	put_problems(l, texts + (uint64_t)wrong);
	return trace->error;
}

static void close_load(struct columns_load *l)
{
	for (uint32_t i = 0; i < KY_KYMO_STRING_TABLES; i++)
		ky_rows_free(ky_kymo_table_of(NULL, &l->strings, i), string_tables[i].columns, 1);
	ky_kymo_packer_close(&l->packer);
	KY_ARRAY_FREE(l->tables, l->tables_room);
	KY_ARRAY_FREE(l->columns, l->columns_room);
	KY_ARRAY_FREE(l->places, l->places_room);
	free(l->own);
}

int ky_kymo_columns_load(struct ky_load *load, struct ky_kymo_medium *medium)
{
	struct columns_load l = {.load = load, .medium = medium};
	int error = ky_kymo_packer_open(&l.packer);
	l.own = calloc(ky_kymo_tables_count(), sizeof(*l.own));
	if (!error && !l.own)
		error = -ENOMEM;
	if (!error)
		error = find_by_end(&l);
	if (error == -EBADMSG)
		error = find_by_walk(&l);
	if (error == -EBADMSG)
		error = ky_load_fail(load, 0,
				     medium->zstd ? "no description of the file's tables is whole"
						  : "libzstd.so.1 is missing, which unpacks it");
	if (!error)
		error = read_sections(&l);
	if (!error)
		error = end_tables(&l);
	close_load(&l);
	return error;
}
