/* SPDX-License-Identifier: MIT */
/*
 * reach.h: how far the slices of a trace reach, by blocks of rows: so that who asks for a short range late in a long
 * trace passes over nearly all that ended before it. Slices are in the order of their begin, and only few of those that
 * began early last long.
 *
 *   rows   │▪ ▪▪ ▪ ▪│▪▪▪ ━━━━━━━━━━━━━━━━━━━━━━━│▪ ▪ ▪▪ │        from
 *   ends           ↑                            ↑       ↑         │      only the second block is looked at
 */
#ifndef KY_QUERY_REACH_H
#define KY_QUERY_REACH_H

#include "model/trace.h"

#define KY_REACH_ROWS 4096u

struct ky_reach {
	int64_t *ends; /* of each block: when the last of its slices ends */
};

/* 0 or -ENOMEM. One pass over all slices. */
int ky_reach_make(struct ky_reach *reach, const struct ky_trace *trace);
void ky_reach_free(struct ky_reach *reach);

#endif
