/* SPDX-License-Identifier: MIT */
/* view_running.h: the recordings that this user makes just now: files that a kymo has open for writing. */
#ifndef KY_CLI_VIEW_RUNNING_H
#define KY_CLI_VIEW_RUNNING_H

#include <limits.h>
#include <stdbool.h>

/*
 * The file of the only recording. False: there is none, or there are several; then it was said what to do, with
 * their names.
 */
bool ky_running_find(char path[PATH_MAX], bool quiet);

#endif
