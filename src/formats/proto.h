/* SPDX-License-Identifier: MIT */
/*
 * proto.h: writes small protobuf messages. The functions that end in _at write to memory in which
 * the caller made room, and return the new end; the others append to a buffer. proto_read.h reads.
 */
#ifndef KY_FORMATS_PROTO_H
#define KY_FORMATS_PROTO_H

#include "core/event.h"
#include "formats/out.h"
#include "formats/proto_read.h"

/* The longest varint. */
#define KY_PROTO_VARINT_BYTES 10u

static inline uint8_t *ky_proto_varint_at(uint8_t *to, uint64_t value)
{
	while (value >= 0x80) {
		*to++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*to++ = (uint8_t)value;
	return to;
}

/* Return the number of bytes that ky_proto_varint_at() writes. */
static inline size_t ky_proto_varint_bytes(uint64_t value)
{
	return (size_t)(70 - __builtin_clzll(value | 1)) / 7;
}

static inline uint8_t *ky_proto_tag_at(uint8_t *to, uint32_t field, enum ky_proto_wire wire)
{
	return ky_proto_varint_at(to, (uint64_t)field << 3 | wire);
}

static inline uint8_t *ky_proto_uint_at(uint8_t *to, uint32_t field, uint64_t value)
{
	return ky_proto_varint_at(ky_proto_tag_at(to, field, KY_PROTO_VARINT), value);
}

/* Append a uint64, int64 (as two's complement), bool or enum. */
static inline void ky_proto_uint(struct ky_out *out, uint32_t field, uint64_t value)
{
	uint8_t *to = ky_out_room(out, 2 * KY_PROTO_VARINT_BYTES);
	ky_out_done(out, ky_proto_uint_at(to, field, value));
}

/* Append a fixed64. kymo runs on little-endian machines only. */
static inline void ky_proto_fixed64(struct ky_out *out, uint32_t field, uint64_t value)
{
	uint8_t *to = ky_out_room(out, KY_PROTO_VARINT_BYTES + sizeof(value));
	to = ky_proto_tag_at(to, field, KY_PROTO_FIXED64);
	memcpy(to, &value, sizeof(value));
	ky_out_done(out, to + sizeof(value));
}

static inline void ky_proto_double(struct ky_out *out, uint32_t field, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	ky_proto_fixed64(out, field, bits);
}

/* Append the tag and the length of a field of bytes; the caller appends the bytes. */
static inline void ky_proto_length(struct ky_out *out, uint32_t field, size_t bytes)
{
	uint8_t *to = ky_out_room(out, 2 * KY_PROTO_VARINT_BYTES);
	to = ky_proto_tag_at(to, field, KY_PROTO_BYTES);
	ky_out_done(out, ky_proto_varint_at(to, bytes));
}

/* Append bytes, a string or a finished message. */
static inline void ky_proto_bytes(struct ky_out *out, uint32_t field, const void *data,
				  size_t bytes)
{
	ky_proto_length(out, field, bytes);
	ky_out_append(out, data, bytes);
}

static inline void ky_proto_text(struct ky_out *out, uint32_t field, struct ky_text text)
{
	ky_proto_bytes(out, field, text.data, text.bytes);
}

static inline void ky_proto_message(struct ky_out *out, uint32_t field,
				    const struct ky_out *message)
{
	ky_proto_bytes(out, field, message->data, message->used);
}

#endif
