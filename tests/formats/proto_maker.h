/* SPDX-License-Identifier: MIT */
/*
 * proto_maker.h: protobuf messages put together field by field, for tests of what reads them. A message
 * is a value; making one of others copies them.
 */
#ifndef KY_TESTS_PROTO_MAKER_H
#define KY_TESTS_PROTO_MAKER_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "formats/proto.h"

#define PROTO_BYTES 16384

struct proto {
	uint8_t data[PROTO_BYTES];
	size_t used;
};

static inline void proto_bytes(struct proto *to, uint32_t field, const void *data, size_t bytes)
{
	assert(to->used + bytes + 2 * KY_PROTO_VARINT_BYTES <= PROTO_BYTES);
	uint8_t *at = ky_proto_tag_at(to->data + to->used, field, KY_PROTO_BYTES);
	at = ky_proto_varint_at(at, bytes);
	memcpy(at, data, bytes);
	to->used = (size_t)(at - to->data) + bytes;
}

static inline void proto_number(struct proto *to, uint32_t field, uint64_t value)
{
	assert(to->used + 2 * KY_PROTO_VARINT_BYTES <= PROTO_BYTES);
	to->used = (size_t)(ky_proto_uint_at(to->data + to->used, field, value) - to->data);
}

static inline void proto_fixed64(struct proto *to, uint32_t field, uint64_t value)
{
	assert(to->used + 8 + KY_PROTO_VARINT_BYTES <= PROTO_BYTES);
	uint8_t *at = ky_proto_tag_at(to->data + to->used, field, KY_PROTO_FIXED64);
	memcpy(at, &value, sizeof(value));
	to->used = (size_t)(at - to->data) + sizeof(value);
}

static inline void proto_real(struct proto *to, uint32_t field, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	proto_fixed64(to, field, bits);
}

static inline void proto_text(struct proto *to, uint32_t field, const char *text)
{
	proto_bytes(to, field, text, strlen(text));
}

static inline void proto_message(struct proto *to, uint32_t field, const struct proto *message)
{
	proto_bytes(to, field, message->data, message->used);
}

/* Numbers side by side in one field. */
static inline void proto_packed(struct proto *to, uint32_t field, const uint64_t *values,
				size_t count)
{
	uint8_t packed[256];
	uint8_t *at = packed;
	for (size_t i = 0; i < count; i++)
		at = ky_proto_varint_at(at, values[i]);
	proto_bytes(to, field, packed, (size_t)(at - packed));
}

/* A message that holds a number and a text, as interned ones do. */
static inline void proto_interned(struct proto *to, uint32_t field, uint64_t iid, const char *text)
{
	static struct proto entry;
	entry.used = 0;
	proto_number(&entry, 1, iid);
	proto_text(&entry, 2, text);
	proto_message(to, field, &entry);
}

#endif
