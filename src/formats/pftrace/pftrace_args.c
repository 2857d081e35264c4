/* SPDX-License-Identifier: MIT */
/*
 * pftrace_args.c: arguments of track events, and debug annotations above all. Keys are as in Perfetto:
 * "debug.name", "debug.dict.entry", "debug.array[0]". A key is put together in one buffer, to which each
 * level adds its part and from which it takes it away again; a plain annotation whose name is interned
 * takes none of that.
 */
#include "formats/pftrace/pftrace_reader.h"

#include <stdio.h>
#include <stdlib.h>

#define DEBUG_PREFIX "debug."
#define DEBUG_PREFIX_BYTES 6u
#define NESTED_MAX 64u     /* levels */
#define KEY_BYTES_MAX 400u /* a key is in each of its leaves */

void ky_pf_buffer_append(struct ky_pf_buffer *buffer, const char *text, size_t bytes)
{
	if (bytes > UINT32_MAX / 4 - buffer->used)
		return;
	if (buffer->used + bytes > buffer->room) {
		const uint32_t room = (buffer->used + (uint32_t)bytes) * 2 + 64;
		char *grown = realloc(buffer->data, room);
		if (!grown)
			return;
		buffer->data = grown;
		buffer->room = room;
	}
	if (bytes)
		memcpy(buffer->data + buffer->used, text, bytes);
	buffer->used += (uint32_t)bytes;
}

uint32_t ky_pf_buffer_string(struct ky_pf *pf, const struct ky_pf_buffer *buffer)
{
	return ky_string(pf->trace, buffer->data ? buffer->data : "", buffer->used);
}

/* A name as part of a key: dots and brackets have a meaning there. */
static void append_name(struct ky_pf_buffer *key, const char *name, size_t bytes)
{
	const uint32_t begin = key->used;
	const size_t room = begin < KEY_BYTES_MAX ? KEY_BYTES_MAX - begin : 0;
	ky_pf_buffer_append(key, name, bytes < room ? bytes : room);
	for (uint32_t i = begin; i < key->used; i++)
		if (key->data[i] == '.' || key->data[i] == '[' || key->data[i] == ']')
			key->data[i] = '_';
}

static void append_index(struct ky_pf_buffer *key, uint32_t index)
{
	char text[16];
	const int bytes = snprintf(text, sizeof(text), "[%u]", index);
	ky_pf_buffer_append(key, text, (size_t)bytes);
}

/* ---- nested values of old ---- */

static void nested_value(struct ky_pf *pf, struct ky_proto_view message, uint32_t depth);

static void nested_children(struct ky_pf *pf, struct ky_proto_view message, uint32_t depth)
{
	struct ky_proto_in keys = ky_proto_open(message), values = keys;
	struct ky_proto_field key = {0}, value = {0};
	const uint32_t used = pf->key.used;
	uint32_t index = 0;
	while (ky_proto_next(&values, &value)) {
		if (value.id == 3 && value.wire == KY_PROTO_BYTES) {
			while (ky_proto_next(&keys, &key) && key.id != 2)
				;
			if (key.id != 2 || key.wire != KY_PROTO_BYTES)
				return;
			ky_pf_buffer_append(&pf->key, ".", 1);
			append_name(&pf->key, (const char *)key.view.data, key.view.bytes);
		} else if (value.id == 4 && value.wire == KY_PROTO_BYTES) {
			append_index(&pf->key, index++);
		} else {
			continue;
		}
		nested_value(pf, value.view, depth + 1);
		pf->key.used = used;
		key.id = 0;
	}
}

static void nested_value(struct ky_pf *pf, struct ky_proto_view message, uint32_t depth)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field;
	bool children = false;
	if (depth > NESTED_MAX)
		return;
	while (ky_proto_next(&in, &field)) {
		const uint32_t key =
			field.id >= 5 && field.id <= 8 ? ky_pf_buffer_string(pf, &pf->key) : 0;
		if (field.id == 3 || field.id == 4)
			children = true;
		else if (field.id == 5)
			ky_arg_int(pf->trace, key, (int64_t)field.value);
		else if (field.id == 6)
			ky_arg_real(pf->trace, key, ky_proto_as_double(field.value));
		else if (field.id == 7)
			ky_arg_bool(pf->trace, key, field.value != 0);
		else if (field.id == 8)
			ky_arg_string(pf->trace, key, ky_pf_string(pf, field.view));
	}
	if (children)
		nested_children(pf, message, depth);
}

/* ---- debug annotations ---- */

/* What there is of one annotation; the last value counts. */
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
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field;
	*annotation = (struct annotation){.all = message};
	while (ky_proto_next(&in, &field)) {
		if (field.id == 1) {
			annotation->key = ky_pf_text(sequence, KY_PF_ANNOTATION_KEYS, field.value);
		} else if (field.id == 10) {
			annotation->name = field.view;
			annotation->has_name = true;
		} else if (field.id == 11 || field.id == 12) {
			annotation->has_children = true;
		} else if (field.id != 13 && field.id != 16) {
			annotation->value = field;
		}
	}
}

