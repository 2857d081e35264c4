/* SPDX-License-Identifier: MIT */
/*
 * uftrace_symbols.c: functions by address: a session's modules in the order of their addresses, each with its symbols
 * in the order of theirs.
 */
#include "base/array.h"
#include "base/file.h"
#include "formats/uftrace/uftrace_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define FILE_BYTES_MAX (UINT64_C(4) << 30)
#define MODULES_MAX 16384u

struct uftrace_symbol {
	uint64_t address;
	const char *name; /* in the module's text; NULL: nothing begins here */
};

/* The functions of a file: read once, however many sessions map it. */
struct uftrace_table {
	char *path;
	char *text;
	struct uftrace_symbol *symbols;
	uint32_t count, room;
};

struct uftrace_module {
	char session[32];
	uint64_t start, end;
	const struct uftrace_table *table;
};

struct ky_uftrace_symbols {
	const char *directory;
	bool relative; /* symbols' addresses are of the file, not of memory */
	struct uftrace_table **tables;
	uint32_t tables_count, tables_room;
	struct uftrace_module *modules;
	uint32_t modules_count, modules_room;
};

char *ky_uftrace_slurp(const char *directory, const char *name, size_t *bytes)
{
	char path[4096];
	const int length = snprintf(path, sizeof(path), "%s/%s", directory, name);
	*bytes = 0;
	return length > 0 && (size_t)length < sizeof(path)
		       ? ky_file_read(path, FILE_BYTES_MAX, bytes)
		       : NULL;
}

char *ky_uftrace_line(char **at)
{
	char *line = *at;
	if (!line || !*line)
		return NULL;
	char *end = strchr(line, '\n');
	*at = end ? end + 1 : line + strlen(line);
	if (end)
		*end = '\0';
	return line;
}

int ky_uftrace_symbols_open(struct ky_uftrace_symbols **out, const char *directory, bool relative)
{
	struct ky_uftrace_symbols *symbols = calloc(1, sizeof(*symbols));
	*out = symbols;
	if (!symbols)
		return -ENOMEM;
	symbols->directory = directory;
	symbols->relative = relative;
	return 0;
}

static void table_free(struct uftrace_table *table)
{
	if (!table)
		return;
	free(table->path);
	free(table->text);
	KY_ARRAY_FREE(table->symbols, table->room);
	free(table);
}

void ky_uftrace_symbols_close(struct ky_uftrace_symbols **out)
{
	struct ky_uftrace_symbols *symbols = *out;
	if (!symbols)
		return;
	for (uint32_t i = 0; i < symbols->tables_count; i++)
		table_free(symbols->tables[i]);
	KY_ARRAY_FREE(symbols->tables, symbols->tables_room);
	KY_ARRAY_FREE(symbols->modules, symbols->modules_room);
	free(symbols);
	*out = NULL;
}

KY_ORDER(by_address, struct uftrace_symbol, KY_COMPARE(a->address, b->address))

/* Take "address [size] type name"; false for anything else. The type '?' marks the end of the symbols before it. */
static bool parse_symbol(char *line, struct uftrace_symbol *symbol)
{
	char *rest;
	symbol->address = strtoull(line, &rest, 16);
	if (rest == line || *rest != ' ')
		return false;
	char *type = rest + 1;
	if (type[0] && type[1] != ' ') {
		strtoull(type, &rest, 16);
		if (*rest != ' ')
			return false;
		type = rest + 1;
	}
	if (!type[0] || type[1] != ' ' || !type[2])
		return false;
	symbol->name = type[0] == '?' ? NULL : type + 2;
	return true;
}

static bool parse_symbols(struct uftrace_table *table)
{
	char *at = table->text;
	for (char *line; (line = ky_uftrace_line(&at));) {
		struct uftrace_symbol symbol;
		if (line[0] == '#' || !parse_symbol(line, &symbol))
			continue;
		if (!KY_ARRAY_ADD(table->symbols, table->count, table->room, symbol))
			return false;
	}
	if (table->count)
		qsort(table->symbols, table->count, sizeof(*table->symbols), by_address);
	return true;
}

/* The table of the file at path, read when it is the first time; NULL without memory. */
static const struct uftrace_table *table_of(struct ky_uftrace_symbols *symbols, const char *path)
{
	for (uint32_t i = 0; i < symbols->tables_count; i++)
		if (strcmp(symbols->tables[i]->path, path) == 0)
			return symbols->tables[i];
	struct uftrace_table *table = calloc(1, sizeof(*table));
	if (!table || !(table->path = strdup(path))) {
		table_free(table);
		return NULL;
	}
	char name[300];
	size_t bytes;
	snprintf(name, sizeof(name), "%.250s.sym", ky_file_name(path));
	table->text = ky_uftrace_slurp(symbols->directory, name, &bytes);
	if ((table->text && !parse_symbols(table)) ||
	    !KY_ARRAY_ADD(symbols->tables, symbols->tables_count, symbols->tables_room, table)) {
		table_free(table);
		return NULL;
	}
	return table;
}

static int add_module(struct ky_uftrace_symbols *symbols, const char *session, uint64_t start,
		      uint64_t end, const char *path)
{
	if (symbols->modules_count >= MODULES_MAX)
		return 0;
	const struct uftrace_table *table = table_of(symbols, path);
	struct uftrace_module *module =
		table ? KY_ARRAY_NEW(symbols->modules, symbols->modules_count,
				     symbols->modules_room)
		      : NULL;
	if (!module)
		return -ENOMEM;
	*module = (struct uftrace_module){.start = start, .end = end, .table = table};
	snprintf(module->session, sizeof(module->session), "%s", session);
	return 0;
}

int ky_uftrace_symbols_session(struct ky_uftrace_symbols *symbols, const char *session)
{
	char name[64];
	size_t bytes;
	int error = 0;
	snprintf(name, sizeof(name), "sid-%.32s.map", session);
	char *text = ky_uftrace_slurp(symbols->directory, name, &bytes);
	char *at = text;
	for (const char *line; !error && (line = ky_uftrace_line(&at));) {
		uint64_t start, end, offset;
		char path[1024];
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %1023s", &start,
			   &end, &offset, path) == 4 &&
		    path[0] == '/' && start >= offset)
			error = add_module(symbols, session, start - offset, end, path);
	}
	free(text);
	return error;
}

int ky_uftrace_symbols_library(struct ky_uftrace_symbols *symbols, const char *session,
			       uint64_t base, const char *path)
{
	const struct uftrace_table *table = table_of(symbols, path);
	const uint64_t last = table && table->count ? table->symbols[table->count - 1].address : 0;
	return add_module(symbols, session, base, base + last + 4096, path);
}

static const char *name_in(const struct uftrace_table *table, uint64_t address)
{
	const uint32_t low =
		KY_ARRAY_SEARCH(0, table->count, at, table->symbols[at].address <= address);
	return low ? table->symbols[low - 1].name : NULL;
}

const char *ky_uftrace_symbols_name(const struct ky_uftrace_symbols *symbols, const char *session,
				    uint64_t address)
{
	const char *name = NULL;
	for (uint32_t i = symbols->modules_count; !name && i-- > 0;) {
		const struct uftrace_module *module = &symbols->modules[i];
		if (address >= module->start && address < module->end &&
		    strcmp(module->session, session) == 0)
			name = name_in(module->table,
				       symbols->relative ? address - module->start : address);
	}
	return name;
}
