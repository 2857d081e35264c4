/* SPDX-License-Identifier: MIT */
/*
 * symbol_match.c: see symbol_match.h. A name is near when it differs in a few letters (the edit distance), or when it
 * contains the wanted one in any case; then the distance grows with its length.
 */
#include "capture/symbol_match.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_copy_suffix(const char *suffix)
{
	static const char *const known[] = {".constprop.", ".isra.", ".lto_priv.", ".llvm."};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strncmp(suffix, known[i], strlen(known[i])) == 0)
			return true;
	return false;
}

/* Report whether linked is the wanted name, alone or with the mark of a version or copy. */
static bool is_linked_name(const char *wanted, const char *linked)
{
	const size_t bytes = strlen(wanted);
	if (strncmp(wanted, linked, bytes) != 0)
		return false;
	return linked[bytes] == '\0' || linked[bytes] == '@' || is_copy_suffix(linked + bytes);
}

/* Return the length of a readable name without its arguments. */
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

/* The name of a function template begins with its return type: "void net::send<int>". */
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

/* ---- names alike ---- */

#define LETTERS_MAX 96u
#define FAR 1000u

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

uint32_t ky_symbol_match_edits(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
	uint32_t row[LETTERS_MAX + 1];
	if (b_bytes > LETTERS_MAX)
		return UINT32_MAX;
	for (uint32_t j = 0; j <= b_bytes; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_bytes; i++) {
		uint32_t diagonal = row[0];
		row[0] = (uint32_t)i;
		for (size_t j = 1; j <= b_bytes; j++) {
			const uint32_t above = row[j];
			row[j] = least(least(above, row[j - 1]) + 1,
				       diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[b_bytes];
}

/* Return how far name is from wanted: 0 for the name itself, FAR for one that is not alike. */
static uint32_t distance(const char *wanted, const char *name)
{
	const size_t wanted_bytes = strlen(wanted), name_bytes = strcspn(name, "(");
	const size_t apart =
		wanted_bytes > name_bytes ? wanted_bytes - name_bytes : name_bytes - wanted_bytes;
	const uint32_t few = wanted_bytes < 6 ? 1 : 3;
	if (apart <= few) {
		const uint32_t edits =
			ky_symbol_match_edits(wanted, wanted_bytes, name, name_bytes);
		if (edits <= few)
			return edits;
	}
	if (wanted_bytes >= 3 && strcasestr(name, wanted))
		return 4 + least((uint32_t)apart, FAR - 5);
	return FAR;
}

static bool has_name(const struct ky_symbol_match_alike *alike, const char *name)
{
	for (uint32_t i = 0; i < alike->count; i++)
		if (strncmp(alike->names[i], name, sizeof(alike->names[i]) - 1) == 0)
			return true;
	return false;
}

void ky_symbol_match_alike_note(struct ky_symbol_match_alike *alike, const char *wanted,
				const char *name)
{
	const uint32_t far = distance(wanted, name);
	uint32_t at = alike->count;
	while (at && far < alike->distances[at - 1])
		at--;
	if (far >= FAR || at == KY_SYMBOL_MATCH_ALIKE_MAX || has_name(alike, name))
		return;
	if (alike->count < KY_SYMBOL_MATCH_ALIKE_MAX)
		alike->count++;
	for (uint32_t i = alike->count - 1; i > at; i--) {
		memcpy(alike->names[i], alike->names[i - 1], sizeof(alike->names[i]));
		alike->distances[i] = alike->distances[i - 1];
	}
	snprintf(alike->names[at], sizeof(alike->names[at]), "%s", name);
	alike->distances[at] = far;
}

const char *ky_symbol_match_alike_text(const struct ky_symbol_match_alike *alike, char *out,
				       size_t room)
{
	out[0] = '\0';
	for (uint32_t i = 0; i < alike->count; i++) {
		const size_t used = strlen(out);
		snprintf(out + used, room - used, "%s%s", i ? ", " : "", alike->names[i]);
	}
	return out;
}
