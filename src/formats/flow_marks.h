/* SPDX-License-Identifier: MIT */
/*
 * flow_marks.h: flows as formats have them: a begin, steps and an end, each an event inside a slice.
 *
 * The model has arrows from slice to slice. Those with the same id, category and name that go on from each other are
 * one flow and keep their id; every other arrow is a flow of its own with an id that is made up where the
 * arrow's own is taken. A mark comes right after the slice's beginning, unless the flow would then arrive before it
 * left: then right before the slice's end. Flows of which one end is missing have one mark.
 */
#ifndef KY_FORMATS_FLOW_MARKS_H
#define KY_FORMATS_FLOW_MARKS_H

#include "formats/address.h"
#include "model/intake.h"

struct ky_flow_mark {
	uint64_t id;
	uint32_t slice;
	uint32_t name, category;
	uint32_t flow;   /* which of the flows that are written */
	uint8_t phase;   /* enum ky_flow_step */
	uint8_t at_end;  /* before the slice's end */
	uint8_t late;    /* some mark of this flow is at an end */
	uint8_t foreign; /* some slice of this flow is not on a thread's own track */
	uint8_t loose;   /* its other end is not in the trace */
};

struct ky_flow_marks {
	struct ky_flow_mark *marks; /* by slice, those at its end last */
	uint32_t count;
};

/*
 * Open the marks of the selected slices. addresses finds foreign flows; it may be NULL. Count in left the flows
 * that have no order of time. Return 0 or -ENOMEM.
 */
int ky_flow_marks_open(struct ky_flow_marks *marks, const struct ky_trace *trace,
		       const struct ky_export_selection *selection,
		       const struct ky_addresses *addresses, struct ky_export_left *left);
void ky_flow_marks_close(struct ky_flow_marks *marks);
/* Return the marks of a slice, those at its beginning or those at its end. */
const struct ky_flow_mark *ky_flow_marks_of(const struct ky_flow_marks *marks, uint32_t slice,
					    bool at_end, uint32_t *count);
/*
 * Hand the marks at the slice's begin or end to put(). Foreign flows, which formats without tracks do not have, are
 * counted in left.
 */
typedef void ky_flow_mark_fn(void *self, const struct ky_flow_mark *mark, int64_t ts);
void ky_flow_marks_put(const struct ky_flow_marks *marks, const struct ky_walk_item *item,
		       struct ky_export_left *left, ky_flow_mark_fn *put, void *self);

#endif
