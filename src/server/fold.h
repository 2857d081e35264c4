/* SPDX-License-Identifier: MIT */
/* fold.h: text in lower case, as Unicode has it, whatever the locale: for comparing texts whatever their case. */
#ifndef KY_SERVER_FOLD_H
#define KY_SERVER_FOLD_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>

struct ky_fold {
	locale_t locale; /* 0: only ASCII folds */
	char *text;      /* what was folded last */
	size_t bytes, room;
};

void ky_fold_open(struct ky_fold *fold);
void ky_fold_close(struct ky_fold *fold);
/* False without memory. What is no UTF-8 stays as it is. */
bool ky_fold_text(struct ky_fold *fold, const char *text, size_t bytes);

static inline char ky_fold_ascii(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

#endif
