/* SPDX-License-Identifier: MIT */
/* ftrace_stream.h: the kernel's events in a .kymo file: a copy of tracefs as records (struct ky_kymo_ftrace). */
#ifndef KY_FORMATS_FTRACE_FTRACE_STREAM_H
#define KY_FORMATS_FTRACE_FTRACE_STREAM_H

#include "formats/load.h"

/*
 * Read the records of load->input into load->trace, up to damage, which is counted as a problem. Times are
 * CLOCK_BOOTTIME. Return 0, -ENOMEM, or the result of progress.
 */
int ky_ftrace_stream_read(struct ky_load *load);

#endif
