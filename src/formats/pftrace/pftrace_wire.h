/* SPDX-License-Identifier: MIT */
/*
 * pftrace_wire.h: takes protobuf messages apart, field by field, where they are. Every length is checked
 * against the message that holds it; what does not fit ends the message and sets bad. Varints may be
 * longer than they must be: writers patch lengths in afterwards.
 */
#ifndef KY_FORMATS_PFTRACE_PFTRACE_WIRE_H
#define KY_FORMATS_PFTRACE_PFTRACE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum ky_pf_wire { KY_PF_VARINT = 0, KY_PF_FIXED64 = 1, KY_PF_BYTES = 2, KY_PF_FIXED32 = 5 };

/* Bytes of a message that are still to be read. */
struct ky_pf_in {
	const uint8_t *at;
	const uint8_t *end;
	bool bad;
};

struct ky_pf_span {
	const uint8_t *data;
	size_t bytes;
};

struct ky_pf_field {
	uint32_t id;
	uint32_t wire;          /* enum ky_pf_wire */
	uint64_t value;         /* of all but bytes */
	struct ky_pf_span span; /* of bytes */
};

static inline struct ky_pf_in ky_pf_open(struct ky_pf_span span)
{
	static const uint8_t nothing;
	const uint8_t *data = span.data ? span.data : &nothing;
	return (struct ky_pf_in){.at = data, .end = data + span.bytes, .bad = false};
}

/* A varint of any length. */
static inline bool ky_pf_varint_far(struct ky_pf_in *in, uint64_t *value)
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

static inline bool ky_pf_varint(struct ky_pf_in *in, uint64_t *value)
{
	if (__builtin_expect(in->at < in->end && *in->at < 0x80, 1)) {
		*value = *in->at++;
		return true;
	}
	/* Lengths that were patched in, numbers of fields above 15, differences of times. */
	if (in->end - in->at >= 2 && in->at[1] < 0x80) {
		*value = (in->at[0] & 0x7fu) | (uint64_t)in->at[1] << 7;
		in->at += 2;
		return true;
	}
	return ky_pf_varint_far(in, value);
}

static inline bool ky_pf_fixed(struct ky_pf_in *in, size_t bytes, uint64_t *value)
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

/* The next field; false at the end and where the message is damaged. */
static inline bool ky_pf_next(struct ky_pf_in *in, struct ky_pf_field *field)
{
	uint64_t tag;
	if (in->at >= in->end || !ky_pf_varint(in, &tag))
		return false;
	field->id = (uint32_t)(tag >> 3);
	field->wire = (uint32_t)tag & 7;
	field->span = (struct ky_pf_span){NULL, 0};
	switch (field->wire) {
	case KY_PF_VARINT:
		return ky_pf_varint(in, &field->value);
	case KY_PF_FIXED64:
		return ky_pf_fixed(in, 8, &field->value);
	case KY_PF_FIXED32:
		return ky_pf_fixed(in, 4, &field->value);
	case KY_PF_BYTES:
		if (!ky_pf_varint(in, &field->value))
			return false;
		if (field->value > (uint64_t)(in->end - in->at)) {
			in->bad = true;
			return false;
		}
		field->span = (struct ky_pf_span){in->at, (size_t)field->value};
		in->at += field->value;
		return true;
	default:
		in->bad = true;
		return false;
	}
}

/* Items of a repeated field of numbers: one, or many that are packed. */
struct ky_pf_items {
	struct ky_pf_in packed;
	uint64_t one;
	bool has_one;
	bool fixed64; /* what packed items are */
};

static inline struct ky_pf_items ky_pf_items(const struct ky_pf_field *field, bool fixed64)
{
	struct ky_pf_items items = {.has_one = field->wire != KY_PF_BYTES, .one = field->value};
	items.fixed64 = fixed64;
	items.packed = ky_pf_open(field->span);
	return items;
}

static inline bool ky_pf_item(struct ky_pf_items *items, uint64_t *value)
{
	if (items->has_one) {
		*value = items->one;
		items->has_one = false;
		return true;
	}
	if (items->packed.at >= items->packed.end)
		return false;
	return items->fixed64 ? ky_pf_fixed(&items->packed, 8, value)
			      : ky_pf_varint(&items->packed, value);
}

/* The first field of that number, or false. */
static inline bool ky_pf_find(struct ky_pf_span message, uint32_t id, struct ky_pf_field *field)
{
	struct ky_pf_in in = ky_pf_open(message);
	while (ky_pf_next(&in, field))
		if (field->id == id)
			return true;
	return false;
}

static inline double ky_pf_double(uint64_t bits)
{
	double value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

#endif
