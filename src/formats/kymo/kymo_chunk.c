/* SPDX-License-Identifier: MIT */
/* kymo_chunk.c: chunks of a .kymo file, from a body that is put together to bytes in the buffer. */
#include "formats/kymo/kymo_chunk.h"

#include <errno.h>
#include <stdlib.h>

#include "formats/compress.h"
#include "formats/xxh64.h"

#define ZSTD_LEVEL 1
#define BODY_BYTES (16u << 10)
#define PADDING_BYTES 8u

static struct ky_kymo_chunks *owner_of(struct ky_kymo_chunks *c)
{
	return c->lender ? c->lender : c;
}

static struct ky_zstd *zstd_of(const struct ky_kymo_chunks *c)
{
	return c->lender ? c->lender->zstd : c->zstd;
}

uint8_t *ky_kymo_chunks_body(struct ky_kymo_chunks *c, size_t bytes)
{
	struct ky_kymo_chunks *owner = owner_of(c);
	if (bytes + PADDING_BYTES <= owner->body_room)
		return owner->body;
	uint8_t *body = realloc(owner->body, bytes + PADDING_BYTES);
	if (!body) {
		if (!c->out->error)
			c->out->error = -ENOMEM;
		return NULL;
	}
	owner->body = body;
	owner->body_room = bytes + PADDING_BYTES;
	return body;
}

int ky_kymo_chunks_open(struct ky_kymo_chunks *c, struct ky_out *out, uint32_t source)
{
	*c = (struct ky_kymo_chunks){.out = out, .source = source};
	if (ky_zstd_open(&c->zstd) == -ENOMEM)
		return -ENOMEM;
	c->body = malloc(BODY_BYTES);
	c->body_room = c->body ? BODY_BYTES : 0;
	if (!c->body)
		ky_kymo_chunks_close(c);
	return c->body ? 0 : -ENOMEM;
}

void ky_kymo_chunks_borrow(struct ky_kymo_chunks *c, struct ky_out *out, uint32_t source,
			   struct ky_kymo_chunks *lender)
{
	*c = (struct ky_kymo_chunks){.out = out, .source = source, .lender = lender};
}

void ky_kymo_chunks_close(struct ky_kymo_chunks *c)
{
	ky_zstd_close(&c->zstd);
	free(c->body);
	*c = (struct ky_kymo_chunks){0};
}

size_t ky_kymo_chunks_bound(const struct ky_kymo_chunks *c, size_t bytes)
{
	const struct ky_zstd *zstd = zstd_of(c);
	const size_t bound = zstd ? ky_zstd_bound(zstd, bytes) : bytes;
	return (bound > bytes ? bound : bytes) + PADDING_BYTES;
}

size_t ky_kymo_chunks_store(struct ky_kymo_chunks *c, uint8_t *to, const uint8_t *from,
			    size_t bytes, size_t ratio_max)
{
	struct ky_zstd *zstd = zstd_of(c);
	int64_t stored = -1;
	if (zstd && bytes)
		stored = ky_zstd_compress(zstd, to, ky_kymo_chunks_bound(c, bytes), from, bytes,
					  ZSTD_LEVEL);
	if (stored > 0 && (size_t)stored < bytes && (size_t)stored * ratio_max >= bytes)
		return (size_t)stored;
	memcpy(to, from, bytes);
	return bytes;
}

void ky_kymo_chunks_write(struct ky_kymo_chunks *c, enum ky_kymo_chunk_type type, size_t bytes)
{
	const size_t padded = KY_KYMO_PADDED(bytes);
	uint8_t *body = owner_of(c)->body;
	memset(body + bytes, 0, padded - bytes);
	struct ky_kymo_chunk chunk = {
		.magic = KY_KYMO_MAGIC,
		.head_bytes = sizeof(chunk),
		.type = (uint16_t)type,
		.number = c->count++,
		.body_bytes = (uint32_t)padded,
		.source = c->source,
		.body_hash = ky_xxh64(body, padded),
	};
	chunk.head_hash = ky_xxh64(&chunk, offsetof(struct ky_kymo_chunk, head_hash));
	ky_out_append(c->out, &chunk, sizeof(chunk));
	ky_out_append(c->out, body, padded);
}

