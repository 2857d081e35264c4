/* SPDX-License-Identifier: MIT */
/*
 * pftrace_args.c: the arguments of track events, above all debug annotations. Keys are as in Perfetto:
 * "debug.name", "debug.dict.entry", "debug.array[0]". A key is built in one buffer, to which each level appends
 * its part and removes it afterwards; a plain annotation whose name is interned needs none of that. JSON text
 * becomes nested arguments; nulls and empty values leave nothing.
 */
#include "formats/json/json_scan.h"
#include "formats/pftrace/pftrace_reader.h"

#include <stdlib.h>

#define DEBUG_PREFIX "debug."
#define DEBUG_PREFIX_BYTES 6u
#define NESTED_MAX 64u /* levels */
#define JSON_NESTED_MAX 48u
#define KEY_BYTES_MAX 400u /* a key is in each of its leaves */

/* Append a name to a key, in which dots and brackets have a meaning. */
static void append_name(struct ky_buffer *key, const char *name, size_t bytes)
{
	const size_t begin = key->bytes;
	const size_t room = begin < KEY_BYTES_MAX ? KEY_BYTES_MAX - begin : 0;
	ky_buffer_add(key, name, bytes < room ? bytes : room);
	for (size_t i = begin; i < key->bytes; i++)
		if (key->data[i] == '.' || key->data[i] == '[' || key->data[i] == ']')
			key->data[i] = '_';
}

static void append_index(struct ky_buffer *key, uint32_t index)
{
	ky_buffer_format(key, "[%u]", index);
}

/* ---- nested values of old ---- */

static void nested_value(struct ky_pf *pf, struct ky_proto_view message, uint32_t depth);

static void nested_children(struct ky_pf *pf, struct ky_proto_view message, uint32_t depth)
{
	struct ky_proto_in keys = ky_proto_open(message), values = keys;
	struct ky_proto_field key = {0}, value = {0};
	const size_t used = pf->key.bytes;
	uint32_t index = 0;
	while (ky_proto_next(&values, &value)) {
		if (value.id == KY_PF_NESTED_VALUE_DICT_VALUES && value.wire == KY_PROTO_BYTES) {
			while (ky_proto_next(&keys, &key) && key.id != KY_PF_NESTED_VALUE_DICT_KEYS)
				;
			if (key.id != KY_PF_NESTED_VALUE_DICT_KEYS || key.wire != KY_PROTO_BYTES)
				return;
			ky_buffer_add(&pf->key, ".", 1);
			append_name(&pf->key, (const char *)key.view.data, key.view.bytes);
		} else if (value.id == KY_PF_NESTED_VALUE_ARRAY_VALUES &&
			   value.wire == KY_PROTO_BYTES) {
			append_index(&pf->key, index++);
		} else {
			continue;
		}
		nested_value(pf, value.view, depth + 1);
		pf->key.bytes = used;
		key.id = 0;
	}
}

static void nested_value(struct ky_pf *pf, struct ky_proto_view message, uint32_t depth)
{
	bool children = false;
	if (depth > NESTED_MAX)
		return;
	KY_PROTO_EACH(field, message) {
		const uint32_t key = field.id >= KY_PF_NESTED_VALUE_INT_VALUE &&
						     field.id <= KY_PF_NESTED_VALUE_STRING_VALUE
					     ? ky_pf_buffer_string(pf, &pf->key)
					     : 0;
		if (field.id == KY_PF_NESTED_VALUE_DICT_VALUES ||
		    field.id == KY_PF_NESTED_VALUE_ARRAY_VALUES)
			children = true;
		else if (field.id == KY_PF_NESTED_VALUE_INT_VALUE)
			ky_arg_int(pf->trace, key, (int64_t)field.value);
		else if (field.id == KY_PF_NESTED_VALUE_DOUBLE_VALUE)
			ky_arg_real(pf->trace, key, ky_proto_as_double(field.value));
		else if (field.id == KY_PF_NESTED_VALUE_BOOL_VALUE)
			ky_arg_bool(pf->trace, key, field.value != 0);
		else if (field.id == KY_PF_NESTED_VALUE_STRING_VALUE)
			ky_arg_string(pf->trace, key, ky_pf_string(pf, field.view));
	}
	if (children)
		nested_children(pf, message, depth);
}

/* ---- JSON text ---- */

struct json_walk {
	struct ky_pf *pf;
	const struct ky_json_tree *tree;
};

/* Return the text without escapes, which the caller frees; NULL without memory. */
static char *unescaped(const struct ky_json_text *text, size_t *bytes)
{
	char *copy = malloc(text->bytes + 1);
	if (copy)
		*bytes = ky_json_unescape(text, copy);
	return copy;
}

static uint32_t json_string(struct json_walk *walk, uint32_t node)
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

