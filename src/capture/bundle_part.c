/* SPDX-License-Identifier: MIT */
/*
 * bundle_part.c: the parts of a bundle that are drums, and part 0.
 *
 * Each drum has a writer of the recorder's own .kymo format, which takes pieces of rings as they are and appends its
 * chunks to the bundle's buffer. In a later file of a rotation, a writer knows nothing. The process and the last clock
 * readings are written again when the file begins, a thread with its first piece, and trace points by the writer itself.
 *
 * Losses are written once: each file's INDEX has those before its own pieces, the last one the rest
 * of the drum's total. When the bundle is full, pieces are left out and count as lost.
 *
 * Part 0 concerns all parts. Its FILE chunk is the first of the file and requires a reader that supports several parts;
 * its END is the last. Its counter is CLOCK_BOOTTIME in nanoseconds. Clock readings relate it to the other clocks, so
 * that streams with times of another clock can be converted to BOOTTIME.
 */
#include "capture/bundle_part.h"

#include "base/clock.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
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
static bool has_record(struct ky_bundle *bundle, struct ky_bundle_drum *drum,
		       const struct ky_thread *thread)
{
	uint32_t *recorded_in = ky_table_make(&drum->threads, thread->index, &bundle->out);
	if (!recorded_in)
		return true; /* without memory nothing is written any more */
	const bool before = *recorded_in == bundle->file.number;
	*recorded_in = bundle->file.number;
	return before;
}

/*
 * A forked child that writes into its parent's drum has its parent's name. The names of threads off
 * the CPU are in other drums.
 */
static void write_thread(const struct ky_bundle_drum *drum, const struct ky_thread *thread)
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
	(void)has_record(bundle, &part->drum, thread);
	write_thread(&part->drum, thread);
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

#define PIECE_HEAD_BYTES 64u

void ky_bundle_block(struct ky_bundle *bundle, uint32_t number, const struct ky_block *block,
		     const struct ky_thread *thread, struct ky_sites *sites)
{
	ky_bundle_before_data(bundle);
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
	if (!has_record(bundle, drum, thread))
		write_thread(drum, thread);
	format->block(drum->writer, block, thread, sites);
	bundle->events += block->events;
	bundle->held_bytes += (uint64_t)block->count * sizeof(uint64_t) + PIECE_HEAD_BYTES;
	ky_bundle_appended(bundle);
}

