/* SPDX-License-Identifier: MIT */
/*
 * ftrace_bprint.c: trace_printk()'s records: the address of a format string, and its arguments as the kernel's
 * vbin_printf() packs them. libtraceevent can format them too, but follows what the record says out of it.
 *
 *   %d and its kin   a number of its size, aligned to it, those of 8 bytes to 4
 *   %s               the text with its NUL, not aligned
 *   %p               a pointer; with a letter that needs what it points to, the text
 *   *                an int before the argument
 */
#include "base/array.h"
#include "base/memory.h"
#include "formats/ftrace/ftrace_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <traceevent/event-parse.h>

struct args {
	const struct ky_ftrace_format *format;
	const uint8_t *begin;
	const uint8_t *at;
	const uint8_t *end;
};

struct bprint_out {
	char *text;
	size_t used;
	size_t room;
};

struct ky_ftrace_printk {
	uint64_t address;
	char *text;
};

/* ---- format strings ---- */

static int compare(const void *a, const void *b)
{
	uint64_t first = ((const struct ky_ftrace_printk *)a)->address;
	uint64_t second = ((const struct ky_ftrace_printk *)b)->address;
	return (first > second) - (first < second);
}

/* "\n" and '\"' as they are written in the list. */
static char *unescape(const char *text, size_t bytes)
{
	char *copy = malloc(bytes + 1);
	size_t used = 0;
	if (!copy)
		ky_memory_missing();
	for (size_t i = 0; copy && i < bytes; i++) {
		char c = text[i];
		if (c == '\\' && i + 1 < bytes) {
			c = text[++i];
			c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
		}
		copy[used++] = c;
	}
	if (copy)
		copy[used] = '\0';
	return copy;
}

void ky_ftrace_bprint_add(struct ky_ftrace_format *format, uint64_t address, const char *text,
			  size_t bytes)
{
	char *copy = unescape(text, bytes);
	if (copy && !KY_ARRAY_ADD(format->printks, format->printks_count, format->printks_room,
				  (struct ky_ftrace_printk){address, copy}))
		free(copy);
}

void ky_ftrace_bprint_sort(struct ky_ftrace_format *format)
{
	format->printks_sorted = true;
	if (format->printks_count)
		qsort(format->printks, format->printks_count, sizeof(*format->printks), compare);
}

void ky_ftrace_bprint_free(struct ky_ftrace_format *format)
{
	for (uint32_t i = 0; i < format->printks_count; i++)
		free(format->printks[i].text);
	KY_ARRAY_FREE(format->printks, format->printks_room);
}

/* ---- arguments ---- */

static void append(struct bprint_out *out, const char *text, size_t bytes)
{
	size_t left = out->room - out->used;
	bytes = bytes < left ? bytes : left;
	memcpy(out->text + out->used, text, bytes);
	out->used += bytes;
}

/* 0 when the record has no more. */
static uint64_t take_number(struct args *args, uint32_t bytes)
{
	size_t align = bytes < 4 ? bytes : 4;
	size_t offset = ((size_t)(args->at - args->begin) + align - 1) & ~(align - 1);
	if (offset > (size_t)(args->end - args->begin) ||
	    bytes > (size_t)(args->end - args->begin) - offset) {
		args->at = args->end;
		return 0;
	}
	args->at = args->begin + offset + bytes;
	return ky_ftrace_load(args->format, args->begin + offset, bytes);
}

static void put_string(struct args *args, struct bprint_out *out)
{
	size_t left = (size_t)(args->end - args->at);
	size_t bytes = strnlen((const char *)args->at, left);
	append(out, (const char *)args->at, bytes);
	args->at += bytes < left ? bytes + 1 : left;
}

static void put_pointer(struct args *args, struct bprint_out *out, char extension)
{
	char text[32];
	bool is_word = (extension >= 'a' && extension <= 'z') ||
		       (extension >= 'A' && extension <= 'Z') ||
		       (extension >= '0' && extension <= '9');
	if (is_word && !strchr("SsxKefF", extension)) {
		put_string(args, out);
		return;
	}
	uint64_t address = take_number(args, args->format->long_bytes);
	const char *name = is_word && strchr("SsfF", extension)
				   ? tep_find_function(args->format->tep, address)
				   : NULL;
	int bytes = snprintf(text, sizeof(text), "0x%llx", (unsigned long long)address);
	append(out, name ? name : text, name ? strlen(name) : (size_t)bytes);
}

