/* SPDX-License-Identifier: MIT */
/*
 * config.c: read a TraceConfig.
 *
 * Only known submessages are entered, four deep at most. Nothing is copied until the end, so a malformed message leaves
 * only the two strings to free.
 *
 * The category list takes one walk for each tier of Perfetto's precedence, from the least specific to the most, because
 * in kymo's list the last match decides. Walking the input that often needs one allocation, whose size a first walk finds.
 */
#include "sink/config.h"

#include "formats/proto.h"

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

/* Perfetto's service uses this for anything shorter. */
enum { FILE_WRITE_PERIOD_MIN_MS = 100 };

/* How specific an entry is. */
enum tier { TIER_ALL, TIER_PATTERN, TIER_EXACT, TIERS };

/* The category list being made. */
struct category_list {
	char *data; /* NULL: only count */
	size_t used;
	enum tier tier; /* of the entries wanted now, unless data is NULL */
	uint64_t field; /* enabled or disabled ones */
};

struct config_scan {
	struct ky_config *config;
	uint64_t total_kb;
	bool buffers;
	bool discard;
	bool write_into_file;
	uint32_t file_write_ms;
	uint32_t flush_ms;
	struct ky_proto_view path; /* empty without one */
};

/* Read the next field. Return 1; 0 at the end; KYMO_ECONFIG. */
static int next_field(struct ky_proto_in *message, struct ky_proto_field *field)
{
	struct ky_proto_in ahead = *message;
	uint64_t key = 0;

	/* A field number of 0, or of more than 29 bits, is not protobuf. */
	if (message->at < message->end &&
	    (!ky_proto_read_varint(&ahead, &key) || key >> 3 == 0 || key >> 32 != 0))
		return KYMO_ECONFIG;
	if (ky_proto_next(message, field))
		return 1;
	return message->bad ? KYMO_ECONFIG : 0;
}

/* A field with an unexpected wire type is an unknown field. */
static bool is_bytes(const struct ky_proto_field *field, uint64_t number)
{
	return field->id == number && field->wire == KY_PROTO_BYTES;
}

static bool has_nul(struct ky_proto_view text)
{
	return text.bytes && memchr(text.data, '\0', text.bytes) != NULL;
}

static char *copy_text(struct ky_proto_view text)
{
	char *copy = malloc(text.bytes + 1);

	if (copy) {
		memcpy(copy, text.data, text.bytes);
		copy[text.bytes] = '\0';
	}
	return copy;
}

static int scan_buffer(struct config_scan *scan, struct ky_proto_view message)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field;
	uint64_t size_kb = 0;
	uint64_t policy = 0;
	int more;

	while ((more = next_field(&in, &field)) > 0) {
		if (field.wire != KY_PROTO_VARINT)
			continue;
		if (field.id == BUFFER_SIZE_KB)
			size_kb = (uint32_t)field.value;
		else if (field.id == BUFFER_FILL_POLICY)
			policy = field.value;
	}
	scan->buffers = true;
	scan->discard |= policy == FILL_POLICY_DISCARD;
	scan->total_kb += size_kb; /* a buffer takes two bytes of input: no overflow */
	return more;
}

