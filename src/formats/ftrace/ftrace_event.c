/* SPDX-License-Identifier: MIT */
/*
 * ftrace_event.c: the fields of a kernel event, and the raw event with them as its arguments.
 */
#include "formats/ftrace/ftrace_event.h"

#include "base/chars.h"

static struct ky_ftrace_field *new_field(struct ky_ftrace_event *event, const char *key,
					 size_t key_bytes)
{
	if (event->fields_count >= KY_FTRACE_FIELDS_MAX)
		return NULL;
	struct ky_ftrace_field *field = &event->fields[event->fields_count++];
	*field = (struct ky_ftrace_field){.key = key, .key_bytes = (uint32_t)key_bytes};
	return field;
}

void ky_ftrace_add_text(struct ky_ftrace_event *event, const char *key, size_t key_bytes,
			const char *text, size_t bytes)
{
	struct ky_ftrace_field *field = new_field(event, key, key_bytes);
	if (!field)
		return;
	field->kind = KY_FTRACE_TEXT;
	field->text = text;
	field->bytes = (uint32_t)bytes;
}

static bool parse_decimal(const char *text, size_t bytes, struct ky_ftrace_field *field)
{
	bool minus = bytes > 1 && text[0] == '-';
	uint64_t value;
	if (bytes == 0 || bytes > 20 ||
	    ky_chars_decimal(text + minus, text + bytes, UINT64_MAX, &value) != text + bytes)
		return false;
	if (minus && value > (uint64_t)INT64_MAX + 1)
		return false;
	field->kind = value > INT64_MAX && !minus ? KY_FTRACE_UINT : KY_FTRACE_INT;
	field->number = (int64_t)(minus ? 0 - value : value);
	return true;
}

static bool parse_hex(const char *text, size_t bytes, struct ky_ftrace_field *field)
{
	uint64_t value;
	if (bytes < 3 || text[0] != '0' || text[1] != 'x' ||
	    ky_chars_hex(text + 2, text + bytes, &value) != text + bytes)
		return false;
	field->kind = KY_FTRACE_POINTER;
	field->number = (int64_t)value;
	return true;
}

void ky_ftrace_add_value(struct ky_ftrace_event *event, const char *key, size_t key_bytes,
			 const char *text, size_t bytes)
{
	struct ky_ftrace_field *field = new_field(event, key, key_bytes);
	if (!field)
		return;
	field->text = text;
	field->bytes = (uint32_t)bytes;
	if (!parse_decimal(text, bytes, field) && !parse_hex(text, bytes, field))
		field->kind = KY_FTRACE_TEXT;
}

const struct ky_ftrace_field *ky_ftrace_find(const struct ky_ftrace_event *event, const char *key)
{
	size_t bytes = strlen(key);
	for (uint32_t i = 0; i < event->fields_count; i++)
		if (event->fields[i].key_bytes == bytes &&
		    memcmp(event->fields[i].key, key, bytes) == 0)
			return &event->fields[i];
	return NULL;
}

bool ky_ftrace_number(const struct ky_ftrace_event *event, const char *key, int64_t *number)
{
	const struct ky_ftrace_field *field = ky_ftrace_find(event, key);
	if (!field || field->kind == KY_FTRACE_TEXT)
		return false;
	*number = field->number;
	return true;
}

uint32_t ky_ftrace_string(struct ky_trace *trace, const struct ky_ftrace_event *event,
			  const char *key)
{
	const struct ky_ftrace_field *field = ky_ftrace_find(event, key);
	return field && field->text ? ky_string(trace, field->text, field->bytes) : 0;
}

static void put_arg(struct ky_trace *trace, struct ky_ftrace_field *field)
{
	static const uint8_t types[] = {
		[KY_FTRACE_INT] = KY_ARG_INT,
		[KY_FTRACE_UINT] = KY_ARG_UINT,
		[KY_FTRACE_POINTER] = KY_ARG_POINTER,
		[KY_FTRACE_TEXT] = KY_ARG_STRING,
	};
	if (!field->key_string)
		field->key_string = ky_string(trace, field->key, field->key_bytes);
	ky_args_add(trace, field->key_string, types[field->kind],
		    field->kind == KY_FTRACE_TEXT ? ky_string(trace, field->text, field->bytes)
						  : (uint64_t)field->number);
}

void ky_ftrace_put(struct ky_trace *trace, struct ky_ftrace_event *event)
{
	ky_args_begin(trace);
	for (uint32_t i = 0; i < event->fields_count; i++)
		put_arg(trace, &event->fields[i]);
	uint32_t args = ky_args_end(trace);
	ky_put_raw_line(trace, event->ts, event->cpu, event->tid, event->tgid, event->comm,
			event->name, args);
	ky_ftrace_known(trace, event);
}
