/* SPDX-License-Identifier: MIT */
/*
 * category_list.c: see category_list.h.
 *
 * Switching an entry on appends it; switching it off appends its exclusion: the last entry that matches decides. What the list
 * has of the same entry goes, so that it does not grow when a category is switched again and again.
 */
#include "capture/category_list.h"

#include <errno.h>
#include <string.h>

struct entry {
	const char *glob; /* without its sign */
	size_t bytes;
	bool excludes;
};

/* Take the next entry off the list; false at its end. */
static bool next_entry(const char **list, struct entry *entry)
{
	const char *at = *list + strspn(*list, " ,");
	size_t bytes = strcspn(at, ",");
	*list = at + bytes;
	while (bytes && at[bytes - 1] == ' ')
		bytes--;
	entry->excludes = *at == '-';
	entry->glob = at + entry->excludes;
	entry->bytes = bytes - entry->excludes;
	return bytes != 0;
}

static bool names(const char *list, const struct entry *entry)
{
	struct entry other;
	while (next_entry(&list, &other))
		if (other.bytes == entry->bytes &&
		    memcmp(other.glob, entry->glob, other.bytes) == 0)
			return true;
	return false;
}

static int append(char *text, size_t room, bool excludes, const char *glob, size_t bytes)
{
	size_t used = strlen(text);
	if (used + 2 + bytes + 1 > room)
		return -E2BIG;
	if (used)
		text[used++] = ',';
	if (excludes)
		text[used++] = '-';
	memcpy(text + used, glob, bytes);
	text[used + bytes] = '\0';
	return 0;
}

/* Append what old has and the entries do not; *selects: one of them does so. */
static int append_old(char *text, size_t room, const char *old, const char *entries, bool *selects)
{
	struct entry entry;
	int error = 0;
	const char *rest = old;
	/* What begins with an exclusion selects everything else: as a first entry. */
	const bool all = next_entry(&rest, &entry) && entry.excludes;
	if (all)
		error = append(text, room, false, "*", 1);
	*selects = all;
	while (!error && next_entry(&old, &entry)) {
		if (names(entries, &entry) || (entry.excludes && !*selects))
			continue;
		*selects |= !entry.excludes;
		error = append(text, room, entry.excludes, entry.glob, entry.bytes);
	}
	return error;
}

int ky_category_list_edit(char *text, size_t room, const char *old, const char *entries, bool on)
{
	struct entry entry;
	bool selects = false;
	*text = '\0';
	if (!entries || strspn(entries, " ,") == strlen(entries))
		return on ? append(text, room, false, "*", 1) : 0;
	int error = old ? append_old(text, room, old, entries, &selects) : 0;
	while (!error && next_entry(&entries, &entry)) {
		const bool excludes = entry.excludes == on;
		if (excludes && !selects)
			continue;
		selects |= !excludes;
		error = append(text, room, excludes, entry.glob, entry.bytes);
	}
	return error;
}
