/* SPDX-License-Identifier: MIT */
/*
 * utf8.h: text that is any bytes, made valid UTF-8, as every output format wants it.
 *
 * An invalid sequence (RFC 3629: no overlong forms, no surrogates, nothing over U+10FFFF)
 * becomes U+FFFD. A string that was cut when it was recorded loses the character the cut
 * went through and ends in U+2026, the ellipsis: the mark that there was more.
 */
#ifndef KY_FORMATS_UTF8_H
#define KY_FORMATS_UTF8_H

#include "core/event.h"
#include "formats/out.h"

/*
 * Return the text as valid UTF-8: the very same where it is valid and whole, else a copy in scratch, which
 * lives until scratch is used again. When memory is short: empty, and scratch->error is set.
 */
struct ky_text ky_utf8_text(struct ky_out *scratch, struct ky_text text, bool cut);

/* Return the bytes of the string argument as valid UTF-8; a null pointer reads "(null)", as in printf. */
struct ky_text ky_utf8_arg(struct ky_out *scratch, const struct kymo_arg *arg);

#endif
