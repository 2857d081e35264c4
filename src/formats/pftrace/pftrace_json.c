/* SPDX-License-Identifier: MIT */
/*
 * pftrace_json.c: debug annotations whose value is JSON text become nested arguments, with the keys that
 * Perfetto gives them: "debug.name.member", "debug.name[0]". Nulls, and what is empty, leave nothing.
 */
#include "formats/json/json_tree.h"
#include "formats/pftrace/pftrace_reader.h"

#include <stdio.h>
#include <stdlib.h>

#define NESTED_MAX 48u
#define KEY_BYTES_MAX 400u

struct walk {
	struct ky_pf *pf;
	const struct ky_json_tree *tree;
};

/* The characters that are meant; NULL without memory. The caller frees it. */
static char *unescaped(const struct ky_json_text *text, size_t *bytes)
{
	char *copy = malloc(text->bytes + 1);
	if (copy)
		*bytes = ky_json_unescape(text, copy);
	return copy;
}

static uint32_t string_of(struct walk *walk, uint32_t node)
{
	struct ky_json_text text;
	size_t bytes = 0;
	const struct ky_json_node *top = walk->tree->nodes;
	if (node == 0 && top->type == KY_JSON_STRING)
		text = (struct ky_json_text){walk->tree->text + top->at, top->bytes, top->escapes};
	else if (!ky_json_tree_text(walk->tree, node, &text))
		return 0;
	if (!text.escapes)
		return ky_string(walk->pf->trace, (const char *)text.at, text.bytes);
	char *copy = unescaped(&text, &bytes);
	const uint32_t string = copy ? ky_string(walk->pf->trace, copy, bytes) : 0;
	free(copy);
	return string;
}

static void leaf(struct walk *walk, uint32_t node)
{
	struct ky_trace *trace = walk->pf->trace;
	struct ky_json_number number;
	const uint8_t type = ky_json_tree_type(walk->tree, node);
	if (type == KY_JSON_NULL)
		return;
	const uint32_t key = ky_pf_buffer_string(walk->pf, &walk->pf->key);
	if (type == KY_JSON_STRING)
		ky_arg_string(trace, key, string_of(walk, node));
	else if (type == KY_JSON_TRUE || type == KY_JSON_FALSE)
		ky_arg_bool(trace, key, type == KY_JSON_TRUE);
	else if (ky_json_number_text(walk->tree->text + walk->tree->nodes[node].at,
				     walk->tree->nodes[node].bytes, &number)) {
		if (number.integer)
			ky_arg_int(trace, key, number.i);
		else
			ky_arg_real(trace, key, number.d);
	}
}

static void append_member(struct walk *walk, uint32_t key_node)
{
	const char *name = ky_text_of(walk->pf->trace, string_of(walk, key_node));
	const size_t bytes = name ? strlen(name) : 0;
	struct ky_pf_buffer *key = &walk->pf->key;
	ky_pf_buffer_append(key, ".", 1);
	if (bytes && key->used + bytes <= KEY_BYTES_MAX)
		ky_pf_buffer_append(key, name, bytes);
}

static void value(struct walk *walk, uint32_t node, uint32_t depth)
{
	const uint8_t type = ky_json_tree_type(walk->tree, node);
	const uint32_t used = walk->pf->key.used;
	uint32_t index = 0;
	char text[16];
	if (type != KY_JSON_OBJECT && type != KY_JSON_ARRAY) {
		leaf(walk, node);
		return;
	}
	if (depth >= NESTED_MAX)
		return;
	const uint32_t end = ky_json_tree_end(walk->tree, node);
	for (uint32_t at = ky_json_tree_first(node); at < end;
	     at = ky_json_tree_next(walk->tree, at)) {
		if (type == KY_JSON_OBJECT) {
			append_member(walk, at);
			at = ky_json_tree_next(walk->tree, at);
			if (at >= end)
				break;
		} else {
			const int bytes = snprintf(text, sizeof(text), "[%u]", index++);
			ky_pf_buffer_append(&walk->pf->key, text, (size_t)bytes);
		}
		value(walk, at, depth + 1);
		walk->pf->key.used = used;
	}
	walk->pf->key.used = used;
}

bool ky_pf_json_args(struct ky_pf *pf, struct ky_proto_view text)
{
	struct ky_json_tree tree = {0};
	struct walk walk = {.pf = pf, .tree = &tree};
	bool whole = false;
	/* The scanner reads one byte behind its text, which must be 0; numbers end before the text does. */
	uint8_t *copy = malloc(text.bytes + 2);
	if (!copy)
		return false;
	if (text.bytes)
		memcpy(copy, text.data, text.bytes);
	copy[text.bytes] = ' ';
	copy[text.bytes + 1] = 0;
	if (ky_json_tree_parse(&tree, ky_json_space(copy), copy + text.bytes + 1) == 0) {
		value(&walk, 0, 0);
		whole = true;
	}
	ky_json_tree_free(&tree);
	free(copy);
	return whole;
}
