/* SPDX-License-Identifier: MIT */
/*
 * symbol_match.h: whether a function is the one that somebody named. A function has up to three names: that of the
 * linker, the one of the source ("net::recv(int)"), and that without the arguments ("net::recv"). Copies that
 * the compiler made of a function for some of its callers (".constprop.0", ".isra.0") go by its name too.
 */
#ifndef KY_CAPTURE_SYMBOL_MATCH_H
#define KY_CAPTURE_SYMBOL_MATCH_H

#include <stdbool.h>

/* readable is the name of the source, or NULL when it is that of the linker. */
bool ky_symbol_match(const char *wanted, const char *linked, const char *readable);

#endif
