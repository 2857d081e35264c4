/* SPDX-License-Identifier: MIT */
/*
 * kymo_columns.h: a .kymo file of columns: all tables of a trace as the model has them. docs/formats/kymo.md says the same in
 * words.
 *
 *   ┌──────┬────────┬────────┬────────┬─ … ─┬────────┬────────┬────────┬─────┐
 *   │ FILE │ SCHEMA │ COLUMN │ COLUMN │     │ COLUMN │ SCHEMA │ PLACES │ END │
 *   └──────┴────────┴────────┴────────┴─ … ─┴────────┴────────┴────────┴─────┘
 *    version 3 │         │                              once      where each
 *              │         │                              more      COLUMN is
 *              │         └ section: up to 131072 rows of one column, packed
 *              └ facts; names, sizes and rows of all tables and columns
 *
 * Chunks are those of kymo_layout.h, so each section has its own checksums, and needs only SCHEMA to be read. Tables and
 * columns are found by their names: a reader leaves out those that it does not know, and those that the file lacks are
 * "none" in every row. All columns of some rows come before those of the next: a file that was cut off has whole rows up to
 * there.
 *
 *   cells ── how: less of each ──▶ numbers ── planes: width bytes each ──▶ zstd, where that is smaller
 *
 *   1000 1007 1015 1015      step: 0 7 8 0      ─ lowest bytes of all ─┬─ next bytes of all ─┬ …
 *
 * A section is never smaller than its cells / KY_KYMO_RATIO_MAX: it is padded. So what a reader has to allocate is in
 * proportion to the file.
 */
#ifndef KY_FORMATS_KYMO_KYMO_COLUMNS_H
#define KY_FORMATS_KYMO_KYMO_COLUMNS_H

#include "formats/kymo/kymo_layout.h"
#include "model/tables.h"

struct ky_zstd;

#define KY_KYMO_COLUMN_ROWS (1u << 17) /* of a section, at most */
#define KY_KYMO_COLUMN_VERSION 1

/*
 * SCHEMA: this, then for each table: u32 rows, u16 columns, u16 bytes of its name, and for each column u8 bytes of a cell, u8
 * its kind, u16 bytes of its name; then all names, the table's and its columns'. Compressed when stored_bytes is not bytes.
 * The first two tables are the strings, the others those of model/tables.h.
 */
struct ky_kymo_schema {
	uint32_t size;
	uint32_t tables;
	uint64_t clock;  /* enum ky_clock: of all times */
	uint64_t events; /* that were read */
	uint32_t bytes;
	uint32_t stored_bytes;
};

enum ky_kymo_cell { KY_KYMO_CELL_NUMBER, KY_KYMO_CELL_REAL };

/* COLUMN: this, then stored_bytes, which are a zstd frame when they are less than raw_bytes; padding. */
struct ky_kymo_column {
	uint32_t size;
	uint16_t version;
	uint16_t table;  /* number in SCHEMA */
	uint16_t column; /* number in its table */
	uint8_t how;     /* enum ky_kymo_how */
	uint8_t width;   /* bytes of a number: raw_bytes = width x rows */
	uint8_t planes; /* not 0: the lowest bytes of all numbers, then the next; else number by number */
	uint8_t item_bytes;
	uint16_t pad;
	uint32_t first; /* row */
	uint32_t rows;
	uint32_t raw_bytes;
	uint32_t stored_bytes;
	uint64_t base;
};

/* What a number says of a cell. Numbers wrap around at 64 bits, and a cell is their lowest bytes. */
enum ky_kymo_how {
	KY_KYMO_FROM_BASE, /* cell - base */
	KY_KYMO_STEP,      /* cell - the one before; before the first: base */
	KY_KYMO_ZIGZAG,    /* the same, signed: 0, -1, 1, -2 are 0, 1, 2, 3 */
	KY_KYMO_BACK,      /* 0: -1; else 1 + signed row - cell */
	KY_KYMO_LAST,      /* 0: 0; else 1 + signed cell - the last one that is not 0 */
	KY_KYMO_HOWS
};

/* PLACES: this, then an entry for each section, in the order of the file. */
struct ky_kymo_places {
	uint32_t size;
	uint32_t entry_bytes;
	uint64_t entries;
};

struct ky_kymo_place {
	uint64_t at;        /* of the COLUMN chunk in the file */
	uint64_t body_hash; /* as in its head */
	uint32_t chunk_bytes;
	uint32_t raw_bytes;
	uint32_t first;
	uint32_t rows;
	uint16_t table;
	uint16_t column;
	uint16_t version;
	uint16_t pad;
};

_Static_assert(sizeof(struct ky_kymo_schema) == 32, "layout");
_Static_assert(sizeof(struct ky_kymo_column) == 40, "layout");
_Static_assert(sizeof(struct ky_kymo_places) == 16, "layout");
_Static_assert(sizeof(struct ky_kymo_place) == 40, "layout");

/* ---- tables in the order of SCHEMA ---- */

/* The strings as the first two tables: the size of each text, and all texts with their NULs. */
struct ky_kymo_sizes {
	struct ky_rows rows;
	uint32_t *size;
};

struct ky_kymo_texts {
	struct ky_rows rows;
	uint8_t *text;
};

struct ky_kymo_strings {
	struct ky_kymo_sizes sizes;
	struct ky_kymo_texts texts;
};

#define KY_KYMO_STRING_TABLES 2u

uint32_t ky_kymo_tables_count(void);
const struct ky_table_spec *ky_kymo_table(uint32_t number);
/* Return the table itself, which is one of the trace's or of the strings'. */
struct ky_rows *ky_kymo_table_of(const struct ky_trace *trace,
				 const struct ky_kymo_strings *strings, uint32_t number);

/* ---- one section: kymo_columns_pack.c ---- */

/* Memory for packing and unpacking, used again and again. */
struct ky_kymo_packer {
	struct ky_zstd *zstd; /* NULL without the library: then nothing is compressed */
	uint64_t *numbers;    /* KY_KYMO_COLUMN_ROWS */
	uint8_t *raw;         /* KY_KYMO_COLUMN_ROWS x 8 */
	uint8_t *packed;
	size_t packed_room;
};

/* 0 or -ENOMEM. */
int ky_kymo_packer_open(struct ky_kymo_packer *packer);
void ky_kymo_packer_close(struct ky_kymo_packer *packer);

/*
 * Pack cells in the way that makes them smallest. items are rows of item_bytes (1, 2, 4 or 8), of which first is the
 * number of the first. Fill in column from item_bytes on; return the bytes, which live until the next call.
 */
const uint8_t *ky_kymo_pack_column(struct ky_kymo_packer *packer, const void *items,
				   struct ky_kymo_column *column);
/* Unpack the bytes after column into cells. False, with *what: they are not what column says. */
bool ky_kymo_unpack_column(struct ky_kymo_packer *packer, const struct ky_kymo_column *column,
			   const uint8_t *stored, void *items, const char **what);

/* ---- the file: kymo_columns_read.c ---- */

struct ky_load;
struct ky_kymo_bytes;
struct ky_kymo_medium;

/* Report whether it is a file of columns. */
bool ky_kymo_is_columns(const struct ky_kymo_bytes *bytes);
/* Load a file of columns. Return 0 or -errno. */
int ky_kymo_columns_load(struct ky_load *load, struct ky_kymo_medium *medium);

#endif
