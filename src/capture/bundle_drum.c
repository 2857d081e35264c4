/* SPDX-License-Identifier: MIT */
/*
 * bundle_drum.c: the parts of a bundle that are drums. Each has a writer of the recorder's own
 * .kymo format, which takes pieces of rings as they are and appends its chunks to the bundle's
 * buffer.
 *
 * In a later file of a rotation, a writer knows nothing. The process and the last clock readings
 * are written again when the file begins, a thread with its first piece, and trace points by the
 * writer itself.
 *
 * Losses are written once: each file's INDEX has those before its own pieces, the last one the rest
 * of the drum's total. When the bundle is full, pieces are left out and count as lost.
 */
#include "capture/bundle_part.h"

#include <errno.h>
#include <stdlib.h>

static const struct ky_format *const format = &ky_format_kymo;

static struct ky_text copy_of(struct ky_text text)
{
	char *copy = malloc((size_t)text.bytes + 1);
	if (!copy)
		return (struct ky_text){NULL, 0};
	if (text.bytes)
		memcpy(copy, text.data, text.bytes);
	copy[text.bytes] = '\0';
	return (struct ky_text){copy, text.bytes};
}

static void free_text(struct ky_text *text)
{
	free((void *)(uintptr_t)text->data);
	*text = (struct ky_text){NULL, 0};
}

static void remember_clock(struct ky_bundle_drum *drum, const struct ky_tick_reading *sample)
{
	if (sample->ticks)
		drum->clocks[drum->clocks_count++ % KY_BUNDLE_CLOCKS] = *sample;
}

static uint64_t oldest_clock(const struct ky_bundle_drum *drum)
{
	return drum->clocks_count > KY_BUNDLE_CLOCKS ? drum->clocks_count - KY_BUNDLE_CLOCKS : 0;
}

/*
 * Write the readings after the oldest, which is in the file's head. The newest comes first: a later
 * one would make the writer flush.
 */
static void restate_clocks(struct ky_bundle_drum *drum)
{
	for (uint64_t i = drum->clocks_count; i > oldest_clock(drum) + 1; i--)
		format->clock(drum->writer, &drum->clocks[(i - 1) % KY_BUNDLE_CLOCKS]);
}

void ky_bundle_drum_begin(struct ky_bundle *bundle, struct ky_bundle_part *part)
{
	struct ky_bundle_drum *drum = &part->drum;
	if (drum->clocks_count)
		drum->info.clock = drum->clocks[oldest_clock(drum) % KY_BUNDLE_CLOCKS];
	const int error = format->open(&drum->writer, &bundle->out, &drum->info);
	if (error)
		ky_bundle_fail(bundle, error);
	else
		restate_clocks(drum);
}

void ky_bundle_drum_flush(struct ky_bundle_part *part)
{
	if (part->drum.writer)
		format->flush(part->drum.writer);
}

static void finish(struct ky_bundle_drum *drum, uint64_t lost)
{
	if (!drum->writer)
		return;
	format->finish(drum->writer, lost);
	format->close(drum->writer);
	drum->writer = NULL;
	drum->lost_before += lost;
	drum->lost = 0;
}

void ky_bundle_drum_finish(struct ky_bundle_part *part)
{
	finish(&part->drum, part->drum.lost);
}

void ky_bundle_drum_close(struct ky_bundle_part *part)
{
	struct ky_bundle_drum *drum = &part->drum;
	if (drum->writer)
		format->close(drum->writer);
	ky_table_free(&drum->threads);
	free_text(&drum->info.process);
	free_text(&drum->info.command);
}

uint32_t ky_bundle_drum(struct ky_bundle *bundle, const struct ky_trace_info *info)
{
	struct ky_bundle_part *part = ky_bundle_add(bundle, KY_BUNDLE_PART_DRUM);
	if (!part)
		return 0;
	struct ky_bundle_drum *drum = &part->drum;
	drum->info = *info;
	drum->info.source = part->number;
	drum->info.pack = bundle->pack;
	drum->info.chunks = &bundle->about.chunks;
	drum->info.process = copy_of(info->process);
	drum->info.command = copy_of(info->command);
	drum->threads.item_bytes = sizeof(uint32_t);
	remember_clock(drum, &info->clock);
	if (!drum->info.process.data || !drum->info.command.data)
		ky_bundle_fail(bundle, -ENOMEM);
	else
		ky_bundle_drum_begin(bundle, part);
	if (bundle->out.error) {
		ky_bundle_drop(bundle, part);
		return 0;
	}
	const uint32_t number = part->number;
	ky_bundle_appended(bundle);
	return number;
}

