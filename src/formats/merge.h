/* SPDX-License-Identifier: MIT */
/*
 * merge.h: several traces as one, and how far their clocks are apart.
 *
 *   first ───────────────────────────▶ ┐
 *   other, times moved by an offset ──▶┴─▶ a new trace, filled as readers fill one, finished by the caller
 */
#ifndef KY_FORMATS_MERGE_H
#define KY_FORMATS_MERGE_H

#include "model/trace.h"

/*
 * Put all of a finished trace into one that is being filled. Processes and threads of the same machine and the
 * same ids become one. kernel: scheduling and kernel events too, which only one trace may have, since CPUs have
 * no machine. 0 or -ENOMEM; into->error says the rest.
 */
int ky_merge_add(struct ky_trace *into, const struct ky_trace *from, int64_t offset_ns,
		 uint32_t machine, bool kernel);

enum ky_align_by {
	KY_ALIGN_NONE,     /* nothing says */
	KY_ALIGN_BOOT,     /* the same boot: one clock */
	KY_ALIGN_REALTIME, /* snapshots of the time of day */
	KY_ALIGN_FLOWS,    /* messages that left one trace and arrived in the other */
	KY_ALIGN_GIVEN     /* the user said */
};

struct ky_alignment {
	enum ky_align_by by;
	int64_t offset_ns;    /* to add to times of the other trace */
	int64_t uncertain_ns; /* to either side; -1: not known */
	uint32_t forth, back; /* flows: from the first to the other, and back */
	bool contradicts;     /* some message would have arrived before it left */
};

struct ky_alignment ky_align_by_clocks(struct ky_trace *first, struct ky_trace *other);
struct ky_alignment ky_align_by_flows(const struct ky_trace *first, const struct ky_trace *other);
/* "clock snapshots (same boot)", ... */
const char *ky_align_name(enum ky_align_by by);

#endif
