/* SPDX-License-Identifier: MIT */
/*
 * demangle.h: names of C++ and Rust (both its manglings) as people wrote them, by libiberty.
 */
#ifndef KY_PROCESS_DEMANGLE_H
#define KY_PROCESS_DEMANGLE_H

/*
 * The readable name, the caller's to free; NULL when it is none that a compiler made, or is too long to be worth it.
 * What the linker adds behind it (".constprop.0", "@plt") is kept.
 */
char *ky_demangle(const char *name);

#endif
