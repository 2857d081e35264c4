/* SPDX-License-Identifier: MIT */
/* category_list.h: edit a list of category globs (core/glob.h), so that it selects more or less. */
#ifndef KY_CAPTURE_CATEGORY_LIST_H
#define KY_CAPTURE_CATEGORY_LIST_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Write into text what remains of the list old (NULL: it selects nothing) when the entries are switched on or off: of an
 * entry that stays the place, and of all that match a category the last one decides. entries NULL: all of them. Text "" is a list
 * that selects nothing, which as a list would select everything. Return 0, or -E2BIG: there is no room.
 */
int ky_category_list_edit(char *text, size_t room, const char *old, const char *entries, bool on);

#endif
