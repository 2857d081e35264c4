/* SPDX-License-Identifier: MIT */
/*
 * bytes.h: a bounds-checked reader of little-endian bytes, for the binary formats of files and of the kernel.
 *
 * A read beyond the end returns 0, sets bad, and so do all reads after it: a parser reads all fields of a
 * record and checks bad once.
 */
#ifndef KY_BASE_BYTES_H
#define KY_BASE_BYTES_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct ky_bytes {
	const uint8_t *at;
	const uint8_t *end;
	bool bad;
};

/* Return a reader of some bytes. */
static inline struct ky_bytes ky_bytes_of(const void *data, size_t bytes)
{
	return (struct ky_bytes){.at = data, .end = (const uint8_t *)data + bytes};
}

/* Return how many bytes are left. */
static inline size_t ky_bytes_left(const struct ky_bytes *bytes)
{
	return (size_t)(bytes->end - bytes->at);
}

/* Return the next count bytes and move behind them; NULL when there are fewer. */
static inline const void *ky_bytes_take(struct ky_bytes *bytes, uint64_t count)
{
	const uint8_t *const at = bytes->at;
	if (bytes->bad || count > ky_bytes_left(bytes)) {
		bytes->bad = true;
		return NULL;
	}
	bytes->at += count;
	return at;
}

/* Skip bytes. */
static inline void ky_bytes_skip(struct ky_bytes *bytes, uint64_t count)
{
	(void)ky_bytes_take(bytes, count);
}

/* Copy the next count bytes to where the caller wants them, or zeroes; report whether they were there. */
static inline bool ky_bytes_copy(struct ky_bytes *bytes, void *to, size_t count)
{
	const void *const from = ky_bytes_take(bytes, count);
	if (from)
		memcpy(to, from, count);
	else
		memset(to, 0, count);
	return from != NULL;
}

/* Return the next number. */
static inline uint8_t ky_bytes_u8(struct ky_bytes *bytes)
{
	uint8_t value;
	ky_bytes_copy(bytes, &value, sizeof(value));
	return value;
}

static inline uint16_t ky_bytes_u16(struct ky_bytes *bytes)
{
	uint16_t value;
	ky_bytes_copy(bytes, &value, sizeof(value));
	return le16toh(value);
}

static inline uint32_t ky_bytes_u32(struct ky_bytes *bytes)
{
	uint32_t value;
	ky_bytes_copy(bytes, &value, sizeof(value));
	return le32toh(value);
}

static inline uint64_t ky_bytes_u64(struct ky_bytes *bytes)
{
	uint64_t value;
	ky_bytes_copy(bytes, &value, sizeof(value));
	return le64toh(value);
}

/* Return the next LEB128 number (of DWARF and protobuf); bits beyond 64 are lost. */
static inline uint64_t ky_bytes_uleb(struct ky_bytes *bytes)
{
	uint64_t value = 0;
	for (unsigned shift = 0;; shift += 7) {
		const uint8_t byte = ky_bytes_u8(bytes);
		value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
		if (!(byte & 0x80))
			return value;
	}
}

/* Return a reader of the next count bytes and move behind them; a bad one when there are fewer. */
static inline struct ky_bytes ky_bytes_part(struct ky_bytes *bytes, uint64_t count)
{
	const uint8_t *const at = ky_bytes_take(bytes, count);
	return (struct ky_bytes){.at = at, .end = at ? at + count : at, .bad = !at};
}

#endif
