/* SPDX-License-Identifier: MIT */
/*
 * finder_match.c: see finder_match.h. Scores are small whole numbers, so that the names are put in order by counting, in
 * a time that grows with their number alone; of equal ones the order of the list stays.
 */
#include "cli/finder_match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WHOLE_TRIES 8u /* places where the piece is as it was typed */
#define SCORE_BASE 512 /* of which pieces take away or to which they add */

struct name {
	const char *text;
	const char *small; /* without capitals */
	size_t bytes;
};

/* Not those of ctype.h, which are calls and go by the locale: names of functions are ASCII where it matters. */
static bool is_capital(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_small(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool has_capital(const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (is_capital(text[i]))
			return true;
	return false;
}

static void make_small(char *to, const char *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = is_capital(from[i]) ? (char)(from[i] + ('a' - 'A')) : from[i];
}

static bool begins_word(const char *name, size_t at)
{
	const char before = at ? name[at - 1] : '_';
	const bool letter = is_small(before) || is_capital(before);
	if (!letter && !is_digit(before))
		return true;
	return (is_small(before) && is_capital(name[at])) || (letter && is_digit(name[at]));
}

/* The end of the first run of the text that has the piece's letters in it, in order; 0: none. */
static size_t find_end(const char *text, size_t text_bytes, const char *piece, size_t bytes)
{
	const char *at = text;
	for (size_t i = 0; i < bytes; i++) {
		at = memchr(at, piece[i], text_bytes - (size_t)(at - text));
		if (!at)
			return 0;
		at++;
	}
	return (size_t)(at - text);
}

/* From the end back: there the letters are as close together as they come. */
static int score_back(const struct name *name, const char *text, size_t end, const char *piece,
		      size_t bytes)
{
	int score = 0;
	size_t last = end;
	for (size_t at = end, left = bytes; left; at--) {
		if (text[at - 1] != piece[left - 1])
			continue;
		const size_t gap = left == bytes ? 0 : last - at;
		score += gap == 0 ? 12 : gap < 10 ? -(int)gap : -10;
		score += begins_word(name->text, at - 1) ? 10 : 0;
		last = at - 1;
		left--;
	}
	return score;
}

/* INT32_MIN: the piece is not in the name. A piece as it is beats its letters apart. */
static int score_piece(const struct name *name, const char *piece, size_t bytes)
{
	const char *text = has_capital(piece, bytes) ? name->text : name->small;
	const size_t end = find_end(text, name->bytes, piece, bytes);
	if (!end)
		return INT32_MIN;
	int best = score_back(name, text, end, piece, bytes);
	const char *at = text;
	for (uint32_t i = 0; i < WHOLE_TRIES; i++) {
		at = memmem(at, name->bytes - (size_t)(at - text), piece, bytes);
		if (!at)
			break;
		const int score = score_back(name, text, (size_t)(at - text) + bytes, piece, bytes);
		best = score > best ? score : best;
		at++;
	}
	return best;
}

static uint32_t score_name(const struct name *name, const char *typed)
{
	int sum = SCORE_BASE;
	for (const char *piece = typed + strspn(typed, " "); *piece;) {
		const size_t bytes = strcspn(piece, " ");
		const int score = score_piece(name, piece, bytes);
		if (score == INT32_MIN)
			return 0;
		sum += score;
		piece += bytes;
		piece += strspn(piece, " ");
	}
	sum -= (int)(name->bytes < 160 ? name->bytes / 4 : 40); /* of equal ones the shorter */
	return sum < 1 ? 1 : sum >= (int)KY_FINDER_SCORES ? KY_FINDER_SCORES - 1 : (uint32_t)sum;
}

uint32_t ky_finder_score(const char *text, const char *typed)
{
	const size_t bytes = strlen(text);
	char *small = malloc(bytes + 1);
	if (!small)
		return 0;
	make_small(small, text, bytes);
	const struct name name = {text, small, bytes};
	const uint32_t score = score_name(&name, typed);
	free(small);
	return score;
}

static const char *name_at(const struct ky_finder_matches *matches, uint32_t index)
{
	return ky_symbol_list_at(matches->list, index)->name;
}

static bool make_small_names(struct ky_finder_matches *matches, uint32_t count)
{
	size_t bytes = 0;
	matches->small_at = malloc((count + 1u) * sizeof(*matches->small_at));
	if (!matches->small_at)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		matches->small_at[i] = bytes;
		bytes += strlen(name_at(matches, i));
	}
	matches->small_at[count] = bytes;
	matches->small = malloc(bytes + 1);
	for (uint32_t i = 0; matches->small && i < count; i++)
		make_small(matches->small + matches->small_at[i], name_at(matches, i),
			   matches->small_at[i + 1] - matches->small_at[i]);
	return matches->small != NULL;
}

int ky_finder_matches_open(struct ky_finder_matches *matches, const struct ky_symbol_list *list)
{
	const uint32_t count = ky_symbol_list_count(list);
	*matches = (struct ky_finder_matches){.list = list};
	matches->order = malloc((count + 1u) * sizeof(*matches->order));
	matches->scores = calloc(count + 1u, sizeof(*matches->scores));
	if (!matches->order || !matches->scores || !make_small_names(matches, count)) {
		ky_finder_matches_close(matches);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		matches->scores[i] = 1;
	ky_finder_matches_find(matches, "");
	return 0;
}

void ky_finder_matches_close(struct ky_finder_matches *matches)
{
	free(matches->order);
	free(matches->scores);
	free(matches->small);
	free(matches->small_at);
	*matches = (struct ky_finder_matches){0};
}

/* What does not match does not match when more is typed. */
static void score_all(struct ky_finder_matches *matches, const char *typed)
{
	const uint32_t count = ky_symbol_list_count(matches->list);
	const bool all = typed[strspn(typed, " ")] == '\0';
	const bool more = strncmp(matches->typed, typed, strlen(matches->typed)) == 0;
	for (uint32_t i = 0; i < count; i++) {
		if (more && !matches->scores[i])
			continue;
		const struct name name = {name_at(matches, i),
					  matches->small + matches->small_at[i],
					  matches->small_at[i + 1] - matches->small_at[i]};
		matches->scores[i] = all ? 1 : (uint16_t)score_name(&name, typed);
	}
	const size_t bytes = strnlen(typed, KY_FINDER_TYPED_MAX - 1);
	memcpy(matches->typed, typed, bytes);
	matches->typed[bytes] = '\0';
}

void ky_finder_matches_find(struct ky_finder_matches *matches, const char *typed)
{
	const uint32_t count = ky_symbol_list_count(matches->list);
	uint32_t at[KY_FINDER_SCORES] = {0};
	score_all(matches, typed);
	for (uint32_t i = 0; i < count; i++)
		at[matches->scores[i]]++;
	matches->count = count - at[0];
	/* From numbers of each score to the first place of each: the highest comes first. */
	uint32_t place = 0;
	for (uint32_t score = KY_FINDER_SCORES; score-- > 1;) {
		const uint32_t of_score = at[score];
		at[score] = place;
		place += of_score;
	}
	for (uint32_t i = 0; i < count; i++)
		if (matches->scores[i])
			matches->order[at[matches->scores[i]]++] = i;
}
