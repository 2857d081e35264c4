/* SPDX-License-Identifier: MIT */
/*
 * config.c: reading a TraceConfig.
 *
 * A message is walked with next_field(), which hands out one field at a time and checks that it
 * lies within its message; a submessage is a field whose bytes are walked in turn, four deep at
 * most, because only known ones are entered. Nothing is copied until the end, so a malformed
 * message has nothing to clean up but the two strings.
 *
 * The category list takes one walk for each tier of Perfetto's precedence, from the least specific
 * to the most, because in kymo's list the last match decides. The input is walked that often
 * instead of being collected: it needs one allocation, whose size a first walk finds out.
 */
#include "sink/config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Field numbers, named after their messages. */
enum {
	TRACE_BUFFERS = 1,
	TRACE_DATA_SOURCES = 2,
	TRACE_DURATION_MS = 3,
	TRACE_WRITE_INTO_FILE = 8,
	TRACE_FILE_WRITE_PERIOD_MS = 9,
	TRACE_MAX_FILE_SIZE_BYTES = 10,
	TRACE_FLUSH_PERIOD_MS = 13,
	TRACE_OUTPUT_PATH = 29,
	BUFFER_SIZE_KB = 1,
	BUFFER_FILL_POLICY = 4,
	SOURCE_CONFIG = 1,
	SOURCE_CONFIG_NAME = 1,
	SOURCE_CONFIG_TRACK_EVENT = 113,
	TRACK_EVENT_DISABLED_CATEGORIES = 1,
	TRACK_EVENT_ENABLED_CATEGORIES = 2,
};

enum { FILL_POLICY_DISCARD = 2 };

/* What Perfetto's service takes for anything shorter. */
enum { FILE_WRITE_PERIOD_MIN_MS = 100 };

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct message {
	const uint8_t *at;
	const uint8_t *end;
};

struct field {
	uint64_t number;
	enum wire wire;
	uint64_t value;       /* WIRE_VARINT */
	struct message bytes; /* WIRE_BYTES */
};

/* How specific an entry is: what it is compared with matters less the higher it is. */
enum tier { TIER_ALL, TIER_PATTERN, TIER_EXACT, TIERS };

/* The category list being made. */
struct list {
	char *data; /* NULL: only count */
	size_t used;
	enum tier tier; /* of the entries wanted now, unless data is NULL */
	uint64_t field; /* enabled or disabled ones */
};

struct scan {
	struct ky_config *config;
	uint64_t total_kb;
	bool buffers;
	bool discard;
	bool write_into_file;
	uint32_t file_write_ms;
	uint32_t flush_ms;
	struct message path; /* at is NULL without one */
};

