/* SPDX-License-Identifier: MIT */
/*
 * demangle.c: see demangle.h. Names come from files that anybody may have made, and a short mangled name can stand for one that
 * would fill all memory, because parts of it refer to parts. libiberty offers no limit, but hands the text over piece by
 * piece and keeps nothing outside its stack until then: so a name that gets too long is left by a jump.
 */
#include "process/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES_MAX 4096u
#define TEXT_BYTES_MAX 16384u

struct text {
	jmp_buf too_long;
	size_t used;
	char bytes[TEXT_BYTES_MAX];
};

static void add(const char *piece, size_t bytes, void *context)
{
	struct text *text = context;
	if (bytes >= TEXT_BYTES_MAX - text->used)
		longjmp(text->too_long, 1);
	memcpy(text->bytes + text->used, piece, bytes);
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