static void scan_number(struct config_scan *scan, const struct ky_proto_field *field)
{
	switch (field->id) {
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

/* Scan everything but the categories. */
static int scan_trace(struct config_scan *scan, struct ky_proto_view message)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field;
	int more;

	while ((more = next_field(&in, &field)) > 0) {
		if (field.wire == KY_PROTO_VARINT)
			scan_number(scan, &field);
		else if (is_bytes(&field, TRACE_OUTPUT_PATH))
			scan->path = field.view;
		else if (is_bytes(&field, TRACE_BUFFERS) && scan_buffer(scan, field.view) < 0)
			return KYMO_ECONFIG;
	}
	return has_nul(scan->path) ? KYMO_ECONFIG : more;
}

static uint32_t flush_of(const struct config_scan *scan)
{
	if (!scan->write_into_file || scan->file_write_ms == 0)
		return scan->flush_ms;
	return scan->file_write_ms < FILE_WRITE_PERIOD_MIN_MS ? FILE_WRITE_PERIOD_MIN_MS
							      : scan->file_write_ms;
}

static int read_options(struct ky_config *config, struct ky_proto_view message)
{
	struct config_scan scan = {.config = config};
	const int error = scan_trace(&scan, message);

	if (error)
		return error;
	config->total_bytes =
		scan.total_kb > SIZE_MAX / 1024 ? SIZE_MAX : (size_t)scan.total_kb * 1024;
	config->mode = scan.buffers && !scan.discard && !scan.write_into_file ? KYMO_MODE_RING
									      : KYMO_MODE_STREAM;
	config->flush_ms = flush_of(&scan);
	if (scan.path.bytes) {
		config->path = copy_text(scan.path);
		if (!config->path)
			return -ENOMEM;
	}
	return 0;
}

static enum tier tier_of(struct ky_proto_view text)
{
	if (!memchr(text.data, '*', text.bytes))
		return TIER_EXACT;
	return text.bytes == 1 ? TIER_ALL : TIER_PATTERN;
}

/* An entry needs its bytes, a '-' and a ',' or the final NUL. */
static void list_add(struct category_list *list, struct ky_proto_view text)
{
	if (!text.bytes)
		return;
	if (!list->data) {
		list->used += text.bytes + 2;
		return;
	}
	if (tier_of(text) != list->tier)
		return;
	if (list->used > 0)
		list->data[list->used++] = ',';
	if (list->field == TRACK_EVENT_DISABLED_CATEGORIES)
		list->data[list->used++] = '-';
	for (size_t i = 0; i < text.bytes; i++) {
		const char c = (char)text.data[i];
		list->data[list->used++] = c == ',' || (i == 0 && c == '-') ? '?' : c;
	}
}

static int list_track_event(struct category_list *list, struct ky_proto_view message)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field;
	int more;

	while ((more = next_field(&in, &field)) > 0) {
		if (!is_bytes(&field, TRACK_EVENT_DISABLED_CATEGORIES) &&
		    !is_bytes(&field, TRACK_EVENT_ENABLED_CATEGORIES))
			continue;
		if (has_nul(field.view))
			return KYMO_ECONFIG;
		if (!list->data || field.id == list->field)
			list_add(list, field.view);
	}
	return more;
}

static int is_track_event(struct ky_proto_view message, bool *yes)
{
	static const char name[] = "track_event";
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field;
	int more;

	*yes = false;
	while ((more = next_field(&in, &field)) > 0)
		if (is_bytes(&field, SOURCE_CONFIG_NAME))
			*yes = field.view.bytes == sizeof(name) - 1 &&
			       memcmp(field.view.data, name, sizeof(name) - 1) == 0;
	return more;
}

/* List a DataSourceConfig. Its name may come after the categories, hence two walks. */
static int list_source_config(struct category_list *list, struct ky_proto_view message)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field;
	bool wanted;
	int more = is_track_event(message, &wanted);

	if (more < 0 || !wanted)
		return more;
	while ((more = next_field(&in, &field)) > 0)
		if (is_bytes(&field, SOURCE_CONFIG_TRACK_EVENT) &&
		    list_track_event(list, field.view) < 0)
			return KYMO_ECONFIG;
	return more;
}

/* List the DataSourceConfigs, which are two messages down. */
static int list_sources(struct category_list *list, struct ky_proto_view message, uint64_t number)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_proto_field field;
	int more;

	while ((more = next_field(&in, &field)) > 0)
		if (is_bytes(&field, number) &&
		    (number == SOURCE_CONFIG ? list_source_config(list, field.view)
					     : list_sources(list, field.view, SOURCE_CONFIG)) < 0)
			return KYMO_ECONFIG;
	return more;
}

static int list_trace(struct category_list *list, struct ky_proto_view message)
{
	return list_sources(list, message, TRACE_DATA_SOURCES);
}

static int read_categories(struct ky_config *config, struct ky_proto_view message)
{
	struct category_list list = {0};
	const int error = list_trace(&list, message);

	if (error || list.used == 0)
		return error;
	list.data = malloc(list.used);
	if (!list.data)
		return -ENOMEM;
	list.used = 0;
	for (list.tier = TIER_ALL; list.tier < TIERS; list.tier++) {
		list.field = TRACK_EVENT_DISABLED_CATEGORIES;
		(void)list_trace(&list, message); /* it succeeded before */
		list.field = TRACK_EVENT_ENABLED_CATEGORIES;
		(void)list_trace(&list, message);
	}
	list.data[list.used] = '\0';
	config->categories = list.data;
	return 0;
}

int ky_config_decode(struct ky_config *config, const void *data, size_t bytes)
{
	const struct ky_proto_view message = {data, bytes};

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
