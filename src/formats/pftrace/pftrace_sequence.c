/* SPDX-License-Identifier: MIT */
/*
 * pftrace_sequence.c: what a sequence of packets remembers: interned texts and messages, and defaults. Clearing
 * starts a new generation of its maps. Of two definitions of an iid in a generation the first counts, as in
 * Perfetto.
 */
#include "formats/pftrace/pftrace_reader.h"

#include <errno.h>
#include <stdlib.h>

#define DEBUG_PREFIX "debug."

static struct ky_pf_sequence *make_sequence(struct ky_pf *pf, uint32_t id)
{
	if (!KY_PF_GROW(pf, sequences))
		return NULL;
	struct ky_pf_sequence *sequence = calloc(1, sizeof(*sequence));
	if (!sequence)
		return NULL;
	sequence->id = id;
	sequence->machine = pf->machine;
	sequence->track_cached = KY_NONE;
	sequence->clock_cached = KY_NONE;
	pf->sequences[pf->sequences_count++] = sequence;
	return sequence;
}

struct ky_pf_sequence *ky_pf_sequence_get(struct ky_pf *pf, uint32_t id)
{
	struct ky_pf_sequence *last = pf->sequence;
	if (last && last->id == id && last->machine == pf->machine)
		return last;
	bool made;
	uint32_t *row = ky_u64_map_add(&pf->sequence_of, (uint64_t)pf->machine << 32 | id, &made);
	struct ky_pf_sequence *sequence = NULL;
	if (row && made) {
		*row = pf->sequences_count;
		sequence = make_sequence(pf, id);
	} else if (row && *row < pf->sequences_count) {
		sequence = pf->sequences[*row];
	}
	if (!sequence) {
		pf->trace->error = -ENOMEM;
		return NULL;
	}
	pf->sequence = sequence;
	return sequence;
}

static void clear_defaults(struct ky_pf_sequence *sequence)
{
	sequence->has_track_uuid = false;
	sequence->track_uuid = 0;
	sequence->clock_id = 0;
	sequence->sample_event = 0;
	sequence->extra_counters.count = 0;
	sequence->extra_real_counters.count = 0;
}

void ky_pf_sequence_clear(struct ky_pf_sequence *sequence)
{
	for (int i = 0; sequence->tables && i < KY_PF_TEXTS_COUNT; i++)
		ky_pf_iids_clear(&sequence->tables->texts[i]);
	for (int i = 0; sequence->tables && i < KY_PF_MESSAGES_COUNT; i++)
		ky_pf_iids_clear(&sequence->tables->messages[i]);
	ky_u64_map_free(&sequence->values);
	clear_defaults(sequence);
	sequence->times_valid = false;
	sequence->valid = true;
}

void ky_pf_sequence_lost(struct ky_pf_sequence *sequence)
{
	sequence->valid = false;
	sequence->times_valid = false;
	ky_u64_map_free(&sequence->values);
}

void ky_pf_sequence_free(struct ky_pf_sequence *sequence)
{
	for (int i = 0; sequence->tables && i < KY_PF_TEXTS_COUNT; i++)
		ky_pf_iids_free(&sequence->tables->texts[i]);
	for (int i = 0; sequence->tables && i < KY_PF_MESSAGES_COUNT; i++)
		ky_pf_iids_free(&sequence->tables->messages[i]);
	free(sequence->tables);
	ky_u64_map_free(&sequence->values);
	KY_ARRAY_FREE(sequence->extra_counters.items, sequence->extra_counters.room);
	KY_ARRAY_FREE(sequence->extra_real_counters.items, sequence->extra_real_counters.room);
	free(sequence);
}

/* ---- defaults ---- */

static void add_uuids(struct ky_pf *pf, struct ky_pf_uuids *uuids,
		      const struct ky_proto_field *field)
{
	struct ky_proto_items items = ky_proto_items(field, false);
	uint64_t uuid;
	while (ky_proto_item(&items, &uuid)) {
		if (!KY_ARRAY_ADD(uuids->items, uuids->count, uuids->room, uuid)) {
			pf->trace->error = -ENOMEM;
			return;
		}
	}
}

static void event_defaults(struct ky_pf *pf, struct ky_proto_view message)
{
	struct ky_pf_sequence *const sequence = pf->sequence;
	KY_PROTO_EACH(field, message) {
		if (field.id == KY_PF_TRACK_EVENT_DEFAULTS_TRACK_UUID) {
			sequence->has_track_uuid = true;
			sequence->track_uuid = field.value;
		} else if (field.id == KY_PF_TRACK_EVENT_DEFAULTS_EXTRA_COUNTER_TRACK_UUIDS) {
			add_uuids(pf, &sequence->extra_counters, &field);
		} else if (field.id ==
			   KY_PF_TRACK_EVENT_DEFAULTS_EXTRA_DOUBLE_COUNTER_TRACK_UUIDS) {
			add_uuids(pf, &sequence->extra_real_counters, &field);
		}
	}
}

