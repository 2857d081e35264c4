/* SPDX-License-Identifier: MIT */
/*
 * demangle.h: names of C++ and Rust (both its manglings) as people wrote them, by libiberty.
 */
#ifndef KY_PROCESS_DEMANGLE_H
#define KY_PROCESS_DEMANGLE_H

/*
 * Return the readable name, which the caller frees; NULL when no compiler made the name, or it is too long. A
 * suffix of the linker (".constprop.0", "@plt") is kept.
 */
char *ky_demangle(const char *name);

#endif
