/* SPDX-License-Identifier: MIT */
/*
 * utf8_scan.h: find valid UTF-8 in bytes (RFC 3629: no overlong forms, no surrogates, nothing over U+10FFFF).
 */
#ifndef KY_CORE_UTF8_SCAN_H
#define KY_CORE_UTF8_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool ky_utf8_is_continuation(uint8_t byte)
{
	return (byte & 0xc0) == 0x80;
}

/* Return how many bytes a sequence with that first byte has; 0 when none begins so. */
size_t ky_utf8_promised(uint8_t first);
/* Return the length of the valid sequence at s, or 0. */
size_t ky_utf8_sequence(const uint8_t *s, const uint8_t *end);
/* Return how many bytes at s, which begin no valid sequence, to replace together. */
size_t ky_utf8_subpart(const uint8_t *s, const uint8_t *end);
bool ky_utf8_valid(const uint8_t *s, const uint8_t *end);

#endif
