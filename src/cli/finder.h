/* SPDX-License-Identifier: MIT */
/*
 * finder.h: `symbol:?`: the user chooses a function by typing some of its letters. fzf when it is installed, else a
 * finder of our own. Both draw on the terminal itself (/dev/tty), so standard input and output stay what they are.
 */
#ifndef KY_CLI_FINDER_H
#define KY_CLI_FINDER_H

#include "capture/symbol_list.h"

/*
 * Puts the name that was chosen into out. KY_EXIT_DONE; KY_EXIT_FAILED when none was; KY_EXIT_USAGE without a terminal.
 * What went wrong has been said.
 */
int ky_finder_choose(const struct ky_symbol_list *list, char *out, size_t room);

/* fzf: 0 with the index of what was chosen, -ECANCELED, or -ENOENT: there is no fzf that works. */
int ky_finder_fzf(const struct ky_symbol_list *list, uint32_t *chosen);
/* Our own on that terminal: 0 with the index, -ECANCELED, or -errno. */
int ky_finder_own(const struct ky_symbol_list *list, int terminal, uint32_t *chosen);

#endif
