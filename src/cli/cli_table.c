/* SPDX-License-Identifier: MIT */
/*
 * cli_table.c: text and tables for people. Cells are kept until the table is printed, because only then
 * the columns' widths are known. When memory is short, rows are left out and an error is
 * reported.
 *
 *   ┌ indent ┐ name   ┌ gap ┐ total
 *              parse          1.25 ms
 *
 * The flexible column gives way when the line is wider than the terminal; its end becomes an
 * ellipsis.
 */
#include "base/array.h"
#include "cli/cli.h"
#include "core/utf8_scan.h"

#include <inttypes.h>
#include <langinfo.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

/* ---- text ---- */

/* Text of a trace may be any bytes: a name must not move the cursor or change the colours. */

#define REPLACEMENT ky_cli_sign("\xef\xbf\xbd", "?")

/* Report whether to colour standard output: it is a terminal, and NO_COLOR is not set. */
static bool may_colour(void)
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

/* Return COLUMNS of the environment; 0: it is not set, or not a number of columns. */
static unsigned given_columns(void)
{
	const char *const text = getenv("COLUMNS");
	char *end = NULL;
	const unsigned long columns = text ? strtoul(text, &end, 10) : 0;
	return text && *text >= '0' && *text <= '9' && !*end && columns <= 10000 ? (unsigned)columns
										 : 0;
}

unsigned ky_cli_width_or(unsigned otherwise)
{
	const unsigned given = given_columns();
	return given ? given : ky_cli_width() ? ky_cli_width() : otherwise;
}

bool ky_cli_ascii(void)
{
	static int known = -1;
	if (known < 0)
		known = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	return known == 1;
}

