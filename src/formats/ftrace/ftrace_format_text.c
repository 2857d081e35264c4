/* SPDX-License-Identifier: MIT */
/*
 * ftrace_format_text.c: rewrites an event's format for libtraceevent, whose parser leaks memory, and recurses, when a
 * format is not as kernels write it. The rewritten text has only the well-formed parts:
 *
 *   name: sched_switch
 *   ID: 372
 *   format:
 *   \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
 *   (a blank line, then the event's own fields, and no print expression)
 */
#include "base/chars.h"
#include "base/memory.h"
#include "formats/ftrace/ftrace_format.h"

#include <stdio.h>
#include <stdlib.h>

#define DECLARATION_BYTES_MAX 200u
#define PLACE_MAX 65535u

struct text_range {
	const char *at;
	const char *end;
};

struct format_out {
	char *text;
	size_t used;
	size_t room;
};

/* The rewritten text is at most this many times as long as the original. */
static void append(struct format_out *out, const char *text, size_t bytes)
{
	if (bytes > out->room - out->used)
		return;
	memcpy(out->text + out->used, text, bytes);
	out->used += bytes;
}

static struct text_range skip_blanks(struct text_range span)
{
	return (struct text_range){ky_chars_skip_blanks(span.at, span.end), span.end};
}

static bool next_line(struct text_range *text, struct text_range *line)
{
	if (text->at >= text->end)
		return false;
	const char *stop = memchr(text->at, '\n', (size_t)(text->end - text->at));
	line->at = text->at;
	line->end = stop ? stop : text->end;
	text->at = line->end + (stop != NULL);
	return true;
}

static bool starts(struct text_range span, const char *with)
{
	size_t bytes = strlen(with);
	return (size_t)(span.end - span.at) >= bytes && memcmp(span.at, with, bytes) == 0;
}

/* "key:N;" anywhere in the line. */
static bool find_number(struct text_range line, const char *key, uint32_t *number)
{
	const char *at = memmem(line.at, (size_t)(line.end - line.at), key, strlen(key));
	uint64_t value;
	if (!at || !ky_chars_decimal(at + strlen(key), line.end, PLACE_MAX, &value))
		return false;
	*number = (uint32_t)value;
	return true;
}

/* Take "[16]" or "[]", without anything in it that is not a number; NULL when it does not end. */
static const char *write_index(const char *at, const char *end, struct format_out *out)
{
	const char *close = memchr(at, ']', (size_t)(end - at));
	bool numeric = true;
	for (const char *c = at + 1; close && c < close; c++)
		numeric &= ky_chars_is_digit(*c);
	if (!close || close - at > 12)
		return NULL;
	append(out, "[", 1);
	if (numeric)
		append(out, at + 1, (size_t)(close - at - 1));
	append(out, "]", 1);
	return close + 1;
}

/* Words and stars, and a name at the end, with an index at most there or at a dynamic type. */
static bool write_declaration(struct text_range text, struct format_out *out)
{
	uint32_t words = 0;
	uint32_t indices = 0;
	bool last_is_word = false;
	if ((size_t)(text.end - text.at) > DECLARATION_BYTES_MAX)
		return false;
	bool dynamic = starts(text, "__data_loc ") || starts(text, "__rel_loc ");
	for (const char *at = text.at; at < text.end;) {
		const char *begin = at;
		while (at < text.end && ky_chars_is_word(*at))
			at++;
		if (at > begin && ky_chars_is_digit(*begin))
			return false;
		if (at > begin) {
			append(out, " ", words > 0);
			append(out, begin, (size_t)(at - begin));
			words++;
			last_is_word = true;
		} else if (*at == '*') {
			append(out, " *", 2);
			at++;
			last_is_word = false;
		} else if (*at == '[' && words && last_is_word && ++indices == 1) {
			at = write_index(at, text.end, out);
			if (!at)
				return false;
			last_is_word = !dynamic;
			if (!dynamic && at != text.end)
				return false;
		} else if (ky_chars_is_blank(*at)) {
			at++;
		} else {
			return false;
		}
	}
	return words >= 2 && last_is_word && (!dynamic || (indices == 1 && words >= 3));
}

/* False: nothing was written. */
static bool write_field(struct text_range line, struct format_out *out)
{
	size_t before = out->used;
	uint32_t offset;
	uint32_t size;
	uint32_t is_signed = 0;
	char tail[80];
	const char *semicolon = memchr(line.at, ';', (size_t)(line.end - line.at));
	struct text_range declaration = {line.at + 6, semicolon};
	if (!semicolon || !find_number(line, "offset:", &offset) ||
	    !find_number(line, "size:", &size))
		return false;
	(void)find_number(line, "signed:", &is_signed);
	append(out, "\tfield:", 7);
	if (!write_declaration(skip_blanks(declaration), out)) {
		out->used = before;
		return false;
	}
	int bytes = snprintf(tail, sizeof(tail), ";\toffset:%u;\tsize:%u;\tsigned:%u;\n", offset,
			     size, is_signed != 0);
	append(out, tail, (size_t)bytes);
	return true;
}

/* Take "name: x" or "ID: 5": the key and the word behind it. */
static bool write_head(struct text_range line, const char *key, struct format_out *out)
{
	if (!starts(line, key))
		return false;
	struct text_range word = skip_blanks((struct text_range){line.at + strlen(key), line.end});
	const char *at = word.at;
	while (at < word.end && ky_chars_is_word(*at))
		at++;
	if (at == word.at || at - word.at > 100)
		return false;
	append(out, key, strlen(key));
	append(out, " ", 1);
	append(out, word.at, (size_t)(at - word.at));
	append(out, "\n", 1);
	return true;
}

/* All fields; *left_out is how many could not be used. */
static void write_fields(struct text_range text, struct format_out *out, uint32_t *left_out)
{
	struct text_range line;
	bool common = true;
	append(out, "format:\n", 8);
	while (next_line(&text, &line)) {
		line = skip_blanks(line);
		if (starts(line, "print fmt:"))
			break;
		if (!starts(line, "field:"))
			continue;
		bool is_common =
			memmem(line.at, (size_t)(line.end - line.at), " common_", 8) != NULL;
		if (common && !is_common) {
			append(out, "\n", 1);
			common = false;
		}
		*left_out += !write_field(line, out);
	}
	if (common)
		append(out, "\n", 1);
}

char *ky_ftrace_format_text(const char *text, size_t bytes, size_t *written, uint32_t *left_out)
{
	static const char tail[] = "\nprint fmt: \"\"\n";
	struct text_range all = {text, text + bytes};
	struct text_range line;
	bool named = false;
	bool numbered = false;
	struct format_out out = {.room = 2 * bytes + 256};
	*left_out = 0;
	out.text = malloc(out.room + 1);
	if (!out.text) {
		ky_memory_missing();
		return NULL;
	}
	while (next_line(&all, &line) && !(named && numbered)) {
		named = named || write_head(line, "name:", &out);
		numbered = numbered || (named && write_head(line, "ID:", &out));
	}
	write_fields((struct text_range){text, text + bytes}, &out, left_out);
	append(&out, tail, sizeof(tail) - 1);
	out.text[out.used] = '\0';
	*written = out.used;
	if (named && numbered && out.room - out.used > 128)
		return out.text;
	free(out.text);
	return NULL;
}
