/* SPDX-License-Identifier: MIT */
/* export_loop.c: the loop that exporters have in common. */
#include "formats/export_loop.h"

#define PUSH_BYTES (256u << 10)
#define PROGRESS_ITEMS 16384u

int ky_export_drive(const struct ky_trace *trace, const struct ky_selection *selection,
		    struct ky_out *out, struct ky_export_left *left,
		    int (*progress)(void *, uint64_t, uint64_t), void *context,
		    ky_export_item_fn item, bool named_ends, void *self)
{
	struct ky_walk *walk;
	struct ky_walk_item next;
	int error = ky_walk_open(&walk, trace, selection, named_ends, left);
	if (error)
		return error;
	for (uint32_t items = 0; !error && ky_walk_next(walk, &next); items++) {
		item(self, &next);
		if (out->used >= PUSH_BYTES)
			error = ky_out_push(out);
		if (!error && progress && items % PROGRESS_ITEMS == 0)
			error = progress(context, ky_walk_done(walk), ky_walk_all(walk));
	}
	if (!error)
		error = ky_walk_error(walk);
	ky_walk_close(&walk);
	return error ? error : out->error;
}

uint64_t ky_export_snapshots(const struct ky_trace *trace)
{
	const struct ky_clock_rows *rows = &trace->clock_rows;
	uint64_t count = 0;
	for (uint32_t i = 0; i < rows->rows.count; i++)
		count += !i || rows->snapshot[i] != rows->snapshot[i - 1];
	return count;
}
