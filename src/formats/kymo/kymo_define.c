/* SPDX-License-Identifier: MIT */
/*
 * kymo_define.c: records of definitions.
 *
 *   ┌────────────────────────┬──────────────────────┬────────┬────────┬─ … ┬─────────┐
 *   │ struct ky_kymo_record  │ struct by its kind   │ text   │ text   │    │ padding │
 *   └────────────────────────┴──────────────────────┴────────┴────────┴─ … ┴─────────┘
 *     bytes ─ all of it        sizes of the texts
 */
#include "formats/kymo/kymo_define.h"

static void put_record(struct ky_out *out, enum ky_kymo_record_kind kind, const void *fixed,
		       size_t fixed_bytes, const struct ky_text *texts, uint32_t texts_count)
{
	static const uint8_t zeros[8];
	size_t bytes = sizeof(struct ky_kymo_record) + fixed_bytes;
	for (uint32_t i = 0; i < texts_count; i++)
		bytes += texts[i].bytes;
	const size_t padded = KY_KYMO_PADDED(bytes);
	const struct ky_kymo_record record = {
		.bytes = (uint32_t)padded,
		.kind = (uint16_t)kind,
		.fixed_bytes = (uint16_t)fixed_bytes,
	};
	ky_out_append(out, &record, sizeof(record));
	ky_out_append(out, fixed, fixed_bytes);
	for (uint32_t i = 0; i < texts_count; i++)
		ky_out_append(out, texts[i].data, texts[i].bytes);
	ky_out_append(out, zeros, padded - bytes);
}

void ky_kymo_define_process(struct ky_out *out, int32_t pid, uint32_t layer, struct ky_text name,
			    struct ky_text command)
{
	const struct ky_kymo_process process = {.pid = pid,
						.name_bytes = name.bytes,
						.command_bytes = command.bytes,
						.layer = layer};
	const struct ky_text texts[] = {name, command};
	put_record(out, KY_KYMO_PROCESS, &process, sizeof(process), texts, 2);
}

void ky_kymo_define_thread(struct ky_out *out, const struct ky_thread *thread)
{
	const struct ky_kymo_thread fixed = {
		.pid = thread->pid,
		.tid = thread->alias ? thread->alias : thread->tid,
		.name_bytes = thread->name.bytes,
		.shown_tid = thread->alias ? thread->tid : 0,
	};
	put_record(out, KY_KYMO_THREAD, &fixed, sizeof(fixed), &thread->name, 1);
}

void ky_kymo_define_clock(struct ky_out *out, const struct ky_tick_reading *sample)
{
	const struct ky_kymo_clock clock = {
		.ticks = sample->ticks,
		.boottime_ns = sample->boottime_ns,
		.monotonic_ns = sample->monotonic_ns,
		.realtime_ns = sample->realtime_ns,
	};
	put_record(out, KY_KYMO_CLOCK, &clock, sizeof(clock), NULL, 0);
}

void ky_kymo_define_site(struct ky_out *out, uint32_t number, const struct ky_site *site)
{
	struct ky_kymo_site fixed = {
		.site = number,
		.kind = site->kind,
		.flags = site->flags,
		.items = site->items,
		.args = site->args,
		.line = site->line,
		.types = site->types,
	};
	struct ky_text texts[KY_KYMO_SITE_TEXTS] = {
		[KY_KYMO_CATEGORY] = site->category,
		[KY_KYMO_NAME] = site->name,
		[KY_KYMO_SOURCE] = site->file,
		[KY_KYMO_FUNCTION] = site->function,
	};
	memcpy(&texts[KY_KYMO_KEYS], site->keys, sizeof(site->keys));
	for (uint32_t i = 0; i < KY_KYMO_SITE_TEXTS; i++)
		fixed.text_bytes[i] = texts[i].bytes;
	put_record(out, KY_KYMO_SITE, &fixed, sizeof(fixed), texts, KY_KYMO_SITE_TEXTS);
}

void ky_kymo_define_snapshot(struct ky_out *out, const struct ky_kymo_snapshot *snapshot,
			     const struct ky_text texts[3])
{
	put_record(out, KY_KYMO_SNAPSHOT, snapshot, sizeof(*snapshot), texts, 3);
}

void ky_kymo_define_note(struct ky_out *out, struct ky_text note)
{
	put_record(out, KY_KYMO_NOTE, NULL, 0, &note, 1);
}