unsigned ky_cli_width(void)
{
	struct winsize size;
	if (isatty(STDOUT_FILENO) != 1)
		return 0;
	if (given_columns())
		return given_columns();
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

const char *ky_cli_style(const char *sgr)
{
	static char text[4][16];
	static unsigned next;
	if (!may_colour())
		return "";
	char *const to = text[next++ % 4];
	snprintf(to, sizeof(text[0]), "\033[%sm", sgr);
	return to;
}

const char *ky_cli_plain(void)
{
	return may_colour() ? "\033[0m" : "";
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
	if (ky_cli_ascii())
		return (struct character){length, 1, "?"};
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

/* Write part of a cell: all of its bytes into a file, no controls to a terminal. */
static void csv_part(FILE *to, const char *text, size_t bytes)
{
	if (isatty(fileno(to)))
		ky_cli_text(to, text, bytes);
	else
		fwrite(text, 1, bytes, to);
}

void ky_cli_csv(FILE *to, const char *text, size_t bytes, bool quoted)
{
	for (size_t i = 0; i < bytes && !quoted; i++)
		quoted = strchr(",\"\r\n", text[i]) != NULL;
	if (quoted)
		fputc('"', to);
	for (const char *const end = text + bytes; text < end;) {
		const char *const quote = memchr(text, '"', (size_t)(end - text));
		const char *const stop = quote ? quote + 1 : end;
		csv_part(to, text, (size_t)(stop - text));
		if (quote)
			fputc('"', to);
		text = stop;
	}
	if (quoted)
		fputc('"', to);
}

#define PATHS 4 /* in one message */

const char *ky_cli_path(const char *path)
{
	static char texts[PATHS][3 * 4096];
	static unsigned turn;
	char *const text = texts[turn++ % PATHS];
	size_t used = 0;
	const size_t bytes = strlen(path), room = sizeof(texts[0]) - 1;
	for (size_t at = 0; at < bytes;) {
		const struct character one = character_at(path + at, bytes - at);
		const char *const shown = one.instead ? one.instead : path + at;
		const size_t n = one.instead ? strlen(one.instead) : one.bytes;
		if (n > room - used)
			break;
		memcpy(text + used, shown, n);
		used += n;
		at += one.bytes;
	}
	text[used] = '\0';
	return text;
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

/* ---- tables ---- */

#define GAP 2
#define FLEXIBLE_MIN 8
#define CELL_BYTES_MAX 4096

struct cell {
	char *text; /* NULL: empty */
	const char *sgr;
	uint32_t bytes;
	uint32_t columns;
};

struct ky_cli_table {
	struct cell *cells;
	size_t count, room;
	unsigned columns;
	unsigned indent;
	bool failed;
	unsigned *widths;
	struct ky_cli_column column[];
};

struct ky_cli_table *ky_cli_table_new(const struct ky_cli_column *columns, unsigned count)
{
	struct ky_cli_table *const table = calloc(1, sizeof(*table) + count * sizeof(*columns));
	unsigned *const widths = calloc(count ? count : 1, sizeof(*widths));
	if (!table || !widths) {
		ky_cli_error("not enough memory");
		exit(KY_EXIT_FAILED);
	}
	table->columns = count;
	table->widths = widths;
	memcpy(table->column, columns, count * sizeof(*columns));
	return table;
}

void ky_cli_table_styled(struct ky_cli_table *table, const char *text, const char *sgr)
{
	struct cell *const cell = KY_ARRAY_NEW(table->cells, table->count, table->room);
	if (!cell) {
		table->failed = true;
		return;
	}
	if (!text || !*text)
		return;
	cell->sgr = sgr;
	cell->bytes = (uint32_t)strnlen(text, CELL_BYTES_MAX);
	cell->text = strndup(text, cell->bytes);
	if (!cell->text) {
		table->failed = true;
		cell->bytes = 0;
	}
	cell->columns = ky_cli_text_columns(text, cell->bytes);
	unsigned *const width = &table->widths[(table->count - 1) % table->columns];
	if (cell->columns > *width)
		*width = cell->columns;
}

void ky_cli_table_cell(struct ky_cli_table *table, const char *text)
{
	ky_cli_table_styled(table, text, NULL);
}

void ky_cli_table_format(struct ky_cli_table *table, const char *format, ...)
{
	char text[256];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	ky_cli_table_cell(table, text);
}

/* Shrink the flexible columns, the widest first, until the line fits. */
static void fit(struct ky_cli_table *table, unsigned room)
{
	unsigned line = table->indent;
	for (unsigned c = 0; c < table->columns; c++)
		line += table->widths[c] + (c + 1 < table->columns ? GAP : 0);
	while (line > room) {
		unsigned *widest = NULL;
		for (unsigned c = 0; c < table->columns; c++) {
			if (table->column[c].flexible && (!widest || table->widths[c] > *widest))
				widest = &table->widths[c];
		}
		if (!widest || *widest <= FLEXIBLE_MIN)
			return;
		--*widest;
		line--;
	}
}

static void pad(unsigned blanks)
{
	printf("%*s", (int)blanks, "");
}

static void print_cell(const struct cell *cell, unsigned width, bool right, bool last)
{
	const bool cut = cell->columns > width;
	const unsigned used = cut ? width : cell->columns;
	size_t bytes = cell->bytes;
	if (cut)
		bytes = ky_cli_text_fit(cell->text, cell->bytes, width - 1);
	if (right)
		pad(width - used);
	if (cell->text) {
		fputs(cell->sgr ? ky_cli_style(cell->sgr) : "", stdout);
		ky_cli_text(stdout, cell->text, bytes);
		fputs(cut ? ky_cli_sign("\u2026", "~") : "", stdout);
		fputs(cell->sgr ? ky_cli_plain() : "", stdout);
		/* Cutting a character of two columns may leave one column free. */
		if (cut && !right)
			pad(width - 1 - ky_cli_text_columns(cell->text, bytes));
	}
	if (!right && !last)
		pad(width - used);
}

static void print_row(const struct ky_cli_table *table, const struct cell *cells)
{
	unsigned last = table->columns;
	while (last > 1 && !cells[last - 1].text)
		last--;
	pad(table->indent);
	for (unsigned c = 0; c < last; c++) {
		print_cell(&cells[c], table->widths[c], table->column[c].right, c + 1 == last);
		if (c + 1 < last)
			pad(GAP);
	}
	putchar('\n');
}

static void print_titles(struct ky_cli_table *table)
{
	struct cell titles[32] = {{0}};
	bool any = false;
	for (unsigned c = 0; c < table->columns && c < 32; c++) {
		const char *const title = table->column[c].title;
		if (!title || !*title)
			continue;
		titles[c] = (struct cell){.text = (char *)(uintptr_t)title,
					  .sgr = "1",
					  .bytes = (uint32_t)strlen(title),
					  .columns = (uint32_t)strlen(title)};
		any = true;
	}
	if (any)
		print_row(table, titles);
}

void ky_cli_table_print(struct ky_cli_table **table_at, unsigned blanks)
{
	struct ky_cli_table *const table = *table_at;
	const size_t rows = table->columns ? table->count / table->columns : 0;
	for (unsigned c = 0; c < table->columns && rows; c++) {
		const size_t title = table->column[c].title ? strlen(table->column[c].title) : 0;
		if (title > table->widths[c])
			table->widths[c] = (unsigned)title;
	}
	table->indent = blanks;
	if (ky_cli_width())
		fit(table, ky_cli_width());
	if (rows)
		print_titles(table);
	for (size_t row = 0; row < rows; row++)
		print_row(table, table->cells + row * table->columns);
	if (table->failed)
		ky_cli_error("not enough memory: some of the table is missing");
	for (size_t i = 0; i < table->count; i++)
		free(table->cells[i].text);
	KY_ARRAY_FREE(table->cells, table->room);
	free(table->widths);
	free(table);
	*table_at = NULL;
}

void ky_cli_more(uint32_t shown, uint32_t all)
{
	if (shown < all)
		printf("and %" PRIu32 " more (--limit 0 shows all)\n", all - shown);
}
