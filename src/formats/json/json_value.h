/* SPDX-License-Identifier: MIT */
/*
 * json_value.h: JSON tokens. They are valid for a strict parser and mean the same to
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
#include "formats/json/json_schema.h"
#include "formats/out.h"

/* The longest number token, quotes included. */
#define KY_JSON_NUMBER_BYTES 32

uint8_t *ky_json_put_uint(uint8_t *to, uint64_t value);
uint8_t *ky_json_put_int(uint8_t *to, int64_t value);
uint8_t *ky_json_put_double(uint8_t *to, double value);
/* Write a quoted hexadecimal number, "0x..". */
uint8_t *ky_json_put_hex(uint8_t *to, uint64_t value);
/* Append a quoted string. The text is valid UTF-8 (utf8.h). */
void ky_json_quote(struct ky_out *out, struct ky_text text);

/* Append text as it is. */
static inline void ky_json_append(struct ky_out *out, const char *text)
{
	ky_out_append(out, text, strlen(text));
}

static inline void ky_json_append_int(struct ky_out *out, int64_t value)
{
	ky_out_done(out, ky_json_put_int(ky_out_room(out, KY_JSON_NUMBER_BYTES), value));
}

static inline void ky_json_append_uint(struct ky_out *out, uint64_t value)
{
	ky_out_done(out, ky_json_put_uint(ky_out_room(out, KY_JSON_NUMBER_BYTES), value));
}

static inline void ky_json_append_hex(struct ky_out *out, uint64_t value)
{
	ky_out_done(out, ky_json_put_hex(ky_out_room(out, KY_JSON_NUMBER_BYTES), value));
}

static inline void ky_json_append_double(struct ky_out *out, double value)
{
	ky_out_done(out, ky_json_put_double(ky_out_room(out, KY_JSON_NUMBER_BYTES), value));
}

/* Append an argument's value: as a string of digits when it is above INT64_MAX. */
void ky_json_append_uint_arg(struct ky_out *out, uint64_t value);
/* Append text of any bytes, quoted; scratch is for making it valid. */
void ky_json_append_text(struct ky_out *out, struct ky_out *scratch, struct ky_text text);
/* Return the phase of events of a kind (enum kymo_kind): json_emit.c. */
enum ky_json_phase ky_json_emit_phase(uint8_t kind);

#endif
