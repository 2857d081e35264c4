/* SPDX-License-Identifier: MIT */
/*
 * kymo_load.h: loads the sources of a .kymo file into one trace: drums, streams of other formats, and their common parts.
 */
#ifndef KY_FORMATS_KYMO_KYMO_LOAD_H
#define KY_FORMATS_KYMO_KYMO_LOAD_H

#include "formats/drum/drum_import.h"
#include "formats/kymo/kymo_bundle.h"
#include "formats/load.h"

/* Report whether the file's index shows that its events come in the order of time. */
bool ky_kymo_load_seems_ordered(const struct ky_kymo_bundle *bundle);
/* All of it. -EAGAIN: it is not ordered, and has to be read again so, into a new trace. */
int ky_kymo_load_sources(struct ky_load *load, struct ky_kymo_bundle *bundle, bool ordered);

/* ---- between the files that do it ---- */

/* The common parts of all sources: kymo_load_capture.c. */
struct ky_kymo_common {
	struct ky_window *windows;
	uint32_t windows_count;
	struct ky_event_told *told;
	uint32_t told_count;
};
/* Snapshots, notes and clocks into the trace. 0 or -ENOMEM. */
int ky_kymo_load_common(struct ky_trace *trace, const struct ky_kymo_bundle *bundle,
			struct ky_kymo_common *common);
void ky_kymo_common_free(struct ky_kymo_common *common);

/* Load the streams, each by the reader of its format: kymo_load_streams.c. */
int ky_kymo_load_streams(struct ky_load *load, const struct ky_kymo_bundle *bundle);

#endif
