/* SPDX-License-Identifier: MIT */
/*
 * selection.c: the functions that the user wants: see functions.h.
 *
 *   "net_*,-*debug*,module:libz.so*"  ─▶  entries in order, of which the last that matches decides
 *
 * An entry without a prefix is about names. C++ names have colons themselves: only "module:" and "file:" are
 * prefixes.
 */
#include "base/file.h"
#include "functrace/functions.h"

#include "core/glob.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum about { ABOUT_NAME, ABOUT_MODULE, ABOUT_FILE };

struct entry {
	const char *glob; /* in the text */
	size_t bytes;
	enum about about;
	bool excludes;
};

struct ky_selection {
	uint64_t min_bytes;
	char *text;
	struct entry *entries;
	uint32_t count;
	bool needs_lines;
};

static bool take_word(struct entry *entry, const char *word, enum about about)
{
	const size_t bytes = strlen(word);
	if (entry->bytes < bytes || memcmp(entry->glob, word, bytes) != 0)
		return false;
	entry->glob += bytes;
	entry->bytes -= bytes;
	entry->about = about;
	return true;
}

/*
 * Return the bytes of an entry. Commas inside brackets belong to a name: "std::map<int, int>::find", "f(int, char)".
 * "operator<" has a bracket that stays open.
 */
static size_t entry_bytes(const char *text)
{
	int depth = 0;
	size_t at = 0;
	for (; text[at] && (text[at] != ',' || depth > 0); at++) {
		if (text[at] == '<' || text[at] == '(')
			depth++;
		else if (text[at] == '>' || text[at] == ')')
			depth--;
	}
	return depth > 0 ? strcspn(text, ",") : at;
}

static void trim(struct entry *entry)
{
	while (entry->bytes && (entry->glob[0] == ' ' || entry->glob[0] == '\t')) {
		entry->glob++;
		entry->bytes--;
	}
	while (entry->bytes &&
	       (entry->glob[entry->bytes - 1] == ' ' || entry->glob[entry->bytes - 1] == '\t'))
		entry->bytes--;
}

static int fail(char message[KY_MESSAGE_BYTES], const char *text, size_t bytes)
{
	return ky_fail(message, -EINVAL,
		       "cannot select functions by \"%.*s\": the glob is empty; use GLOB, -GLOB, "
		       "module:GLOB or file:GLOB",
		       bytes < 200 ? (int)bytes : 200, text);
}

static int take_entry(struct ky_selection *selection, const char *text, size_t bytes,
		      char message[KY_MESSAGE_BYTES])
{
	struct entry entry = {text, bytes, ABOUT_NAME, false};
	trim(&entry);
	if (entry.bytes == 0)
		return 0;
	if (entry.glob[0] == '-') {
		entry.excludes = true;
		entry.glob++;
		entry.bytes--;
	}
	if (!take_word(&entry, "module:", ABOUT_MODULE))
		take_word(&entry, "file:", ABOUT_FILE);
	if (entry.bytes == 0)
		return fail(message, text, bytes);
	selection->needs_lines |= entry.about == ABOUT_FILE;
	selection->entries[selection->count++] = entry;
	return 0;
}

static uint32_t count_commas(const char *text)
{
	uint32_t count = 0;
	for (; *text; text++)
		count += *text == ',';
	return count;
}

int ky_selection_parse(struct ky_selection **out, const char *list, uint64_t min_bytes,
		       char message[KY_MESSAGE_BYTES])
{
	struct ky_selection *selection = calloc(1, sizeof(*selection));
	int error = 0;
	*out = NULL;
	if (selection) {
		selection->min_bytes = min_bytes;
		selection->text = strdup(list ? list : "");
	}
	if (selection && selection->text)
		selection->entries =
			calloc(count_commas(selection->text) + 1u, sizeof(*selection->entries));
	if (!selection || !selection->entries) {
		ky_selection_free(&selection);
		return ky_fail(message, -ENOMEM, "cannot select functions: out of memory");
	}
	for (const char *at = selection->text; *at && !error;) {
		const size_t bytes = entry_bytes(at);
		error = take_entry(selection, at, bytes, message);
		at += bytes + (at[bytes] == ',');
	}
	if (error)
		ky_selection_free(&selection);
	*out = selection;
	return error;
}

void ky_selection_free(struct ky_selection **selection)
{
	struct ky_selection *own = *selection;
	*selection = NULL;
	if (!own)
		return;
	free(own->entries);
	free(own->text);
	free(own);
}

static bool match(const struct entry *entry, const char *text)
{
	return text && ky_glob_match(entry->glob, entry->bytes, text, strlen(text));
}

/*
 * Return the length of a name without its parameters, the last pair of brackets: "f::operator()(int) const". 0: it
 * has none.
 */
static size_t bytes_before_parameters(const char *name)
{
	const char *at = strrchr(name, ')');
	for (int depth = 0; at && at > name; at--) {
		depth += *at == ')';
		depth -= *at == '(';
		if (depth == 0)
			return (size_t)(at - name);
	}
	return 0;
}

/* Match a name; "ns::f(int)" is also known as "ns::f": users leave the parameters out. */
static bool match_name(const struct entry *entry, const struct ky_function *function)
{
	if (match(entry, function->name) || match(entry, function->linked))
		return true;
	const size_t bytes = bytes_before_parameters(function->name);
	return bytes && ky_glob_match(entry->glob, entry->bytes, function->name, bytes);
}

static bool matches(const struct entry *entry, const struct ky_functions *module,
		    const struct ky_function *function)
{
	switch (entry->about) {
	case ABOUT_MODULE:
		return match(entry, ky_file_name(module->path)) || match(entry, module->path);
	case ABOUT_FILE:
		return match(entry, ky_file_name(function->file)) || match(entry, function->file);
	default:
		return match_name(entry, function);
	}
}

bool ky_selection_wants(const struct ky_selection *selection, const struct ky_functions *module,
			const struct ky_function *function)
{
	if (!selection)
		return true;
	if (function->bytes < selection->min_bytes)
		return false;
	for (uint32_t i = selection->count; i-- > 0;) {
		if (matches(&selection->entries[i], module, function))
			return !selection->entries[i].excludes;
	}
	return selection->count == 0 || selection->entries[0].excludes;
}

bool ky_selection_needs_lines(const struct ky_selection *selection)
{
	return selection && selection->needs_lines;
}
