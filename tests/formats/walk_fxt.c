/* SPDX-License-Identifier: MIT */
/*
 * walk_fxt.c: the records of a Fuchsia trace: sizes, the tables of strings and threads, and that all
 * parts of an event add up to its size.
 */
#include <stdlib.h>
#include <string.h>

#include "walk.h"

struct walk {
	walk_event_fn fn;
	void *context;
	char strings[32768][64];
	bool is_defined[32768];
	uint64_t threads[256];
	bool is_bound[256];
};

struct record {
	const uint64_t *at;
	const uint64_t *end;
	const char *wrong;
};

static uint64_t bits(uint64_t word, unsigned first, unsigned last)
{
	return word >> first & (UINT64_MAX >> (63 - (last - first)));
}

static uint64_t word(struct record *r)
{
	if (r->at < r->end)
		return *r->at++;
	r->wrong = "a record is shorter than its parts";
	return 0;
}

static void copy_text(char *to, const void *from, size_t bytes)
{
	const size_t kept = bytes < 63 ? bytes : 63;
	memcpy(to, from, kept);
	to[kept] = '\0';
}

/* Reads what a string's number stands for, or the string itself from the record. */
static void read_string(struct walk *walk, struct record *r, uint64_t ref, char *to)
{
	to[0] = '\0';
	if (ref & 0x8000) {
		const size_t bytes = ref & 0x7fff;
		const size_t words = (bytes + 7) / 8;
		if ((size_t)(r->end - r->at) < words) {
			r->wrong = "a string goes beyond its record";
			return;
		}
		copy_text(to, r->at, bytes);
		r->at += words;
	} else if (ref) {
		if (!walk->is_defined[ref])
			r->wrong = "a string is used before it is defined";
		strcpy(to, walk->strings[ref]);
	}
}

static void read_arg(struct walk *walk, struct record *r)
{
	char text[64];
	const uint64_t *start = r->at;
	const uint64_t header = word(r);
	const uint64_t type = bits(header, 0, 3);
	read_string(walk, r, bits(header, 16, 31), text);
	if (type == 6)
		read_string(walk, r, bits(header, 32, 47), text);
	else if (type != 9 && type != 0)
		word(r);
	if (!r->wrong && (uint64_t)(r->at - start) != bits(header, 4, 15))
		r->wrong = "an argument's size is not that of its parts";
}

static void read_event(struct walk *walk, struct record *r, uint64_t header)
{
	struct walk_event event = {.type = bits(header, 16, 19), .time_ns = word(r)};
	const uint64_t thread = bits(header, 24, 31);
	if (thread) {
		event.thread = walk->threads[thread];
		if (!walk->is_bound[thread])
			r->wrong = "a thread is used before it is defined";
	} else {
		word(r);
		event.thread = word(r);
	}
	read_string(walk, r, bits(header, 32, 47), event.category);
	read_string(walk, r, bits(header, 48, 63), event.name);
	for (uint64_t i = 0; i < bits(header, 20, 23) && !r->wrong; i++)
		read_arg(walk, r);
	if (event.type == 1 || event.type >= 5)
		word(r);
	if (!r->wrong)
		walk->fn(&event, walk->context);
}

static void read_object(struct walk *walk, struct record *r, uint64_t header)
{
	char name[64];
	word(r);
	read_string(walk, r, bits(header, 24, 39), name);
	for (uint64_t i = 0; i < bits(header, 40, 43) && !r->wrong; i++)
		read_arg(walk, r);
}

static void read_record(struct walk *walk, struct record *r)
{
	const uint64_t header = word(r);
	const uint64_t index = bits(header, 16, 30);
	switch (bits(header, 0, 3)) {
	case 0:
	case 1:
		r->at = r->end;
		break;
	case 2:
		walk->is_defined[index] = index != 0;
		read_string(walk, r, 0x8000 | bits(header, 32, 46), walk->strings[index]);
		break;
	case 3:
		word(r);
		walk->threads[bits(header, 16, 23)] = word(r);
		walk->is_bound[bits(header, 16, 23)] = true;
		break;
	case 4:
		read_event(walk, r, header);
		break;
	case 7:
		read_object(walk, r, header);
		break;
	default:
		r->wrong = "a record is of an unknown type";
	}
	if (!r->wrong && r->at != r->end)
		r->wrong = "a record is longer than its parts";
}

const char *walk_fxt(const uint8_t *data, size_t bytes, walk_event_fn fn, void *context)
{
	const uint64_t *at = (const uint64_t *)(const void *)data;
	const uint64_t *end = at + bytes / 8;
	if (bytes % 8 || bytes < 8 || *at != UINT64_C(0x0016547846040010))
		return "the file has no magic, or is not whole words";
	struct walk *walk = calloc(1, sizeof(*walk));
	const char *wrong = walk ? NULL : "no memory";
	while (!wrong && at < end) {
		const uint64_t words = bits(*at, 4, 15);
		struct record record = {at, at + words, NULL};
		if (!words || words > (uint64_t)(end - at)) {
			wrong = "a record goes beyond the file";
			break;
		}
		walk->fn = fn;
		walk->context = context;
		read_record(walk, &record);
		wrong = record.wrong;
		at += words;
	}
	free(walk);
	return wrong;
}
