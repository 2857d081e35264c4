/* SPDX-License-Identifier: MIT */
/*
 * view_browser.h: opens the browser of the desktop, where there is one. An address on a command line could be read by
 * everybody on the machine, so the browser is given a file of ours that leads to it.
 */
#ifndef KY_CLI_VIEW_BROWSER_H
#define KY_CLI_VIEW_BROWSER_H

#include "cli/view_scratch.h"

#include <signal.h>

/* Whether there is a screen to open one on. */
bool ky_browser_may_open(void);
/* Starts it and waits for nothing; mask: its signals. False: it could not, and that was said. */
bool ky_browser_open(const char *address, struct ky_scratch *scratch, const sigset_t *mask);

#endif