void ky_pf_sequence_defaults(struct ky_pf *pf, struct ky_proto_view defaults)
{
	clear_defaults(pf->sequence);
	KY_PROTO_EACH(field, defaults) {
		if (field.id == KY_PF_TRACE_PACKET_DEFAULTS_TRACK_EVENT_DEFAULTS)
			event_defaults(pf, field.view);
		else if (field.id == KY_PF_TRACE_PACKET_DEFAULTS_PERF_SAMPLE_DEFAULTS)
			ky_pf_sample_perf_defaults(pf, field.view);
		else if (field.id == KY_PF_TRACE_PACKET_DEFAULTS_STACK_SAMPLE_DEFAULTS)
			ky_pf_sample_stack_defaults(pf, field.view);
		else if (field.id == KY_PF_TRACE_PACKET_DEFAULTS_TIMESTAMP_CLOCK_ID)
			pf->sequence->clock_id = (uint32_t)field.value;
	}
}

/* ---- interned data ---- */

/* Read an interned message: all have the iid in field 1, and texts are in 2. */
static bool read_text(struct ky_proto_view message, uint64_t *iid, struct ky_proto_view *text)
{
	*iid = 0;
	*text = (struct ky_proto_view){NULL, 0};
	KY_PROTO_EACH(field, message) {
		if (field.id == KY_PF_INTERNED_STRING_IID && field.wire == KY_PROTO_VARINT)
			*iid = field.value;
		else if (field.id == KY_PF_INTERNED_STRING_STR && field.wire == KY_PROTO_BYTES)
			*text = field.view;
	}
	return *iid != 0;
}

static uint32_t hex_string(struct ky_pf *pf, struct ky_proto_view bytes)
{
	static const char digits[] = "0123456789abcdef";
	pf->text.bytes = 0;
	for (size_t i = 0; i < bytes.bytes; i++) {
		const char pair[2] = {digits[bytes.data[i] >> 4], digits[bytes.data[i] & 15]};
		ky_buffer_add(&pf->text, pair, 2);
	}
	return ky_pf_buffer_string(pf, &pf->text);
}

/* Make a key of a name: dots and brackets have a meaning in keys. */
static uint32_t debug_key(struct ky_pf *pf, struct ky_proto_view name)
{
	pf->text.bytes = 0;
	ky_buffer_add(&pf->text, DEBUG_PREFIX, sizeof(DEBUG_PREFIX) - 1);
	const size_t begin = pf->text.bytes;
	ky_buffer_add(&pf->text, (const char *)name.data, name.bytes);
	for (size_t i = begin; i < pf->text.bytes; i++)
		if (pf->text.data[i] == '.' || pf->text.data[i] == '[' || pf->text.data[i] == ']')
			pf->text.data[i] = '_';
	return ky_pf_buffer_string(pf, &pf->text);
}

static void intern_text(struct ky_pf *pf, enum ky_pf_texts of, struct ky_proto_view message)
{
	uint64_t iid;
	struct ky_proto_view text;
	bool made;
	if (!read_text(message, &iid, &text))
		return;
	uint32_t *value = ky_pf_iids_add(&pf->sequence->tables->texts[of], iid, &made);
	if (!value || !made)
		return;
	if (of == KY_PF_ANNOTATION_KEYS)
		*value = debug_key(pf, text);
	else if (of == KY_PF_BUILD_IDS)
		*value = hex_string(pf, text);
	else
		*value = ky_pf_string(pf, text);
}

/* Return a path with slashes, also where it has Windows' separators. */
static uint32_t path_string(struct ky_pf *pf, struct ky_proto_view path)
{
	if (!path.bytes || !memchr(path.data, '\\', path.bytes))
		return ky_pf_string(pf, path);
	pf->text.bytes = 0;
	ky_buffer_add(&pf->text, (const char *)path.data, path.bytes);
	for (size_t i = 0; i < pf->text.bytes; i++)
		if (pf->text.data[i] == '\\')
			pf->text.data[i] = '/';
	return ky_pf_buffer_string(pf, &pf->text);
}

uint32_t *ky_pf_sequence_new_row(struct ky_pf_iids *map, struct ky_proto_view message)
{
	struct ky_proto_field iid;
	bool made;
	if (!ky_proto_find(message, KY_PF_INTERNED_STRING_IID, &iid) || !iid.value)
		return NULL;
	uint32_t *row = ky_pf_iids_add(map, iid.value, &made);
	return made ? row : NULL;
}

static void intern_location(struct ky_pf *pf, struct ky_pf_iids *map, struct ky_proto_view message)
{
	struct ky_pf_parts parts;
	uint32_t *row = KY_PF_GROW(pf, locations) ? ky_pf_sequence_new_row(map, message) : NULL;
	if (!row)
		return;
	ky_pf_ftrace_take_apart(message, &parts);
	const struct ky_proto_view file = parts.texts[KY_PF_SOURCE_LOCATION_FILE_NAME];
	*row = pf->locations_count;
	pf->locations[pf->locations_count++] = (struct ky_pf_location){
		.file = file.data ? path_string(pf, file) : 0,
		.function = ky_pf_string_if(pf, parts.texts[KY_PF_SOURCE_LOCATION_FUNCTION_NAME]),
		.line = (uint32_t)parts.values[KY_PF_SOURCE_LOCATION_LINE_NUMBER],
	};
}

