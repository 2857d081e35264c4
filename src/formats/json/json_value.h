/* SPDX-License-Identifier: MIT */
/*
 * json_value.h: JSON tokens. What is written is valid for a strict parser and means the same to
 * Perfetto and catapult:
 *
 *   strings    valid UTF-8; control characters as \u00XX; never a surrogate escape, which Perfetto
 *              refuses.
 *   integers   as they are up to INT64_MAX, beyond that as a string of digits: readers take such a
 *              number for a double and round it.
 *   doubles    the shortest of the forms that read back as the same double, always with a point or
 *              an exponent, so that they stay doubles; NaN and the infinities as strings.
 */
#ifndef KY_FORMATS_JSON_JSON_VALUE_H
#define KY_FORMATS_JSON_JSON_VALUE_H

#include "core/event.h"
#include "formats/out.h"

/* At most so many bytes of a number token, quotes included. */
#define KY_JSON_NUMBER_BYTES 32

uint8_t *ky_json_put_uint(uint8_t *to, uint64_t value);
uint8_t *ky_json_put_int(uint8_t *to, int64_t value);
uint8_t *ky_json_put_double(uint8_t *to, double value);
/* A quoted string of a number in hexadecimal, "0x..". */
uint8_t *ky_json_put_hex(uint8_t *to, uint64_t value);
/* A quoted string. The text is valid UTF-8 (utf8.h). */
void ky_json_quote(struct ky_out *out, struct ky_text text);

#endif
