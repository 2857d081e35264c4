/* SPDX-License-Identifier: MIT */
/*
 * nearest.h: the names nearest to a wanted one, nearest first. They are noted while the name is searched for, so that a
 * message can suggest them when it is not found. All zero is empty.
 */
#ifndef KY_BASE_NEAREST_H
#define KY_BASE_NEAREST_H

#include <stddef.h>
#include <stdint.h>

#define KY_NEAREST_MAX 3u
#define KY_NEAREST_TEXT_BYTES 256
struct ky_nearest {
	char names[KY_NEAREST_MAX][64]; /* cut */
	uint32_t distances[KY_NEAREST_MAX];
	uint32_t count;
};

/* Note a name, if it is like the wanted one. The arguments of a function ("f(int)") do not count. */
void ky_nearest_note(struct ky_nearest *nearest, const char *wanted, const char *name);
/* Write "recv_all, recv_one", or "" when no name is like it. Return out. */
const char *ky_nearest_text(const struct ky_nearest *nearest, char *out, size_t room);
/* Write "; similar: recv_all, recv_one", or otherwise when no name is like it. Return out. */
const char *ky_nearest_hint(const struct ky_nearest *nearest, const char *otherwise, char *out,
			    size_t room);

#endif
