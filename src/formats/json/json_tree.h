/* SPDX-License-Identifier: MIT */
/*
 * json_tree.h: one JSON value, taken apart into nodes: for the rarer things in traces (profiles,
 * metadata) whose members may come in any order.
 *
 *   {"a": [1, 2], "b": 3}   ──▶   { a [ 1 2 b 3     in the order of the text; next of a container is
 *                                 0 1 2 3 4 5 6     the node behind all that is in it
 */
#ifndef KY_FORMATS_JSON_JSON_TREE_H
#define KY_FORMATS_JSON_JSON_TREE_H

#include "formats/json/json_scan.h"

enum ky_json_type {
	KY_JSON_NULL,
	KY_JSON_FALSE,
	KY_JSON_TRUE,
	KY_JSON_NUMBER,
	KY_JSON_STRING,
	KY_JSON_ARRAY,
	KY_JSON_OBJECT /* its nodes are keys and values in turn */
};

struct ky_json_node {
	uint32_t at; /* in the text; of strings behind the quote */
	uint32_t bytes;
	uint32_t next;
	uint8_t type;
	bool escapes;
};

struct ky_json_tree {
	const uint8_t *text;
	struct ky_json_node *nodes;
	uint32_t count;
	uint64_t room;
};

/* Node 0 is the value itself, so that it can stand for no node. */
#define KY_JSON_NO_NODE 0u

/* Parse the value at at; the text must live as long as the tree is used. Return 0, -EBADMSG or -ENOMEM. */
int ky_json_tree_parse(struct ky_json_tree *tree, const uint8_t *at, const uint8_t *end);
void ky_json_tree_free(struct ky_json_tree *tree);

/* Return the value of an object's key, or KY_JSON_NO_NODE, also when it is not an object. */
uint32_t ky_json_tree_get(const struct ky_json_tree *tree, uint32_t object, const char *key);
/* Return an array's first element, or an object's first key; ends where ky_json_tree_end() says. */
static inline uint32_t ky_json_tree_first(uint32_t container)
{
	return container + 1;
}

static inline uint32_t ky_json_tree_end(const struct ky_json_tree *tree, uint32_t container)
{
	return tree->nodes[container].next;
}

static inline uint32_t ky_json_tree_next(const struct ky_json_tree *tree, uint32_t node)
{
	return tree->nodes[node].next;
}

static inline uint8_t ky_json_tree_type(const struct ky_json_tree *tree, uint32_t node)
{
	return tree->nodes[node].type;
}

/* Numbers, also those written as strings. False for KY_JSON_NO_NODE and all else. */
bool ky_json_tree_number(const struct ky_json_tree *tree, uint32_t node,
			 struct ky_json_number *number);
bool ky_json_tree_int(const struct ky_json_tree *tree, uint32_t node, int64_t *value);
/* Strings as they are in the text. */
bool ky_json_tree_text(const struct ky_json_tree *tree, uint32_t node, struct ky_json_text *text);

#endif
