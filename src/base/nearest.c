/* SPDX-License-Identifier: MIT */
/* nearest.c: see nearest.h. */
#include "base/nearest.h"

#include "base/strings.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define FAR 1000u

/* Return how far name is from wanted: 0 for the name itself, FAR for one that is not like it. */
static uint32_t distance(const char *wanted, const char *name)
{
	const size_t wanted_bytes = strlen(wanted), name_bytes = strcspn(name, "(");
	const size_t apart =
		wanted_bytes > name_bytes ? wanted_bytes - name_bytes : name_bytes - wanted_bytes;
	const uint32_t few = wanted_bytes < 6 ? 1 : 3;
	if (apart <= few) {
		const uint32_t edits = ky_strings_distance(wanted, wanted_bytes, name, name_bytes);
		if (edits <= few)
			return edits;
	}
	if (wanted_bytes >= 3 && strcasestr(name, wanted))
		return (apart < FAR - 5 ? 4 + (uint32_t)apart : FAR - 1);
	return FAR;
}

static bool has_name(const struct ky_nearest *nearest, const char *name)
{
	for (uint32_t i = 0; i < nearest->count; i++)
		if (strncmp(nearest->names[i], name, sizeof(nearest->names[i]) - 1) == 0)
			return true;
	return false;
}

void ky_nearest_note(struct ky_nearest *nearest, const char *wanted, const char *name)
{
	const uint32_t far = distance(wanted, name);
	uint32_t at = nearest->count;
	while (at && far < nearest->distances[at - 1])
		at--;
	if (far >= FAR || at == KY_NEAREST_MAX || has_name(nearest, name))
		return;
	if (nearest->count < KY_NEAREST_MAX)
		nearest->count++;
	for (uint32_t i = nearest->count - 1; i > at; i--) {
		memcpy(nearest->names[i], nearest->names[i - 1], sizeof(nearest->names[i]));
		nearest->distances[i] = nearest->distances[i - 1];
	}
	snprintf(nearest->names[at], sizeof(nearest->names[at]), "%s", name);
	nearest->distances[at] = far;
}

const char *ky_nearest_text(const struct ky_nearest *nearest, char *out, size_t room)
{
	out[0] = '\0';
	for (uint32_t i = 0; i < nearest->count; i++) {
		const size_t used = strlen(out);
		snprintf(out + used, room - used, "%s%s", i ? ", " : "", nearest->names[i]);
	}
	return out;
}

const char *ky_nearest_hint(const struct ky_nearest *nearest, const char *otherwise, char *out,
			    size_t room)
{
	char names[KY_NEAREST_TEXT_BYTES];
	ky_nearest_text(nearest, names, sizeof(names));
	snprintf(out, room, "%s%s", names[0] ? "; similar: " : otherwise, names);
	return out;
}
