/* SPDX-License-Identifier: MIT */
/*
 * glob.c: match categories against lists of globs.
 *
 * A glob is matched from left to right. At a star the matcher notes where it is and goes on as if
 * the star were empty; when that fails, the star that was passed last swallows one byte more. No
 * earlier star ever has to be looked at again, because the last one can stand for whatever another
 * choice of the earlier ones would leave over: so there is no recursion and no exponential case.
 */
#include "core/glob.h"

#include "core/assert.h"

struct entry_text {
	const char *at;
	size_t bytes;
};

/* Members of a category that are off unless asked for by name begin with this and a '-'. */
static const char by_name_only[] = "disabled-by-default";

bool ky_glob_match(const char *glob, size_t glob_bytes, const char *text, size_t text_bytes)
{
	size_t g = 0;
	size_t t = 0;
	size_t star = glob_bytes; /* no star passed yet */
	size_t star_text = 0;

	while (t < text_bytes) {
		if (g < glob_bytes && glob[g] == '*') {
			star = g++;
			star_text = t;
		} else if (g < glob_bytes && (glob[g] == '?' || glob[g] == text[t])) {
			g++;
			t++;
		} else if (star < glob_bytes) {
			g = star + 1;
			t = ++star_text;
		} else {
			return false;
		}
	}
	while (g < glob_bytes && glob[g] == '*')
		g++;
	KY_ASSERT(g <= glob_bytes && t == text_bytes);
	return g == glob_bytes;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Return the next entry of a comma-separated list, without blanks; *list is NULL after the last. */
static struct entry_text next_entry(const char **list)
{
	struct entry_text entry = {*list, 0};
	const char *end = *list;

	while (*end && *end != ',')
		end++;
	*list = *end ? end + 1 : NULL;
	while (entry.at < end && is_blank(*entry.at))
		entry.at++;
	while (end > entry.at && is_blank(end[-1]))
		end--;
	entry.bytes = (size_t)(end - entry.at);
	return entry;
}

/* Report whether the text begins with by_name_only, and then has the given byte unless that is 0. */
static bool spells_prefix(struct entry_text text, char after)
{
	const size_t length = sizeof(by_name_only) - 1;

	if (text.bytes < length + (after != 0))
		return false;
	for (size_t i = 0; i < length; i++)
		if (text.at[i] != by_name_only[i])
			return false;
	return !after || text.at[length] == after;
}

static bool select_member(const char *list, struct entry_text member)
{
	const bool costly = spells_prefix(member, '-');
	bool seen = false;
	bool selected = false;

	while (list) {
		struct entry_text entry = next_entry(&list);
		if (entry.bytes == 0)
			continue;
		const bool exclude = entry.at[0] == '-';
		if (exclude) {
			entry.at++;
			entry.bytes--;
		}
		if (!seen)
			selected = exclude && !costly;
		seen = true;
		if (costly && !spells_prefix(entry, 0))
			continue;
		if (ky_glob_match(entry.at, entry.bytes, member.at, member.bytes))
			selected = !exclude;
	}
	return seen ? selected : !costly;
}

bool ky_glob_list_match(const char *list, const char *category)
{
	if (!list)
		list = "";
	if (!category)
		category = "";
	while (category) {
		const struct entry_text member = next_entry(&category);
		if (select_member(list, member))
			return true;
	}
	return false;
}
