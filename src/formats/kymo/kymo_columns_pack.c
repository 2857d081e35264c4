/* SPDX-License-Identifier: MIT */
/*
 * kymo_columns_pack.c: packs and unpacks one section of a column: see kymo_columns.h.
 *
 *   cells ─▶ each way tried with the first few thousand ─▶ the smallest one with all
 */
#include "base/memory.h"
#include "formats/compress.h"
#include "formats/kymo/kymo_columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ZSTD_LEVEL 6
#define TRIED_ROWS 8192u

int ky_kymo_packer_open(struct ky_kymo_packer *packer)
{
	*packer = (struct ky_kymo_packer){0};
	if (ky_zstd_open(&packer->zstd) == -ENOMEM)
		return -ENOMEM;
	const size_t bytes = (size_t)KY_KYMO_COLUMN_ROWS * sizeof(uint64_t);
	packer->packed_room = packer->zstd ? ky_zstd_bound(packer->zstd, bytes) : 1;
	packer->numbers = malloc(bytes);
	packer->raw = malloc(bytes);
	packer->packed = malloc(packer->packed_room);
	if (packer->numbers && packer->raw && packer->packed)
		return 0;
	ky_kymo_packer_close(packer);
	return -ENOMEM;
}

void ky_kymo_packer_close(struct ky_kymo_packer *packer)
{
	ky_zstd_close(&packer->zstd);
	free(packer->numbers);
	free(packer->raw);
	free(packer->packed);
	*packer = (struct ky_kymo_packer){0};
}

/* ---- cells ---- */

#define EACH_CELL(type, body)                                                                      \
	for (uint32_t i = 0; i < rows; i++) {                                                      \
		type *const cell = (type *)items + i;                                              \
		body;                                                                              \
	}                                                                                          \
	break

/* Sign-extended: -1 and KY_NONE are less than all others. */
static void cells_to_numbers(const void *cells, uint32_t item_bytes, uint32_t rows, uint64_t *to)
{
	const void *const items = cells;
	switch (item_bytes) {
	case 1:
		EACH_CELL(const int8_t, to[i] = (uint64_t)(int64_t)*cell);
	case 2:
		EACH_CELL(const int16_t, to[i] = (uint64_t)(int64_t)*cell);
	case 4:
		EACH_CELL(const int32_t, to[i] = (uint64_t)(int64_t)*cell);
	default:
		memcpy(to, cells, (size_t)rows * sizeof(*to));
	}
}

static void numbers_to_cells(const uint64_t *from, uint32_t item_bytes, uint32_t rows, void *items)
{
	switch (item_bytes) {
	case 1:
		EACH_CELL(uint8_t, *cell = (uint8_t)from[i]);
	case 2:
		EACH_CELL(uint16_t, *cell = (uint16_t)from[i]);
	case 4:
		EACH_CELL(uint32_t, *cell = (uint32_t)from[i]);
	default:
		memcpy(items, from, (size_t)rows * sizeof(*from));
	}
}

/* ---- numbers ---- */

