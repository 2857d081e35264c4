/* SPDX-License-Identifier: MIT */
/* search_fold.c: see search.h. */
#include "server/search.h"

#include "base/array.h"
#include "core/utf8_scan.h"

#include <wctype.h>

void ky_search_fold_open(struct ky_search_fold *fold)
{
	*fold = (struct ky_search_fold){.locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0)};
}

void ky_search_fold_close(struct ky_search_fold *fold)
{
	if (fold->locale)
		freelocale(fold->locale);
	KY_ARRAY_FREE(fold->text, fold->room);
	*fold = (struct ky_search_fold){0};
}

static uint32_t decode(const uint8_t *s, size_t bytes)
{
	uint32_t code = bytes == 2 ? s[0] & 0x1fu : bytes == 3 ? s[0] & 0x0fu : s[0] & 0x07u;
	for (size_t i = 1; i < bytes; i++)
		code = code << 6 | (s[i] & 0x3fu);
	return code;
}

static size_t encode(uint32_t code, char *to)
{
	if (code < 0x80) {
		to[0] = (char)code;
		return 1;
	}
	const size_t bytes = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	for (size_t i = bytes - 1; i > 0; i--, code >>= 6)
		to[i] = (char)(0x80 | (code & 0x3f));
	to[0] = (char)((bytes == 2 ? 0xc0u : bytes == 3 ? 0xe0u : 0xf0u) | code);
	return bytes;
}

/* Append one character in lower case, and return how many bytes it had. */
static size_t fold_one(struct ky_search_fold *fold, const uint8_t *s, const uint8_t *end)
{
	const size_t bytes = *s < 0x80 ? 1 : ky_utf8_sequence(s, end);
	char *const to = fold->text + fold->bytes;
	if (bytes > 1 && fold->locale) {
		fold->bytes +=
			encode((uint32_t)towlower_l((wint_t)decode(s, bytes), fold->locale), to);
		return bytes;
	}
	to[0] = ky_search_fold_ascii((char)*s);
	fold->bytes++;
	return 1;
}

/* A lower-case character may be longer than its upper case: at most twice. */
bool ky_search_fold_text(struct ky_search_fold *fold, const char *text, size_t bytes)
{
	const uint8_t *s = (const uint8_t *)text;
	const uint8_t *const end = s + bytes;
	if (!KY_ARRAY_GROW(fold->text, fold->room, bytes * 2 + 8))
		return false;
	fold->bytes = 0;
	while (s < end)
		s += fold_one(fold, s, end);
	return true;
}
