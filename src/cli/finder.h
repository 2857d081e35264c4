/* SPDX-License-Identifier: MIT */
/*
 * finder.h: `symbol:?`: the user chooses a function by typing some of its letters, in fzf. It draws on the terminal itself
 * (/dev/tty), so standard input and output stay what they are.
 */
#ifndef KY_CLI_FINDER_H
#define KY_CLI_FINDER_H

#include "capture/symbol_list.h"

/*
 * Put the chosen name into out. Return KY_EXIT_DONE; after a message KY_EXIT_FAILED when none was chosen, KY_EXIT_USAGE
 * without a terminal, KY_EXIT_IMPOSSIBLE without fzf.
 */
int ky_finder_choose(const struct ky_symbol_list *list, char *out, size_t room);

#endif
