/* SPDX-License-Identifier: MIT */
/*
 * bundle_about.c: part 0 of a bundle, which concerns all parts. Its FILE chunk is the first of the
 * file and requires a reader that supports several parts; its END is the last.
 *
 * Its counter is CLOCK_BOOTTIME in nanoseconds. Clock readings relate it to the other clocks, so
 * that streams with times of another clock can be converted to BOOTTIME.
 */
#include "capture/bundle_part.h"

#include "base/clock.h"
#include <errno.h>

#include "formats/kymo/kymo_chunk.h"

#define BUFFER_BYTES (16u << 10)
#define SECOND_NS UINT64_C(1000000000)
#define CLOCK_TRIES 8

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

static uint64_t file_bytes(const struct ky_bundle *bundle)
{
	return bundle->out.pushed_bytes + bundle->out.used;
}

void ky_bundle_about_finish(struct ky_bundle *bundle)
{
	struct ky_bundle_about *about = &bundle->about;
	add_clock(about);
	write_fresh(bundle);
	if (bundle->out.error)
		return;
	const uint64_t define_at = file_bytes(bundle);
	ky_kymo_chunks_define(&about->chunks, &about->all, KY_KYMO_DEFINE_ALL);
	const uint64_t index_at = file_bytes(bundle);
	write_index(&about->chunks);
	if (!bundle->out.error)
		ky_kymo_chunks_end(&about->chunks, define_at, index_at);
}

static struct ky_text text_of(const char *text)
{
	return (struct ky_text){text ? text : "", text ? (uint32_t)strlen(text) : 0};
}

void ky_bundle_note(struct ky_bundle *bundle, const char *note)
{
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
