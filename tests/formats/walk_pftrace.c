/* SPDX-License-Identifier: MIT */
/*
 * walk_pftrace.c: the packets of a Perfetto trace: lengths, sequences and their state, and the time
 * of each track event by the rules for clocks that count from the last packet.
 */
#include <stdlib.h>
#include <string.h>

#include "walk.h"

#define SEQUENCES_MAX 1024u
#define SEQUENCE_CLOCK 64u
#define BOOTTIME 6u

struct reader {
	const uint8_t *at;
	const uint8_t *end;
	bool broken;
};

struct field {
	uint32_t number;
	uint64_t value;
	struct reader inside;
};

struct packet {
	uint64_t sequence;
	uint64_t flags;
	uint64_t timestamp;
	uint64_t clock;
	bool has_defaults;
	bool has_interned;
	struct reader track_event;
};

struct walk {
	walk_event_fn fn;
	void *context;
	struct {
		bool cleared;
		bool counts; /* its clock does */
		uint64_t last_ns;
	} sequences[SEQUENCES_MAX];
};

static uint64_t varint(struct reader *r)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 70 && r->at < r->end; shift += 7) {
		const uint8_t byte = *r->at++;
		value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
		if (!(byte & 0x80))
			return value;
	}
	r->broken = true;
	return 0;
}

/* False at the end, and when something is wrong. */
static bool next(struct reader *r, struct field *field)
{
	if (r->broken || r->at >= r->end)
		return false;
	const uint64_t tag = varint(r);
	memset(field, 0, sizeof(*field));
	field->number = (uint32_t)(tag >> 3);
	size_t bytes = 0;
	if ((tag & 7) == 0)
		field->value = varint(r);
	else if ((tag & 7) == 1)
		bytes = 8;
	else if ((tag & 7) == 2)
		bytes = (size_t)varint(r);
	else
		r->broken = true;
	if (bytes > (size_t)(r->end - r->at) || !field->number)
		r->broken = true;
	if (r->broken)
		return false;
	field->inside = (struct reader){r->at, r->at + bytes, false};
	r->at += bytes;
	return true;
}

/* All fields are whole, two levels down. */
static bool is_message(struct reader r, int levels)
{
	struct field field;
	while (next(&r, &field))
		if (levels && field.inside.at && !is_message(field.inside, levels - 1))
			return false;
	return !r.broken;
}

static const char *read_packet(struct reader r, struct packet *packet)
{
	struct field f;
	memset(packet, 0, sizeof(*packet));
	while (next(&r, &f)) {
		if (f.number == 8)
			packet->timestamp = f.value;
		else if (f.number == 10)
			packet->sequence = f.value;
		else if (f.number == 11)
			packet->track_event = f.inside;
		else if (f.number == 12)
			packet->has_interned = true;
		else if (f.number == 13)
			packet->flags = f.value;
		else if (f.number == 58)
			packet->clock = f.value;
		else if (f.number == 59)
			packet->has_defaults = true;
		if ((f.number == 12 || f.number == 59 || f.number == 6) && !is_message(f.inside, 1))
			return "a message inside a packet is broken";
	}
	return r.broken ? "a packet is broken" : NULL;
}

static uint64_t event_type(struct reader r)
{
	struct field field;
	while (next(&r, &field))
		if (field.number == 9)
			return field.value;
	return 0;
}

static const char *take_event(struct walk *walk, const struct packet *p)
{
	if (!is_message(p->track_event, 0))
		return "a track event is broken";
	if (!walk->sequences[p->sequence].cleared || !(p->flags & 2))
		return "a track event comes before its sequence's state";
	struct walk_event event = {.thread = p->sequence, .type = event_type(p->track_event)};
	if (p->clock == BOOTTIME) {
		event.time_ns = p->timestamp;
	} else {
		if (!walk->sequences[p->sequence].counts)
			return "a sequence counts time before it has a clock";
		walk->sequences[p->sequence].last_ns += p->timestamp;
		event.time_ns = walk->sequences[p->sequence].last_ns;
	}
	walk->fn(&event, walk->context);
	return NULL;
}

static const char *take_packet(struct walk *walk, const struct packet *p)
{
	if (p->sequence < 2 || p->sequence >= SEQUENCES_MAX)
		return "a packet has no sequence";
	if (p->flags & 1) {
		if (walk->sequences[p->sequence].cleared)
			return "a sequence begins twice";
		walk->sequences[p->sequence].cleared = true;
		walk->sequences[p->sequence].counts = p->has_defaults;
	}
	if (p->has_interned && !walk->sequences[p->sequence].cleared)
		return "strings come before their sequence's state";
	return p->track_event.at ? take_event(walk, p) : NULL;
}

const char *walk_pftrace(const uint8_t *data, size_t bytes, walk_event_fn fn, void *context)
{
	struct walk *walk = calloc(1, sizeof(*walk));
	struct reader r = {data, data + bytes, false};
	struct field f;
	const char *wrong = walk ? NULL : "no memory";
	while (!wrong && next(&r, &f)) {
		struct packet packet;
		wrong = f.number == 1 ? read_packet(f.inside, &packet) : "not a packet";
		if (!wrong) {
			walk->fn = fn;
			walk->context = context;
			wrong = take_packet(walk, &packet);
		}
	}
	free(walk);
	return wrong ? wrong : r.broken ? "the file is broken" : NULL;
}
