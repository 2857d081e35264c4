/* SPDX-License-Identifier: MIT */
/* json_feed.c: see json_feed.h. */
#include "formats/json/json_scan.h"

#define GROW_MIN 4096u

bool ky_json_feed_grow(struct ky_input *input)
{
	const size_t have = (size_t)(input->end - input->at);
	(void)ky_input_need(input, have < GROW_MIN ? have + GROW_MIN : 2 * have);
	return (size_t)(input->end - input->at) > have;
}

int ky_json_feed_next(struct ky_input *input)
{
	for (;;) {
		const uint8_t *at = input->at;
		while (at < input->end &&
		       (*at == ',' || *at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
			at++;
		ky_input_skip(input, (size_t)(at - input->at));
		if (at < input->end)
			return *at;
		if (!ky_json_feed_grow(input))
			return -1;
	}
}

bool ky_json_feed_take(struct ky_input *input, uint8_t byte)
{
	if (ky_json_feed_next(input) != byte)
		return false;
	ky_input_skip(input, 1);
	return true;
}

const uint8_t *ky_json_feed_value(struct ky_input *input, enum ky_json_fault *fault)
{
	for (;;) {
		const uint8_t *stop = ky_json_skip(input->at, input->end, fault);
		if (stop || *fault != KY_JSON_CUT)
			return stop;
		if (!ky_json_feed_grow(input))
			return NULL;
	}
}

/* Skip the rest of a string; the buffer does not grow for it. */
static bool skip_string(struct ky_input *input)
{
	struct ky_json_text text;
	ky_input_skip(input, 1);
	for (;;) {
		const uint8_t *stop = ky_json_scan_string(input->at, input->end, &text);
		if (stop) {
			ky_input_skip(input, (size_t)(stop - input->at));
			return true;
		}
		/* A backslash at the end belongs to what follows. */
		size_t have = (size_t)(input->end - input->at), backs = 0;
		while (backs < have && input->end[-1 - (ptrdiff_t)backs] == '\\')
			backs++;
		ky_input_skip(input, have - (backs & 1));
		if (!ky_json_feed_grow(input))
			return false;
	}
}

static bool skip_nested(struct ky_input *input)
{
	uint64_t depth = 0;
	do {
		const int c = ky_json_feed_next(input);
		if (c < 0)
			return false;
		if (c == '"') {
			if (!skip_string(input))
				return false;
			continue;
		}
		ky_input_skip(input, 1);
		if (c == '{' || c == '[')
			depth++;
		else if (c == '}' || c == ']')
			depth--;
	} while (depth > 0);
	return true;
}

bool ky_json_feed_skip(struct ky_input *input, enum ky_json_fault *fault)
{
	const int c = ky_json_feed_next(input);
	*fault = KY_JSON_CUT;
	if (c == '"')
		return skip_string(input);
	if (c == '{' || c == '[')
		return skip_nested(input);
	const uint8_t *stop = c < 0 ? NULL : ky_json_feed_value(input, fault);
	if (stop)
		ky_input_skip(input, (size_t)(stop - input->at));
	return stop != NULL;
}

int ky_json_feed_key(struct ky_input *input, char key[KY_JSON_KEY_BYTES], enum ky_json_fault *fault)
{
	const int c = ky_json_feed_next(input);
	*fault = c < 0 ? KY_JSON_CUT : KY_JSON_BAD;
	if (c == '}') {
		ky_input_skip(input, 1);
		return 0;
	}
	if (c != '"')
		return -1;
	const uint8_t *stop = ky_json_feed_value(input, fault);
	if (!stop)
		return -1;
	size_t bytes = (size_t)(stop - input->at) - 2;
	if (bytes > KY_JSON_KEY_BYTES - 1)
		bytes = KY_JSON_KEY_BYTES - 1;
	memcpy(key, input->at + 1, bytes);
	key[bytes] = '\0';
	ky_input_skip(input, (size_t)(stop - input->at));
	const bool colon = ky_json_feed_take(input, ':');
	const int next = ky_json_feed_next(input);
	*fault = next < 0 ? KY_JSON_CUT : KY_JSON_BAD;
	return colon && next >= 0 ? 1 : -1;
}

int ky_json_feed_element(struct ky_input *input, enum ky_json_fault *fault)
{
	const int c = ky_json_feed_next(input);
	*fault = KY_JSON_CUT;
	if (c == ']') {
		ky_input_skip(input, 1);
		return 0;
	}
	return c < 0 ? -1 : 1;
}
