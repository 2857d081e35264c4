/* SPDX-License-Identifier: MIT */
/*
 * json_string_cache.c: texts of a trace to numbers of strings. Names come again and again: a table, one
 * slot per hash, comes before the trace's strings and resolves most of them with two compares.
 */
#include "base/array.h"
#include "formats/json/json_reader.h"

#include <errno.h>

uint32_t ky_json_string_of(struct ky_json *json, const uint8_t *at, size_t bytes)
{
	const uint64_t head = ky_json_head(at, bytes), tail = ky_json_tail(at, bytes);
	struct ky_json_cached *slot = &json->texts[ky_json_slot(head, tail, bytes) % KY_JSON_TEXTS];
	struct ky_strings *strings = &json->trace->strings;

	if (slot->string && slot->head == head && slot->tail == tail && slot->bytes == bytes &&
	    (bytes <= 16 ||
	     memcmp(ky_strings_text(strings, slot->string) + 8, at + 8, bytes - 16) == 0))
		return slot->string;
	const uint32_t string = ky_strings_add_utf8(strings, (const char *)at, bytes);
	/* A text that was not UTF-8 differs from its string: do not compare it with that. */
	if (bytes <= 16 || (ky_strings_bytes(strings, string) == bytes &&
			    memcmp(ky_strings_text(strings, string), at, bytes) == 0))
		*slot = (struct ky_json_cached){head, tail, (uint32_t)bytes, string};
	return string;
}

char *ky_json_scratch(struct ky_json *json, size_t bytes)
{
	if (bytes <= json->scratch_room || KY_ARRAY_GROW(json->scratch, json->scratch_room, bytes))
		return json->scratch;
	json->trace->error = -ENOMEM;
	return NULL;
}

uint32_t ky_json_text_string(struct ky_json *json, const struct ky_json_text *text)
{
	if (text->bytes == 0)
		return 0;
	if (!text->escapes)
		return ky_json_string_of(json, text->at, text->bytes);
	char *scratch = ky_json_scratch(json, text->bytes);
	if (!scratch)
		return 0;
	const size_t bytes = ky_json_unescape(text, scratch);
	return bytes ? ky_json_string_of(json, (const uint8_t *)scratch, bytes) : 0;
}

uint32_t ky_json_node_string(struct ky_json *json, const struct ky_json_tree *tree, uint32_t node)
{
	struct ky_json_text text;
	return ky_json_tree_text(tree, node, &text) ? ky_json_text_string(json, &text) : 0;
}

uint64_t ky_json_hash(const uint8_t *at, size_t bytes)
{
	uint64_t hash = ky_hash_pair(bytes, 0);
	for (; bytes >= 8; at += 8, bytes -= 8)
		hash = ky_hash_pair(hash, ky_json_head(at, 8));
	return bytes ? ky_hash_pair(hash, ky_json_head(at, bytes)) : hash;
}
