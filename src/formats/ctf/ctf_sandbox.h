/* SPDX-License-Identifier: MIT */
/*
 * ctf_sandbox.h: babeltrace2's library ends the program when a trace breaks what it takes for granted, or has it ask
 * for more memory than there is. So a child reads the trace first, in memory in proportion to it: what the child
 * survives, we do.
 */
#ifndef KY_FORMATS_CTF_CTF_SANDBOX_H
#define KY_FORMATS_CTF_CTF_SANDBOX_H

#include "formats/load.h"

/*
 * bytes: of the trace's files. 0 when read() came to an end in the child, with whatever result; -EBADMSG and a message
 * when it did not; -errno, or what progress returned.
 */
int ky_ctf_rehearse(struct ky_load *load, uint64_t bytes,
		    int (*read)(struct ky_load *load, uint64_t bytes));

#endif
