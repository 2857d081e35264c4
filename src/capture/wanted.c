/* SPDX-License-Identifier: MIT */
/* wanted.c: see wanted.h. */
#include "capture/wanted.h"

#include "base/array.h"
#include "base/nearest.h"
#include "core/glob.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct wanted_glob {
	char *glob;
	const char *trigger; /* that it is of; NULL: of the list */
	bool found;
	struct ky_nearest nearest;
};

struct ky_wanted {
	struct wanted_glob *globs;
	uint32_t count, room;
};

static int add(struct ky_wanted *wanted, const char *glob, size_t bytes, const char *trigger)
{
	struct wanted_glob one = {.glob = strndup(glob, bytes), .trigger = trigger};
	if (one.glob && KY_ARRAY_ADD(wanted->globs, wanted->count, wanted->room, one))
		return 0;
	free(one.glob);
	return -ENOMEM;
}

/* Add the entries of a list; an exclusion of what does not exist is harmless. */
static int add_list(struct ky_wanted *wanted, const char *list)
{
	int error = 0;
	while (!error && *list) {
		list += strspn(list, " ,");
		const size_t bytes = strcspn(list, ",");
		size_t used = bytes;
		while (used && list[used - 1] == ' ')
			used--;
		if (used && *list != '-')
			error = add(wanted, list, used, NULL);
		list += bytes;
	}
	return error;
}

int ky_wanted_open(struct ky_wanted **out, const char *categories,
		   const struct ky_trigger *triggers, uint32_t count)
{
	struct ky_wanted *wanted = calloc(1, sizeof(*wanted));
	int error = !wanted ? -ENOMEM : categories ? add_list(wanted, categories) : 0;
	for (uint32_t i = 0; !error && i < count; i++) {
		const char *const category = triggers[i].category;
		if (category)
			error = add(wanted, category, strlen(category), triggers[i].text);
	}
	if (error)
		ky_wanted_close(&wanted);
	*out = wanted;
	return error;
}

void ky_wanted_close(struct ky_wanted **out)
{
	struct ky_wanted *const wanted = *out;
	*out = NULL;
	if (!wanted)
		return;
	for (uint32_t i = 0; i < wanted->count; i++)
		free(wanted->globs[i].glob);
	KY_ARRAY_FREE(wanted->globs, wanted->room);
	free(wanted);
}

bool ky_wanted_misses(const struct ky_wanted *wanted)
{
	for (uint32_t i = 0; i < wanted->count; i++)
		if (!wanted->globs[i].found)
			return true;
	return false;
}

void ky_wanted_category(struct ky_wanted *wanted, const char *category)
{
	for (uint32_t i = 0; i < wanted->count; i++) {
		struct wanted_glob *const one = &wanted->globs[i];
		if (!one->found && ky_glob_list_match(one->glob, category))
			one->found = true;
		else if (!one->found)
			ky_nearest_note(&one->nearest, one->glob, category);
	}
}

bool ky_wanted_missing(const struct ky_wanted *wanted, uint32_t *at, char message[KY_MESSAGE_BYTES])
{
	while (*at < wanted->count && wanted->globs[*at].found)
		++*at;
	if (*at == wanted->count)
		return false;
	const struct wanted_glob *const one = &wanted->globs[(*at)++];
	char hint[KY_NEAREST_TEXT_BYTES + 16];
	ky_nearest_hint(&one->nearest, "; 'kymo list -p PID' shows those of a process", hint,
			sizeof(hint));
	ky_fail(message, 0, "%s%.100s%sno category matches '%.100s'%s",
		one->trigger ? "--trigger " : "", one->trigger ? one->trigger : "",
		one->trigger ? ": " : "", one->glob, hint);
	return true;
}
