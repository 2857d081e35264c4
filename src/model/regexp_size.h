/* SPDX-License-Identifier: MIT */
/*
 * regexp_size.h: how much the C library would make of a POSIX extended regular expression. It writes repetitions out,
 * one inside the other multiplied ("a++" is a a* (a a*)*), recurses with the depth of parentheses, and takes
 * exponential time for back references: an expression from elsewhere is looked at before it is compiled.
 */
#ifndef KY_MODEL_REGEXP_SIZE_H
#define KY_MODEL_REGEXP_SIZE_H

#include <stddef.h>

#define KY_REGEXP_ENDLESS ((size_t)-1)

/* About how many parts it has when written out; KY_REGEXP_ENDLESS for one that must not be compiled. */
size_t ky_regexp_size(const char *pattern);

#endif
