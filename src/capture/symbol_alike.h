/* SPDX-License-Identifier: MIT */
/*
 * symbol_alike.h: names that somebody may have meant who wrote one that is not there. Noted while a file is looked through
 * for the name, so that the answer is there when nothing was found.
 */
#ifndef KY_CAPTURE_SYMBOL_ALIKE_H
#define KY_CAPTURE_SYMBOL_ALIKE_H

#include <stddef.h>
#include <stdint.h>

#define KY_SYMBOL_ALIKE_MAX 3u

/* The nearest so far, the nearest first. Zeroed is none. */
struct ky_symbol_alike {
	char names[KY_SYMBOL_ALIKE_MAX][64]; /* cut */
	uint32_t distances[KY_SYMBOL_ALIKE_MAX];
	uint32_t count;
};

void ky_symbol_alike_note(struct ky_symbol_alike *alike, const char *wanted, const char *name);
/* "recv_all, recv_one"; "" when none is like it. Returns out. */
const char *ky_symbol_alike_text(const struct ky_symbol_alike *alike, char *out, size_t room);

#endif
