/* SPDX-License-Identifier: MIT */
/*
 * pt.h: the engine pt: Intel Processor Trace through perf_event's AUX buffer in snapshot mode, decoded by libipt.
 *
 *   perf_event intel_pt, one for each thread ─ AUX ring, overwritten ─▶ packets ─▶ pt_decode ─▶ calls and returns ─▶ made_drum
 *   PERF_RECORD_MMAP2, ITRACE_START, SWITCH, AUX ─▶ images, times, gaps
 */
#ifndef KY_FUNCTRACE_PT_H
#define KY_FUNCTRACE_PT_H

#include "functrace/functions.h"

/* Report whether the machine has it; if not, write why. */
bool ky_pt_available(char why[KY_MESSAGE_BYTES]);

struct ky_pt;
int ky_pt_open(struct ky_pt **pt, const struct ky_functrace_options *options,
	       char message[KY_MESSAGE_BYTES]);
int ky_pt_add(struct ky_pt *pt, pid_t pid, char message[KY_MESSAGE_BYTES]);
void ky_pt_round(struct ky_pt *pt);
/* Decode the present contents of the rings into the drums: before a window or the end is written. */
void ky_pt_decode(struct ky_pt *pt);
void ky_pt_ended(struct ky_pt *pt, pid_t pid);
void ky_pt_close(struct ky_pt **pt);

#endif