static void json_leaf(struct json_walk *walk, uint32_t node)
{
	struct ky_trace *trace = walk->pf->trace;
	struct ky_json_number number;
	const uint8_t type = ky_json_tree_type(walk->tree, node);
	if (type == KY_JSON_NULL)
		return;
	const uint32_t key = ky_pf_buffer_string(walk->pf, &walk->pf->key);
	if (type == KY_JSON_STRING)
		ky_arg_string(trace, key, json_string(walk, node));
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

static void json_member(struct json_walk *walk, uint32_t key_node)
{
	const char *name = ky_text_of(walk->pf->trace, json_string(walk, key_node));
	const size_t bytes = name ? strlen(name) : 0;
	struct ky_buffer *key = &walk->pf->key;
	ky_buffer_add(key, ".", 1);
	if (bytes && key->bytes + bytes <= KEY_BYTES_MAX)
		ky_buffer_add(key, name, bytes);
}

static void json_value(struct json_walk *walk, uint32_t node, uint32_t depth)
{
	const uint8_t type = ky_json_tree_type(walk->tree, node);
	const size_t used = walk->pf->key.bytes;
	uint32_t index = 0;
	if (type != KY_JSON_OBJECT && type != KY_JSON_ARRAY) {
		json_leaf(walk, node);
		return;
	}
	if (depth >= JSON_NESTED_MAX)
		return;
	const uint32_t end = ky_json_tree_end(walk->tree, node);
	for (uint32_t at = ky_json_tree_first(node); at < end;
	     at = ky_json_tree_next(walk->tree, at)) {
		if (type == KY_JSON_OBJECT) {
			json_member(walk, at);
			at = ky_json_tree_next(walk->tree, at);
			if (at >= end)
				break;
		} else {
			append_index(&walk->pf->key, index++);
		}
		json_value(walk, at, depth + 1);
		walk->pf->key.bytes = used;
	}
	walk->pf->key.bytes = used;
}

static bool json_args(struct ky_pf *pf, struct ky_proto_view text)
{
	struct ky_json_tree tree = {0};
	struct json_walk walk = {.pf = pf, .tree = &tree};
	bool whole = false;
	/* The scanner reads one byte past its text, which must be 0; a space ends a number. */
	uint8_t *copy = malloc(text.bytes + 2);
	if (!copy)
		return false;
	if (text.bytes)
		memcpy(copy, text.data, text.bytes);
	copy[text.bytes] = ' ';
	copy[text.bytes + 1] = 0;
	if (ky_json_tree_parse(&tree, ky_json_space(copy), copy + text.bytes + 1) == 0) {
		json_value(&walk, 0, 0);
		whole = true;
	}
	ky_json_tree_free(&tree);
	free(copy);
	return whole;
}

/* ---- debug annotations ---- */

/* One annotation; of several values the last counts. */
struct annotation {
	uint32_t key; /* of an interned name, 0: none */
	struct ky_proto_view name;
	bool has_name, has_children;
	struct ky_proto_field value; /* id 0: none */
	struct ky_proto_view all;
};

static void read_annotation(const struct ky_pf_sequence *sequence, struct ky_proto_view message,
			    struct annotation *annotation)
{
	*annotation = (struct annotation){.all = message};
	KY_PROTO_EACH(field, message) {
		if (field.id == KY_PF_DEBUG_ANNOTATION_NAME_IID) {
			annotation->key = ky_pf_text(sequence, KY_PF_ANNOTATION_KEYS, field.value);
		} else if (field.id == KY_PF_DEBUG_ANNOTATION_NAME) {
			annotation->name = field.view;
			annotation->has_name = true;
		} else if (field.id == KY_PF_DEBUG_ANNOTATION_DICT_ENTRIES ||
			   field.id == KY_PF_DEBUG_ANNOTATION_ARRAY_VALUES) {
			annotation->has_children = true;
		} else if (field.id != KY_PF_DEBUG_ANNOTATION_PROTO_TYPE_NAME_IID &&
			   field.id != KY_PF_DEBUG_ANNOTATION_PROTO_TYPE_NAME) {
			annotation->value = field;
		}
	}
}

static void put_value(struct ky_pf *pf, const struct ky_proto_field *value, uint32_t key)
{
	struct ky_trace *trace = pf->trace;
	switch (value->id) {
	case KY_PF_DEBUG_ANNOTATION_BOOL_VALUE:
		ky_arg_bool(trace, key, value->value != 0);
		break;
	case KY_PF_DEBUG_ANNOTATION_UINT_VALUE:
		ky_arg_uint(trace, key, value->value);
		break;
	case KY_PF_DEBUG_ANNOTATION_INT_VALUE:
		ky_arg_int(trace, key, (int64_t)value->value);
		break;
	case KY_PF_DEBUG_ANNOTATION_DOUBLE_VALUE:
		ky_arg_real(trace, key, ky_proto_as_double(value->value));
		break;
	case KY_PF_DEBUG_ANNOTATION_STRING_VALUE:
		ky_arg_string(trace, key, ky_pf_string(pf, value->view));
		break;
	case KY_PF_DEBUG_ANNOTATION_POINTER_VALUE:
		ky_arg_pointer(trace, key, value->value);
		break;
	case KY_PF_DEBUG_ANNOTATION_LEGACY_JSON_VALUE:
		ky_arg_json(trace, key, ky_pf_string(pf, value->view));
		break;
	case KY_PF_DEBUG_ANNOTATION_STRING_VALUE_IID:
		ky_arg_string(trace, key,
			      ky_pf_text(pf->sequence, KY_PF_ANNOTATION_VALUES, value->value));
		break;
	default:
		ky_problem(trace, "debug_annotation_not_carried", KY_INFO, pf->at,
			   "a debug annotation is a message of an unknown type");
	}
}

static void annotation_below(struct ky_pf *pf, const struct annotation *annotation, uint32_t depth);

/* Append the annotation's own name to the key. */
static void append_own_name(struct ky_pf *pf, const struct annotation *annotation)
{
	const char *text = ky_text_of(pf->trace, annotation->key);
	if (annotation->has_name)
		append_name(&pf->key, (const char *)annotation->name.data, annotation->name.bytes);
	else if (text)
		append_name(&pf->key, text + DEBUG_PREFIX_BYTES,
			    ky_strings_bytes(&pf->trace->strings, annotation->key) -
				    DEBUG_PREFIX_BYTES);
}

static void annotation_children(struct ky_pf *pf, struct ky_proto_view message, uint32_t depth)
{
	struct annotation child;
	const size_t used = pf->key.bytes;
	uint32_t index = 0;
	KY_PROTO_EACH(field, message) {
		if ((field.id != KY_PF_DEBUG_ANNOTATION_DICT_ENTRIES &&
		     field.id != KY_PF_DEBUG_ANNOTATION_ARRAY_VALUES) ||
		    field.wire != KY_PROTO_BYTES)
			continue;
		read_annotation(pf->sequence, field.view, &child);
		if (field.id == KY_PF_DEBUG_ANNOTATION_DICT_ENTRIES) {
			ky_buffer_add(&pf->key, ".", 1);
			append_own_name(pf, &child);
		} else {
			append_index(&pf->key, index++);
		}
		annotation_below(pf, &child, depth + 1);
		pf->key.bytes = used;
	}
}

/* Put the annotation's value, whose key is in pf->key. */
static void annotation_below(struct ky_pf *pf, const struct annotation *annotation, uint32_t depth)
{
	if (depth > NESTED_MAX) {
		ky_problem(pf->trace, "debug_annotation_too_deep", KY_DATA_LOSS, pf->at,
			   "debug annotations are nested more than %u deep", NESTED_MAX);
		return;
	}
	if (annotation->has_children)
		annotation_children(pf, annotation->all, depth);
	if (!annotation->value.id)
		return;
	if (annotation->value.id == KY_PF_DEBUG_ANNOTATION_NESTED_VALUE)
		nested_value(pf, annotation->value.view, depth + 1);
	else if (annotation->value.id != KY_PF_DEBUG_ANNOTATION_LEGACY_JSON_VALUE ||
		 !json_args(pf, annotation->value.view))
		put_value(pf, &annotation->value, ky_pf_buffer_string(pf, &pf->key));
}

static void debug_annotation(struct ky_pf *pf, struct ky_proto_view message)
{
	struct annotation annotation;
	read_annotation(pf->sequence, message, &annotation);
	if (!annotation.has_name && !annotation.key) {
		ky_pf_event_error(pf, "a debug annotation has no name");
		return;
	}
	const uint32_t kind = annotation.value.id;
	if (!annotation.has_name && !annotation.has_children && kind &&
	    kind != KY_PF_DEBUG_ANNOTATION_NESTED_VALUE &&
	    kind != KY_PF_DEBUG_ANNOTATION_LEGACY_JSON_VALUE) {
		put_value(pf, &annotation.value, annotation.key);
		return;
	}
	pf->key.bytes = 0;
	ky_buffer_add(&pf->key, DEBUG_PREFIX, DEBUG_PREFIX_BYTES);
	append_own_name(pf, &annotation);
	annotation_below(pf, &annotation, 0);
}

static uint32_t make_args(struct ky_pf *pf, const struct ky_pf_event *event, int phase)
{
	ky_args_begin(pf->trace);
	ky_pf_typed_put_args(pf, event);
	KY_PROTO_EACH(field, event->all)
		if (field.id == KY_PF_TRACK_EVENT_DEBUG_ANNOTATIONS && field.wire == KY_PROTO_BYTES)
			debug_annotation(pf, field.view);
	if (phase) {
		const char text = (char)phase;
		ky_arg_string(pf->trace, pf->words[KY_PF_W_PHASE], ky_string(pf->trace, &text, 1));
	}
	return ky_args_end(pf->trace);
}

/* The source location is often an event's only argument, and many events share it: one set. */
uint32_t ky_pf_args_of_event(struct ky_pf *pf, const struct ky_pf_event *event, int phase)
{
	const bool others = (event->fields & KY_PF_HAS_ARGS) || phase;
	if (!others && !(event->fields & KY_PF_HAS_LOCATION))
		return 0;
	struct ky_pf_location *location =
		others ? NULL : ky_pf_sequence_location(pf, event->location_iid);
	if (!location)
		return make_args(pf, event, phase);
	if (!location->args)
		location->args = make_args(pf, event, 0);
	return location->args;
}
