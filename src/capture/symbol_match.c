/* SPDX-License-Identifier: MIT */
/* symbol_match.c: see symbol_match.h. */
#include "capture/symbol_match.h"

#include <stddef.h>
#include <string.h>

static bool is_copy_suffix(const char *suffix)
{
	static const char *const known[] = {".constprop.", ".isra.", ".lto_priv.", ".llvm."};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strncmp(suffix, known[i], strlen(known[i])) == 0)
			return true;
	return false;
}

/* The first of name's bytes are wanted; what follows them is nothing, or the mark of a copy. */
static bool is_linked_name(const char *wanted, const char *linked)
{
	const size_t bytes = strlen(wanted);
	if (strncmp(wanted, linked, bytes) != 0)
		return false;
	return linked[bytes] == '\0' || linked[bytes] == '@' || is_copy_suffix(linked + bytes);
}

/* How many bytes of a readable name come before its arguments. */
static size_t bytes_before_arguments(const char *readable)
{
	const char *clone = strstr(readable, " [clone ");
	size_t at = clone ? (size_t)(clone - readable) : strlen(readable);
	const size_t all = at;
	while (at && readable[at - 1] != ')')
		at--;
	for (int depth = 0; at; at--) {
		depth += (readable[at - 1] == ')') - (readable[at - 1] == '(');
		if (depth == 0)
			return at - 1;
	}
	return all;
}

/* Functions made of templates begin with what they return: "void net::send<int>". */
static bool is_end_of(const char *wanted, const char *text, size_t bytes)
{
	const size_t wanted_bytes = strlen(wanted);
	if (wanted_bytes > bytes || memcmp(text + bytes - wanted_bytes, wanted, wanted_bytes) != 0)
		return false;
	return wanted_bytes == bytes || text[bytes - wanted_bytes - 1] == ' ';
}

bool ky_symbol_match(const char *wanted, const char *linked, const char *readable)
{
	if (is_linked_name(wanted, linked))
		return true;
	if (!readable)
		return false;
	const char *clone = strstr(readable, " [clone ");
	const size_t bytes = clone ? (size_t)(clone - readable) : strlen(readable);
	if (clone && !is_copy_suffix(clone + strlen(" [clone ")))
		return false;
	return is_end_of(wanted, readable, bytes) ||
	       is_end_of(wanted, readable, bytes_before_arguments(readable));
}
