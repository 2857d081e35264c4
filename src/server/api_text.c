/* SPDX-License-Identifier: MIT */
/* api_text.c: texts of a trace for display: names, labels of threads, keys and values of arguments. */
#include "server/api_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ky_api_text(struct ky_json_out *json, const char *key, const struct ky_trace *trace,
		 uint32_t string)
{
	const uint32_t bytes = ky_strings_bytes(&trace->strings, string);
	const char *const text = string ? ky_text_of(trace, string) : "";
	ky_json_out_string(json, key, text, bytes < KY_NAME_BYTES_MAX ? bytes : KY_NAME_BYTES_MAX);
}

void ky_api_text_name(struct ky_json_out *json, const char *key, const struct ky_trace *trace,
		      uint32_t string)
{
	if (ky_strings_bytes(&trace->strings, string))
		ky_api_text(json, key, trace, string);
	else
		ky_json_out_text(json, key, "(no name)");
}

static const char *label(char *to, const char *name, const char *kind, int64_t id)
{
	if (name && *name)
		snprintf(to, KY_LABEL_BYTES, "%.128s %" PRId64, name, id);
	else
		snprintf(to, KY_LABEL_BYTES, "%s %" PRId64, kind, id);
	return to;
}

const char *ky_api_text_thread(char to[KY_LABEL_BYTES], const struct ky_trace *trace,
			       uint32_t thread)
{
	if (thread >= trace->threads.rows.count)
		return "";
	return label(to, ky_text_of(trace, trace->threads.name[thread]), "thread",
		     trace->threads.tid[thread]);
}

const char *ky_api_text_process(char to[KY_LABEL_BYTES], const struct ky_trace *trace,
				uint32_t process)
{
	if (process >= trace->processes.rows.count)
		return "";
	return label(to, ky_text_of(trace, trace->processes.name[process]), "process",
		     trace->processes.pid[process]);
}

/* ---- arguments ---- */

const char *ky_api_text_arg_key(const struct ky_trace *trace, uint32_t arg)
{
	const uint32_t string = trace->args.key[arg];
	const char *const key = string ? ky_text_of(trace, string) : "";
	if (strncmp(key, "args.", 5) == 0 && key[5])
		return key + 5;
	return strncmp(key, "debug.", 6) == 0 && key[6] ? key + 6 : key;
}

bool ky_api_text_is_source(const char *key)
{
	return strncmp(key, "source.", 7) == 0 || strncmp(key, "source_location.", 16) == 0;
}

const char *ky_api_text_real(double value, char room[KY_ARG_ROOM])
{
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(room, KY_ARG_ROOM, "%.*g", digits, value);
		if (strtod(room, NULL) == value)
			break;
	}
	return room;
}

static const char *plain_text(uint8_t type, uint64_t value, char room[KY_ARG_ROOM])
{
	double real;
	switch (type) {
	case KY_ARG_INT:
		snprintf(room, KY_ARG_ROOM, "%" PRId64, (int64_t)value);
		return room;
	case KY_ARG_UINT:
		snprintf(room, KY_ARG_ROOM, "%" PRIu64, value);
		return room;
	case KY_ARG_POINTER:
		snprintf(room, KY_ARG_ROOM, "0x%" PRIx64, value);
		return room;
	case KY_ARG_REAL:
		memcpy(&real, &value, sizeof(real));
		return ky_api_text_real(real, room);
	case KY_ARG_BOOL:
		return value ? "true" : "false";
	default:
		return "null";
	}
}

const char *ky_api_text_arg(const struct ky_trace *trace, uint32_t arg, char room[KY_ARG_ROOM],
			    size_t *bytes)
{
	const uint8_t type = trace->args.type[arg];
	const uint64_t value = trace->args.value[arg];
	if (type == KY_ARG_STRING || type == KY_ARG_JSON) {
		*bytes = ky_strings_bytes(&trace->strings, (uint32_t)value);
		return value ? ky_text_of(trace, (uint32_t)value) : "";
	}
	const char *const text = plain_text(type, value, room);
	*bytes = strlen(text);
	return text;
}