void ky_bundle_process(struct ky_bundle *bundle, uint32_t number, int32_t pid, struct ky_text name)
{
	struct ky_bundle_part *part = ky_bundle_find(bundle, number, KY_BUNDLE_PART_DRUM);
	if (!part)
		return;
	if (pid == part->drum.info.pid) {
		const struct ky_text copy = copy_of(name);
		if (!copy.data) {
			ky_bundle_fail(bundle, -ENOMEM);
			return;
		}
		free_text(&part->drum.info.process);
		part->drum.info.process = copy;
	}
	format->process(part->drum.writer, pid, name);
}

/* Report whether the file has a record of the thread, and note that it does from now on. */
static bool is_told(struct ky_bundle *bundle, struct ky_bundle_drum *drum,
		    const struct ky_thread *thread)
{
	uint32_t *told = ky_table_make(&drum->threads, thread->index, &bundle->out);
	if (!told)
		return true; /* without memory nothing is written any more */
	const bool before = *told == bundle->file.number;
	*told = bundle->file.number;
	return before;
}

/*
 * A forked child that writes into its parent's drum has its parent's name. The names of threads off
 * the CPU are in other drums.
 */
static void tell_thread(const struct ky_bundle_drum *drum, const struct ky_thread *thread)
{
	const struct ky_text none = {"", 0};
	if (drum->info.layer != KY_DRUM_OWN && thread->pid != drum->info.pid)
		format->process(drum->writer, thread->pid,
				drum->info.layer == KY_DRUM_FUNCTIONS ? drum->info.process : none);
	format->thread(drum->writer, thread);
}

void ky_bundle_thread(struct ky_bundle *bundle, uint32_t number, const struct ky_thread *thread)
{
	struct ky_bundle_part *part = ky_bundle_find(bundle, number, KY_BUNDLE_PART_DRUM);
	if (!part)
		return;
	(void)is_told(bundle, &part->drum, thread);
	tell_thread(&part->drum, thread);
}

void ky_bundle_clock(struct ky_bundle *bundle, uint32_t number,
		     const struct ky_tick_reading *sample)
{
	struct ky_bundle_part *part = ky_bundle_find(bundle, number, KY_BUNDLE_PART_DRUM);
	if (!part)
		return;
	remember_clock(&part->drum, sample);
	format->clock(part->drum.writer, sample);
	ky_bundle_appended(bundle);
}

void ky_bundle_block(struct ky_bundle *bundle, uint32_t number, const struct ky_block *block,
		     const struct ky_thread *thread, struct ky_sites *sites)
{
	struct ky_bundle_part *part = ky_bundle_find(bundle, number, KY_BUNDLE_PART_DRUM);
	if (!part)
		return;
	struct ky_bundle_drum *drum = &part->drum;
	drum->lost += block->lost;
	if (bundle->full) {
		drum->lost += block->events;
		drum->left_out += block->events;
		return;
	}
	if (!is_told(bundle, drum, thread))
		tell_thread(drum, thread);
	format->block(drum->writer, block, thread, sites);
	bundle->events += block->events;
	ky_bundle_appended(bundle);
}

void ky_bundle_drum_end(struct ky_bundle *bundle, uint32_t number, uint64_t lost)
{
	struct ky_bundle_part *part = ky_bundle_find(bundle, number, KY_BUNDLE_PART_DRUM);
	if (!part)
		return;
	struct ky_bundle_drum *drum = &part->drum;
	const uint64_t all = lost + drum->left_out;
	const uint64_t rest = all > drum->lost_before ? all - drum->lost_before : 0;
	finish(drum, rest > drum->lost ? rest : drum->lost);
	ky_bundle_drop(bundle, part);
	ky_bundle_appended(bundle);
}