void ky_kymo_chunks_file(struct ky_kymo_chunks *c, uint16_t version, uint64_t ticks_per_s)
{
	const struct ky_kymo_head head = {
		.size = sizeof(head),
		.version = version,
		.version_min = version,
		.ticks_per_s = ticks_per_s,
	};
	uint8_t *body = ky_kymo_chunks_body(c, sizeof(head));
	if (!body)
		return;
	memcpy(body, &head, sizeof(head));
	ky_kymo_chunks_write(c, KY_KYMO_FILE, sizeof(head));
}

void ky_kymo_chunks_define(struct ky_kymo_chunks *c, const struct ky_out *records, uint32_t flags)
{
	struct ky_kymo_define define = {
		.size = sizeof(define), .flags = flags, .bytes = (uint32_t)records->used};
	uint8_t *body =
		ky_kymo_chunks_body(c, sizeof(define) + ky_kymo_chunks_bound(c, records->used));
	if (!body)
		return;
	define.stored_bytes = (uint32_t)ky_kymo_chunks_store(
		c, body + sizeof(define), records->data, records->used, KY_KYMO_DEFINE_RATIO_MAX);
	memcpy(body, &define, sizeof(define));
	ky_kymo_chunks_write(c, KY_KYMO_DEFINE, sizeof(define) + define.stored_bytes);
}

void ky_kymo_chunks_stream(struct ky_kymo_chunks *c, enum ky_kymo_stream_kind kind,
			   const uint8_t *data, uint32_t bytes)
{
	struct ky_kymo_stream stream = {.size = sizeof(stream), .kind = kind, .bytes = bytes};
	uint8_t *body = ky_kymo_chunks_body(c, sizeof(stream) + ky_kymo_chunks_bound(c, bytes));
	if (!body)
		return;
	stream.stored_bytes = (uint32_t)ky_kymo_chunks_store(c, body + sizeof(stream), data, bytes,
							     KY_KYMO_RATIO_MAX);
	memcpy(body, &stream, sizeof(stream));
	ky_kymo_chunks_write(c, KY_KYMO_STREAM, sizeof(stream) + stream.stored_bytes);
}

void ky_kymo_chunks_end(struct ky_kymo_chunks *c, uint64_t define_at, uint64_t index_at)
{
	const struct ky_kymo_end end = {
		.size = sizeof(end), .define_at = define_at, .index_at = index_at};
	uint8_t *body = ky_kymo_chunks_body(c, sizeof(end));
	if (!body)
		return;
	memcpy(body, &end, sizeof(end));
	ky_kymo_chunks_write(c, KY_KYMO_END, sizeof(end));
}

/* ---- records of definitions ---- */

/*
 *   ┌────────────────────────┬──────────────────────┬────────┬────────┬─ … ┬─────────┐
 *   │ struct ky_kymo_record  │ struct by its kind   │ text   │ text   │    │ padding │
 *   └────────────────────────┴──────────────────────┴────────┴────────┴─ … ┴─────────┘
 *     bytes ─ all of it        sizes of the texts
 */
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

void ky_kymo_define_program_end(struct ky_out *out, uint32_t source, uint32_t tid, uint64_t time_ns)
{
	const struct ky_kymo_program_end fixed = {.time_ns = time_ns, .source = source, .tid = tid};
	put_record(out, KY_KYMO_PROGRAM_END, &fixed, sizeof(fixed), NULL, 0);
}

void ky_kymo_define_loss(struct ky_out *out, struct ky_text what, uint64_t count, uint32_t number)
{
	const struct ky_kymo_loss fixed = {
		.count = count, .what_bytes = what.bytes, .number = number};
	put_record(out, KY_KYMO_LOSS, &fixed, sizeof(fixed), &what, 1);
}
