/* SPDX-License-Identifier: MIT */
/*
 * cli_text.c: text of a trace, which may be any bytes, on a terminal. A name in a trace must not move the cursor or
 * change the colours.
 */
#include "cli/cli.h"
#include "core/utf8_scan.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#define REPLACEMENT "\xef\xbf\xbd"

bool ky_cli_colour(void)
{
	static int known = -1;
	if (known < 0) {
		const char *const none = getenv("NO_COLOR");
		const char *const terminal = getenv("TERM");
		known = isatty(STDOUT_FILENO) == 1 && !(none && *none) &&
			!(terminal && strcmp(terminal, "dumb") == 0);
	}
	return known == 1;
}

unsigned ky_cli_width(void)
{
	struct winsize size;
	if (isatty(STDOUT_FILENO) != 1)
		return 0;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

const char *ky_cli_style(const char *sgr)
{
	static char text[4][16];
	static unsigned next;
	if (!ky_cli_colour())
		return "";
	char *const to = text[next++ % 4];
	snprintf(to, sizeof(text[0]), "\033[%sm", sgr);
	return to;
}

const char *ky_cli_plain(void)
{
	return ky_cli_colour() ? "\033[0m" : "";
}

/* One character of text: its bytes, its columns, and what is shown instead (or NULL). */
struct character {
	size_t bytes;
	unsigned columns;
	const char *instead;
};

static uint32_t code_point(const uint8_t *s, size_t bytes)
{
	uint32_t code = bytes == 1 ? s[0] : s[0] & (0x7fu >> bytes);
	for (size_t i = 1; i < bytes; i++)
		code = code << 6 | (s[i] & 0x3fu);
	return code;
}

static struct character character_at(const char *text, size_t bytes)
{
	const uint8_t *const s = (const uint8_t *)text;
	if (*s >= 0x20 && *s < 0x7f)
		return (struct character){1, 1, NULL};
	if (*s == '\n' || *s == '\t' || *s == '\r')
		return (struct character){1, 1, " "};
	const size_t length = ky_utf8_sequence(s, s + bytes);
	if (length == 0)
		return (struct character){ky_utf8_subpart(s, s + bytes), 1, REPLACEMENT};
	const uint32_t code = code_point(s, length);
	/* Report C0 and C1 controls, and characters that change the direction of writing. */
	if (code < 0xa0 || (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069))
		return (struct character){length, 1, REPLACEMENT};
	const int columns = wcwidth((wchar_t)code);
	return (struct character){length, columns < 0 ? 1 : (unsigned)columns, NULL};
}

void ky_cli_text(FILE *to, const char *text, size_t bytes)
{
	size_t at = 0;
	while (at < bytes) {
		const struct character one = character_at(text + at, bytes - at);
		if (one.instead)
			fputs(one.instead, to);
		else
			fwrite(text + at, 1, one.bytes, to);
		at += one.bytes;
	}
}

unsigned ky_cli_text_columns(const char *text, size_t bytes)
{
	unsigned columns = 0;
	for (size_t at = 0; at < bytes;) {
		const struct character one = character_at(text + at, bytes - at);
		columns += one.columns;
		at += one.bytes;
	}
	return columns;
}

size_t ky_cli_text_fit(const char *text, size_t bytes, unsigned columns)
{
	size_t at = 0;
	while (at < bytes) {
		const struct character one = character_at(text + at, bytes - at);
		if (one.columns > columns)
			break;
		columns -= one.columns;
		at += one.bytes;
	}
	return at;
}
