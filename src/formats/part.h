/* SPDX-License-Identifier: MIT */
/* part.h: a part of a trace as a trace of its own: what a selection leaves, cut at its edges. */
#ifndef KY_FORMATS_PART_H
#define KY_FORMATS_PART_H

#include "formats/export.h"

/* Report whether a selection leaves everything. */
bool ky_part_is_all(const struct ky_export_selection *selection);
/* Make the part of a finished trace. Return 0 or -ENOMEM. */
int ky_part_make(struct ky_trace **part, const struct ky_trace *trace,
		 const struct ky_export_selection *selection);

#endif
