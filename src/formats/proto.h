/* SPDX-License-Identifier: MIT */
/*
 * proto.h: protobuf messages.
 *
 * Messages are read in place, field by field, without copying. Every length is checked against the message that holds it; a
 * field that does not fit ends the message and sets bad. Varints may be longer than necessary, since writers patch lengths
 * in later. libc only: the recorder uses it too.
 *
 * Of the functions that write, those that end in _at write to memory in which the caller made room, and return the new end;
 * the others append to a buffer.
 */
#ifndef KY_FORMATS_PROTO_H
#define KY_FORMATS_PROTO_H

#include "core/event.h"
#include "formats/out.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum ky_proto_wire {
	KY_PROTO_VARINT = 0,
	KY_PROTO_FIXED64 = 1,
	KY_PROTO_BYTES = 2,
	KY_PROTO_FIXED32 = 5,
};

/* The unread rest of a message. */
struct ky_proto_in {
	const uint8_t *at;
	const uint8_t *end;
	bool bad;
};

/* Bytes of the input: a string or a message. */
struct ky_proto_view {
	const uint8_t *data;
	size_t bytes;
};

struct ky_proto_field {
	uint32_t id;
	uint32_t wire;             /* enum ky_proto_wire */
	uint64_t value;            /* the number, or the length of KY_PROTO_BYTES */
	struct ky_proto_view view; /* of KY_PROTO_BYTES */
};

static inline struct ky_proto_in ky_proto_open(struct ky_proto_view view)
{
	static const uint8_t nothing;
	const uint8_t *data = view.data ? view.data : &nothing;
	return (struct ky_proto_in){.at = data, .end = data + view.bytes, .bad = false};
}

/* Read a varint of any length. */
static inline bool ky_proto_read_long_varint(struct ky_proto_in *in, uint64_t *value)
{
	uint64_t sum = 0;
	for (unsigned shift = 0; shift < 70 && in->at < in->end; shift += 7) {
		const uint8_t byte = *in->at++;
		if (shift < 64)
			sum |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*value = sum;
			return true;
		}
	}
	in->bad = true;
	return false;
}

static inline bool ky_proto_read_varint(struct ky_proto_in *in, uint64_t *value)
{
	if (__builtin_expect(in->at < in->end && *in->at < 0x80, 1)) {
		*value = *in->at++;
		return true;
	}
	/* Two bytes are common too: patched lengths, field numbers above 15, time differences. */
	if (in->end - in->at >= 2 && in->at[1] < 0x80) {
		*value = (in->at[0] & 0x7fu) | (uint64_t)in->at[1] << 7;
		in->at += 2;
		return true;
	}
	return ky_proto_read_long_varint(in, value);
}

static inline bool ky_proto_read_fixed(struct ky_proto_in *in, size_t bytes, uint64_t *value)
{
	if ((size_t)(in->end - in->at) < bytes) {
		in->bad = true;
		return false;
	}
	*value = 0;
	memcpy(value, in->at, bytes);
	in->at += bytes;
	return true;
}

/* Read the next field. Return false at the end and where the message is damaged. */
static inline bool ky_proto_next(struct ky_proto_in *in, struct ky_proto_field *field)
{
	uint64_t tag;
	if (in->at >= in->end || !ky_proto_read_varint(in, &tag))
		return false;
	field->id = (uint32_t)(tag >> 3);
	field->wire = (uint32_t)tag & 7;
	field->view = (struct ky_proto_view){NULL, 0};
	switch (field->wire) {
	case KY_PROTO_VARINT:
		return ky_proto_read_varint(in, &field->value);
	case KY_PROTO_FIXED64:
		return ky_proto_read_fixed(in, 8, &field->value);
	case KY_PROTO_FIXED32:
		return ky_proto_read_fixed(in, 4, &field->value);
	case KY_PROTO_BYTES:
		if (!ky_proto_read_varint(in, &field->value))
			return false;
		if (field->value > (uint64_t)(in->end - in->at)) {
			in->bad = true;
			return false;
		}
		field->view = (struct ky_proto_view){in->at, (size_t)field->value};
		in->at += field->value;
		return true;
	default:
		in->bad = true;
		return false;
	}
}

/* Loop over the fields of a message, up to its end or where it is damaged; declares field. */
#define KY_PROTO_EACH(field, message)                                                              \
	for (struct ky_proto_in ky_##field##_in_ = ky_proto_open(message),                         \
				*ky_##field##_once_ = &ky_##field##_in_;                           \
	     ky_##field##_once_; ky_##field##_once_ = NULL)                                        \
		for (struct ky_proto_field field; ky_proto_next(&ky_##field##_in_, &field);)

/* The values of a repeated numeric field: a single one, or several packed ones. */
struct ky_proto_items {
	struct ky_proto_in packed;
	uint64_t one;
	bool has_one;
	bool fixed64; /* the packed values' type, otherwise varints */
};

static inline struct ky_proto_items ky_proto_items(const struct ky_proto_field *field, bool fixed64)
{
	return (struct ky_proto_items){
		.packed = ky_proto_open(field->view),
		.one = field->value,
		.has_one = field->wire != KY_PROTO_BYTES,
		.fixed64 = fixed64,
	};
}

static inline bool ky_proto_item(struct ky_proto_items *items, uint64_t *value)
{
	if (items->has_one) {
		*value = items->one;
		items->has_one = false;
		return true;
	}
	if (items->packed.at >= items->packed.end)
		return false;
	return items->fixed64 ? ky_proto_read_fixed(&items->packed, 8, value)
			      : ky_proto_read_varint(&items->packed, value);
}

/* Find the first field with that number. */
static inline bool ky_proto_find(struct ky_proto_view message, uint32_t id,
				 struct ky_proto_field *field)
{
	struct ky_proto_in in = ky_proto_open(message);
	while (ky_proto_next(&in, field))
		if (field->id == id)
			return true;
	return false;
}

/* Return the number of the first field with that number, 0 without one. */
static inline uint64_t ky_proto_number(struct ky_proto_view message, uint32_t id)
{
	struct ky_proto_field field;
	return ky_proto_find(message, id, &field) ? field.value : 0;
}

static inline double ky_proto_as_double(uint64_t bits)
{
	double value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* ---- writing ---- */

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