void ky_bundle_loss(struct ky_bundle *bundle, uint32_t number, const char *what, uint64_t count)
{
	struct ky_bundle_part *part = ky_bundle_find(bundle, number, KY_BUNDLE_PART_DRUM);
	if (part && part->drum.writer)
		format->loss(part->drum.writer, what, count);
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

/* ---- part 0 ---- */

#define BUFFER_BYTES (16u << 10)
#define SECOND_NS UINT64_C(1000000000)
#define CLOCK_TRIES 8
#define NOTE_BYTES 1024

/*
 * Read the clocks one after the other, several times. Return the readings that took the least time.
 */
static struct ky_tick_reading read_clocks(void)
{
	struct ky_tick_reading best = {0};
	uint64_t best_ns = UINT64_MAX;
	for (int i = 0; i < CLOCK_TRIES; i++) {
		const uint64_t before = (uint64_t)ky_clock_ns(CLOCK_BOOTTIME);
		const uint64_t monotonic = (uint64_t)ky_clock_ns(CLOCK_MONOTONIC);
		const uint64_t realtime = (uint64_t)ky_clock_ns(CLOCK_REALTIME);
		const uint64_t took = (uint64_t)ky_clock_ns(CLOCK_BOOTTIME) - before;
		if (took >= best_ns)
			continue;
		best_ns = took;
		best = (struct ky_tick_reading){before + took / 2, before + took / 2, monotonic,
						realtime};
	}
	return best;
}

static void add_clock(struct ky_bundle_about *about)
{
	const struct ky_tick_reading sample = read_clocks();
	about->clock_ns = sample.boottime_ns;
	ky_kymo_define_clock(&about->fresh, &sample);
}

int ky_bundle_about_open(struct ky_bundle *bundle)
{
	struct ky_bundle_about *about = &bundle->about;
	int error = ky_kymo_chunks_open(&about->chunks, &bundle->out, 0);
	if (error == 0)
		error = ky_out_init(&about->fresh, BUFFER_BYTES);
	if (error == 0)
		error = ky_out_init(&about->all, BUFFER_BYTES);
	if (error == 0)
		error = ky_out_init(&about->notes, BUFFER_BYTES);
	return error;
}

void ky_bundle_about_close(struct ky_bundle *bundle)
{
	ky_kymo_chunks_close(&bundle->about.chunks);
	ky_out_free(&bundle->about.fresh);
	ky_out_free(&bundle->about.all);
	ky_out_free(&bundle->about.notes);
}

static void write_fresh(struct ky_bundle *bundle)
{
	struct ky_bundle_about *about = &bundle->about;
	if (about->fresh.error || about->all.error || about->notes.error)
		ky_bundle_fail(bundle, -ENOMEM);
	if (about->fresh.used == 0 || bundle->out.error)
		return;
	ky_kymo_chunks_define(&about->chunks, &about->fresh, 0);
	ky_out_append(&about->all, about->fresh.data, about->fresh.used);
	about->fresh.used = 0;
}

void ky_bundle_about_begin(struct ky_bundle *bundle)
{
	struct ky_bundle_about *about = &bundle->about;
	about->chunks.count = 0;
	about->all.used = 0;
	ky_kymo_chunks_file(&about->chunks, KY_KYMO_VERSION_SOURCES, SECOND_NS);
	ky_out_append(&about->fresh, about->notes.data, about->notes.used);
	add_clock(about);
	write_fresh(bundle);
}

void ky_bundle_about_flush(struct ky_bundle *bundle)
{
	if ((uint64_t)ky_clock_ns(CLOCK_BOOTTIME) >= bundle->about.clock_ns + SECOND_NS)
		add_clock(&bundle->about);
	write_fresh(bundle);
}

/* The totals are zero: each drum has its own. */
static void write_index(struct ky_kymo_chunks *chunks)
{
	const struct ky_kymo_index index = {.size = sizeof(index),
					    .entry_bytes = sizeof(struct ky_kymo_entry)};
	uint8_t *body = ky_kymo_chunks_body(chunks, sizeof(index));
	if (!body)
		return;
	memcpy(body, &index, sizeof(index));
	ky_kymo_chunks_write(chunks, KY_KYMO_INDEX, sizeof(index));
}

void ky_bundle_about_finish(struct ky_bundle *bundle)
{
	struct ky_bundle_about *about = &bundle->about;
	add_clock(about);
	write_fresh(bundle);
	if (bundle->out.error)
		return;
	const uint64_t define_at = ky_bundle_file_bytes(bundle);
	ky_kymo_chunks_define(&about->chunks, &about->all, KY_KYMO_DEFINE_ALL);
	const uint64_t index_at = ky_bundle_file_bytes(bundle);
	write_index(&about->chunks);
	if (!bundle->out.error)
		ky_kymo_chunks_end(&about->chunks, define_at, index_at);
}

static struct ky_text text_of(const char *text)
{
	return (struct ky_text){text ? text : "", text ? (uint32_t)strlen(text) : 0};
}

void ky_bundle_note(struct ky_bundle *bundle, const char *text, ...)
{
	char note[NOTE_BYTES];
	va_list list;
	va_start(list, text);
	vsnprintf(note, sizeof(note), text, list);
	va_end(list);
	ky_kymo_define_note(&bundle->about.notes, text_of(note));
	ky_kymo_define_note(&bundle->about.fresh, text_of(note));
	write_fresh(bundle);
	ky_bundle_appended(bundle);
}

void ky_bundle_snapshot(struct ky_bundle *bundle, const struct ky_bundle_snapshot *snapshot)
{
	const struct ky_text texts[] = {text_of(snapshot->trigger), text_of(snapshot->reason),
					text_of(snapshot->stack)};
	const struct ky_kymo_snapshot fixed = {
		.time_ns = snapshot->time_ns,
		.from_ns = snapshot->from_ns,
		.to_ns = snapshot->to_ns,
		.pid = snapshot->pid,
		.tid = snapshot->tid,
		.args = {snapshot->args[0], snapshot->args[1]},
		.args_count = snapshot->args_count,
		.trigger_bytes = texts[0].bytes,
		.reason_bytes = texts[1].bytes,
		.stack_bytes = texts[2].bytes,
		.noticed_ns = snapshot->noticed_ns,
	};
	ky_kymo_define_snapshot(&bundle->about.fresh, &fixed, texts);
	write_fresh(bundle);
	ky_bundle_appended(bundle);
}

void ky_bundle_program_end(struct ky_bundle *bundle, uint32_t part, uint64_t time_ns)
{
	ky_kymo_define_program_end(&bundle->about.fresh, part, 0, time_ns);
	write_fresh(bundle);
	ky_bundle_appended(bundle);
}

void ky_bundle_thread_end(struct ky_bundle *bundle, uint32_t part, int32_t tid, uint64_t time_ns)
{
	ky_kymo_define_program_end(&bundle->about.fresh, part, (uint32_t)tid, time_ns);
}
