/* SPDX-License-Identifier: MIT */
/*
 * utf8.c: makes text valid UTF-8. See utf8.h.
 */
#include "formats/utf8.h"

#include "core/utf8_scan.h"

#define REPLACEMENT "\xef\xbf\xbd"
#define ELLIPSIS "\xe2\x80\xa6"

/* Return where the character begins that the cut went through, or end. */
static const uint8_t *whole_end(const uint8_t *s, const uint8_t *end)
{
	const uint8_t *last = end;
	while (last > s && end - last < 4 && ky_utf8_is_continuation(last[-1]))
		last--;
	if (last == s)
		return end;
	const size_t promised = ky_utf8_promised(last[-1]);
	return promised > (size_t)(end - last) + 1 ? last - 1 : end;
}

struct ky_text ky_utf8_text(struct ky_out *scratch, struct ky_text text, bool cut)
{
	const uint8_t *s = (const uint8_t *)text.data;
	const uint8_t *end = s + text.bytes;
	if (!cut && ky_utf8_valid(s, end))
		return text;
	if (cut)
		end = whole_end(s, end);
	scratch->used = 0;
	while (s < end) {
		const size_t bytes = ky_utf8_sequence(s, end);
		if (bytes)
			ky_out_append(scratch, s, bytes);
		else
			ky_out_append(scratch, REPLACEMENT, 3);
		s += bytes ? bytes : ky_utf8_subpart(s, end);
	}
	if (cut)
		ky_out_append(scratch, ELLIPSIS, 3);
	return (struct ky_text){(const char *)scratch->data, (uint32_t)scratch->used};
}

struct ky_text ky_utf8_arg(struct ky_out *scratch, const struct kymo_arg *arg)
{
	if (!arg->string)
		return (struct ky_text){"(null)", 6};
	return ky_utf8_text(scratch, (struct ky_text){arg->string, arg->string_bytes}, arg->cut);
}
