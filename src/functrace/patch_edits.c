/* SPDX-License-Identifier: MIT */
/*
 * patch_edits.c: bytes to overwrite in a process: see patch_parts.h.
 *
 *   edits, by address     ▪ ▪▪   ▪          ▪ ▪▪▪ ▪
 *   pages                |----|----|----|----|----|----|
 *   runs                 [image        ]    [image     ]     pages that have edits, next to each other
 *
 * A run is read, changed here, and written with one call: the process is stopped only for as long as the copying
 * takes. Pages are written once before, unchanged, so that the kernel has made the process's own copies of them by
 * then.
 */
#include "base/array.h"
#include "functrace/patch_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ky_patch_edit *ky_patch_edits_add(struct ky_patch_edits *edits, uint64_t address,
					 uint32_t entry, const void *expect, const void *put,
					 uint8_t bytes)
{
	struct ky_patch_edit *edit = KY_ARRAY_NEW(edits->items, edits->count, edits->room);
	if (!edit)
		return NULL;
	edit->address = address;
	edit->entry = entry;
	edit->bytes = edit->checked = edit->prologue = bytes;
	edit->good = true;
	memcpy(edit->expect, expect, bytes);
	memcpy(edit->put, put, bytes);
	return edit;
}

KY_ORDER(by_address, struct ky_patch_edit, KY_COMPARE(a->address, b->address))

static uint64_t page_of(uint64_t address)
{
	return address & ~(KY_PATCH_PAGE - 1);
}

/* Sort by address. Of two edits that overlap, drop the later one. */
static void sort(struct ky_patch_edits *edits)
{
	if (edits->count)
		qsort(edits->items, edits->count, sizeof(*edits->items), by_address);
	uint64_t end = 0;
	for (uint32_t i = 0; i < edits->count; i++) {
		struct ky_patch_edit *edit = &edits->items[i];
		if (edit->address < end)
			edit->good = false;
		else
			end = edit->address + edit->bytes;
	}
}

static int add_run(struct ky_patch_edits *edits, uint64_t from, uint64_t to)
{
	uint8_t *image = malloc(to - from);
	const struct ky_patch_run run = {.address = from, .bytes = to - from, .image = image};
	if (image && KY_ARRAY_ADD(edits->runs, edits->runs_count, edits->runs_room, run))
		return 0;
	free(image);
	return -ENOMEM;
}

static int make_runs(struct ky_patch_edits *edits)
{
	uint64_t from = 0, to = 0;
	for (uint32_t i = 0; i < edits->count; i++) {
		const struct ky_patch_edit *edit = &edits->items[i];
		const uint64_t first = page_of(edit->address);
		const uint64_t end = page_of(edit->address + edit->checked - 1) + KY_PATCH_PAGE;
		if (edit->data)
			continue;
		if (first > to || !to) {
			if (to && add_run(edits, from, to))
				return -ENOMEM;
			from = first;
		}
		to = end > to ? end : to;
	}
	return to ? add_run(edits, from, to) : 0;
}

static struct ky_patch_run *run_of(struct ky_patch_edits *edits, uint64_t address)
{
	const uint32_t count = KY_ARRAY_UPTO(edits->runs, edits->runs_count, address, address);
	struct ky_patch_run *run = count ? &edits->runs[count - 1] : NULL;
	return run && address - run->address < run->bytes ? run : NULL;
}

static int touch(const struct ky_patch_run *run, const struct ky_remote *remote)
{
	int error = 0;
	for (size_t at = 0; !error && at < run->bytes; at += KY_PATCH_PAGE)
		error = ky_remote_write(remote, run->address + at, run->image + at, 1);
	return error;
}

/* Read the bytes of the runs; no edit is good in a run that cannot be read or written (a shared mapping). */
static void read_runs(struct ky_patch_edits *edits, const struct ky_remote *remote)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < edits->runs_count; i++) {
		struct ky_patch_run *run = &edits->runs[i];
		if (ky_remote_read(remote, run->address, run->image, run->bytes) ||
		    touch(run, remote))
			free(run->image);
		else
			edits->runs[kept++] = *run;
	}
	edits->runs_count = kept;
}

static void apply(struct ky_patch_edits *edits, struct ky_patch_edit *edit)
{
	const struct ky_patch_run *run = run_of(edits, edit->address);
	if (!run || edit->address + edit->checked > run->address + run->bytes) {
		edit->good = false;
		return;
	}
	uint8_t *code = run->image + (edit->address - run->address);
	if (memcmp(code, edit->expect, edit->checked) != 0)
		edit->good = false;
	else
		memcpy(code, edit->put, edit->bytes);
}

int ky_patch_edits_prepare(struct ky_patch_edits *edits, const struct ky_remote *remote)
{
	sort(edits);
	if (make_runs(edits))
		return -ENOMEM;
	read_runs(edits, remote);
	for (uint32_t i = 0; i < edits->count; i++)
		if (edits->items[i].good && !edits->items[i].data)
			apply(edits, &edits->items[i]);
	return 0;
}

static void write_data(struct ky_patch_edit *edit, const struct ky_remote *remote)
{
	uint8_t now[16];
	edit->good = !ky_remote_read(remote, edit->address, now, edit->bytes) &&
		     memcmp(now, edit->expect, edit->bytes) == 0 &&
		     !ky_remote_write(remote, edit->address, edit->put, edit->bytes);
}

int ky_patch_edits_write(struct ky_patch_edits *edits, const struct ky_remote *remote)
{
	int error = 0;
	for (uint32_t i = 0; !error && i < edits->runs_count; i++)
		error = ky_remote_read(remote, edits->runs[i].address, edits->runs[i].image,
				       edits->runs[i].bytes);
	for (uint32_t i = 0; !error && i < edits->count; i++)
		if (edits->items[i].good && !edits->items[i].data)
			apply(edits, &edits->items[i]);
	for (uint32_t i = 0; !error && i < edits->runs_count; i++)
		error = ky_remote_write(remote, edits->runs[i].address, edits->runs[i].image,
					edits->runs[i].bytes);
	for (uint32_t i = 0; !error && i < edits->count; i++)
		if (edits->items[i].good && edits->items[i].data)
			write_data(&edits->items[i], remote);
	return error;
}

void ky_patch_edits_drop(struct ky_patch_edits *edits, struct ky_patch_edit *edit)
{
	const struct ky_patch_run *run = run_of(edits, edit->address);
	if (edit->good && !edit->data && run)
		memcpy(run->image + (edit->address - run->address), edit->expect, edit->bytes);
	edit->good = false;
}

struct ky_patch_edit *ky_patch_edits_inside(struct ky_patch_edits *edits, uint64_t address)
{
	/* The last one that begins before the address. */
	const uint32_t count = KY_ARRAY_UPTO(edits->items, edits->count, address, address - 1);
	struct ky_patch_edit *edit = count ? &edits->items[count - 1] : NULL;
	return edit && !edit->data && edit->good && address - edit->address < edit->prologue ? edit
											     : NULL;
}

void ky_patch_edits_free(struct ky_patch_edits *edits)
{
	for (uint32_t i = 0; i < edits->runs_count; i++)
		free(edits->runs[i].image);
	KY_ARRAY_FREE(edits->runs, edits->runs_room);
	KY_ARRAY_FREE(edits->items, edits->room);
	*edits = (struct ky_patch_edits){0};
}
