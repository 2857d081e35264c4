/* SPDX-License-Identifier: MIT */
/*
 * ctf_field.h: fields of CTF events as arguments: structures and variants by dotted keys, arrays with indices,
 * enumerations by their labels.
 */
#ifndef KY_FORMATS_CTF_CTF_FIELD_H
#define KY_FORMATS_CTF_CTF_FIELD_H

#include "model/intake.h"

#include <babeltrace2/babeltrace.h>

/* Add the field to the set being made; it may be NULL. */
void ky_ctf_args(struct ky_trace *trace, const bt_field *field);
/* Return the member of a structure by its name, or NULL; structure may be NULL. */
const bt_field *ky_ctf_member(const bt_field *structure, const char *name);
/* Get its value as an integer; false when it is not one. */
bool ky_ctf_integer(const bt_field *field, int64_t *value);
/* Return its value as text: a string, or an array of characters copied to text; NULL for anything else. */
const char *ky_ctf_text(const bt_field *field, char *text, size_t bytes);

#endif
