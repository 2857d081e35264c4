/* SPDX-License-Identifier: MIT */
/*
 * json_scan.h: the parts of JSON text: white space, strings, numbers, and values to step over.
 * Works on the bytes from a place up to end, where one more byte can be read and is 0 (as ky_input
 * has it); reads nothing behind that.
 *
 * Lenient where readers of traces must be: control characters in strings, unknown escapes, commas
 * before an end. Text that ends too early is distinguished from malformed text, so that a caller can
 * get more of the text and try again.
 */
#ifndef KY_FORMATS_JSON_JSON_SCAN_H
#define KY_FORMATS_JSON_JSON_SCAN_H

#include "formats/input.h"
#include "formats/json/json_scan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Why a function that returns the place behind something returned NULL. */
enum ky_json_fault {
	KY_JSON_CUT, /* the text ends in the middle of it */
	KY_JSON_BAD  /* it is malformed */
};

/* A string as it is in the text, without its quotes. */
struct ky_json_text {
	const uint8_t *at;
	size_t bytes;
	bool escapes; /* has backslashes: ky_json_unescape() */
};

struct ky_json_number {
	bool integer; /* fits int64_t and was written as one */
	int64_t i;
	double d; /* always */
};

static inline const uint8_t *ky_json_space(const uint8_t *at)
{
	while (*at <= ' ' && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
		at++;
	return at;
}

/* at is behind the opening quote; the result is behind the closing one. NULL: cut off. */
const uint8_t *ky_json_scan_string(const uint8_t *at, const uint8_t *end,
				   struct ky_json_text *text);
/* Skip any value. */
const uint8_t *ky_json_skip(const uint8_t *at, const uint8_t *end, enum ky_json_fault *fault);
/* Parse a number. NULL: cut off (it touches the end, where more digits might follow) or malformed. */
const uint8_t *ky_json_number(const uint8_t *at, const uint8_t *end, struct ky_json_number *number,
			      enum ky_json_fault *fault);
/* Do the same for all of a text, which may begin with '+', '.' or zeros; false when it is not a number. */
bool ky_json_number_text(const uint8_t *at, size_t bytes, struct ky_json_number *number);

/*
 * Return the number that a text means times a power of ten: exact, without a double on the way; rounded half away
 * from zero. false when it is not a number, or does not fit.
 */
bool ky_json_decimal(const uint8_t *at, size_t bytes, int power, int64_t *value);

/* Return a number of microseconds as nanoseconds, exact as above. NULL as above. */
const uint8_t *ky_json_micros(const uint8_t *at, const uint8_t *end, int64_t *ns,
			      enum ky_json_fault *fault);

/* Write at most text->bytes bytes, the characters that are meant; how many. */
size_t ky_json_unescape(const struct ky_json_text *text, char *to);

static inline bool ky_json_is(const struct ky_json_text *text, const char *what)
{
	const size_t bytes = strlen(what);
	return text->bytes == bytes && !text->escapes && memcmp(text->at, what, bytes) == 0;
}

/* ---- text that is larger than the input's buffer ---- */

/* Double what the buffer has from at on; false when there is nothing more. */
bool ky_json_feed_grow(struct ky_input *input);
/* Skip white space and commas; the next byte, or -1 at the end. */
int ky_json_feed_next(struct ky_input *input);
/* Skip this byte, after white space; false when another is there. */
bool ky_json_feed_take(struct ky_input *input, uint8_t byte);
/* Make the value at at whole in the buffer: where it ends, or NULL. fault may be NULL, here and below. */
const uint8_t *ky_json_feed_value(struct ky_input *input, enum ky_json_fault *fault);
/* Skip the value at at, whatever it is. False: cut off or wrong. */
bool ky_json_feed_skip(struct ky_input *input, enum ky_json_fault *fault);

#define KY_JSON_KEY_BYTES 64u
/*
 * Step to the value of the next key of an object, and copies the key (cut to fit). 1; 0 behind the
 * object's end; -1 when it is cut off or no object.
 */
int ky_json_feed_key(struct ky_input *input, char key[KY_JSON_KEY_BYTES],
		     enum ky_json_fault *fault);
/* Step to the next element of an array. 1; 0 behind the array's end; -1 when it is cut off. */
int ky_json_feed_element(struct ky_input *input);

/* Hand each element of the array at at to take(), whole in the buffer up to stop. False: cut off, or take() failed. */
typedef bool ky_json_element_fn(void *context, const uint8_t *stop);
bool ky_json_feed_elements(struct ky_input *input, ky_json_element_fn *take, void *context);
/* Hand each key of an object, whose '{' was passed, to take(), which moves behind the key's value. False as above. */
typedef bool ky_json_member_fn(void *context, const char *key);
bool ky_json_feed_members(struct ky_input *input, ky_json_member_fn *take, void *context);

/*
 * ---- one value, taken apart into nodes: json_tree.c ----
 *
 * For the rarer things in traces (profiles, metadata), whose members may come in any order.
 *
 *   {"a": [1, 2], "b": 3}   ──▶   { a [ 1 2 b 3     in the order of the text; next of a container is
 *                                 0 1 2 3 4 5 6     the node behind all that is in it
 */

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
/* Get a number or a text of one times a power of ten, exact. */
bool ky_json_tree_decimal(const struct ky_json_tree *tree, uint32_t node, int power,
			  int64_t *value);
bool ky_json_tree_number(const struct ky_json_tree *tree, uint32_t node,
			 struct ky_json_number *number);
bool ky_json_tree_int(const struct ky_json_tree *tree, uint32_t node, int64_t *value);
/* Strings as they are in the text. */
bool ky_json_tree_text(const struct ky_json_tree *tree, uint32_t node, struct ky_json_text *text);

#endif
