/* SPDX-License-Identifier: MIT */
/*
 * json_args.c: the arguments of an event as one flat set, with Perfetto's keys: {"a": {"b": [7]}}
 * is "args.a.b[0]" = 7. Nulls, empty objects and empty arrays leave nothing.
 *
 * Keys at the top have a cache of their own, from the key as it is in the text to the full one.
 * Deeper ones are put together in json->path. Both depth and length are bounded: anything beyond is
 * left out and counted.
 */
#include "formats/json/json_reader.h"

#include <stdio.h>

#define DEPTH_MAX 48u
#define PATH_PLAIN 128u /* longer keys only as long as strings are in proportion to the input */
#define STRINGS_FREE (16u << 20)
#define STRINGS_PER_BYTE 8u

struct args_walk {
	struct ky_json *json;
	const uint8_t *end;
	uint64_t position;
};

static const uint8_t *value(struct args_walk *walk, const uint8_t *at, uint32_t path,
			    uint32_t depth, uint32_t key);

/* The number of the key whose path is there; made only now that there is a value for it. */
static uint32_t path_key(struct args_walk *walk, uint32_t path, uint32_t key)
{
	return key ? key : ky_json_string_of(walk->json, (const uint8_t *)walk->json->path, path);
}

/* Room for bytes more behind the path. */
static bool path_fits(struct args_walk *walk, uint32_t path, size_t bytes, uint32_t depth)
{
	const uint64_t used = walk->json->trace->strings.bytes_used;
	const bool small = path + bytes < PATH_PLAIN ||
			   used < STRINGS_FREE + walk->position * STRINGS_PER_BYTE;
	if (depth < DEPTH_MAX && bytes < KY_JSON_PATH_BYTES - path && small)
		return true;
	ky_problem(walk->json->trace, "json_args_too_deep", KY_DATA_LOSS, walk->position,
		   "arguments nested deeper than %u, or with a key longer than %u bytes, were left "
		   "out",
		   DEPTH_MAX, small ? KY_JSON_PATH_BYTES : PATH_PLAIN);
	return false;
}

/* "args.KEY" for a key at the top, without escapes. */
static uint32_t top_key(struct args_walk *walk, const struct ky_json_text *text)
{
	struct ky_json *json = walk->json;
	const uint64_t head = ky_json_head(text->at, text->bytes),
		       tail = ky_json_tail(text->at, text->bytes);
	struct ky_json_cached *slot =
		&json->keys[ky_json_slot(head, tail, text->bytes) % KY_JSON_KEYS];
	if (slot->string && slot->head == head && slot->tail == tail && slot->bytes == text->bytes)
		return slot->string;
	memcpy(json->path + 4, ".", 1);
	memcpy(json->path + 5, text->at, text->bytes);
	const uint32_t string =
		ky_json_string_of(json, (const uint8_t *)json->path, 5 + text->bytes);
	if (text->bytes <= 16)
		*slot = (struct ky_json_cached){head, tail, (uint32_t)text->bytes, string};
	return string;
}

static const uint8_t *member(struct args_walk *walk, const struct ky_json_text *text,
			     const uint8_t *at, uint32_t path, uint32_t depth)
{
	enum ky_json_fault fault;
	char *to = walk->json->path + path;

	if (!path_fits(walk, path, text->bytes + 1, depth))
		return ky_json_skip(at, walk->end, &fault);
	if (path == 4 && !text->escapes && *at != '{' && *at != '[')
		return value(walk, at, path, depth, *at == 'n' ? 0 : top_key(walk, text));
	*to++ = '.';
	size_t bytes = text->bytes;
	if (text->escapes)
		bytes = ky_json_unescape(text, to);
	else
		memcpy(to, text->at, bytes);
	return value(walk, at, path + 1 + (uint32_t)bytes, depth, 0);
}

static const uint8_t *object(struct args_walk *walk, const uint8_t *at, uint32_t path,
			     uint32_t depth)
{
	struct ky_json_text text;

	for (at++;;) {
		while (*at == ',' || (*at <= ' ' && at < walk->end))
			at++;
		if (*at == '}')
			return at + 1;
		if (*at != '"')
			return NULL;
		at = ky_json_scan_string(at + 1, walk->end, &text);
		if (!at)
			return NULL;
		if (*at != ':')
			at = ky_json_space(at);
		if (*at != ':')
			return NULL;
		at = ky_json_space(at + 1);
		at = member(walk, &text, at, path, depth);
		if (!at)
			return NULL;
	}
}

static const uint8_t *array(struct args_walk *walk, const uint8_t *at, uint32_t path,
			    uint32_t depth)
{
	enum ky_json_fault fault;
	uint32_t index = 0;

	for (at++;; index++) {
		while (*at == ',' || (*at <= ' ' && at < walk->end))
			at++;
		if (*at == ']')
			return at + 1;
		if (at >= walk->end)
			return NULL;
		if (path_fits(walk, path, 12, depth)) {
			const int bytes = snprintf(walk->json->path + path, 13, "[%u]", index);
			at = value(walk, at, path + (uint32_t)bytes, depth, 0);
		} else {
			at = ky_json_skip(at, walk->end, &fault);
		}
		if (!at)
			return NULL;
	}
}

static const uint8_t *string(struct args_walk *walk, const uint8_t *at, uint32_t key)
{
	struct ky_json_text text;
	struct ky_trace *trace = walk->json->trace;

	at = ky_json_scan_string(at + 1, walk->end, &text);
	if (!at)
		return NULL;
	uint32_t number = ky_json_text_string(walk->json, &text);
	if (!number)
		number = ky_json_string_of(walk->json, (const uint8_t *)"", 0);
	ky_arg_string(trace, key, number);
	return at;
}

static const uint8_t *scalar(struct args_walk *walk, const uint8_t *at, uint32_t key)
{
	struct ky_trace *trace = walk->json->trace;
	struct ky_json_number number;
	enum ky_json_fault fault;

	if (*at == 't' || *at == 'f') {
		ky_arg_bool(trace, key, *at == 't');
		return ky_json_skip(at, walk->end, &fault);
	}
	const uint8_t *stop = ky_json_number(at, walk->end, &number, &fault);
	if (!stop)
		return ky_json_skip(at, walk->end, &fault);
	if (number.integer)
		ky_arg_int(trace, key, number.i);
	else
		ky_arg_real(trace, key, number.d);
	return stop;
}

/* key is the number of the full key where that is known, else the path is. */
static const uint8_t *value(struct args_walk *walk, const uint8_t *at, uint32_t path,
			    uint32_t depth, uint32_t key)
{
	enum ky_json_fault fault;

	if (*at == '{')
		return object(walk, at, path, depth + 1);
	if (*at == '[')
		return array(walk, at, path, depth + 1);
	if (*at == 'n')
		return ky_json_skip(at, walk->end, &fault);
	if (*at == '"')
		return string(walk, at, path_key(walk, path, key));
	return scalar(walk, at, path_key(walk, path, key));
}

uint32_t ky_json_args(struct ky_json *json, const uint8_t *at, const uint8_t *end,
		      uint64_t position)
{
	struct args_walk walk = {json, end, position};

	if (!at || *at != '{' || ky_json_space(at + 1)[0] == '}')
		return 0;
	memcpy(json->path, "args", 4);
	ky_args_begin(json->trace);
	if (!object(&walk, at, 4, 0))
		ky_problem(json->trace, "json_parser_failure", KY_ERROR, position,
			   "the arguments of the event are no JSON");
	return ky_args_end(json->trace);
}