static bool read_varint(struct message *message, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; shift < 70 && message->at < message->end; shift += 7) {
		const uint8_t byte = *message->at++;
		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static bool skip(struct message *message, uint64_t bytes)
{
	if (bytes > (size_t)(message->end - message->at))
		return false;
	message->at += bytes;
	return true;
}

static bool read_payload(struct message *message, struct field *field)
{
	switch (field->wire) {
	case WIRE_VARINT:
		return read_varint(message, &field->value);
	case WIRE_64:
		return skip(message, 8);
	case WIRE_32:
		return skip(message, 4);
	case WIRE_BYTES:
		if (!read_varint(message, &field->value))
			return false;
		field->bytes.at = message->at;
		if (!skip(message, field->value))
			return false;
		field->bytes.end = message->at;
		return true;
	}
	return false; /* groups, which no TraceConfig ever had, and what does not exist */
}

/* 1 and the next field; 0 at the end; KYMO_ECONFIG. */
static int next_field(struct message *message, struct field *field)
{
	uint64_t key;

	if (message->at == message->end)
		return 0;
	if (!read_varint(message, &key) || key >> 3 == 0 || key >> 32 != 0)
		return KYMO_ECONFIG;
	*field = (struct field){.number = key >> 3, .wire = (enum wire)(key & 7)};
	return read_payload(message, field) ? 1 : KYMO_ECONFIG;
}

/* A field of another wire type than expected is an unknown one. */
static bool is_bytes(const struct field *field, uint64_t number)
{
	return field->number == number && field->wire == WIRE_BYTES;
}

static size_t length_of(struct message text)
{
	return (size_t)(text.end - text.at);
}

static bool has_nul(struct message text)
{
	return text.at != text.end && memchr(text.at, '\0', length_of(text)) != NULL;
}

static char *copy_text(struct message text)
{
	char *copy = malloc(length_of(text) + 1);

	if (copy) {
		memcpy(copy, text.at, length_of(text));
		copy[length_of(text)] = '\0';
	}
	return copy;
}

static int scan_buffer(struct scan *scan, struct message message)
{
	struct field field;
	uint64_t size_kb = 0;
	uint64_t policy = 0;
	int more;

	while ((more = next_field(&message, &field)) > 0) {
		if (field.wire != WIRE_VARINT)
			continue;
		if (field.number == BUFFER_SIZE_KB)
			size_kb = (uint32_t)field.value;
		else if (field.number == BUFFER_FILL_POLICY)
			policy = field.value;
	}
	scan->buffers = true;
	scan->discard |= policy == FILL_POLICY_DISCARD;
	scan->total_kb += size_kb; /* a buffer takes two bytes of input: no overflow */
	return more;
}

static void scan_number(struct scan *scan, const struct field *field)
{
	switch (field->number) {
	case TRACE_DURATION_MS:
		scan->config->duration_ms = (uint32_t)field->value;
		break;
	case TRACE_WRITE_INTO_FILE:
		scan->write_into_file = field->value != 0;
		break;
	case TRACE_FILE_WRITE_PERIOD_MS:
		scan->file_write_ms = (uint32_t)field->value;
		break;
	case TRACE_MAX_FILE_SIZE_BYTES:
		scan->config->max_bytes = field->value;
		break;
	case TRACE_FLUSH_PERIOD_MS:
		scan->flush_ms = (uint32_t)field->value;
		break;
	default:
		break;
	}
}

/* Everything but the categories. */
static int scan_trace(struct scan *scan, struct message message)
{
	struct field field;
	int more;

	while ((more = next_field(&message, &field)) > 0) {
		if (field.wire == WIRE_VARINT)
			scan_number(scan, &field);
		else if (is_bytes(&field, TRACE_OUTPUT_PATH))
			scan->path = field.bytes;
		else if (is_bytes(&field, TRACE_BUFFERS) && scan_buffer(scan, field.bytes) < 0)
			return KYMO_ECONFIG;
	}
	return has_nul(scan->path) ? KYMO_ECONFIG : more;
}

static uint32_t flush_of(const struct scan *scan)
{
	if (!scan->write_into_file || scan->file_write_ms == 0)
		return scan->flush_ms;
	return scan->file_write_ms < FILE_WRITE_PERIOD_MIN_MS ? FILE_WRITE_PERIOD_MIN_MS
							      : scan->file_write_ms;
}

static int read_options(struct ky_config *config, struct message message)
{
	struct scan scan = {.config = config};
	const int error = scan_trace(&scan, message);

	if (error)
		return error;
	config->total_bytes =
		scan.total_kb > SIZE_MAX / 1024 ? SIZE_MAX : (size_t)scan.total_kb * 1024;
	config->mode = scan.buffers && !scan.discard && !scan.write_into_file ? KYMO_MODE_RING
									      : KYMO_MODE_STREAM;
	config->flush_ms = flush_of(&scan);
	if (scan.path.at != scan.path.end) {
		config->path = copy_text(scan.path);
		if (!config->path)
			return -ENOMEM;
	}
	return 0;
}

static enum tier tier_of(struct message text)
{
	if (!memchr(text.at, '*', length_of(text)))
		return TIER_EXACT;
	return length_of(text) == 1 ? TIER_ALL : TIER_PATTERN;
}

/* An entry needs its bytes, a '-' and a ',' or the final NUL. */
static void list_add(struct list *list, struct message text)
{
	if (text.at == text.end)
		return;
	if (!list->data) {
		list->used += length_of(text) + 2;
		return;
	}
	if (tier_of(text) != list->tier)
		return;
	if (list->used > 0)
		list->data[list->used++] = ',';
	if (list->field == TRACK_EVENT_DISABLED_CATEGORIES)
		list->data[list->used++] = '-';
	for (const uint8_t *at = text.at; at < text.end; at++)
		list->data[list->used++] =
			*at == ',' || (at == text.at && *at == '-') ? '?' : (char)*at;
}

static int list_track_event(struct list *list, struct message message)
{
	struct field field;
	int more;

	while ((more = next_field(&message, &field)) > 0) {
		if (!is_bytes(&field, TRACK_EVENT_DISABLED_CATEGORIES) &&
		    !is_bytes(&field, TRACK_EVENT_ENABLED_CATEGORIES))
			continue;
		if (has_nul(field.bytes))
			return KYMO_ECONFIG;
		if (!list->data || field.number == list->field)
			list_add(list, field.bytes);
	}
	return more;
}

static int is_track_event(struct message message, bool *yes)
{
	static const char name[] = "track_event";
	struct field field;
	int more;

	*yes = false;
	while ((more = next_field(&message, &field)) > 0)
		if (is_bytes(&field, SOURCE_CONFIG_NAME))
			*yes = length_of(field.bytes) == sizeof(name) - 1 &&
			       memcmp(field.bytes.at, name, sizeof(name) - 1) == 0;
	return more;
}

/* A DataSourceConfig. Its name may come behind what it decides about, hence two walks. */
static int list_source_config(struct list *list, struct message message)
{
	struct field field;
	bool wanted;
	int more = is_track_event(message, &wanted);

	if (more < 0 || !wanted)
		return more;
	while ((more = next_field(&message, &field)) > 0)
		if (is_bytes(&field, SOURCE_CONFIG_TRACK_EVENT) &&
		    list_track_event(list, field.bytes) < 0)
			return KYMO_ECONFIG;
	return more;
}

static int list_source(struct list *list, struct message message)
{
	struct field field;
	int more;

	while ((more = next_field(&message, &field)) > 0)
		if (is_bytes(&field, SOURCE_CONFIG) && list_source_config(list, field.bytes) < 0)
			return KYMO_ECONFIG;
	return more;
}

static int list_trace(struct list *list, struct message message)
{
	struct field field;
	int more;

	while ((more = next_field(&message, &field)) > 0)
		if (is_bytes(&field, TRACE_DATA_SOURCES) && list_source(list, field.bytes) < 0)
			return KYMO_ECONFIG;
	return more;
}

static int read_categories(struct ky_config *config, struct message message)
{
	struct list list = {0};
	const int error = list_trace(&list, message);

	if (error || list.used == 0)
		return error;
	list.data = malloc(list.used);
	if (!list.data)
		return -ENOMEM;
	list.used = 0;
	for (list.tier = TIER_ALL; list.tier < TIERS; list.tier++) {
		list.field = TRACK_EVENT_DISABLED_CATEGORIES;
		(void)list_trace(&list, message); /* it went well before */
		list.field = TRACK_EVENT_ENABLED_CATEGORIES;
		(void)list_trace(&list, message);
	}
	list.data[list.used] = '\0';
	config->categories = list.data;
	return 0;
}

int ky_config_decode(struct ky_config *config, const void *data, size_t bytes)
{
	static const uint8_t nothing[1];
	const uint8_t *begin = bytes ? data : nothing;
	const struct message message = {begin, begin + bytes};

	*config = (struct ky_config){0};
	int error = read_options(config, message);
	if (!error)
		error = read_categories(config, message);
	if (error)
		ky_config_free(config);
	return error;
}

void ky_config_apply(const struct ky_config *config, struct kymo_options *options)
{
	if (!options->path && !options->fd)
		options->path = config->path;
	if (!options->mode)
		options->mode = config->mode;
	if (!options->categories)
		options->categories = config->categories;
	if (!options->total_bytes)
		options->total_bytes = config->total_bytes;
	if (!options->flush_ms)
		options->flush_ms = config->flush_ms;
	if (!options->duration_ms)
		options->duration_ms = config->duration_ms;
	if (!options->max_bytes)
		options->max_bytes = config->max_bytes;
}

void ky_config_free(struct ky_config *config)
{
	free(config->path);
	free(config->categories);
	*config = (struct ky_config){0};
}