static void put_value(struct ky_pf *pf, const struct ky_pf_sequence *sequence,
		      const struct ky_proto_field *value, uint32_t key)
{
	struct ky_trace *trace = pf->trace;
	switch (value->id) {
	case 2:
		ky_arg_bool(trace, key, value->value != 0);
		break;
	case 3:
		ky_arg_uint(trace, key, value->value);
		break;
	case 4:
		ky_arg_int(trace, key, (int64_t)value->value);
		break;
	case 5:
		ky_arg_real(trace, key, ky_proto_as_double(value->value));
		break;
	case 6:
		ky_arg_string(trace, key, ky_pf_string(pf, value->view));
		break;
	case 7:
		ky_arg_pointer(trace, key, value->value);
		break;
	case 9:
		ky_arg_json(trace, key, ky_pf_string(pf, value->view));
		break;
	case 17:
		ky_arg_string(trace, key,
			      ky_pf_text(sequence, KY_PF_ANNOTATION_VALUES, value->value));
		break;
	default:
		ky_problem(trace, "debug_annotation_not_carried", KY_INFO, pf->at,
			   "a debug annotation is a message of a type that is not known");
	}
}

static void annotation_below(struct ky_pf *pf, struct ky_pf_sequence *sequence,
			     const struct annotation *annotation, uint32_t depth);

/* Adds the annotation's own name to the key. */
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

static void annotation_children(struct ky_pf *pf, struct ky_pf_sequence *sequence,
				struct ky_proto_view message, uint32_t depth)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field;
	struct annotation child;
	const uint32_t used = pf->key.used;
	uint32_t index = 0;
	while (ky_proto_next(&in, &field)) {
		if ((field.id != 11 && field.id != 12) || field.wire != KY_PROTO_BYTES)
			continue;
		read_annotation(sequence, field.view, &child);
		if (field.id == 11) {
			ky_pf_buffer_append(&pf->key, ".", 1);
			append_own_name(pf, &child);
		} else {
			append_index(&pf->key, index++);
		}
		annotation_below(pf, sequence, &child, depth + 1);
		pf->key.used = used;
	}
}

/* The annotation's value, whose key is in pf->key. */
static void annotation_below(struct ky_pf *pf, struct ky_pf_sequence *sequence,
			     const struct annotation *annotation, uint32_t depth)
{
	if (depth > NESTED_MAX) {
		ky_problem(pf->trace, "debug_annotation_too_deep", KY_DATA_LOSS, pf->at,
			   "debug annotations are nested more than %u deep", NESTED_MAX);
		return;
	}
	if (annotation->has_children)
		annotation_children(pf, sequence, annotation->all, depth);
	if (!annotation->value.id)
		return;
	if (annotation->value.id == 8)
		nested_value(pf, annotation->value.view, depth + 1);
	else if (annotation->value.id != 9 || !ky_pf_json_args(pf, annotation->value.view))
		put_value(pf, sequence, &annotation->value, ky_pf_buffer_string(pf, &pf->key));
}

static void debug_annotation(struct ky_pf *pf, struct ky_pf_sequence *sequence,
			     struct ky_proto_view message)
{
	struct annotation annotation;
	read_annotation(sequence, message, &annotation);
	if (!annotation.has_name && !annotation.key) {
		ky_pf_event_error(pf, "a debug annotation has no name");
		return;
	}
	const uint32_t kind = annotation.value.id;
	if (!annotation.has_name && !annotation.has_children && kind && kind != 8 && kind != 9) {
		put_value(pf, sequence, &annotation.value, annotation.key);
		return;
	}
	pf->key.used = 0;
	ky_pf_buffer_append(&pf->key, DEBUG_PREFIX, DEBUG_PREFIX_BYTES);
	append_own_name(pf, &annotation);
	annotation_below(pf, sequence, &annotation, 0);
}

static uint32_t make_args(struct ky_pf *pf, struct ky_pf_sequence *sequence,
			  const struct ky_pf_event *event, int phase)
{
	ky_args_begin(pf->trace);
	ky_pf_typed_args(pf, sequence, event);
	struct ky_proto_in in = ky_proto_open(event->all);
	struct ky_proto_field field;
	while (ky_proto_next(&in, &field))
		if (field.id == 4 && field.wire == KY_PROTO_BYTES)
			debug_annotation(pf, sequence, field.view);
	if (phase) {
		const char text = (char)phase;
		ky_arg_string(pf->trace, pf->words[KY_PF_W_PHASE], ky_string(pf->trace, &text, 1));
	}
	return ky_args_end(pf->trace);
}

/* Where an event is in the source is mostly all there is, and the same for many: one set. */
uint32_t ky_pf_event_args(struct ky_pf *pf, struct ky_pf_sequence *sequence,
			  const struct ky_pf_event *event, int phase)
{
	const bool others = (event->fields & KY_PF_HAS_ARGS) || phase;
	if (!others && !(event->fields & KY_PF_HAS_LOCATION))
		return 0;
	struct ky_pf_location *location =
		others ? NULL : ky_pf_location(pf, sequence, event->location_iid);
	if (!location)
		return make_args(pf, sequence, event, phase);
	if (!location->args)
		location->args = make_args(pf, sequence, event, 0);
	return location->args;
}
