/* SPDX-License-Identifier: MIT */
/*
 * proto_read.h: reads protobuf messages in place, field by field, without copying. Every length is
 * checked against the message that holds it; a field that does not fit ends the message and sets
 * bad. Varints may be longer than necessary, since writers patch lengths in later. libc only: the
 * recorder uses it too.
 */
#ifndef KY_FORMATS_PROTO_READ_H
#define KY_FORMATS_PROTO_READ_H

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

static inline double ky_proto_as_double(uint64_t bits)
{
	double value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

#endif
