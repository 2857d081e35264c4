/* SPDX-License-Identifier: MIT */
/*
 * init.h: what the parts above core do in a forked child. A copy of the library has one fork handler, and none that runs in the
 * parent: when a library is unloaded while another thread forks, glibc skips its handlers that were still to run (a lock
 * that the first took is never released) or aborts (if it had more than one).
 */
#ifndef KY_CORE_INIT_H
#define KY_CORE_INIT_H

/* Call child in each forked child, in the order of these calls. Other threads may have been anywhere. At most 4. */
void ky_init_on_fork(void (*child)(void));

#endif
