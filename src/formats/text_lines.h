/* SPDX-License-Identifier: MIT */
/* text_lines.h: an input line by line, for formats of text. */
#ifndef KY_FORMATS_TEXT_LINES_H
#define KY_FORMATS_TEXT_LINES_H

#include "formats/input.h"

#include <string.h>

#define KY_TEXT_LINE_MAX (1u << 20) /* a longer line is cut into several */

/*
 * Get the next line without its end ("\n" or "\r\n"), and its position; false at the end. The text
 * lives until the next call.
 */
static inline bool ky_text_line(struct ky_input *input, const char **text, size_t *bytes,
				uint64_t *position)
{
	size_t seen = 0;
	const uint8_t *newline = NULL;
	for (;;) {
		const size_t have = (size_t)(input->end - input->at);
		newline = have > seen ? memchr(input->at + seen, '\n', have - seen) : NULL;
		seen = have;
		if (newline || seen >= KY_TEXT_LINE_MAX || !ky_input_more(input))
			break;
	}
	if (!newline && input->at == input->end)
		return false;
	const size_t length = newline ? (size_t)(newline - input->at) : seen;
	*text = (const char *)input->at;
	*bytes = length && input->at[length - 1] == '\r' ? length - 1 : length;
	*position = input->position;
	ky_input_skip(input, length + (newline ? 1 : 0));
	return true;
}

#endif
