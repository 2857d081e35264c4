/* SPDX-License-Identifier: MIT */
/*
 * bundle_stream.c: the sources of a bundle in formats of others: records are gathered and written
 * as STREAM chunks, so that a chunk ends at the end of a record. Only a record larger than a reader
 * takes at once is cut.
 *
 * When the bundle is full, records are left out, but for symbols: without them what is in the file
 * already could not be read.
 */
#include "capture/bundle_parts.h"

#define GATHER_BYTES (256u << 10)

static void write_part(struct ky_bundle_stream *stream, const uint8_t *data, size_t bytes)
{
	ky_kymo_chunks_stream(&stream->chunks, stream->kind, data, (uint32_t)bytes);
}

void ky_bundle_stream_flush(struct ky_bundle_source *source)
{
	struct ky_bundle_stream *stream = &source->stream;
	if (stream->records.error && !stream->chunks.out->error)
		stream->chunks.out->error = stream->records.error;
	for (size_t at = 0; at < stream->records.used && !stream->chunks.out->error;) {
		const size_t left = stream->records.used - at;
		const size_t part = left < KY_KYMO_RAW_MAX ? left : KY_KYMO_RAW_MAX;
		write_part(stream, stream->records.data + at, part);
		at += part;
	}
	stream->records.used = 0;
}

void ky_bundle_stream_begin(struct ky_bundle *bundle, struct ky_bundle_source *source)
{
	(void)bundle;
	source->stream.chunks.count = 0;
	if (!source->stream.restate)
		return;
	source->stream.restate(source->stream.context, source->number);
	ky_bundle_stream_flush(source);
}

void ky_bundle_stream_close(struct ky_bundle_source *source)
{
	ky_kymo_chunks_close(&source->stream.chunks);
	ky_out_free(&source->stream.records);
}

uint32_t ky_bundle_stream(struct ky_bundle *bundle, enum ky_kymo_stream_kind kind,
			  void (*restate)(void *context, uint32_t source), void *context)
{
	struct ky_bundle_source *source = ky_bundle_add(bundle, KY_BUNDLE_STREAM);
	if (!source)
		return 0;
	struct ky_bundle_stream *stream = &source->stream;
	stream->kind = kind;
	stream->restate = restate;
	stream->context = context;
	int error = ky_kymo_chunks_open(&stream->chunks, &bundle->out, source->number);
	if (error == 0)
		error = ky_out_init(&stream->records, 2 * GATHER_BYTES);
	if (error) {
		ky_bundle_fail(bundle, error);
		ky_bundle_drop(bundle, source);
		return 0;
	}
	return source->number;
}

void ky_bundle_stream_write(struct ky_bundle *bundle, uint32_t number, const void *data,
			    size_t bytes)
{
	struct ky_bundle_source *source = ky_bundle_find(bundle, number, KY_BUNDLE_STREAM);
	if (!source || (bundle->full && source->stream.kind != KY_KYMO_STREAM_SYMBOLS))
		return;
	ky_out_append(&source->stream.records, data, bytes);
	if (source->stream.records.used < GATHER_BYTES && !source->stream.records.error)
		return;
	ky_bundle_stream_flush(source);
	ky_bundle_appended(bundle);
}