static uint64_t zigzag(uint64_t difference)
{
	return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

static uint64_t unzigzag(uint64_t number)
{
	return number >> 1 ^ -(number & 1);
}

static uint64_t least_of(const uint64_t *numbers, uint32_t rows)
{
	int64_t least = rows ? (int64_t)numbers[0] : 0;
	for (uint32_t i = 1; i < rows; i++)
		least = (int64_t)numbers[i] < least ? (int64_t)numbers[i] : least;
	return (uint64_t)least;
}

/* Make of cells the numbers that say them; in place. */
static void take_off(uint64_t *n, struct ky_kymo_column *column, uint32_t rows)
{
	uint64_t last = column->base = 0;
	switch ((enum ky_kymo_how)column->how) {
	case KY_KYMO_STEP:
	case KY_KYMO_ZIGZAG:
		last = column->base = rows ? n[0] : 0;
		for (uint32_t i = 0; i < rows; i++) {
			const uint64_t step = n[i] - last;
			last = n[i];
			n[i] = column->how == KY_KYMO_STEP ? step : zigzag(step);
		}
		break;
	case KY_KYMO_BACK:
		for (uint32_t i = 0; i < rows; i++)
			n[i] = n[i] == UINT64_MAX ? 0
						  : zigzag((uint64_t)column->first + i - n[i]) + 1;
		break;
	case KY_KYMO_LAST:
		for (uint32_t i = 0; i < rows; i++) {
			if (!n[i])
				continue;
			const uint64_t step = n[i] - last;
			last = n[i];
			n[i] = zigzag(step) + 1;
		}
		break;
	default:
		column->base = least_of(n, rows);
		for (uint32_t i = 0; i < rows; i++)
			n[i] -= column->base;
	}
}

/* The other way round. */
static void put_back(uint64_t *n, const struct ky_kymo_column *column)
{
	const uint32_t rows = column->rows;
	uint64_t last = column->base;
	switch ((enum ky_kymo_how)column->how) {
	case KY_KYMO_STEP:
		for (uint32_t i = 0; i < rows; i++)
			n[i] = last += n[i];
		break;
	case KY_KYMO_ZIGZAG:
		for (uint32_t i = 0; i < rows; i++)
			n[i] = last += unzigzag(n[i]);
		break;
	case KY_KYMO_BACK:
		for (uint32_t i = 0; i < rows; i++)
			n[i] = n[i] ? (uint64_t)column->first + i - unzigzag(n[i] - 1) : UINT64_MAX;
		break;
	case KY_KYMO_LAST:
		last = 0;
		for (uint32_t i = 0; i < rows; i++)
			if (n[i])
				n[i] = last += unzigzag(n[i] - 1);
		break;
	default:
		for (uint32_t i = 0; i < rows; i++)
			n[i] += column->base;
	}
}

static uint8_t width_of(const uint64_t *numbers, uint32_t rows)
{
	uint64_t bits = 0;
	for (uint32_t i = 0; i < rows; i++)
		bits |= numbers[i];
	uint8_t width = 0;
	for (; bits; bits >>= 8)
		width++;
	return width;
}

static void numbers_to_bytes(const uint64_t *numbers, const struct ky_kymo_column *column,
			     uint32_t rows, uint8_t *to)
{
	const uint32_t width = column->width;
	for (uint32_t byte = 0; byte < width; byte++)
		for (uint32_t i = 0; i < rows; i++)
			to[column->planes ? (size_t)byte * rows + i : (size_t)i * width + byte] =
				(uint8_t)(numbers[i] >> 8 * byte);
}

static void bytes_to_numbers(const uint8_t *from, const struct ky_kymo_column *column,
			     uint64_t *numbers)
{
	const uint32_t rows = column->rows, width = column->width;
	memset(numbers, 0, (size_t)rows * sizeof(*numbers));
	for (uint32_t byte = 0; column->planes && byte < width; byte++)
		for (uint32_t i = 0; i < rows; i++)
			numbers[i] |= (uint64_t)from[(size_t)byte * rows + i] << 8 * byte;
	for (uint32_t i = 0; !column->planes && i < rows; i++)
		memcpy(&numbers[i], from + (size_t)i * width, width);
}

/* ---- sections ---- */

/* Pack so many rows as column says. Return the bytes, and set raw_bytes and stored_bytes. */
static const uint8_t *pack(struct ky_kymo_packer *packer, const void *items,
			   struct ky_kymo_column *column, uint32_t rows)
{
	cells_to_numbers(items, column->item_bytes, rows, packer->numbers);
	take_off(packer->numbers, column, rows);
	column->width = width_of(packer->numbers, rows);
	column->raw_bytes = column->stored_bytes = column->width * rows;
	numbers_to_bytes(packer->numbers, column, rows, packer->raw);
	if (!packer->zstd || !column->raw_bytes)
		return packer->raw;
	const int64_t packed = ky_zstd_compress(packer->zstd, packer->packed, packer->packed_room,
						packer->raw, column->raw_bytes, ZSTD_LEVEL);
	if (packed <= 0 || packed >= column->raw_bytes)
		return packer->raw;
	column->stored_bytes = (uint32_t)packed;
	return packer->packed;
}

/* BACK and LAST are for numbers of rows and sets. */
static bool is_for(uint8_t how, uint8_t planes, uint8_t item_bytes)
{
	if (how == KY_KYMO_BACK || how == KY_KYMO_LAST)
		return item_bytes == 4;
	return item_bytes > 1 || (how == KY_KYMO_FROM_BASE && !planes);
}

const uint8_t *ky_kymo_pack_column(struct ky_kymo_packer *packer, const void *items,
				   struct ky_kymo_column *column)
{
	const uint32_t tried = column->rows < TRIED_ROWS ? column->rows : TRIED_ROWS;
	struct ky_kymo_column best = *column;
	best.stored_bytes = UINT32_MAX;
	for (uint32_t how = 0; how < KY_KYMO_HOWS; how++)
		for (uint8_t planes = 0; planes < 2; planes++) {
			struct ky_kymo_column one = *column;
			one.how = (uint8_t)how;
			one.planes = planes;
			if (!is_for(one.how, planes, column->item_bytes))
				continue;
			(void)pack(packer, items, &one, tried);
			if (one.stored_bytes < best.stored_bytes)
				best = one;
		}
	*column = best;
	return pack(packer, items, column, column->rows);
}

static bool is_sound(const struct ky_kymo_column *c)
{
	const bool item = c->item_bytes == 1 || c->item_bytes == 2 || c->item_bytes == 4 ||
			  c->item_bytes == 8;
	return item && c->how < KY_KYMO_HOWS && c->width <= 8 && c->rows <= KY_KYMO_COLUMN_ROWS &&
	       c->raw_bytes == c->width * c->rows && c->stored_bytes <= c->raw_bytes;
}

bool ky_kymo_unpack_column(struct ky_kymo_packer *packer, const struct ky_kymo_column *column,
			   const uint8_t *stored, void *items, const char **what)
{
	const uint8_t *raw = stored;
	*what = "a COLUMN chunk's head does not fit its body";
	if (!is_sound(column))
		return false;
	if (column->stored_bytes < column->raw_bytes) {
		*what = "a column is no zstd frame of the size that its chunk says";
		raw = packer->raw;
		const int64_t bytes = packer->zstd ? ky_zstd_decompress(packer->zstd, packer->raw,
									column->raw_bytes, stored,
									column->stored_bytes)
						   : -1;
		if (bytes == -ENOMEM)
			ky_memory_missing();
		if (bytes != (int64_t)column->raw_bytes)
			return false;
	}
	bytes_to_numbers(raw, column, packer->numbers);
	put_back(packer->numbers, column);
	numbers_to_cells(packer->numbers, column->item_bytes, column->rows, items);
	return true;
}
