/* SPDX-License-Identifier: MIT */
/* ftrace_stream.h: the kernel's events in a .kymo file: a copy of tracefs as records (struct ky_kymo_ftrace). */
#ifndef KY_FORMATS_FTRACE_FTRACE_STREAM_H
#define KY_FORMATS_FTRACE_FTRACE_STREAM_H

#include "formats/load.h"

/*
 * Reads the records of load->input into load->trace. Damage is a problem that is counted, and what is before it is
 * read. Times are taken as they are: CLOCK_BOOTTIME. 0, -ENOMEM, or what progress returned.
 */
int ky_ftrace_stream_read(struct ky_load *load);

#endif
