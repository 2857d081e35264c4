/* SPDX-License-Identifier: MIT */
/* load_text.h: traces from literals, for the tests of readers of text. After cmocka.h. */
#ifndef KY_TESTS_LOAD_TEXT_H
#define KY_TESTS_LOAD_TEXT_H

#include <string.h>

#include "formats/load.h"

static inline struct ky_trace *load_bytes(const void *data, size_t bytes)
{
	char message[KY_MESSAGE_BYTES] = "";
	struct ky_trace *trace;
	if (ky_load_memory(&trace, data, bytes, NULL, message) != 0)
		fail_msg("not loaded: %s", message);
	return trace;
}

static inline struct ky_trace *load_text(const char *text)
{
	return load_bytes(text, strlen(text));
}

static inline const char *text_of(const struct ky_trace *trace, uint32_t string)
{
	return string ? ky_text_of(trace, string) : "(null)";
}

/* How often a problem was counted. */
static inline uint64_t problems_of(const struct ky_trace *trace, const char *name)
{
	uint64_t number = 0;
	for (uint32_t i = 0; i < trace->problems.rows.count; i++)
		if (strcmp(text_of(trace, trace->problems.name[i]), name) == 0)
			number += trace->problems.number[i];
	return number;
}

/* An argument of a set by its key, or KY_NONE. */
static inline uint32_t arg_of(const struct ky_trace *trace, uint32_t set, const char *key)
{
	for (uint32_t i = ky_arg_set_first(trace, set); i < ky_arg_set_end(trace, set); i++)
		if (strcmp(text_of(trace, trace->args.key[i]), key) == 0)
			return i;
	return KY_NONE;
}

#endif
