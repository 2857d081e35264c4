/* SPDX-License-Identifier: MIT */
/*
 * json_tree.c: one JSON value, taken apart into nodes; json_scan.h has the layout. While a container is open, its next
 * is the node of the container around it, so that any depth needs no stack.
 */
#include "formats/json/json_scan.h"

#include <errno.h>

#include "base/array.h"

#define NO_PARENT UINT32_MAX

static struct ky_json_node *node_add(struct ky_json_tree *tree, const uint8_t *at, uint8_t type)
{
	if (tree->count == tree->room &&
	    !KY_ARRAY_GROW(tree->nodes, tree->room, (uint64_t)tree->count + 1))
		return NULL;
	struct ky_json_node *node = &tree->nodes[tree->count++];
	*node = (struct ky_json_node){
		.at = (uint32_t)(at - tree->text),
		.next = tree->count,
		.type = type,
	};
	return node;
}

static uint8_t scalar_type(uint8_t c)
{
	if (c == 'n' || c == 'N')
		return KY_JSON_NULL;
	if (c == 't')
		return KY_JSON_TRUE;
	return c == 'f' ? KY_JSON_FALSE : KY_JSON_NUMBER;
}

/* Parse a string or a scalar; return where it ends, or NULL. */
static const uint8_t *leaf(struct ky_json_tree *tree, const uint8_t *at, const uint8_t *end,
			   int *error)
{
	struct ky_json_text text;
	enum ky_json_fault fault;
	const bool string = *at == '"';
	const uint8_t *stop =
		string ? ky_json_scan_string(at + 1, end, &text) : ky_json_skip(at, end, &fault);

	*error = -EBADMSG;
	if (!stop)
		return NULL;
	struct ky_json_node *node =
		node_add(tree, at + string, string ? KY_JSON_STRING : scalar_type(*at));
	*error = -ENOMEM;
	if (!node)
		return NULL;
	node->bytes = (uint32_t)(string ? text.bytes : (size_t)(stop - at));
	node->escapes = string && text.escapes;
	return stop;
}

/* Take a key with its colon; NULL when it is not there. */
static const uint8_t *key(struct ky_json_tree *tree, const uint8_t *at, const uint8_t *end,
			  int *error)
{
	*error = -EBADMSG;
	if (*at != '"')
		return NULL;
	at = leaf(tree, at, end, error);
	if (!at)
		return NULL;
	at = ky_json_space(at);
	*error = -EBADMSG;
	return *at == ':' ? ky_json_space(at + 1) : NULL;
}

/* Close containers and step over commas until a value must follow, in *open. */
static const uint8_t *close_all(struct ky_json_tree *tree, const uint8_t *at, const uint8_t *end,
				uint32_t *open)
{
	while (*open != NO_PARENT) {
		while (at < end && (*at == ',' || *at <= ' '))
			at++;
		if (*at != '}' && *at != ']')
			break;
		struct ky_json_node *node = &tree->nodes[*open];
		*open = node->next;
		node->next = tree->count;
		at++;
		node->bytes = (uint32_t)(at - tree->text) - node->at;
	}
	return at;
}

int ky_json_tree_parse(struct ky_json_tree *tree, const uint8_t *at, const uint8_t *end)
{
	uint32_t open = NO_PARENT;
	int error = -EBADMSG;

	tree->text = at;
	tree->count = 0;
	if ((uint64_t)(end - at) > UINT32_MAX)
		end = at + UINT32_MAX;
	do {
		if (at >= end)
			return -EBADMSG;
		if (open != NO_PARENT && tree->nodes[open].type == KY_JSON_OBJECT) {
			at = key(tree, at, end, &error);
			if (!at || at >= end)
				return error;
		}
		if (*at == '{' || *at == '[') {
			struct ky_json_node *node =
				node_add(tree, at, *at == '{' ? KY_JSON_OBJECT : KY_JSON_ARRAY);
			if (!node)
				return -ENOMEM;
			node->next = open;
			open = tree->count - 1;
			at++;
		} else {
			at = leaf(tree, at, end, &error);
			if (!at)
				return error;
		}
		at = close_all(tree, at, end, &open);
	} while (open != NO_PARENT);
	return 0;
}

void ky_json_tree_free(struct ky_json_tree *tree)
{
	KY_ARRAY_FREE(tree->nodes, tree->room);
}

bool ky_json_tree_text(const struct ky_json_tree *tree, uint32_t node, struct ky_json_text *text)
{
	const struct ky_json_node *n = &tree->nodes[node];
	if (node == KY_JSON_NO_NODE || n->type != KY_JSON_STRING)
		return false;
	*text = (struct ky_json_text){tree->text + n->at, n->bytes, n->escapes};
	return true;
}

uint32_t ky_json_tree_get(const struct ky_json_tree *tree, uint32_t object, const char *name)
{
	struct ky_json_text text;
	uint32_t found = KY_JSON_NO_NODE;

	if (tree->nodes[object].type != KY_JSON_OBJECT)
		return found;
	const uint32_t end = tree->nodes[object].next;
	for (uint32_t i = object + 1; i + 1 < end; i = tree->nodes[i + 1].next)
		if (ky_json_tree_text(tree, i, &text) && ky_json_is(&text, name))
			found = i + 1;
	return found;
}

static bool is_numeric(const struct ky_json_tree *tree, uint32_t node)
{
	const enum ky_json_type type = tree->nodes[node].type;
	return node != KY_JSON_NO_NODE && (type == KY_JSON_NUMBER || type == KY_JSON_STRING);
}

bool ky_json_tree_decimal(const struct ky_json_tree *tree, uint32_t node, int power, int64_t *value)
{
	const struct ky_json_node *n = &tree->nodes[node];
	return is_numeric(tree, node) &&
	       ky_json_decimal(tree->text + n->at, n->bytes, power, value);
}

bool ky_json_tree_number(const struct ky_json_tree *tree, uint32_t node,
			 struct ky_json_number *number)
{
	const struct ky_json_node *n = &tree->nodes[node];
	return is_numeric(tree, node) && ky_json_number_text(tree->text + n->at, n->bytes, number);
}

bool ky_json_tree_int(const struct ky_json_tree *tree, uint32_t node, int64_t *value)
{
	struct ky_json_number number;
	if (!ky_json_tree_number(tree, node, &number))
		return false;
	if (!number.integer && !(number.d > -9.2e18 && number.d < 9.2e18))
		return false;
	*value = number.integer ? number.i : (int64_t)number.d;
	return true;
}
