/* SPDX-License-Identifier: MIT */
/*
 * version.h: the version of kymo. The build, the pkg-config file and the CMake package take it from here.
 */
#ifndef KYMO_VERSION_H
#define KYMO_VERSION_H

#include <kymo/kymo.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of these headers, for #if and as text. */
#define KYMO_VERSION_MAJOR 0
#define KYMO_VERSION_MINOR 1
#define KYMO_VERSION_PATCH 0
#define KYMO_VERSION "0.1.0"

/*
 * Return the version of the library that the program runs with, which may be newer than the headers it was built with:
 * "MAJOR.MINOR.PATCH". Never NULL; lives as long as the library. Safe in signal handlers.
 */
KYMO_API const char *kymo_version(void);

#ifdef __cplusplus
}
#endif

#endif /* KYMO_VERSION_H */
