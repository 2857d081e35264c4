/* SPDX-License-Identifier: MIT */
/*
 * regexp_size.h: how large a POSIX extended regular expression becomes in the C library, which
 * expands repetitions, nested ones multiplied ("a++" is a a* (a a*)*), recurses with the depth of
 * parentheses, and takes exponential time for loops within loops and for back references. A foreign
 * expression is checked before it is compiled.
 */
#ifndef KY_MODEL_REGEXP_SIZE_H
#define KY_MODEL_REGEXP_SIZE_H

#include <stddef.h>

#define KY_REGEXP_ENDLESS ((size_t)-1)

/* Return about how many parts an expression has when expanded; KY_REGEXP_ENDLESS if it must not be compiled. */
size_t ky_regexp_size(const char *pattern);

#endif