/* Bytes of a number by the l, h and z before its letter. */
static uint32_t number_bytes(const struct args *args, const char *modifiers, size_t count,
			     char letter)
{
	if (letter == 'c' || (count == 2 && modifiers[0] == 'h'))
		return 1;
	if (count == 1 && modifiers[0] == 'h')
		return 2;
	if (count == 2 && modifiers[0] == 'l')
		return 8;
	if (count == 1 && modifiers[0] == 'L')
		return 8;
	return count ? args->format->long_bytes : 4;
}

static void put_number(struct args *args, struct bprint_out *out, uint32_t bytes, char letter,
		       char pad, int width)
{
	char text[64];
	uint64_t value = take_number(args, bytes);
	unsigned shift = 64 - bytes * 8;
	int used = 0;
	if (letter == 'c')
		used = snprintf(text, sizeof(text), "%c", (int)value);
	else if (letter == 'd' || letter == 'i')
		used = snprintf(text, sizeof(text), pad == '0' ? "%0*lld" : "%*lld", width,
				(long long)((int64_t)(value << shift) >> shift));
	else if (letter == 'u')
		used = snprintf(text, sizeof(text), pad == '0' ? "%0*llu" : "%*llu", width,
				(unsigned long long)value);
	else if (letter == 'o')
		used = snprintf(text, sizeof(text), "%*llo", width, (unsigned long long)value);
	else
		used = snprintf(text, sizeof(text), pad == '0' ? "%0*llx" : "%*llx", width,
				(unsigned long long)value);
	append(out, text,
	       used < 0                      ? 0
	       : (size_t)used < sizeof(text) ? (size_t)used
					     : sizeof(text) - 1);
}

/* Write one conversion, from behind its '%' on; return the text behind it. */
static const char *convert(struct args *args, struct bprint_out *out, const char *at)
{
	char pad = ' ';
	int width = 0;
	for (; *at && strchr("-+ #0", *at); at++)
		pad = *at == '0' ? '0' : pad;
	for (; (*at >= '0' && *at <= '9') || *at == '.' || *at == '*'; at++) {
		if (*at == '*')
			(void)take_number(args, 4);
		else if (*at != '.' && width < 4)
			width = width * 10 + (*at - '0');
	}
	const char *modifiers = at;
	while (*at && strchr("lhzLtj", *at) && at - modifiers < 2)
		at++;
	char letter = *at;
	if (!letter)
		return at;
	at++;
	if (letter == 's') {
		put_string(args, out);
	} else if (letter == 'p') {
		put_pointer(args, out, *at);
		while ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
		       (*at >= '0' && *at <= '9'))
			at++;
	} else if (strchr("diuxXoc", letter)) {
		uint32_t bytes =
			number_bytes(args, modifiers, (size_t)(at - 1 - modifiers), letter);
		put_number(args, out, bytes, letter, pad, width);
	} else {
		append(out, &letter, 1);
	}
	return at;
}

static void put_caller(const struct ky_ftrace_format *format, uint64_t address,
		       struct bprint_out *out)
{
	char text[32];
	const char *name = tep_find_function(format->tep, address);
	int bytes = snprintf(text, sizeof(text), "0x%llx", (unsigned long long)address);
	append(out, name ? name : text, name ? strlen(name) : (size_t)bytes);
	append(out, ": ", 2);
}

size_t ky_ftrace_bprint(const struct ky_ftrace_format *format, uint64_t ip, uint64_t fmt,
			const uint8_t *packed, size_t bytes, char *text, size_t room)
{
	struct bprint_out out = {text, 0, room};
	struct args args = {format, packed, packed, packed + bytes};
	const struct ky_ftrace_printk key = {.address = fmt};
	const struct ky_ftrace_printk *found =
		format->printks_count ? bsearch(&key, format->printks, format->printks_count,
						sizeof(key), compare)
				      : NULL;
	if (!found)
		return 0;
	put_caller(format, ip, &out);
	for (const char *at = found->text; *at;) {
		const char *percent = strchrnul(at, '%');
		append(&out, at, (size_t)(percent - at));
		at = percent;
		if (*at == '%' && at[1] == '%') {
			append(&out, "%", 1);
			at += 2;
		} else if (*at == '%') {
			at = convert(&args, &out, at + 1);
		}
	}
	return out.used;
}
