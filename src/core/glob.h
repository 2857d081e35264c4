/* SPDX-License-Identifier: MIT */
/*
 * glob.h: match categories against a list of globs, as in kymo_options.categories and KYMO_CATEGORIES.
 *
 *	net,db*,-db.debug	these two, without db.debug
 *	-gpu,-*.verbose		everything else
 *
 * '*' is any run of bytes, '?' any one. '-' before a glob excludes. The last entry that matches
 * decides, so order matters: "-*,net" is net alone, "net,-*" is nothing. Where no entry matches, a
 * list that begins with an exclusion selects and any other does not. No list, and one without
 * entries, selects everything. Blanks around entries do not count.
 *
 * A category may be a comma-separated list itself ("net,slow"): it is selected when one of its
 * members is. Members that begin with "disabled-by-default-" are costly by convention (Chromium's):
 * only an entry that begins with those words matches one.
 *
 * Safe in signal handlers: no allocation, no lock, no libc. The time is at most the product of both
 * lengths.
 */
#ifndef KY_CORE_GLOB_H
#define KY_CORE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Report whether one glob matches the whole text. */
bool ky_glob_match(const char *glob, size_t glob_bytes, const char *text, size_t text_bytes);

/* Report whether the list selects the category. A NULL list is everything, a NULL category is "". */
bool ky_glob_list_match(const char *list, const char *category);

#endif
