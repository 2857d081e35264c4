/* SPDX-License-Identifier: MIT */
/* regexp_size.c: see regexp_size.h. */
#include "model/regexp_size.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 50u
#define SIZE_MOST (1u << 20)

/* The contents of parentheses, as far as parsed. */
struct group {
	size_t before; /* all but the last atom */
	size_t last;   /* the one that a repetition applies to */
};

/* Return the place behind a bracket expression: "[]a[:digit:]]". */
static const char *skip_brackets(const char *at)
{
	at += at[1] == '^' ? 2 : 1;
	for (const char *first = at; *at && (*at != ']' || at == first); at++) {
		if (*at != '[' || !at[1] || !strchr(":.=", at[1]))
			continue;
		const char close[] = {at[1], ']', '\0'};
		const char *end = strstr(at + 2, close);
		if (!end)
			return at + strlen(at);
		at = end + 1;
	}
	return at + (*at == ']');
}

/* Return the place behind "{2,5}", and in *times its largest number plus one; NULL if it is no bound. */
static const char *skip_interval(const char *at, size_t *count)
{
	unsigned long largest = 0;
	for (at++; *at && *at != '}'; at++) {
		char *end;
		if (*at == ',')
			continue;
		if (*at < '0' || *at > '9')
			return NULL;
		const unsigned long number = strtoul(at, &end, 10);
		largest = number > largest ? number : largest;
		at = end - 1;
	}
	*count = largest < SIZE_MOST ? largest + 1 : SIZE_MOST;
	return *at ? at + 1 : NULL;
}

static void add_atom(struct group *group, size_t size)
{
	group->before += group->last;
	group->last = size;
}

/* Apply a repetition to the last atom and return the place behind it, or NULL. */
static const char *repeat(struct group *group, const char *at)
{
	size_t count = 0;
	const char *behind = at + 1;
	/* A repetition of repetitions takes time for each way through it. */
	if (*at == '+' || ((*at == '*' || *at == '?') && group->last > 1))
		count = 2;
	else if (*at == '*' || *at == '?')
		count = 1;
	else if (*at == '{')
		behind = skip_interval(at, &count);
	if (!count || !behind)
		return NULL;
	group->last = (group->last ? group->last : 1) * count;
	return behind;
}

size_t ky_regexp_size(const char *pattern)
{
	struct group groups[DEPTH_MAX + 1] = {{0, 0}};
	size_t depth = 0;
	for (const char *at = pattern; *at;) {
		struct group *group = &groups[depth];
		const char *behind = repeat(group, at);
		if (group->before + group->last > SIZE_MOST)
			return KY_REGEXP_ENDLESS;
		if (behind) {
			at = behind;
			continue;
		}
		if (*at == '\\' && at[1] >= '1' && at[1] <= '9')
			return KY_REGEXP_ENDLESS;
		if (*at == '(') {
			if (++depth > DEPTH_MAX)
				return KY_REGEXP_ENDLESS;
			groups[depth] = (struct group){0, 0};
		} else if (*at == ')' && depth) {
			depth--;
			add_atom(&groups[depth], group->before + group->last + 1);
		} else {
			add_atom(group, 1);
		}
		if (*at == '[')
			at = skip_brackets(at);
		else
			at += *at == '\\' && at[1] ? 2 : 1;
	}
	size_t size = 0;
	for (size_t i = 0; i <= depth; i++)
		size += groups[i].before + groups[i].last;
	return size;
}