struct ky_pf_location *ky_pf_sequence_location(const struct ky_pf *pf, uint64_t iid)
{
	const uint32_t *row = ky_pf_message(pf->sequence, KY_PF_LOCATIONS, iid);
	return row ? &pf->locations[*row] : NULL;
}

/* InternedData's fields that hold texts: the map and 1, 0 for other fields. */
static const uint8_t texts_of_field[] = {
	[KY_PF_INTERNED_DATA_EVENT_CATEGORIES] = KY_PF_CATEGORIES + 1,
	[KY_PF_INTERNED_DATA_EVENT_NAMES] = KY_PF_NAMES + 1,
	[KY_PF_INTERNED_DATA_DEBUG_ANNOTATION_NAMES] = KY_PF_ANNOTATION_KEYS + 1,
	[KY_PF_INTERNED_DATA_FUNCTION_NAMES] = KY_PF_FUNCTIONS + 1,
	[KY_PF_INTERNED_DATA_BUILD_IDS] = KY_PF_BUILD_IDS + 1,
	[KY_PF_INTERNED_DATA_MAPPING_PATHS] = KY_PF_MAPPING_PATHS + 1,
	[KY_PF_INTERNED_DATA_SOURCE_PATHS] = KY_PF_SOURCE_PATHS + 1,
	[KY_PF_INTERNED_DATA_LOG_MESSAGE_BODY] = KY_PF_LOG_BODIES + 1,
	[KY_PF_INTERNED_DATA_HISTOGRAM_NAMES] = KY_PF_HISTOGRAM_NAMES + 1,
	[KY_PF_INTERNED_DATA_KERNEL_SYMBOLS] = KY_PF_KERNEL_SYMBOLS + 1,
	[KY_PF_INTERNED_DATA_DEBUG_ANNOTATION_STRING_VALUES] = KY_PF_ANNOTATION_VALUES + 1,
	[KY_PF_INTERNED_DATA_CORRELATION_ID_STR] = KY_PF_CORRELATION_IDS + 1,
};

/* InternedData's fields that hold messages. */
static const struct {
	uint32_t field;
	enum ky_pf_messages of;
	void (*intern)(struct ky_pf *pf, struct ky_pf_iids *map, struct ky_proto_view message);
} messages[] = {
	{KY_PF_INTERNED_DATA_SOURCE_LOCATIONS, KY_PF_LOCATIONS, intern_location},
	{KY_PF_INTERNED_DATA_FRAMES, KY_PF_FRAMES, ky_pf_sample_intern_frame},
	{KY_PF_INTERNED_DATA_CALLSTACKS, KY_PF_CALLSTACKS, ky_pf_sample_intern_callstack},
	{KY_PF_INTERNED_DATA_MAPPINGS, KY_PF_MAPPINGS, ky_pf_sample_intern_mapping},
	{KY_PF_INTERNED_DATA_STACK_SAMPLE_TASK_CONTEXTS, KY_PF_TASK_CONTEXTS,
	 ky_pf_sample_intern_callstack},
	{KY_PF_INTERNED_DATA_STACK_SAMPLE_EXECUTION_CONTEXTS, KY_PF_EXECUTION_CONTEXTS,
	 ky_pf_sample_intern_callstack},
};

static void intern_message(struct ky_pf *pf, const struct ky_proto_field *field)
{
	if (field->id == KY_PF_INTERNED_DATA_GPU_COUNTER_DESCRIPTORS)
		ky_pf_graphics_intern_counters(pf, field->view);
	for (size_t i = 0; i < sizeof(messages) / sizeof(*messages); i++)
		if (messages[i].field == field->id)
			messages[i].intern(pf, &pf->sequence->tables->messages[messages[i].of],
					   field->view);
}

void ky_pf_sequence_intern(struct ky_pf *pf, struct ky_proto_view interned)
{
	struct ky_pf_sequence *const sequence = pf->sequence;
	if (!sequence->tables)
		sequence->tables = calloc(1, sizeof(*sequence->tables));
	if (!sequence->tables) {
		pf->trace->error = -ENOMEM;
		return;
	}
	KY_PF_EACH(pf, field, interned, "interned_data") {
		const uint8_t texts =
			field.id < sizeof(texts_of_field) ? texts_of_field[field.id] : 0;
		if (field.wire != KY_PROTO_BYTES)
			continue;
		if (texts)
			intern_text(pf, (enum ky_pf_texts)(texts - 1), field.view);
		else
			intern_message(pf, &field);
	}
}
