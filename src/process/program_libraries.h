/* SPDX-License-Identifier: MIT */
/*
 * program_libraries.h: the libraries that a program will load when it starts. Its own loader is asked (ld.so --list),
 * which does not run the program and looks where it will look: rpath, LD_LIBRARY_PATH, the cache, other C libraries'
 * ways. What it will load later (dlopen) is unknown.
 */
#ifndef KY_PROCESS_PROGRAM_LIBRARIES_H
#define KY_PROCESS_PROGRAM_LIBRARIES_H

#include <stdbool.h>

/* Call back with each path; never for programs that need no loader, or whose loader does not answer. */
void ky_program_libraries(const char *program, void (*each)(void *context, const char *path),
			  void *context);

/*
 * Report whether only root could have made the program's loader, or it has none. The program names its loader, so
 * asking any other one means running the program.
 */
bool ky_program_libraries_are_safe(const char *program);

#endif
