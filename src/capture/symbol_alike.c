/* SPDX-License-Identifier: MIT */
/*
 * symbol_alike.c: see symbol_alike.h. Near is a name that differs in a few letters (the edit distance), or that has the
 * wanted one in it, whatever the case: then it is the farther the longer it is.
 */
#include "capture/symbol_alike.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LETTERS_MAX 64u
#define FAR 1000u

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Letters to change, add or leave out to make one of the other. */
static uint32_t edit_distance(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
	uint32_t row[LETTERS_MAX + 1];
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

/* 0 is the name itself. */
static uint32_t distance(const char *wanted, const char *name)
{
	const size_t wanted_bytes = strlen(wanted), name_bytes = strcspn(name, "(");
	const size_t apart =
		wanted_bytes > name_bytes ? wanted_bytes - name_bytes : name_bytes - wanted_bytes;
	const uint32_t few = wanted_bytes < 6 ? 1 : 3;
	if (apart <= few && wanted_bytes <= LETTERS_MAX && name_bytes <= LETTERS_MAX) {
		const uint32_t edits = edit_distance(wanted, wanted_bytes, name, name_bytes);
		if (edits <= few)
			return edits;
	}
	if (wanted_bytes >= 3 && strcasestr(name, wanted))
		return 4 + least((uint32_t)apart, FAR - 5);
	return FAR;
}

static bool has_name(const struct ky_symbol_alike *alike, const char *name)
{
	for (uint32_t i = 0; i < alike->count; i++)
		if (strncmp(alike->names[i], name, sizeof(alike->names[i]) - 1) == 0)
			return true;
	return false;
}

void ky_symbol_alike_note(struct ky_symbol_alike *alike, const char *wanted, const char *name)
{
	const uint32_t far = distance(wanted, name);
	uint32_t at = alike->count;
	while (at && far < alike->distances[at - 1])
		at--;
	if (far >= FAR || at == KY_SYMBOL_ALIKE_MAX || has_name(alike, name))
		return;
	if (alike->count < KY_SYMBOL_ALIKE_MAX)
		alike->count++;
	for (uint32_t i = alike->count - 1; i > at; i--) {
		memcpy(alike->names[i], alike->names[i - 1], sizeof(alike->names[i]));
		alike->distances[i] = alike->distances[i - 1];
	}
	snprintf(alike->names[at], sizeof(alike->names[at]), "%s", name);
	alike->distances[at] = far;
}

const char *ky_symbol_alike_text(const struct ky_symbol_alike *alike, char *out, size_t room)
{
	out[0] = '\0';
	for (uint32_t i = 0; i < alike->count; i++) {
		const size_t used = strlen(out);
		snprintf(out + used, room - used, "%s%s", i ? ", " : "", alike->names[i]);
	}
	return out;
}
