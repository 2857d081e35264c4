/* SPDX-License-Identifier: MIT */
/* symbol_table.c: a sorted array of functions and one block of memory for their names. */
#include "process/symbol_table.h"

#include "base/array.h"

#include <elf.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void ky_symbol_table_free(struct ky_symbol_table *table)
{
	KY_ARRAY_FREE(table->symbols, table->room);
	KY_ARRAY_FREE(table->names, table->names_room);
	*table = (struct ky_symbol_table){0};
}

bool ky_symbol_table_add(struct ky_symbol_table *table, uint64_t start, uint64_t bytes,
			 uint32_t rank, const char *name, size_t name_bytes)
{
	if (name_bytes >= UINT32_MAX - table->names_bytes - 1u)
		return false;
	const uint32_t names_need = table->names_bytes + (uint32_t)name_bytes + 1;
	if (!KY_ARRAY_GROW_ZERO(table->names, table->names_room, names_need) ||
	    !KY_ARRAY_GROW_ZERO(table->symbols, table->room, table->count + 1))
		return false;
	memcpy(table->names + table->names_bytes, name, name_bytes);
	table->names[names_need - 1] = '\0';
	table->symbols[table->count++] = (struct ky_symbol){
		.start = start,
		.end = bytes > UINT64_MAX - start ? UINT64_MAX : start + bytes,
		.name_at = table->names_bytes,
		.rank = rank,
	};
	table->names_bytes = names_need;
	return true;
}

uint32_t ky_symbol_table_rank(unsigned binding, const char *name)
{
	const size_t underscores = strspn(name, "_");
	const uint32_t known = binding == STB_GLOBAL ? 2 : binding == STB_LOCAL ? 1 : 0;
	return known << 8 | (underscores < 255 ? 255 - (uint32_t)underscores : 0);
}

/* The last of several at one address is found: one with a size before those without, then by rank. */
static int by_address(const void *a, const void *b)
{
	const struct ky_symbol *x = a;
	const struct ky_symbol *y = b;
	const bool x_sized = x->end != x->start, y_sized = y->end != y->start;
	return KY_COMPARE_THEN(
		x->start, y->start,
		KY_COMPARE_THEN(
			x_sized, y_sized,
			KY_COMPARE_THEN(x->rank, y->rank, KY_COMPARE(y->name_at, x->name_at))));
}

/* A label inside a function is no function of its own. */
static void drop_labels(struct ky_symbol_table *table)
{
	uint32_t kept = 0;
	uint64_t end = 0;
	for (uint32_t i = 0; i < table->count; i++) {
		const struct ky_symbol symbol = table->symbols[i];
		if (symbol.start == symbol.end && symbol.start < end)
			continue;
		if (symbol.end > end)
			end = symbol.end;
		table->symbols[kept++] = symbol;
	}
	table->count = kept;
}

void ky_symbol_table_sort(struct ky_symbol_table *table)
{
	if (!table->count)
		return;
	qsort(table->symbols, table->count, sizeof(*table->symbols), by_address);
	drop_labels(table);
}

uint32_t ky_symbol_table_find(struct ky_symbol_table *table, struct ky_strings *strings,
			      uint64_t address)
{
	const uint32_t next =
		KY_ARRAY_SEARCH(0, table->count, at, table->symbols[at].start <= address);
	if (!next)
		return 0;
	struct ky_symbol *symbol = &table->symbols[next - 1];
	if (symbol->end != symbol->start && address >= symbol->end)
		return 0;
	if (symbol->end == symbol->start && next == table->count && address != symbol->start)
		return 0;
	if (!symbol->string) {
		const char *linked = table->names + symbol->name_at;
		char *readable = ky_demangle(linked);
		const char *const name = readable ? readable : linked;
		symbol->string = ky_strings_add_utf8(strings, name, strlen(name));
		free(readable);
	}
	return symbol->string;
}

/* ---- readable names ---- */

/*
 * Names come from files that anybody may have made, and a short mangled name can stand for one that would fill all memory,
 * because parts of it refer to parts. libiberty offers no limit, but hands the text over part by part and keeps nothing
 * outside its stack until then: so a name that gets too long is left by a jump.
 */

#define NAME_BYTES_MAX 4096u
#define TEXT_BYTES_MAX 16384u

struct text {
	jmp_buf too_long;
	size_t used;
	char bytes[TEXT_BYTES_MAX];
};

static void add(const char *part, size_t bytes, void *context)
{
	struct text *text = context;
	if (bytes >= TEXT_BYTES_MAX - text->used)
		longjmp(text->too_long, 1);
	memcpy(text->bytes + text->used, part, bytes);
	text->used += bytes;
}

/* Rust's older names are names of C++ too, with a hash at their end: it is asked first. */
static bool demangle(const char *name, struct text *text)
{
	text->used = 0;
	if (setjmp(text->too_long))
		return false;
	if (rust_demangle_callback(name, DMGL_PARAMS | DMGL_ANSI, add, text))
		return true;
	text->used = 0;
	return cplus_demangle_v3_callback(name, DMGL_PARAMS | DMGL_ANSI, add, text);
}

static bool is_mangled(const char *name)
{
	name += strspn(name, "_");
	return name[-1] == '_' && (name[0] == 'Z' || name[0] == 'R');
}

char *ky_demangle(const char *name)
{
	const size_t bytes = strnlen(name, NAME_BYTES_MAX);
	if (name[0] != '_' || !is_mangled(name) || bytes == NAME_BYTES_MAX)
		return NULL;
	struct text *text = malloc(sizeof(*text));
	const size_t mangled_bytes = strcspn(name, "@");
	char *mangled = strndup(name, mangled_bytes);
	char *readable = NULL;
	if (text && mangled && demangle(mangled, text) && text->used) {
		readable = malloc(text->used + bytes - mangled_bytes + 1);
		if (readable) {
			memcpy(readable, text->bytes, text->used);
			memcpy(readable + text->used, name + mangled_bytes,
			       bytes - mangled_bytes + 1);
		}
	}
	free(mangled);
	free(text);
	return readable;
}
