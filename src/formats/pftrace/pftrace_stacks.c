/* SPDX-License-Identifier: MIT */
/*
 * pftrace_stacks.c: interned callstacks. A callstack names frames, a frame a mapping and texts, all by iids
 * that may be defined after what names them: so they are kept as they are, and made rows of the model
 * when a sample first needs them.
 */
#include "formats/pftrace/pftrace_reader.h"

#include <errno.h>
#include <stdlib.h>

/* A copy that outlives the packet. */
static struct ky_proto_view copy_of(struct ky_pf *pf, struct ky_proto_view message)
{
	uint8_t *copy = malloc(message.bytes ? message.bytes : 1);
	if (!copy) {
		pf->trace->error = -ENOMEM;
		return (struct ky_proto_view){NULL, 0};
	}
	if (message.bytes)
		memcpy(copy, message.data, message.bytes);
	return (struct ky_proto_view){copy, message.bytes};
}

/* Where the row of a new iid is noted; NULL when there is none, or it is defined already. */
static uint32_t *new_row(struct ky_pf_map *map, struct ky_proto_view message)
{
	struct ky_proto_field iid;
	bool made;
	if (!ky_proto_find(message, 1, &iid) || !iid.value)
		return NULL;
	uint32_t *row = ky_pf_map_add(map, iid.value, &made);
	return made ? row : NULL;
}

void ky_pf_intern_mapping(struct ky_pf *pf, struct ky_pf_map *map, struct ky_proto_view message)
{
	struct ky_pf_mapping mapping = {.row = KY_NONE};
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field;
	uint32_t *row = KY_PF_GROW(pf, mappings) ? new_row(map, message) : NULL;
	if (!row)
		return;
	while (ky_proto_next(&in, &field)) {
		if (field.id == 2)
			mapping.build_id_iid = field.value;
		else if (field.id == 3 && !mapping.offset)
			mapping.offset = field.value;
		else if (field.id == 4)
			mapping.start = field.value;
		else if (field.id == 5)
			mapping.end = field.value;
		else if (field.id == 6)
			mapping.load_bias = field.value;
		else if (field.id == 8)
			mapping.offset = field.value;
	}
	mapping.paths = copy_of(pf, message);
	*row = pf->mappings_count;
	pf->mappings[pf->mappings_count++] = mapping;
}

void ky_pf_intern_frame(struct ky_pf *pf, struct ky_pf_map *map, struct ky_proto_view message)
{
	struct ky_pf_frame frame = {.row = KY_NONE};
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field;
	uint32_t *row = KY_PF_GROW(pf, frames) ? new_row(map, message) : NULL;
	if (!row)
		return;
	while (ky_proto_next(&in, &field)) {
		if (field.id == 2)
			frame.function_iid = field.value;
		else if (field.id == 3)
			frame.mapping_iid = field.value;
		else if (field.id == 4)
			frame.rel_pc = field.value;
		else if (field.id == 5)
			frame.source_iid = field.value;
		else if (field.id == 6)
			frame.line = (uint32_t)field.value;
	}
	*row = pf->frames_count;
	pf->frames[pf->frames_count++] = frame;
}

void ky_pf_intern_callstack(struct ky_pf *pf, struct ky_pf_map *map, struct ky_proto_view message)
{
	uint32_t *row = KY_PF_GROW(pf, callstacks) ? new_row(map, message) : NULL;
	if (!row)
		return;
	*row = pf->callstacks_count;
	pf->callstacks[pf->callstacks_count++] =
		(struct ky_pf_callstack){.frames = copy_of(pf, message), .row = KY_NONE};
}

/* ---- rows of the model ---- */

/* The components of a path, each with a slash before it. */
static uint32_t mapping_path(struct ky_pf *pf, const struct ky_pf_sequence *sequence,
			     struct ky_proto_view message)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field;
	uint64_t iid;
	pf->text.used = 0;
	while (ky_proto_next(&in, &field)) {
		struct ky_proto_items items = ky_proto_items(&field, false);
		while (field.id == 7 && ky_proto_item(&items, &iid)) {
			const uint32_t part = ky_pf_text(sequence, KY_PF_MAPPING_PATHS, iid);
			if (!part)
				continue;
			ky_pf_buffer_append(&pf->text, "/", 1);
			ky_pf_buffer_append(&pf->text, ky_text_of(pf->trace, part),
					    ky_strings_bytes(&pf->trace->strings, part));
		}
	}
	return ky_pf_buffer_string(pf, &pf->text);
}

static uint32_t mapping_of(struct ky_pf *pf, const struct ky_pf_sequence *sequence, uint64_t iid)
{
	const uint32_t *row = ky_pf_message(sequence, KY_PF_MAPPINGS, iid);
	if (!row)
		return KY_NONE;
	struct ky_pf_mapping *mapping = &pf->mappings[*row];
	if (mapping->row == KY_NONE) {
		const struct ky_mapping_spec spec = {
			.build_id = ky_pf_text(sequence, KY_PF_BUILD_IDS, mapping->build_id_iid),
			.name = mapping_path(pf, sequence, mapping->paths),
			.start = mapping->start,
			.end = mapping->end,
			.offset = mapping->offset,
			.load_bias = mapping->load_bias,
		};
		mapping->row = ky_mapping(pf->trace, &spec);
	}
	return mapping->row;
}

static uint32_t frame_of(struct ky_pf *pf, const struct ky_pf_sequence *sequence, uint64_t iid)
{
	const uint32_t *row = ky_pf_message(sequence, KY_PF_FRAMES, iid);
	if (!row)
		return KY_NONE;
	struct ky_pf_frame *frame = &pf->frames[*row];
	if (frame->row == KY_NONE)
		frame->row = ky_frame(
			pf->trace, mapping_of(pf, sequence, frame->mapping_iid), frame->rel_pc,
			ky_pf_text(sequence, KY_PF_FUNCTIONS, frame->function_iid),
			ky_pf_text(sequence, KY_PF_SOURCE_PATHS, frame->source_iid), frame->line);
	return frame->row;
}

/* Frames are outermost first. One that is not known makes the whole callstack so. */
static uint32_t make_callsite(struct ky_pf *pf, const struct ky_pf_sequence *sequence,
			      struct ky_proto_view message)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field;
	uint32_t callsite = KY_NONE;
	uint64_t iid;
	while (ky_proto_next(&in, &field)) {
		struct ky_proto_items items = ky_proto_items(&field, false);
		while (field.id == 2 && ky_proto_item(&items, &iid)) {
			const uint32_t frame = frame_of(pf, sequence, iid);
			if (frame == KY_NONE)
				return KY_NONE;
			callsite = ky_callsite(pf->trace, callsite, frame);
		}
	}
	return callsite;
}

uint32_t ky_pf_callsite(struct ky_pf *pf, struct ky_pf_sequence *sequence, uint64_t iid)
{
	const uint32_t *row = ky_pf_message(sequence, KY_PF_CALLSTACKS, iid);
	if (!row) {
		ky_problem(pf->trace, "stackprofile_invalid_callstack_id", KY_ERROR, pf->at,
			   "callstack %llu is not defined", (unsigned long long)iid);
		return KY_NONE;
	}
	struct ky_pf_callstack *callstack = &pf->callstacks[*row];
	if (!callstack->done) {
		callstack->done = true;
		callstack->row = make_callsite(pf, sequence, callstack->frames);
	}
	return callstack->row;
}
