/* SPDX-License-Identifier: MIT */
/*
 * ctf_rehearse.h: babeltrace2's library ends the program when a trace breaks what it takes for granted, or has it ask
 * for more memory than there is. So a child reads the trace first, in memory in proportion to it: what the child
 * survives, we do.
 */
#ifndef KY_READER_CTF_REHEARSE_H
#define KY_READER_CTF_REHEARSE_H

#include "reader.h"

/*
 * bytes: of the trace's files. 0 when read() came to an end in the child, with whatever result; -EBADMSG and a message
 * when it did not; -errno, or what progress returned.
 */
int ky_ctf_rehearse(struct ky_load *load, uint64_t bytes,
		    int (*read)(struct ky_load *load, uint64_t bytes));

#endif
